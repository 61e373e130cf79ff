/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exact digest: XXH3-128 by libxxhash, with the vector instructions that the processor has,
 * and the pass that copies what it digests.
 */
#include "hash/hash.h"

#include "hash/hash_xxh3.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static size_t kept = CRN_DIGEST_BYTES; /* written before threads start */

void crn_digest_weaken(size_t n)
{
    kept = n;
}

static crn_digest canonical(XXH128_hash_t hash)
{
    XXH128_canonical_t bytes;
    crn_digest d;
    _Static_assert(sizeof bytes.digest == sizeof d.b, "a digest is XXH3's 128 bits");
    XXH128_canonicalFromHash(&bytes, hash);
    memcpy(d.b, bytes.digest, sizeof d.b);
    if (kept < CRN_DIGEST_BYTES)
        memset(d.b + kept, 0, CRN_DIGEST_BYTES - kept);
    return d;
}

crn_digest crn_digest_of(const void *data, size_t nbytes)
{
    const XXH128_hash_t hash = XXH3_128bits(data, nbytes);
    crn_xxh3_leave();
    return canonical(hash);
}

bool crn_digest_equal(const crn_digest *a, const crn_digest *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

char *crn_digest_format(const crn_digest *d, char buf[CRN_DIGEST_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof d->b; i++) {
        buf[2 * i] = hex[d->b[i] >> 4];
        buf[2 * i + 1] = hex[d->b[i] & 15];
    }
    buf[2 * sizeof d->b] = 0;
    return buf;
}

/*
 * Bytes digested before they are copied. Both passes over a piece, and the lines that the copy
 * writes, have to fit the first-level cache (32 KiB on most machines): pieces of 64 KiB cost a
 * third more. One cache line is the unit of a write past the cache.
 */
enum { PIECE = 16384, LINE = 64 };

#if defined(__x86_64__)
/*
 * Whole lines, written without reading the old ones first. 16 bytes at a time, which every x86-64
 * processor can: the line leaves its write-combining buffer when it is full, and wider stores
 * measured within a few percent.
 */
static void stream_lines(unsigned char *dst, const unsigned char *src, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i += LINE) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + i + 48));
        _mm_stream_si128((__m128i *)(void *)(dst + i), a);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(dst + i + 48), d);
    }
}

/* Streamed stores are not ordered with others: without this, a flag could overtake its data. */
static void stream_end(void)
{
    _mm_sfence();
}
#else
static void stream_lines(unsigned char *dst, const unsigned char *src, size_t nbytes)
{
    memcpy(dst, src, nbytes);
}

static void stream_end(void)
{
}
#endif

/* The bytes before dst's first whole line and after its last one take the ordinary way. */
static void copy_piece(unsigned char *dst, const unsigned char *src, size_t nbytes)
{
    size_t head = CRN_MIN(-(uintptr_t)dst % LINE, nbytes);
    size_t body = (nbytes - head) / LINE * LINE;
    memcpy(dst, src, head);
    stream_lines(dst + head, src + head, body);
    memcpy(dst + head + body, src + head + body, nbytes - head - body);
}

void crn_copy_past(void *dst, const void *src, size_t nbytes)
{
    enum { WORTH = 8 * LINE }; /* of less, the part lines at both ends are too much */
    if (nbytes >= WORTH)
        copy_piece(dst, src, nbytes);
    else
        memcpy(dst, src, nbytes);
}

void crn_copy_end(void)
{
    stream_end();
}

/* The digest of the pieces so far is libxxhash's to lay out, so it is asked for one: that is no
 * more than 0.1% of the time of a block. Short blocks, and no memory, need none. */
crn_digest crn_digest_copy(void *dst, const void *src, size_t nbytes)
{
    XXH3_state_t *state = nbytes > PIECE ? XXH3_createState() : NULL;
    if (!state) {
        crn_digest d = crn_digest_of(src, nbytes);
        if (nbytes > 0)
            memcpy(dst, src, nbytes);
        return d;
    }
    unsigned char *to = dst;
    const unsigned char *from = src;
    XXH3_128bits_reset(state);
    while (nbytes > 0) {
        /* the first piece ends at a line of dst, so that only the two ends of all are part lines */
        size_t n = CRN_MIN(PIECE - (uintptr_t)to % LINE, nbytes);
        XXH3_128bits_update(state, from, n);
        crn_xxh3_leave();
        copy_piece(to, from, n);
        to += n, from += n, nbytes -= n;
    }
    stream_end();
    crn_digest d = canonical(XXH3_128bits_digest(state));
    crn_xxh3_leave();
    XXH3_freeState(state);
    return d;
}
