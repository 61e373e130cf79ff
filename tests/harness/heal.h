/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Make the digests of a part file right again after its bytes were changed, so that what a reader
 * then meets is not damage but a lie: numbers that no writer would write, vouched for by digests.
 * Knows the layout, and deliberately nothing of the library's code for it. Follows references only
 * within the file, and no more than a budget of them.
 */
#ifndef CAIRN_TESTS_HEAL_H
#define CAIRN_TESTS_HEAL_H

#include "hash/hash.h"

enum {
    HEAL_SUPER = 512,
    HEAL_SLOT = 4096,
    HEAL_COPY = 2048,
    HEAL_START = 8192,
    /* offsets in records */
    HEAL_SUPER_FORMAT = 8,
    HEAL_SUPER_SEQ = 16,
    HEAL_SUPER_END = 56,
    HEAL_SUPER_REF = 64,
    HEAL_SUPER_DROPPED = 96,
    HEAL_SUPER_DIGEST = 496,
    HEAL_ENTRY = 56,
    HEAL_ENTRY_REF = 24,
    HEAL_RECORD = 32,
    HEAL_TABLE = 32
};

typedef struct heal {
    unsigned char *file;
    size_t nbytes;
    int budget;
} heal;

static inline uint64_t heal_get(const unsigned char *at, int n)
{
    uint64_t v = 0;
    for (int i = n; i-- > 0;)
        v = v << 8 | at[i];
    return v;
}

static inline void heal_put(unsigned char *at, int n, uint64_t v)
{
    for (int i = 0; i < n; i++, v >>= 8)
        at[i] = (unsigned char)v;
}

/* The bytes that a reference (offset, length, digest) means, or NULL. */
static inline unsigned char *heal_follow(heal *h, const unsigned char *ref, size_t *ret_n)
{
    uint64_t off = heal_get(ref, 8), n = heal_get(ref + 8, 8);
    if (off > h->nbytes || n > h->nbytes - off || h->budget-- <= 0)
        return NULL;
    *ret_n = (size_t)n;
    return h->file + off;
}

static inline void heal_sign(unsigned char *ref, const unsigned char *data, size_t n)
{
    crn_digest d = crn_digest_of(data, n);
    memcpy(ref + 16, d.b, sizeof d.b);
}

static inline void heal_table(heal *h, unsigned char *ref)
{
    size_t n;
    unsigned char *table = heal_follow(h, ref, &n);
    for (size_t at = 0; table && at + HEAL_TABLE <= n && h->budget-- > 0; at += HEAL_TABLE) {
        unsigned char *e = table + at;
        uint64_t off = heal_get(e, 8), len = heal_get(e + 8, 4);
        if (off <= h->nbytes && len <= h->nbytes - off)
            heal_sign(e, h->file + off, (size_t)len);
    }
    if (table)
        heal_sign(ref, table, n);
}

/* The place of a variable's table reference, and in *at the end of the variable; or NULL. */
static inline unsigned char *heal_variable(unsigned char *record, size_t n, size_t *at)
{
    size_t p = *at;
    for (int i = 0; i < 3; i++) { /* name, type, attributes */
        if (p + 2 > n)
            return NULL;
        p += 2 + (size_t)heal_get(record + p, 2);
    }
    if (p + 17 > n)
        return NULL;
    p += 17 + 24 * (size_t)record[p + 16] + 32; /* item, block, bytes, ndims; dims; counts, root */
    *at = p + 32;
    return *at <= n ? record + p : NULL;
}

static inline void heal_record(heal *h, unsigned char *ref)
{
    size_t n, at = HEAL_RECORD;
    unsigned char *record = heal_follow(h, ref, &n), *table;
    if (!record)
        return;
    while ((table = heal_variable(record, n, &at)) && h->budget-- > 0)
        heal_table(h, table);
    heal_sign(ref, record, n);
}

static inline void heal_catalogue(heal *h, unsigned char *ref)
{
    size_t n;
    unsigned char *cat = heal_follow(h, ref, &n);
    for (size_t at = 8; cat && at + HEAL_ENTRY <= n && h->budget-- > 0; at += HEAL_ENTRY)
        heal_record(h, cat + at + HEAL_ENTRY_REF);
    if (cat)
        heal_sign(ref, cat, n);
}

static inline void heal_part(unsigned char *file, size_t nbytes)
{
    heal h = {file, nbytes, 20000};
    for (size_t at = 0; at < HEAL_START && at + HEAL_SUPER <= nbytes; at += HEAL_COPY) {
        unsigned char *super = file + at;
        if (memcmp(super, "CAIRNPT\n", 8) != 0)
            continue;
        heal_catalogue(&h, super + HEAL_SUPER_REF);
        crn_digest d = crn_digest_of(super, HEAL_SUPER_DIGEST);
        memcpy(super + HEAL_SUPER_DIGEST, d.b, sizeof d.b);
    }
}

/* The same for a manifest, which ends with the digest of the rest. */
static inline void heal_manifest(unsigned char *data, size_t nbytes)
{
    if (nbytes < 16)
        return;
    crn_digest d = crn_digest_of(data, nbytes - 16);
    memcpy(data + nbytes - 16, d.b, sizeof d.b);
}

#endif
