/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One set of functions for each width of vectors that the processor may have, and the choice of the
 * widest at run time. Whoever includes this has defined the type key_set and DEFINE_SET(target,
 * width, attribute), which defines set_<target>.
 */
#ifndef CAIRN_HASH_BEST_H
#define CAIRN_HASH_BEST_H

DEFINE_SET(plain, 16, )
#if defined(__x86_64__)
DEFINE_SET(avx2, 32, __attribute__((target("avx2"))))
DEFINE_SET(avx512, 64, __attribute__((target("avx512f,avx512dq"))))

static const key_set *best_set(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return &set_avx512;
    return __builtin_cpu_supports("avx2") ? &set_avx2 : &set_plain;
}
#else
static const key_set *best_set(void)
{
    return &set_plain;
}
#endif

#endif
