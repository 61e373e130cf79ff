/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libxxhash, with the vector instructions that the processor has. Inside of hash only.
 */
#ifndef CAIRN_HASH_XXH3_H
#define CAIRN_HASH_XXH3_H

#if defined(__x86_64__)
#include <xxh_x86dispatch.h> /* renames XXH3_128bits and its siblings to run-time choices */

__attribute__((target("avx"))) static inline void clear_upper_halves(void)
{
    __builtin_ia32_vzeroupper();
}

/*
 * To be called after the last of some calls of libxxhash. Its functions for wide registers (0.8.1)
 * return with the upper halves of these in use; from then on every SSE instruction of the thread,
 * ours or the program's, has to keep them and so waits for the one before it. Values were compared
 * at a quarter of the speed for that.
 */
static inline void crn_xxh3_leave(void)
{
    if (__builtin_cpu_supports("avx"))
        clear_upper_halves();
}
#else
#include <xxhash.h>

static inline void crn_xxh3_leave(void)
{
}
#endif

#endif
