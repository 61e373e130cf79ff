/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading blocks back, each verified. Neighbours in the file are read together, several reads are
 * in flight, and blocks are decoded and digested while the next ones arrive. From a file that lies
 * in memory a read is a copy: there they come one after the other, of much data by two threads at
 * once.
 */
#include "store/store_coder.h"
#include "store/store_part.h"

#include <stdatomic.h>

/* TURN_BYTES: what a second-level cache surely holds beside the pages that it is copied from. */
enum { RUN_BYTES = 1 << 20, NRUNS = 8, TURN_BYTES = 1 << 18 };

/* From here on a second thread pays for itself. */
enum { SHARED_BYTES = 8 << 20, SHARE_BYTES = 1 << 20 };

/* A run: consecutive blocks that lie one behind the other in the file; of encoded ones, with less
 * than a page between them. */
typedef struct read_run {
    crn_op op;
    struct iovec iov;
    uint64_t first, n;
    bool encoded; /* some are */
} read_run;

typedef struct reader {
    crn_part *part;
    const crn_mark *mark;
    const crn_var *var;
    uint64_t first, last, next; /* blocks asked for; the next to submit */
    unsigned char *dst;
    crn_bad_blocks *bad;
    uint64_t most;        /* bytes of a run */
    size_t align;         /* of direct reads; 0: through the page cache */
    bool large;           /* worth to be read by way of memory that a device writes fast */
    unsigned char *stage; /* that memory: a slot for each run; made when needed */
    size_t slot;
    crn_coder coder;
    read_run run[NRUNS];
} reader;

static unsigned char *place_of(const reader *r, uint64_t block)
{
    return r->dst + (block - r->first) * r->var->spec.block;
}

/* Does block i belong to the run of the one before? No block takes more than one of spec.block, nor
 * do its bytes and those up to the next. */
static bool follows(const reader *r, uint64_t i)
{
    const crn_block *b = &r->var->table[i], *before = b - 1;
    if (b->off == before->off + before->nbytes)
        return true;
    return (b->codec | before->codec) != 0 && b->off > before->off &&
           b->off - before->off <= r->var->spec.block;
}

/* The longest run from the next block on that is small enough. */
static void find_run(const reader *r, read_run *run)
{
    const crn_block *t = r->var->table;
    const uint64_t limit = CRN_MAX(r->most / r->var->spec.block, 1);
    run->first = r->next;
    run->encoded = t[run->first].codec != 0;
    for (run->n = 1; run->n < limit && run->first + run->n < r->last; run->n++) {
        if (!follows(r, run->first + run->n))
            break;
        run->encoded |= t[run->first + run->n].codec != 0;
    }
}

/* The run's slot of the stage. */
static cairn_status stage(reader *r, const read_run *run, unsigned char **ret)
{
    if (!r->stage)
        CRN_TRY(crn_io_memory(r->slot * CRN_MIN((uint64_t)NRUNS, r->last - r->first), &r->stage));
    *ret = r->stage + r->slot * (size_t)(run - r->run);
    return CAIRN_OK;
}

/* Find the next run, and where it is read to. */
static cairn_status aim(reader *r, read_run *run)
{
    const crn_block *t = r->var->table;
    find_run(r, run);
    const crn_block *last = &t[run->first + run->n - 1];
    uint64_t nbytes = last->off + last->nbytes - t[run->first].off;
    unsigned char *to = place_of(r, run->first);
    /* direct reads take whole sectors, which may end past a short last block */
    const uint64_t whole = r->align > 0 ? CRN_ROUND_UP(nbytes, (uint64_t)r->align) : nbytes;
    const bool unfit = r->align > 0 && (r->large || (uintptr_t)to % r->align != 0);
    if (run->encoded || unfit || whole != nbytes)
        CRN_TRY(stage(r, run, &to));
    nbytes = t[run->first].off + whole <= r->part->super.end ? whole : nbytes;
    run->iov = (struct iovec){to, nbytes};
    run->op = (crn_op){.kind = CRN_OP_READ,
                       .file = r->part->file,
                       .iov = &run->iov,
                       .niov = 1,
                       .off = t[run->first].off,
                       .user = run};
    r->next += run->n;
    return CAIRN_OK;
}

static cairn_status block_failed(reader *r, uint64_t i, const crn_err *why)
{
    if (r->bad)
        return crn_vec_push(r->bad, i);
    if (why) {
        crn_err_give(why);
        crn_err_prefix("mark %" PRIu64 ", variable '%s', block %" PRIu64 ": ", r->mark->version,
                       r->var->spec.name, i);
        return why->code;
    }
    return crn_fail(CAIRN_ECORRUPT,
                    "'%s': mark %" PRIu64 ", variable '%s', block %" PRIu64
                    " is damaged (%u bytes at byte %" PRIu64 ")",
                    r->part->name, r->mark->version, r->var->spec.name, i, r->var->table[i].nbytes,
                    r->var->table[i].off);
}

/* Check the blocks of a run that has arrived and bring them to their place. */
static cairn_status finish(reader *r, read_run *run)
{
    const crn_block *t = r->var->table;
    const unsigned char *data = run->iov.iov_base;
    for (uint64_t i = run->first; i < run->first + run->n; i++) {
        const unsigned char *at = data + (t[i].off - t[run->first].off);
        bool good;
        CRN_TRY(crn_coder_bring(&r->coder, r->var, i, at, place_of(r, i), &good));
        if (!good)
            CRN_TRY(block_failed(r, i, NULL));
    }
    return CAIRN_OK;
}

/* A run that failed as a whole is read again block by block: one bad sector costs one block. */
static cairn_status retry(reader *r, read_run *run)
{
    const crn_block *t = r->var->table;
    read_run one = *run;
    for (one.n = 1; one.first < run->first + run->n; one.first++) {
        one.iov.iov_base = place_of(r, one.first);
        if (crn_file_read(r->part->file, one.iov.iov_base, t[one.first].nbytes, t[one.first].off) <
            0) {
            crn_err err = *crn_err_peek();
            CRN_TRY(block_failed(r, one.first, &err));
        } else {
            CRN_TRY(finish(r, &one));
        }
    }
    return CAIRN_OK;
}

/* One run after the other, each digested while the processor's cache has it. Handing the copies to
 * the kernel's workers gained nothing on idle processors and lost where ranks have one each: 0.75
 * to 0.80 of a plain read's speed (2 ranks, 64 MiB each, /dev/shm) against 0.81 to 0.84. */
static cairn_status read_in_turn(reader *r)
{
    read_run *run = &r->run[0];
    while (r->next < r->last) {
        CRN_TRY(aim(r, run));
        cairn_status rc =
            crn_file_read(r->part->file, run->iov.iov_base, run->iov.iov_len, run->op.off);
        CRN_TRY(rc < 0 ? retry(r, run) : finish(r, run));
    }
    return CAIRN_OK;
}

/* --- two threads -------------------------------------------------------------------------- */

/* What two threads read together: whoever is done with a turn takes the next one. Halves would let
 * both wait for the one whose processor has other things to do. */
typedef struct read_turns {
    atomic_uint_fast64_t next;
    uint64_t last, n; /* blocks of a turn */
} read_turns;

typedef struct read_aide {
    reader r;
    read_turns *turns;
    crn_bad_blocks bad;
    cairn_status status;
    crn_err why;
} read_aide;

static cairn_status take_turns(reader *r, read_turns *t)
{
    cairn_status rc = CAIRN_OK;
    while (rc == CAIRN_OK) { /* relaxed: numbers are handed out, nothing is passed on by them */
        r->next = atomic_fetch_add_explicit(&t->next, t->n, memory_order_relaxed);
        if (r->next >= t->last)
            break;
        r->last = CRN_MIN(r->next + t->n, t->last);
        rc = read_in_turn(r);
    }
    return rc;
}

static void *aide_main(void *arg)
{
    read_aide *a = arg;
    a->status = take_turns(&a->r, a->turns);
    if (a->status < 0)
        a->why = *crn_err_peek();
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* What the other one found is the caller's, in order, from the before-th of bad on. */
static cairn_status join_aide(read_aide *a, pthread_t thread, cairn_status rc, crn_bad_blocks *bad,
                              size_t before)
{
    pthread_join(thread, NULL);
    for (size_t i = 0; bad && i < a->bad.n && rc == CAIRN_OK; i++)
        rc = crn_vec_push(bad, a->bad.at[i]);
    if (bad && bad->n > before)
        qsort(bad->at + before, bad->n - before, sizeof *bad->at, by_number);
    crn_vec_done(&a->bad);
    free(a->r.stage);
    crn_coder_done(&a->r.coder);
    if (rc == CAIRN_OK && a->status < 0)
        return crn_err_give(&a->why);
    return rc;
}

/* Copying and digesting is work for a processor: two do it in little more than half the time. */
static cairn_status read_in_turns(reader *r)
{
    read_turns t = {.last = r->last, .n = CRN_MAX(SHARE_BYTES / r->var->spec.block, 1)};
    read_aide a = {.r = *r, .turns = &t};
    pthread_t thread;
    atomic_init(&t.next, r->next);
    a.r.bad = r->bad ? &a.bad : NULL;
    if (!crn_has_processors() || crn_thread_start(&thread, aide_main, &a) != 0)
        return read_in_turn(r);
    const size_t before = r->bad ? r->bad->n : 0;
    return join_aide(&a, thread, take_turns(r, &t), r->bad, before);
}

static cairn_status start(reader *r, crn_io *io, read_run *run)
{
    CRN_TRY(aim(r, run));
    return crn_io_submit(io, &run->op);
}

/* Keep NRUNS reads in flight until all blocks are there. */
static cairn_status pump(reader *r)
{
    crn_io *io;
    unsigned pending = 0;
    cairn_status rc = crn_part_queue(r->part, &io);
    for (int i = 0; i < NRUNS && r->next < r->last && rc == CAIRN_OK; i++) {
        rc = start(r, io, &r->run[i]);
        pending += rc == CAIRN_OK;
    }
    while (pending > 0) {
        crn_op *op;
        cairn_status wait = crn_io_wait(io, &op);
        if (wait < 0)
            return wait;
        read_run *run = op->user;
        pending--;
        if (rc == CAIRN_OK)
            rc = op->status < 0 ? retry(r, run) : finish(r, run);
        if (rc == CAIRN_OK && r->next < r->last) {
            rc = start(r, io, run);
            pending += rc == CAIRN_OK;
        }
    }
    return rc;
}

cairn_status crn_mark_read(crn_part *part, const crn_mark *m, crn_var *v, uint64_t first,
                           uint64_t n, void *dst, crn_bad_blocks *bad)
{
    CRN_TRY(crn_mark_table(part, m, v));
    CRN_FAIL_IF(first > v->nblocks || n > v->nblocks - first, CAIRN_EINVAL,
                "variable '%s' has %" PRIu64 " blocks, not %" PRIu64, v->spec.name, v->nblocks,
                first + n);
    if (n > 0 && v->table->codec & CRN_OUTSIDE)
        return crn_outside_read(part, m, v, first, n, dst, bad);
    reader r = {.part = part,
                .mark = m,
                .var = v,
                .first = first,
                .last = first + n,
                .next = first,
                .dst = dst,
                .bad = bad,
                .coder = {.apart = part->distrusted},
                .align = crn_file_direct_align(part->file)};
    uint64_t nbytes = n * v->spec.block;
    r.large = nbytes >= (uint64_t)NRUNS * RUN_BYTES;
    r.slot = CRN_MIN(nbytes, CRN_MAX((uint64_t)RUN_BYTES, v->spec.block));
    if (r.align > 0)
        r.slot = CRN_ROUND_UP(r.slot, r.align);
    r.most = part->cached ? TURN_BYTES : RUN_BYTES;
    const bool shared = part->cached && nbytes >= SHARED_BYTES && !part->distrusted;
    const bool in_turn = part->cached || n == 1; /* a queue is of no use to one read */
    cairn_status rc = shared ? read_in_turns(&r) : in_turn ? read_in_turn(&r) : pump(&r);
    free(r.stage);
    crn_coder_done(&r.coder);
    return rc;
}
