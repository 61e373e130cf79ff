/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How often does a checksum miss a change? Algorithm 1 and Table 5.1 of K. Keller's thesis
 * "Resilience for Large Ensemble Computations": fill a block with random integers, change every
 * integer by a pattern of bits, and count the changed blocks whose checksum stays.
 *
 *     bench_collisions [iterations]      for the largest block; 2000 unless given
 *
 * The source leaves room, and this program chooses:
 *
 * The loop over i changes all N_b = b / 8 integers of the block before its one checksum is taken.
 * One changed integer alone could never give the rates of the table: Adler-32 cannot miss it.
 *
 * The patterns flip the last 1, 2, 4, 8 and 16 bits, as the text says, and p5 is a new random
 * integer for each block. The constants 0xff and 0xfff, printed for 4 and 8 bits, contradict the
 * table: there rates fall as the variance of the change grows, 1 : 5 : 85 : 21845 for 1, 2, 4 and 8
 * bits.
 *
 * Every row gets the same number of bytes, so small blocks, where collisions are, get more
 * iterations. Rates are per iteration, as in the source.
 *
 * Fletcher-32 sums little-endian 16-bit words and starts from zero. The source found 1.5e-5
 * everywhere, the rate of 16 random bits. Sums cannot do that: where only low bits change, both
 * change by small numbers, and miss what Adler-32 misses.
 */
#include "bench.h"
#include "hash/hash.h"

#include <inttypes.h>

#include <openssl/evp.h>
#include <zlib.h>

enum { SMALLEST = 128, LARGEST = 32768, NSIZES = 9, NPATTERNS = 6, WORDS = LARGEST / 8 };

/* A checksum of at most 128 bits; what is not written of sum stays zero. */
typedef void checksum(const void *data, size_t nbytes, unsigned char sum[16]);

static void adler(const void *data, size_t nbytes, unsigned char sum[16])
{
    uLong v = adler32(adler32(0, NULL, 0), data, (uInt)nbytes);
    memcpy(sum, &v, sizeof v);
}

static void crc(const void *data, size_t nbytes, unsigned char sum[16])
{
    uLong v = crc32(crc32(0, NULL, 0), data, (uInt)nbytes);
    memcpy(sum, &v, sizeof v);
}

/* The sums of 16384 words stay below 2^44, so that one division at the end is enough. */
static void fletcher(const void *data, size_t nbytes, uint64_t modulus, unsigned char sum[16])
{
    const unsigned char *at = data;
    uint64_t first = 0, second = 0;
    for (size_t i = 0; i + 1 < nbytes; i += 2) {
        first += at[i] | (uint64_t)at[i + 1] << 8;
        second += first;
    }
    uint64_t v = second % modulus << 16 | first % modulus;
    memcpy(sum, &v, sizeof v);
}

static void fletcher_65535(const void *data, size_t nbytes, unsigned char sum[16])
{
    fletcher(data, nbytes, 65535, sum);
}

static void fletcher_65536(const void *data, size_t nbytes, unsigned char sum[16])
{
    fletcher(data, nbytes, 65536, sum);
}

static void md5(const void *data, size_t nbytes, unsigned char sum[16])
{
    if (!EVP_Digest(data, nbytes, sum, NULL, EVP_md5(), NULL))
        bench_need(crn_fail(CAIRN_EUNSUPPORTED, "OpenSSL gives no MD5 here"));
}

static void ours(const void *data, size_t nbytes, unsigned char sum[16])
{
    crn_digest d = crn_digest_of(data, nbytes);
    memcpy(sum, d.b, sizeof d.b);
}

static const struct {
    const char *name;
    checksum *of;
} sums[] = {
    {"ADLER32", adler},
    {"FLETCHER32 - MOD(65536)", fletcher_65536},
    {"FLETCHER32 - MOD(65535)", fletcher_65535},
    {"CRC32", crc},
    {"MD5", md5},
    {"CAIRN (XXH3-128)", ours},
};
enum { NSUMS = sizeof sums / sizeof *sums };

/* Counted collisions of all checksums in blocks of one size. */
typedef struct row {
    size_t nbytes;
    uint64_t iterations;
    uint64_t missed[NSUMS][NPATTERNS];
} row;

/* One iteration of Algorithm 1 for one block size. */
static void try_block(row *r, crn_rng *rng)
{
    uint64_t block[WORDS], changed[WORDS];
    size_t nwords = r->nbytes / sizeof *block;
    for (size_t i = 0; i < nwords; i++)
        block[i] = crn_rng_u64(rng);
    unsigned char before[NSUMS][16] = {{0}};
    for (size_t k = 0; k < NSUMS; k++)
        sums[k].of(block, r->nbytes, before[k]);

    const uint64_t pattern[NPATTERNS] = {0x1, 0x3, 0xf, 0xff, 0xffff, crn_rng_u64(rng)};
    for (size_t p = 0; p < NPATTERNS; p++) {
        for (size_t i = 0; i < nwords; i++)
            changed[i] = block[i] ^ pattern[p];
        for (size_t k = 0; k < NSUMS; k++) {
            unsigned char after[16] = {0};
            sums[k].of(changed, r->nbytes, after);
            r->missed[k][p] += memcmp(before[k], after, sizeof after) == 0;
        }
    }
}

static void print_rate(uint64_t missed, uint64_t iterations)
{
    if (missed == 0)
        printf("  %8s", "0");
    else
        printf("  %8.2e", (double)missed / (double)iterations);
}

static void print_table(const row *rows)
{
    printf("%6s", "b");
    for (int p = 0; p < NPATTERNS; p++)
        printf("  %7s%d", "p", p);
    printf("  iterations\n");
    for (size_t k = 0; k < NSUMS; k++) {
        printf("        %s\n", sums[k].name);
        for (const row *r = rows; r < rows + NSIZES; r++) {
            printf("%6zu", r->nbytes);
            for (size_t p = 0; p < NPATTERNS; p++)
                print_rate(r->missed[k][p], r->iterations);
            printf("  %10" PRIu64 "\n", r->iterations);
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t iterations = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    if (argc > 2 || iterations == 0) {
        fprintf(stderr, "usage: bench_collisions [iterations]\n");
        return 2;
    }
    row rows[NSIZES] = {{0}};
    for (size_t s = 0; s < NSIZES; s++) {
        rows[s].nbytes = (size_t)SMALLEST << s;
        rows[s].iterations = iterations * (LARGEST / rows[s].nbytes);
        crn_rng rng = crn_rng_of(1, s);
        for (uint64_t i = 0; i < rows[s].iterations; i++)
            try_block(&rows[s], &rng);
    }
    print_table(rows);
    return 0;
}
