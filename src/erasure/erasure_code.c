/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The code: its matrix, encoding stripes, rebuilding. The arithmetic over memory is ISA-L's. There
 * is no second path for a single parity block: a row of ones through ec_encode_data runs at 0.9 of
 * xor_gen from memory, and needs no aligned blocks.
 */
#include "erasure/erasure.h"

#include <assert.h>

#include <isa-l/erasure_code.h>

enum {
    PIECE = 1 << 20, /* bytes per call: ISA-L counts in int */
    TABLE = 32,      /* bytes that ISA-L wants per coefficient */
    MOST = 128 * 127 /* coefficients of a code: half of the blocks are data, half parity */
};

struct crn_erasure {
    int ndata, nparity;
    unsigned char table[]; /* of all rows of C */
};

struct crn_rebuild {
    int nsources, ntargets;
    uint8_t source[CRN_ERASURE_MAX], target[CRN_ERASURE_MAX]; /* block numbers, ascending */
    unsigned char table[];                                    /* ntargets rows */
};

uint8_t crn_erasure_coef(int parity, int data)
{
    unsigned char first = (unsigned char)(255 ^ data), own = (unsigned char)((255 - parity) ^ data);
    return gf_mul(first, gf_inv(own));
}

/* Row of the stripe's blocks over its data: a unit vector for data, a row of C for parity. */
static uint8_t row_coef(const crn_erasure *code, int block, int data)
{
    return block < code->ndata ? block == data : crn_erasure_coef(block - code->ndata, data);
}

cairn_status crn_erasure_check(void)
{
    return CAIRN_OK;
}

cairn_status crn_erasure_create(int ndata, int nparity, crn_erasure **ret)
{
    CRN_FAIL_IF(ndata < 1 || nparity < 1 || ndata > CRN_ERASURE_MAX - nparity, CAIRN_EINVAL,
                "a stripe of %d data and %d parity blocks: there must be one of each, and at most "
                "%d in all",
                ndata, nparity, CRN_ERASURE_MAX);
    crn_erasure *code;
    size_t ncoefs = (size_t)ndata * (size_t)nparity;
    CRN_TRY(crn_mem_alloc((void **)&code, 1, sizeof *code + TABLE * ncoefs, 0));
    code->ndata = ndata;
    code->nparity = nparity;

    unsigned char coef[MOST], *next = coef;
    for (int r = 0; r < nparity; r++)
        for (int j = 0; j < ndata; j++)
            *next++ = crn_erasure_coef(r, j);
    ec_init_tables(ndata, nparity, coef, code->table);
    *ret = code;
    return CAIRN_OK;
}

void crn_erasure_free(crn_erasure *code)
{
    free(code);
}

static void advance(unsigned char **at, int n, size_t nbytes)
{
    for (int i = 0; i < n; i++)
        at[i] += nbytes;
}

/* Each target is the sum of the sources times its row of coefficients; moves the pointers on. */
static void combine(const unsigned char *table, size_t nbytes, unsigned char **source, int nsources,
                    unsigned char **target, int ntargets)
{
    while (nbytes > 0) {
        size_t n = CRN_MIN(nbytes, PIECE);
        ec_encode_data((int)n, nsources, ntargets, (unsigned char *)table, source, target);
        advance(source, nsources, n);
        advance(target, ntargets, n);
        nbytes -= n;
    }
}

void crn_erasure_encode(const crn_erasure *code, size_t nbytes, unsigned char *const *data,
                        unsigned char *const *parity)
{
    unsigned char *source[CRN_ERASURE_MAX], *target[CRN_ERASURE_MAX];
    memcpy(source, data, (size_t)code->ndata * sizeof *source);
    memcpy(target, parity, (size_t)code->nparity * sizeof *target);
    combine(code->table, nbytes, source, code->ndata, target, code->nparity);
}

/*
 * Choose what to read and what to make, into a zeroed plan. Data is read rather than parity: where
 * only parity is lost, rebuilding is plain encoding.
 */
static cairn_status choose(const crn_erasure *code, const bool *present, const bool *wanted,
                           crn_rebuild *ret)
{
    int nblocks = code->ndata + code->nparity, npresent = 0;
    for (int i = 0; i < nblocks; i++) {
        npresent += present[i];
        if (present[i] && ret->nsources < code->ndata)
            ret->source[ret->nsources++] = (uint8_t)i;
        if (!present[i] && (!wanted || wanted[i]))
            ret->target[ret->ntargets++] = (uint8_t)i;
    }
    if (ret->ntargets == 0)
        ret->nsources = 0;
    CRN_FAIL_IF(ret->ntargets > 0 && npresent < code->ndata, CAIRN_ENOTFOUND,
                "%d of %d blocks of a stripe are missing, at most %d can be rebuilt",
                nblocks - npresent, nblocks, code->nparity);
    return CAIRN_OK;
}

/*
 * The matrix that gives the data from the sources: the inverse of the sources' rows. There always
 * is one, since the rows are a part of unit vectors over a Cauchy matrix. rows is used up.
 */
static void invert(const crn_erasure *code, const uint8_t *source, unsigned char *rows,
                   unsigned char *ret)
{
    for (int t = 0; t < code->ndata; t++)
        for (int j = 0; j < code->ndata; j++)
            rows[t * code->ndata + j] = row_coef(code, source[t], j);
    int singular = gf_invert_matrix(rows, ret, code->ndata);
    assert(!singular);
    (void)singular;
}

/* A target's row over the data, times the inverse, is its row over the sources. */
static void make_table(const crn_erasure *code, const unsigned char *inverse, crn_rebuild *plan)
{
    unsigned char coef[MOST], *next = coef;
    for (int i = 0; i < plan->ntargets; i++)
        for (int t = 0; t < code->ndata; t++) {
            unsigned char sum = 0;
            for (int j = 0; j < code->ndata; j++)
                sum ^= gf_mul(row_coef(code, plan->target[i], j), inverse[j * code->ndata + t]);
            *next++ = sum;
        }
    ec_init_tables(code->ndata, plan->ntargets, coef, plan->table);
}

cairn_status crn_rebuild_create(const crn_erasure *code, const bool *present, const bool *wanted,
                                crn_rebuild **ret)
{
    crn_rebuild chosen = {0}, *plan;
    CRN_TRY(choose(code, present, wanted, &chosen));
    size_t nsources = (size_t)chosen.nsources, square = nsources * nsources;
    size_t ncoefs = nsources * (size_t)chosen.ntargets;
    unsigned char *scratch;
    CRN_TRY(crn_alloc(&scratch, 2 * square));
    cairn_status rc = CAIRN_OK;
    CRN_TRY_OUT(rc, crn_mem_alloc((void **)&plan, 1, sizeof *plan + TABLE * ncoefs, 0));
    *plan = chosen;
    if (plan->ntargets > 0) {
        invert(code, plan->source, scratch, scratch + square);
        make_table(code, scratch + square, plan);
    }
    *ret = plan;
out:
    free(scratch);
    return rc;
}

void crn_rebuild_free(crn_rebuild *plan)
{
    free(plan);
}

void crn_rebuild_run(const crn_rebuild *plan, size_t nbytes, unsigned char *const *block)
{
    unsigned char *source[CRN_ERASURE_MAX], *target[CRN_ERASURE_MAX];
    if (plan->ntargets == 0)
        return;
    for (int t = 0; t < plan->nsources; t++)
        source[t] = block[plan->source[t]];
    for (int i = 0; i < plan->ntargets; i++)
        target[i] = block[plan->target[i]];
    combine(plan->table, nbytes, source, plan->nsources, target, plan->ntargets);
}
