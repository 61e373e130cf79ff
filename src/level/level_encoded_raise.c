/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raising a mark to the encoded level. In each set the ranks exchange what stands for their
 * units; each compares that with the stamps of the parity that its file has from earlier marks, and
 * says which stripes it needs; what any of them needs is encoded. All else is inherited.
 *
 * Whatever can fail on one rank alone is done between two agreements of all ranks; in between they
 * only exchange, so that no rank ever waits for one that has left.
 */
#include "level/level_encoded.h"

#include <assert.h>
#include <inttypes.h>

enum { TAG_PASS = 113 };

/* A set in the making. */
typedef struct job {
    crn_set set;
    crn_copy *copy;        /* the parity file and its draft; no draft: it has the mark already */
    crn_layout old;        /* of the file's newest mark; nseats 0: none that can be read */
    crn_digest *old_stamp; /* of its parity units */
    uint64_t nold;         /* how many they are */
    uint64_t old_wall_ns;  /* when that mark was taken */
    bool anew;             /* what the file has is damaged: nothing of it is inherited */
    uint64_t nunits[CRN_ERASURE_MAX];      /* of each seat */
    crn_digest *id[CRN_ERASURE_MAX];       /* of the units of each seat */
    unsigned char *share[CRN_ERASURE_MAX]; /* descriptions: own, and of the nparity seats before */
    uint64_t nstripes, nparity;            /* stripes with data; parity units of this seat */
    crn_digest *stamp;                     /* of the parity units */
    size_t parity_var;                     /* its number in the draft */
    unsigned char *needed, *others;        /* bits of stripes, by this rank; by each other seat */
    size_t nneeded;                        /* bytes of those */
    crn_msg *msg;                          /* two for each seat */
    crn_encoder *encoder;
    struct raise *raise;
} job;

typedef struct raise {
    crn_vault *v;
    uint64_t version;
    crn_part *part;
    crn_mark *mark;
    crn_stream stream;
    crn_stream_reader reader;
    crn_digest *id; /* of this rank's units */
    crn_buf share;  /* the description of its mark */
    job *job;
    crn_copy *copy; /* one for each job */
    int njobs;
    crn_raise_stats *stats;
} raise;

static const crn_stripes *stripes_of(const job *j)
{
    assert(j->set.layout.stripes.nseats > 1);
    return &j->set.layout.stripes;
}

/* Does this rank give its data to the set? Only to its first one. */
static bool gives(const job *j)
{
    return j->set.layout.seat[j->set.layout.own].rank != CRN_SEAT_IDLE;
}

/* --- passing things round the set --------------------------------------------------------- */

static uint32_t seat_after(const job *j, uint32_t n)
{
    return (j->set.layout.own + n) % stripes_of(j)->nseats;
}

/*
 * Send n bytes to each of the reach seats behind this one, and receive nrecv[seat] bytes into
 * recv[seat] from each of the reach seats before it.
 */
static cairn_status pass(job *j, uint32_t reach, const void *data, size_t n,
                         unsigned char *const *recv, const size_t *nrecv)
{
    crn_comm *comm = j->raise->v->comm;
    const uint32_t nseats = stripes_of(j)->nseats;
    cairn_status rc = CAIRN_OK;
    size_t started = 0;
    for (uint32_t i = 1; i <= reach && rc == CAIRN_OK; i++) {
        uint32_t seat = seat_after(j, nseats - i);
        if (nrecv[seat] > 0)
            rc = crn_comm_irecv(comm, recv[seat], nrecv[seat], j->set.rank[seat], TAG_PASS,
                                &j->msg[started]);
        started += rc == CAIRN_OK && nrecv[seat] > 0;
    }
    for (uint32_t i = 1; i <= reach && rc == CAIRN_OK && n > 0; i++) {
        rc = crn_comm_isend(comm, data, n, j->set.rank[seat_after(j, i)], TAG_PASS,
                            &j->msg[started]);
        started += rc == CAIRN_OK;
        j->raise->stats->moved_bytes += n;
    }
    return crn_comm_end(comm, j->msg, started, rc);
}

/* --- what this rank has ------------------------------------------------------------------- */

static cairn_status load_own(raise *r)
{
    CRN_TRY(crn_vault_own_mark(r->v, r->version, &r->part, &r->mark));
    CRN_TRY(crn_stream_init(&r->stream, r->mark));
    CRN_TRY(crn_alloc(&r->id, r->stream.nunits));
    CRN_TRY(crn_stream_ids(&r->stream, r->id));
    r->reader = (crn_stream_reader){.stream = &r->stream, .part = r->part};
    crn_mark_put(r->mark, &r->share);
    CRN_TRY(crn_buf_status(&r->share));
    CRN_FAIL_IF(r->share.n > CRN_COMM_PIECE || r->stream.nunits > CRN_COMM_PIECE / sizeof *r->id,
                CAIRN_EUNSUPPORTED,
                "a state of %" PRIu64 " units of %d bytes, described by %zu bytes, is too large "
                "for the encoded level; larger blocks may help",
                r->stream.nunits, CRN_UNIT, r->share.n);
    return CAIRN_OK;
}

static cairn_status read_stamps(job *j, crn_mark *mark)
{
    crn_var *v = crn_mark_find(mark, CRN_VAR_STAMPS);
    CRN_FAIL_IF(!v, CAIRN_ECORRUPT, "mark %" PRIu64 " has no stamps of parity", mark->version);
    CRN_TRY(crn_alloc(&j->old_stamp, v->spec.nbytes / sizeof *j->old_stamp + 1));
    j->nold = v->spec.nbytes / sizeof *j->old_stamp;
    return crn_mark_read(j->copy->part, mark, v, 0, v->nblocks, j->old_stamp, NULL);
}

/* What the file's newest mark was computed from. One that cannot be read is as good as none. */
static cairn_status load_old(job *j)
{
    crn_part_info info;
    crn_mark *mark = NULL;
    free(j->old_stamp);
    j->old_stamp = NULL;
    j->old.stripes.nseats = 0;
    crn_part_describe(j->copy->part, &info);
    if (info.nmarks == 0)
        return CAIRN_OK;
    cairn_status rc =
        crn_part_load(j->copy->part, crn_part_version(j->copy->part, info.nmarks - 1), &mark);
    if (rc == CAIRN_OK)
        rc = crn_layout_read(j->copy->part, mark, &j->old);
    if (rc == CAIRN_OK)
        rc = read_stamps(j, mark);
    j->old_wall_ns = mark ? mark->wall_ns : 0;
    crn_mark_free(mark);
    if (rc < 0) {
        j->old.stripes.nseats = 0;
        j->anew = true;
    }
    return rc == CAIRN_ENOMEM ? rc : CAIRN_OK;
}

static cairn_status job_init(job *j, raise *r, int nth)
{
    j->raise = r;
    j->copy = &r->copy[nth];
    CRN_TRY(crn_set_init(&j->set, r->v, nth));
    CRN_TRY(crn_alloc(&j->msg, 2 * (size_t)stripes_of(j)->nseats));
    crn_part_id id = crn_set_file(r->v, &j->set);
    CRN_TRY(crn_vault_part(r->v, &id, true, &j->copy->part));
    j->copy->version = r->version;
    j->anew = r->v->distrusted >> CRN_LEVEL_ENCODED & 1;
    return load_old(j);
}

static cairn_status prepare(raise *r)
{
    CRN_TRY(load_own(r));
    r->njobs = crn_sets_count(r->v);
    CRN_TRY(crn_alloc(&r->job, (size_t)r->njobs));
    CRN_TRY(crn_alloc(&r->copy, (size_t)r->njobs));
    for (int i = 0; i < r->njobs; i++)
        CRN_TRY(job_init(&r->job[i], r, i));
    return CAIRN_OK;
}

static void job_done(job *j)
{
    for (uint32_t i = 0; i < j->set.layout.stripes.nseats; i++) {
        free(j->id[i]);
        free(j->share[i]);
    }
    crn_encoder_free(j->encoder);
    free(j->old_stamp);
    free(j->stamp);
    free(j->needed);
    free(j->others);
    free(j->msg);
    crn_set_done(&j->set);
}

static void raise_done(raise *r)
{
    for (int i = 0; r->job && i < r->njobs; i++)
        job_done(&r->job[i]);
    for (int i = 0; r->copy && i < r->njobs; i++)
        crn_copy_done(&r->copy[i]);
    free(r->job);
    free(r->copy);
    crn_stream_reader_done(&r->reader);
    crn_stream_done(&r->stream);
    crn_mark_free(r->mark);
    crn_buf_done(&r->share);
    free(r->id);
}

/* --- what the set has --------------------------------------------------------------------- */

/* How much each seat brings. */
static cairn_status pass_sizes(job *j)
{
    const uint32_t nseats = stripes_of(j)->nseats, own = j->set.layout.own;
    uint64_t size[CRN_ERASURE_MAX][2];
    unsigned char *recv[CRN_ERASURE_MAX];
    size_t nrecv[CRN_ERASURE_MAX];
    for (uint32_t i = 0; i < nseats; i++) {
        recv[i] = (unsigned char *)size[i];
        nrecv[i] = sizeof size[i];
    }
    size[own][0] = gives(j) ? j->raise->stream.nunits : 0;
    size[own][1] = gives(j) ? j->raise->share.n : 0;
    CRN_TRY(pass(j, nseats - 1, size[own], sizeof size[own], recv, nrecv));
    for (uint32_t i = 0; i < nseats; i++) {
        j->nunits[i] = j->set.layout.seat[i].nunits = size[i][0];
        j->set.layout.seat[i].share_bytes = size[i][1];
    }
    return CAIRN_OK;
}

/* Whether this seat keeps a copy of another's description. */
static bool keeps_share(const job *j, uint32_t seat)
{
    uint32_t behind = (j->set.layout.own + stripes_of(j)->nseats - seat) % stripes_of(j)->nseats;
    return behind > 0 && behind <= stripes_of(j)->nparity;
}

static cairn_status read_units(void *arg, uint64_t first, uint64_t n, unsigned char *dst)
{
    job *j = arg;
    return crn_stream_read(&j->raise->reader, first, n, dst);
}

static cairn_status put_unit(void *arg, uint64_t unit, const unsigned char *data)
{
    job *j = arg;
    if (!j->copy->draft) /* it has this mark; others asked for the stripe */
        return CAIRN_OK;
    return crn_draft_put(j->copy->draft, j->parity_var, unit, data, NULL);
}

static cairn_status make_encoder(job *j)
{
    return crn_encoder_create(&(crn_parity_job){.stripes = *stripes_of(j),
                                                .rank = j->set.rank,
                                                .nunits = j->nunits,
                                                .nstripes = j->nstripes,
                                                .needed = j->needed,
                                                .seat = j->set.layout.own,
                                                .read = read_units,
                                                .put = put_unit,
                                                .arg = j},
                              &j->encoder);
}

/* Room for what comes, now that all know how much that is. */
static cairn_status make_room(job *j)
{
    crn_stripes *s = &j->set.layout.stripes;
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->nseats; i++)
        most = CRN_MAX(most, j->nunits[i]);
    s->chunk = crn_stripes_chunk(s->nseats, s->nparity, most);
    j->nstripes = crn_stripes_count(s, j->nunits);
    j->nparity = crn_stripes_nparity(s, j->nstripes, j->set.layout.own);
    j->nneeded = (size_t)(j->nstripes + 7) / 8;
    for (uint32_t i = 0; i < s->nseats; i++) {
        CRN_TRY(crn_alloc(&j->id[i], j->nunits[i]));
        if (keeps_share(j, i))
            CRN_TRY(crn_alloc(&j->share[i], j->set.layout.seat[i].share_bytes));
    }
    CRN_TRY(crn_alloc(&j->stamp, j->nparity));
    CRN_TRY(crn_alloc(&j->needed, j->nneeded));
    CRN_TRY(crn_alloc(&j->others, j->nneeded * s->nseats));
    return make_encoder(j);
}

/* Bring what stands for all units here, and the descriptions that this seat keeps. */
static cairn_status pass_ids(job *j)
{
    const raise *r = j->raise;
    const uint32_t nseats = stripes_of(j)->nseats, own = j->set.layout.own;
    unsigned char *recv[CRN_ERASURE_MAX];
    size_t nrecv[CRN_ERASURE_MAX];
    for (uint32_t i = 0; i < nseats; i++) {
        recv[i] = (unsigned char *)j->id[i];
        nrecv[i] = (size_t)j->nunits[i] * sizeof(crn_digest);
    }
    size_t nown = (size_t)j->nunits[own] * sizeof(crn_digest);
    if (nown > 0)
        memcpy(j->id[own], r->id, nown);
    CRN_TRY(pass(j, nseats - 1, j->id[own], nown, recv, nrecv));
    for (uint32_t i = 0; i < nseats; i++) {
        recv[i] = j->share[i];
        nrecv[i] = keeps_share(j, i) ? j->set.layout.seat[i].share_bytes : 0;
    }
    return pass(j, stripes_of(j)->nparity, r->share.at, gives(j) ? r->share.n : 0, recv, nrecv);
}

/* --- what is needed ----------------------------------------------------------------------- */

/* What stands for a parity unit: the data units of its stripe. */
static crn_digest stamp_of(const job *j, uint64_t stripe)
{
    crn_digest id[CRN_ERASURE_MAX] = {0};
    const crn_stripes *s = stripes_of(j);
    int ndata = (int)(s->nseats - s->nparity);
    for (int i = 0; i < ndata; i++) {
        uint32_t seat = crn_stripe_seat(s, stripe, i);
        uint64_t unit = crn_stripe_unit(s, stripe, seat);
        if (unit < j->nunits[seat])
            id[i] = j->id[seat][unit];
    }
    return crn_digest_of(id, (size_t)ndata * sizeof *id);
}

static void seal(job *j)
{
    crn_digest of_seat[CRN_ERASURE_MAX];
    const uint32_t nseats = stripes_of(j)->nseats;
    for (uint32_t i = 0; i < nseats; i++)
        of_seat[i] = crn_digest_of(j->id[i], (size_t)j->nunits[i] * sizeof(crn_digest));
    j->set.layout.seal = crn_digest_of(of_seat, nseats * sizeof *of_seat);
}

static bool is_same_layout(const crn_layout *a, const crn_layout *b)
{
    crn_buf x = {0}, y = {0};
    crn_layout_put(a, &x);
    crn_layout_put(b, &y);
    bool same = !x.failed && !y.failed && x.n == y.n && memcmp(x.at, y.at, x.n) == 0;
    crn_buf_done(&x);
    crn_buf_done(&y);
    return same;
}

/* Begin the draft, unless the file has this very mark. One of the same version that differs was
 * left by a leg that went another way. */
static cairn_status begin(job *j)
{
    crn_part *part = j->copy->part;
    uint64_t nlost;
    crn_part_info info;
    crn_part_describe(part, &info);
    if (info.nmarks > 0 && crn_part_version(part, info.nmarks - 1) == j->copy->version) {
        if (j->old.stripes.nseats > 0 && j->old_wall_ns == j->raise->mark->wall_ns &&
            is_same_layout(&j->old, &j->set.layout))
            return CAIRN_OK;
        CRN_FAIL_IF(j->copy->version == 0, CAIRN_EMISMATCH,
                    "parity of another mark 0 is there and cannot be replaced");
        CRN_TRY(crn_part_rewind(part, j->copy->version - 1));
        CRN_TRY(load_old(j));
    }
    CRN_TRY(crn_part_scrub(part, &nlost));
    CRN_TRY(crn_draft_begin(part, j->copy->version, &j->copy->draft));
    crn_draft_set_time(j->copy->draft, j->raise->mark->wall_ns);
    return CAIRN_OK;
}

static cairn_status add_bytes(job *j, const char *name, const void *data, size_t nbytes)
{
    crn_var_spec spec = {
        .name = name, .type = "uint8", .item = 1, .block = CRN_META_BLOCK, .nbytes = nbytes};
    crn_put how = {.way = j->anew ? CRN_PUT_FULL : CRN_PUT_COMPARE};
    size_t number;
    CRN_TRY(crn_draft_add(j->copy->draft, &spec, &number));
    return crn_draft_put_changed(j->copy->draft, number, data, &how);
}

static cairn_status add_share(job *j, uint32_t seat)
{
    char name[32];
    const crn_seat *of = &j->set.layout.seat[seat];
    if (!keeps_share(j, seat) || of->rank == CRN_SEAT_IDLE)
        return CAIRN_OK;
    snprintf(name, sizeof name, CRN_VAR_SHARE "%" PRIu32, of->rank);
    return add_bytes(j, name, j->share[seat], of->share_bytes);
}

/* All that the draft has besides the parity itself. */
static cairn_status add_vars(job *j)
{
    crn_var_spec spec = {.name = CRN_VAR_PARITY,
                         .type = "uint8",
                         .item = 1,
                         .block = CRN_UNIT,
                         .nbytes = j->nparity * CRN_UNIT};
    crn_buf buf = {0};
    crn_layout_put(&j->set.layout, &buf);
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_buf_status(&buf));
    CRN_TRY_OUT(rc, add_bytes(j, CRN_VAR_LAYOUT, buf.at, buf.n));
    CRN_TRY_OUT(rc, add_bytes(j, CRN_VAR_STAMPS, j->stamp, j->nparity * sizeof *j->stamp));
    for (uint32_t i = 0; i < stripes_of(j)->nseats; i++)
        CRN_TRY_OUT(rc, add_share(j, i));
    CRN_TRY_OUT(rc, crn_draft_add(j->copy->draft, &spec, &j->parity_var));
out:
    crn_buf_done(&buf);
    return rc;
}

/* May stamps of the newest mark decide which of its parity still holds? */
static bool follows_old(const job *j)
{
    const crn_stripes *a = stripes_of(j), *b = &j->old.stripes;
    return a->nseats == b->nseats && a->nparity == b->nparity && a->chunk == b->chunk &&
           j->set.layout.own == j->old.own;
}

/* Does the file have a parity unit of this seat? */
static bool has_unit(const job *j, uint64_t unit)
{
    return !j->anew && follows_old(j) && unit < j->nold &&
           crn_digest_equal(&j->stamp[unit], &j->old_stamp[unit]) &&
           crn_draft_inherited(j->copy->draft, j->parity_var, unit);
}

/* Stamp all parity units of this seat and set the bits of those that the file lacks. */
static cairn_status find_needed(job *j)
{
    const crn_stripes *s = stripes_of(j);
    seal(j);
    CRN_TRY(begin(j));
    for (uint64_t i = 0; i < j->nstripes; i++)
        if (!crn_stripe_is_data(s, i, j->set.layout.own))
            j->stamp[crn_stripe_unit(s, i, j->set.layout.own)] = stamp_of(j, i);
    if (!j->copy->draft)
        return CAIRN_OK;
    CRN_TRY(add_vars(j));
    for (uint64_t i = 0; i < j->nstripes; i++)
        if (!crn_stripe_is_data(s, i, j->set.layout.own) &&
            !has_unit(j, crn_stripe_unit(s, i, j->set.layout.own)))
            crn_bit_set(j->needed, i);
    return CAIRN_OK;
}

/* Learn what the others need; all of the set do the same then. */
static cairn_status pass_needed(job *j)
{
    const uint32_t nseats = stripes_of(j)->nseats;
    unsigned char *recv[CRN_ERASURE_MAX];
    size_t nrecv[CRN_ERASURE_MAX];
    for (uint32_t i = 0; i < nseats; i++) {
        recv[i] = j->others + i * j->nneeded;
        nrecv[i] = j->nneeded;
    }
    CRN_TRY(pass(j, nseats - 1, j->needed, j->nneeded, recv, nrecv));
    for (size_t i = 0; i < j->nneeded * nseats; i++)
        j->needed[i % j->nneeded] |= j->others[i];
    return CAIRN_OK;
}

static cairn_status encode(job *j)
{
    CRN_TRY(pass_needed(j));
    return crn_encoder_run(j->encoder, j->raise->v->comm, &j->raise->stats->moved_bytes);
}

/* --- all of it ---------------------------------------------------------------------------- */

/*
 * One step for every set of this rank, in the same order on all ranks. After a failure an exchange
 * goes on with the other sets, whose ranks count on it; local work stops.
 */
static cairn_status each_job(raise *r, cairn_status (*step)(job *j), bool exchange)
{
    cairn_status rc = CAIRN_OK;
    crn_err first = {0};
    for (int i = 0; i < r->njobs && (exchange || rc == CAIRN_OK); i++) {
        cairn_status one = step(&r->job[i]);
        if (one < 0 && rc == CAIRN_OK) {
            rc = one;
            crn_err_take(&first);
        }
    }
    return rc < 0 ? crn_err_give(&first) : CAIRN_OK;
}

/* Up to where all know which stripes are needed, and nothing is left that a single rank may lack.
 */
static cairn_status begin_all(raise *r)
{
    crn_comm *comm = r->v->comm;
    CRN_TRY(crn_comm_agree(comm, prepare(r)));
    cairn_status rc = each_job(r, pass_sizes, true);
    if (rc == CAIRN_OK)
        rc = each_job(r, make_room, false);
    CRN_TRY(crn_comm_agree(comm, rc));
    rc = each_job(r, pass_ids, true);
    if (rc == CAIRN_OK)
        rc = each_job(r, find_needed, false);
    return crn_comm_agree(comm, rc);
}

cairn_status crn_encoded_raise(crn_vault *v, uint64_t version, uint64_t keep,
                               crn_raise_stats *stats)
{
    raise r = {.v = v, .version = version, .stats = stats};
    cairn_status rc = begin_all(&r);
    if (rc == CAIRN_OK)
        rc = crn_copies_finish(v->comm, r.copy, (size_t)r.njobs, each_job(&r, encode, true), keep,
                               stats);
    raise_done(&r);
    return rc;
}
