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
    HEAL_LIST = 36,
    HEAL_RECORD = 32,
    HEAL_PAGE = 16,
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

/* Sign the entries of a table: blocks as they are in memory, and, of long ones, stored bytes. */
static inline void heal_entries(heal *h, unsigned char *table, size_t n, size_t entry)
{
    for (size_t at = 0; at + entry <= n && h->budget-- > 0; at += entry) {
        unsigned char *e = table + at;
        uint64_t off = heal_get(e, 8), len = heal_get(e + 8, 4);
        if (off > h->nbytes || len > h->nbytes - off)
            continue;
        if (entry == HEAL_TABLE || heal_get(e + 12, 4) == 0)
            heal_sign(e, h->file + off, (size_t)len);
        if (entry != HEAL_TABLE)
            heal_sign(e + 16, h->file + off, (size_t)len);
    }
}

static inline void heal_table(heal *h, unsigned char *ref, size_t entry)
{
    size_t n;
    unsigned char *table = heal_follow(h, ref, &n);
    if (!table)
        return;
    heal_entries(h, table, n, entry);
    heal_sign(ref, table, n);
}

/* Where the declaration of a variable at p ends, or 0; and how many blocks it has. */
static inline size_t heal_declaration(const unsigned char *record, size_t n, size_t p,
                                      uint64_t *ret_nblocks)
{
    for (int i = 0; i < 3; i++) { /* name, type, attributes */
        if (p + 2 > n)
            return 0;
        p += 2 + (size_t)heal_get(record + p, 2);
    }
    if (p + 17 > n)
        return 0;
    const uint64_t block = heal_get(record + p + 4, 4), nbytes = heal_get(record + p + 8, 8);
    *ret_nblocks = block > 0 ? nbytes / block + (nbytes % block != 0) : 0;
    p += 17 + 24 * (size_t)record[p + 16] + 32; /* item, block, bytes, ndims; dims; counts, root */
    return p <= n ? p : 0;
}

/* Variables from p on. In format 2 a byte says how long entries are, 1, and whether they are here,
 * 2, and not elsewhere. */
static inline void heal_variables(heal *h, unsigned char *record, size_t n, size_t p, bool first)
{
    uint64_t nblocks;
    while ((p = heal_declaration(record, n, p, &nblocks)) > 0 && h->budget-- > 0) {
        const unsigned char kind = first || p >= n ? 0 : record[p];
        const size_t entry = kind & 1 ? 2 * HEAL_TABLE : HEAL_TABLE;
        p += !first;
        const size_t here = kind & 2 ? (nblocks < n ? (size_t)nblocks : n) * entry : 32;
        if (p > n || here > n - p)
            return;
        if (kind & 2)
            heal_entries(h, record + p, here, entry);
        else
            heal_table(h, record + p, entry);
        p += here;
    }
}

static inline void heal_page(heal *h, unsigned char *ref)
{
    size_t n;
    unsigned char *page = heal_follow(h, ref, &n);
    if (!page)
        return;
    heal_variables(h, page, n, HEAL_PAGE, false);
    heal_sign(ref, page, n);
}

static inline void heal_record(heal *h, unsigned char *ref)
{
    size_t n;
    unsigned char *record = heal_follow(h, ref, &n);
    if (!record)
        return;
    if (n >= 4 && memcmp(record, "MRK2", 4) == 0)
        for (size_t at = HEAL_RECORD; at + 32 <= n && h->budget-- > 0; at += 32)
            heal_page(h, record + at);
    else
        heal_variables(h, record, n, HEAL_RECORD, true);
    heal_sign(ref, record, n);
}

/* A page of a catalogue of format 2: entries have a name each. */
static inline void heal_list_page(heal *h, unsigned char *ref)
{
    size_t n, at = 8;
    unsigned char *page = heal_follow(h, ref, &n);
    if (!page)
        return;
    while (at + 2 <= n && h->budget-- > 0) {
        at += 2 + (size_t)heal_get(page + at, 2);
        if (at + HEAL_ENTRY > n)
            break;
        heal_record(h, page + at + HEAL_ENTRY_REF);
        at += HEAL_ENTRY;
    }
    heal_sign(ref, page, n);
}

static inline void heal_catalogue(heal *h, unsigned char *ref)
{
    size_t n;
    unsigned char *cat = heal_follow(h, ref, &n);
    const bool paged = cat && n >= 4 && memcmp(cat, "CTL2", 4) == 0;
    const size_t entry = paged ? HEAL_LIST : HEAL_ENTRY;
    for (size_t at = 8; cat && at + entry <= n && h->budget-- > 0; at += entry)
        if (paged)
            heal_list_page(h, cat + at);
        else
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
