/* SPDX-License-Identifier: BSD-3-Clause */
#include "state/state_fill.h"

#include <inttypes.h>

enum {
    CACHED_WINDOW = 1 << 18, /* what a second-level cache surely holds */
    WINDOW = 1 << 22,        /* what keeps a device busy */
    COPIES = 1 << 16         /* at most, before what is there is brought to its place */
};

cairn_status crn_fill_begin(state_fill *f, const cairn_shelf *s, crn_part *part, const crn_mark *m,
                            crn_var *v)
{
    *f = (state_fill){.opt = &s->opt, .part = part, .mark = m, .var = v};
    const uint64_t nbytes = crn_part_is_cached(part) ? CACHED_WINDOW : WINDOW;
    f->room = CRN_MAX(nbytes / v->spec.block, 1);
    return crn_mark_table(part, m, v); /* before threads ask for it */
}

/* Any blocks, many reads at once. */
static cairn_status fetch(const state_fill *f, crn_fetch *fetch, crn_io *io, const uint64_t *block)
{
    crn_bad_blocks bad = {0};
    CRN_TRY(crn_fetch_start(fetch, io, f->part, f->mark, f->var, block, f->nblocks, f->window));
    cairn_status rc = crn_fetch_finish(fetch, io, &bad);
    if (rc == CAIRN_OK && bad.n > 0)
        rc = crn_fail(CAIRN_ECORRUPT, "variable '%s', block %" PRIu64 " is damaged",
                      f->var->spec.name, bad.at[0]);
    crn_vec_done(&bad);
    return rc;
}

static cairn_status read_scattered(const state_fill *f)
{
    crn_fetch *scattered = NULL;
    crn_io *io = NULL;
    uint64_t *block, n = 0;
    cairn_status rc;
    CRN_TRY(crn_alloc(&block, f->nblocks));
    for (size_t i = 0; i < f->run.n; i++)
        for (uint64_t k = 0; k < f->run.at[i].n; k++)
            block[n++] = f->run.at[i].first + k;
    CRN_TRY_OUT(rc, crn_fetch_create(&scattered));
    CRN_TRY_OUT(rc, crn_io_create(f->opt->backend, f->opt->depth, &io));
    rc = fetch(f, scattered, io, block);
out:
    crn_fetch_free(scattered);
    crn_io_free(io);
    free(block);
    return rc;
}

static cairn_status read_runs(const state_fill *f)
{
    uint64_t at = 0;
    if (f->run.n > 1 && !crn_part_is_cached(f->part))
        return read_scattered(f);
    for (size_t i = 0; i < f->run.n; i++) {
        const fill_run *r = &f->run.at[i];
        CRN_TRY(crn_mark_read(f->part, f->mark, f->var, r->first, r->n,
                              f->window + at * f->var->spec.block, NULL));
        at += r->n;
    }
    return CAIRN_OK;
}

/* Read what the window is to have, and bring it to its places. */
static cairn_status flush(state_fill *f)
{
    CRN_TRY(read_runs(f));
    for (size_t i = 0; i < f->copy.n; i++)
        crn_copy_past(f->copy.at[i].to, f->window + f->copy.at[i].from, f->copy.at[i].nbytes);
    crn_copy_end();
    f->run.n = f->copy.n = 0;
    f->nblocks = 0;
    return CAIRN_OK;
}

/* Let the window have a block, as its last. */
static cairn_status take_block(state_fill *f, uint64_t i)
{
    fill_run *last = f->run.n > 0 ? &f->run.at[f->run.n - 1] : NULL;
    if (last && last->first + last->n - 1 == i && f->copy.n < COPIES)
        return CAIRN_OK;
    if (f->nblocks == f->room || f->copy.n >= COPIES) {
        CRN_TRY(flush(f));
        last = NULL;
    }
    if (!f->window)
        CRN_TRY(crn_io_memory(f->room * f->var->spec.block, &f->window));
    if (last && last->first + last->n == i)
        last->n++;
    else
        CRN_TRY(crn_vec_push(&f->run, ((fill_run){i, 1})));
    f->nblocks++;
    return CAIRN_OK;
}

/* Bytes of whole blocks that begin at byte from, the start of one, and lie in nbytes. */
static uint64_t whole_blocks(const crn_var *v, uint64_t from, uint64_t nbytes)
{
    return from + nbytes == v->spec.nbytes ? nbytes : nbytes / v->spec.block * v->spec.block;
}

cairn_status crn_fill_add(state_fill *f, uint64_t from, unsigned char *to, uint64_t nbytes)
{
    const uint64_t block = f->var->spec.block, most = f->room * block;
    while (nbytes > 0) {
        const uint64_t i = from / block, in = from % block;
        uint64_t n = in == 0 ? whole_blocks(f->var, from, nbytes) : 0;
        if (n >= most) {
            CRN_TRY(crn_mark_read(f->part, f->mark, f->var, i, (n + block - 1) / block, to, NULL));
        } else {
            n = CRN_MIN(nbytes, block - in);
            CRN_TRY(take_block(f, i));
            CRN_TRY(crn_vec_push(&f->copy, ((fill_copy){(f->nblocks - 1) * block + in, to, n})));
        }
        from += n;
        to += n;
        nbytes -= n;
    }
    return CAIRN_OK;
}

cairn_status crn_fill_end(state_fill *f, cairn_status rc)
{
    if (rc == CAIRN_OK)
        rc = flush(f);
    crn_vec_done(&f->run);
    crn_vec_done(&f->copy);
    free(f->window);
    return rc;
}
