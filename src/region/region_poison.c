/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of poison.
 *
 *   eight bytes   0 11111111111 1 | variable + 1, 11 bits | index, 37 bits
 *   four bytes    0 11111111 1 | variable + 1, 11 bits | index, 11 bits
 *
 * The sign is not looked at: a program may turn it.
 */
#include "region/region_poison.h"

#include <string.h>

enum { VAR_BITS = 11, INDEX64_BITS = 37, INDEX32_BITS = 11 };

static const uint64_t quiet64 = UINT64_C(0x7ff8) << 48;
static const uint32_t quiet32 = UINT32_C(0x7fc) << 20;

static uint64_t mask(unsigned bits)
{
    return (UINT64_C(1) << bits) - 1;
}

static uint64_t word64(crn_poison p)
{
    return quiet64 | (uint64_t)(p.var + 1) << INDEX64_BITS | (p.index & mask(INDEX64_BITS));
}

static uint32_t word32(crn_poison p)
{
    return quiet32 | (uint32_t)(p.var + 1) << INDEX32_BITS |
           (uint32_t)(p.index & mask(INDEX32_BITS));
}

/* A byte that any written value has by chance in one of 256 regions only. */
static unsigned char byte_of(uint64_t salt)
{
    salt = (salt + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned char)(salt >> 56);
}

void crn_poison_put(unsigned char *at, size_t nbytes, crn_poison p, uint64_t salt)
{
    const uint64_t w8 = word64(p);
    const uint32_t w4 = word32(p);
    if (nbytes % sizeof w8 == 0) {
        for (size_t i = 0; i < nbytes; i += sizeof w8)
            memcpy(at + i, &w8, sizeof w8);
    } else if (nbytes % sizeof w4 == 0) {
        for (size_t i = 0; i < nbytes; i += sizeof w4)
            memcpy(at + i, &w4, sizeof w4);
    } else {
        memset(at, byte_of(salt), nbytes);
    }
}

bool crn_poison_is_left(const unsigned char *at, size_t nbytes, crn_poison p, uint64_t salt)
{
    const uint64_t w8 = word64(p);
    const uint32_t w4 = word32(p);
    for (size_t i = 0; i < nbytes; i++) {
        const unsigned char *want = (const unsigned char *)&w8 + i % sizeof w8;
        const unsigned char byte = byte_of(salt);
        if (nbytes % sizeof w8 != 0)
            want = nbytes % sizeof w4 == 0 ? (const unsigned char *)&w4 + i % sizeof w4 : &byte;
        if (at[i] != *want)
            return false;
    }
    return true;
}

unsigned crn_poison_certain(size_t nbytes)
{
    return nbytes % 4 == 0 || nbytes > 4 ? 1 : (unsigned)(8 / nbytes);
}

static bool find64(uint64_t w, crn_poison *ret)
{
    w &= ~(UINT64_C(1) << 63);
    ret->var = (size_t)(w >> INDEX64_BITS & mask(VAR_BITS)) - 1;
    ret->index = w & mask(INDEX64_BITS);
    return w >> 48 == quiet64 >> 48 && ret->var != SIZE_MAX;
}

/* Of the indices with these lower bits, the one nearest to where the word was found. */
static bool find32(uint32_t w, uint64_t near, crn_poison *ret)
{
    const uint64_t step = UINT64_C(1) << INDEX32_BITS, low = w & mask(INDEX32_BITS);
    uint64_t at = (near & ~(step - 1)) | low;
    w &= ~(UINT32_C(1) << 31);
    if (at > near && at - near > step / 2 && at >= step)
        at -= step;
    else if (near > at && near - at > step / 2)
        at += step;
    ret->var = (size_t)(w >> INDEX32_BITS & mask(VAR_BITS)) - 1;
    ret->index = at;
    return (w & quiet32) == quiet32 && ret->var != SIZE_MAX;
}

bool crn_poison_find(const unsigned char *at, size_t nbytes, uint64_t near, crn_poison *ret)
{
    uint64_t w8;
    uint32_t w4;
    if (nbytes % sizeof w8 == 0) {
        for (size_t i = 0; i < nbytes; i += sizeof w8) {
            memcpy(&w8, at + i, sizeof w8);
            if (find64(w8, ret))
                return true;
        }
    } else if (nbytes % sizeof w4 == 0) {
        for (size_t i = 0; i < nbytes; i += sizeof w4) {
            memcpy(&w4, at + i, sizeof w4);
            if (find32(w4, near, ret))
                return true;
        }
    }
    return false;
}
