/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of <cairn/trail.h>: looking into a trail from outside.
 */
#include "store/store_trail.h"

#include <cairn/trail.h>

static const crn_part_options reading = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};

typedef struct seen_run {
    char *name;
    crn_run *run; /* NULL: it could not be read, and err says why */
    crn_err err;
} seen_run;

struct cairn_trail {
    crn_trail *trail;
    CRN_VEC(seen_run) run;
    /* the part and the mark that were looked at last, since questions come in rows */
    crn_part *part;
    crn_mark *mark;
    size_t part_run;
    uint32_t part_series, part_rank;
};

/* --- opening ------------------------------------------------------------------------------ */

static void forget_part(cairn_trail *t)
{
    crn_mark_free(t->mark);
    crn_part_close(t->part);
    t->mark = NULL;
    t->part = NULL;
}

static void see_run(cairn_trail *t, char *name)
{
    seen_run *seen = &t->run.at[t->run.n++];
    *seen = (seen_run){.name = name};
    if (crn_run_open(t->trail, name, false, &seen->run) < 0)
        crn_err_take(&seen->err);
}

int cairn_trail_open(const char *path, cairn_trail **ret)
{
    cairn_trail *t;
    char **names = NULL;
    size_t n = 0;
    cairn_status rc;
    CRN_FAIL_IF(!path || !ret, CAIRN_EINVAL, "cairn_trail_open: an argument is NULL");
    CRN_TRY(crn_alloc(&t, 1));
    CRN_TRY_OUT(rc, crn_trail_open(path, false, &t->trail));
    CRN_TRY_OUT(rc, crn_trail_runs(t->trail, &names, &n));
    CRN_TRY_OUT(rc, crn_vec_reserve(&t->run, n));
    for (size_t i = 0; i < n; i++)
        see_run(t, names[i]);
    free(names);
    *ret = t;
    return CAIRN_OK;
out:
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    cairn_trail_close(t);
    return rc;
}

void cairn_trail_close(cairn_trail *t)
{
    if (!t)
        return;
    forget_part(t);
    for (size_t i = 0; i < t->run.n; i++) {
        crn_run_close(t->run.at[i].run);
        free(t->run.at[i].name);
    }
    crn_vec_done(&t->run);
    crn_trail_close(t->trail);
    free(t);
}

/* --- describing --------------------------------------------------------------------------- */

size_t cairn_trail_nruns(const cairn_trail *t)
{
    return t->run.n;
}

int cairn_trail_find_run(const cairn_trail *t, const char *name, size_t *ret)
{
    for (size_t i = 0; i < t->run.n; i++) {
        if (strcmp(t->run.at[i].name, name) == 0) {
            *ret = i;
            return CAIRN_OK;
        }
    }
    return crn_fail(CAIRN_ENOTFOUND, "trail '%s' has no run '%s'", t->trail->path, name);
}

int cairn_trail_run(cairn_trail *t, size_t run, cairn_run_info *info)
{
    cairn_run_info r = {0};
    CRN_FAIL_IF(run >= t->run.n, CAIRN_EINVAL, "trail '%s' has %zu runs", t->trail->path, t->run.n);
    const seen_run *seen = &t->run.at[run];
    r.name = seen->name;
    if (seen->run) {
        const crn_manifest *m = crn_run_manifest(seen->run);
        crn_digest id;
        memcpy(id.b, m->run, sizeof id.b);
        crn_digest_format(&id, r.id);
        r.created_ns = m->created_ns;
        r.nmarks = m->mark.n;
        r.rebuilt = crn_run_was_rebuilt(seen->run);
        r.finished = m->finished;
    }
    CRN_TRY(crn_struct_out(&r, info));
    return seen->run ? CAIRN_OK : crn_err_give(&seen->err);
}

int cairn_trail_pulse(const char *path, const char *run, uint64_t *ret_ns)
{
    crn_trail *t;
    CRN_FAIL_IF(!path || !run || !ret_ns, CAIRN_EINVAL, "cairn_trail_pulse: an argument is NULL");
    CRN_TRY(crn_trail_open(path, false, &t));
    cairn_status rc = crn_run_pulse(t, run, ret_ns);
    crn_trail_close(t);
    return rc;
}

int cairn_trail_events(cairn_trail *t, size_t run, cairn_event_fn *fn, void *arg)
{
    CRN_FAIL_IF(run >= t->run.n, CAIRN_EINVAL, "trail '%s' has %zu runs", t->trail->path, t->run.n);
    const seen_run *seen = &t->run.at[run];
    if (!seen->run)
        return crn_err_give(&seen->err);
    return crn_run_events(seen->run, fn, arg);
}

static cairn_status find_mark(cairn_trail *t, size_t run, size_t mark,
                              const crn_manifest_mark **ret)
{
    CRN_FAIL_IF(run >= t->run.n, CAIRN_EINVAL, "trail '%s' has %zu runs", t->trail->path, t->run.n);
    const seen_run *seen = &t->run.at[run];
    if (!seen->run)
        return crn_err_give(&seen->err);
    const crn_manifest *m = crn_run_manifest(seen->run);
    CRN_FAIL_IF(mark >= m->mark.n, CAIRN_EINVAL, "run '%s' has %zu marks", seen->name, m->mark.n);
    *ret = &m->mark.at[mark];
    return CAIRN_OK;
}

int cairn_trail_mark(cairn_trail *t, size_t run, size_t mark, cairn_mark_info *info)
{
    const crn_manifest_mark *k;
    CRN_TRY(find_mark(t, run, mark, &k));
    cairn_mark_info m = {.version = k->version,
                         .wall_ns = k->wall_ns,
                         .nbytes = k->nbytes,
                         .nranks = k->nranks,
                         .levels = k->levels};
    return crn_struct_out(&m, info);
}

/* Open a rank's part and load its share of a mark, unless that is what was asked for last. */
static cairn_status look_at(cairn_trail *t, size_t run, size_t mark, uint32_t rank)
{
    const crn_manifest_mark *k;
    CRN_TRY(find_mark(t, run, mark, &k));
    CRN_FAIL_IF(rank >= k->nranks, CAIRN_EINVAL, "mark %" PRIu64 " was written by %u ranks",
                k->version, k->nranks);
    CRN_FAIL_IF(!(k->levels & CRN_IN_TRAIL), CAIRN_ENOTFOUND,
                "mark %" PRIu64 " is not in the trail, but on the nodes that wrote it", k->version);
    bool same_part =
        t->part && t->part_run == run && t->part_series == k->series && t->part_rank == rank;
    if (!same_part) {
        forget_part(t);
        CRN_TRY(crn_run_part(t->run.at[run].run, k->series, rank, k->nranks, false, &reading,
                             &t->part));
        t->part_run = run;
        t->part_series = k->series;
        t->part_rank = rank;
    }
    if (t->mark && t->mark->version == k->version)
        return CAIRN_OK;
    crn_mark_free(t->mark);
    t->mark = NULL;
    return crn_part_load(t->part, k->version, &t->mark);
}

int cairn_trail_part(cairn_trail *t, size_t run, size_t mark, uint32_t rank, cairn_part_info *info)
{
    crn_part_info p;
    CRN_TRY(look_at(t, run, mark, rank));
    crn_part_describe(t->part, &p);
    cairn_part_info r = {.file_bytes = p.file_bytes,
                         .nmarks = p.nmarks,
                         .nvars = t->mark->nvars,
                         .fallback = p.fallback};
    return crn_struct_out(&r, info);
}

int cairn_trail_variable(cairn_trail *t, size_t run, size_t mark, uint32_t rank, size_t var,
                         cairn_variable_info *info)
{
    CRN_TRY(look_at(t, run, mark, rank));
    CRN_FAIL_IF(var >= t->mark->nvars, CAIRN_EINVAL, "mark %" PRIu64 " has %zu variables",
                t->mark->version, t->mark->nvars);
    const crn_var *v = &t->mark->var[var];
    cairn_variable_info r = {.name = v->spec.name,
                             .type = v->spec.type,
                             .attributes = v->spec.attributes,
                             .item_bytes = v->spec.item,
                             .block_bytes = v->spec.block,
                             .nbytes = v->spec.nbytes,
                             .nblocks = v->nblocks,
                             .nchanged = v->nchanged,
                             .stored_bytes = v->stored_bytes,
                             .ndims = v->spec.ndims};
    for (uint32_t i = 0; i < v->spec.ndims; i++) {
        r.global[i] = v->spec.global[i];
        r.offset[i] = v->spec.offset[i];
        r.count[i] = v->spec.count[i];
    }
    crn_digest_format(&v->root, r.root);
    return crn_struct_out(&r, info);
}

int cairn_trail_read(cairn_trail *t, size_t run, size_t mark, uint32_t rank, const char *name,
                     void *dst, size_t nbytes)
{
    CRN_TRY(look_at(t, run, mark, rank));
    crn_var *v = crn_mark_find(t->mark, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "mark %" PRIu64 " has no variable '%s' on rank %u",
                t->mark->version, name, rank);
    CRN_FAIL_IF(v->spec.nbytes != nbytes, CAIRN_EMISMATCH,
                "variable '%s' has %" PRIu64 " bytes on rank %u, not %zu", name, v->spec.nbytes,
                rank, nbytes);
    return crn_mark_read(t->part, t->mark, v, 0, v->nblocks, dst, NULL);
}

/* --- verifying ---------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 16 << 20 }; /* read and checked between two reports of progress */

typedef struct verification {
    cairn_trail *t;
    size_t run;
    const crn_manifest_mark *mark;
    cairn_finding_fn *fn;
    void *arg;
    cairn_finding now; /* where we are */
    unsigned char *chunk;
    crn_err unread; /* why something could not be read; the first such failure */
    bool damaged, stopped;
    bool gone; /* the mark was dropped while we read it */
} verification;

static bool is_over(const verification *v)
{
    return v->stopped || v->gone;
}

static void report(verification *v, int status, const char *text, uint64_t block)
{
    v->now.status = status;
    v->now.text = text;
    v->now.block = block;
    if (v->fn && !v->stopped)
        v->stopped = v->fn(v->arg, &v->now) != 0;
    v->now.text = NULL; /* it lives during the call only */
}

bool crn_trail_dropped(crn_trail *t, const char *name, const crn_manifest_mark *mark)
{
    crn_run *run;
    if (crn_run_open(t, name, false, &run) < 0)
        return false;
    const crn_manifest *m = crn_run_manifest(run);
    bool listed = false;
    for (size_t i = 0; i < m->mark.n && !listed; i++) {
        const crn_manifest_mark *k = &m->mark.at[i];
        listed =
            k->version == mark->version && k->series == mark->series && k->levels & CRN_IN_TRAIL;
    }
    crn_run_close(run);
    return !listed;
}

static bool was_dropped(const verification *v)
{
    return crn_trail_dropped(v->t->trail, v->t->run.at[v->run].name, v->mark);
}

/* Report what is wrong with a part or a variable, and go on with the next; only a failure that the
 * next would meet, too, is passed on. */
static cairn_status note(verification *v, cairn_status rc)
{
    crn_err why = *crn_err_peek();
    switch (rc) {
    case CAIRN_ECORRUPT:
    case CAIRN_ENOTFOUND:
    case CAIRN_EMISMATCH:
    case CAIRN_EUNSUPPORTED:
        v->gone = was_dropped(v);
        if (v->gone)
            return CAIRN_OK;
        v->damaged = true;
        break;
    case CAIRN_EIO: /* the machine cannot read it: that is not damage */
        if (v->unread.code == CAIRN_OK)
            v->unread = why;
        break;
    default:
        return rc;
    }
    report(v, rc, why.text, UINT64_MAX);
    return CAIRN_OK;
}

/* Where a damaged block lies: "4096 bytes at byte 8192 of 'part-000000'". */
static void format_place(const verification *v, const crn_block *b, char *buf, size_t cap)
{
    char name[CRN_OUTSIDE_NAME];
    const bool own = b->codec & CRN_OUTSIDE_OWN;
    if (b->codec & CRN_OUTSIDE)
        snprintf(buf, cap, "%u bytes in '%s'", b->nbytes,
                 crn_outside_name(v->now.version, own ? v->now.rank : CRN_ALL_RANKS, name));
    else
        snprintf(buf, cap, "%u bytes at byte %" PRIu64 " of '%s'", b->nbytes, b->off,
                 v->t->part->name);
}

static void report_blocks(verification *v, const crn_var *var, const crn_bad_blocks *bad)
{
    v->gone = bad->n > 0 && was_dropped(v);
    for (size_t i = 0; i < bad->n && !is_over(v); i++) {
        char text[CRN_ERR_TEXT], place[128];
        format_place(v, &var->table[bad->at[i]], place, sizeof place);
        snprintf(text, sizeof text,
                 "mark %" PRIu64 ", rank %u, variable '%s', block %" PRIu64 " is damaged (%s)",
                 v->now.version, v->now.rank, var->spec.name, bad->at[i], place);
        v->damaged = true;
        report(v, CAIRN_ECORRUPT, text, bad->at[i]);
    }
}

static cairn_status verify_variable(verification *v, crn_var *var)
{
    cairn_trail *t = v->t;
    uint64_t step = CHUNK_BYTES / var->spec.block;
    cairn_status rc = crn_mark_table(t->part, t->mark, var);
    if (rc < 0) {
        v->now.done_bytes += var->spec.nbytes;
        return note(v, rc);
    }
    for (uint64_t i = 0; i < var->nblocks && !is_over(v); i += step) {
        crn_bad_blocks bad = {0};
        uint64_t n = CRN_MIN(step, var->nblocks - i);
        rc = crn_mark_read(t->part, t->mark, var, i, n, v->chunk, &bad);
        if (rc == CAIRN_OK)
            report_blocks(v, var, &bad);
        crn_vec_done(&bad);
        CRN_TRY(rc);
        v->now.done_bytes += CRN_MIN(n * var->spec.block, var->spec.nbytes - i * var->spec.block);
        report(v, CAIRN_OK, "", UINT64_MAX);
    }
    return CAIRN_OK;
}

static cairn_status verify_part(verification *v, size_t mark, uint32_t rank)
{
    cairn_trail *t = v->t;
    v->now.rank = rank;
    v->now.variable = NULL;
    cairn_status rc = look_at(t, v->run, mark, rank);
    if (rc < 0)
        return note(v, rc);
    crn_part_info info;
    crn_part_describe(t->part, &info);
    if (info.fallback) {
        char text[CRN_ERR_TEXT];
        snprintf(text, sizeof text, "a superblock of '%s' is damaged; the other one is used",
                 t->part->name);
        v->damaged = true;
        report(v, CAIRN_ECORRUPT, text, UINT64_MAX);
    }
    for (size_t i = 0; i < t->mark->nvars && !is_over(v); i++) {
        v->now.variable = t->mark->var[i].spec.name;
        CRN_TRY(verify_variable(v, &t->mark->var[i]));
    }
    return CAIRN_OK;
}

static cairn_status verify_mark(verification *v, size_t mark)
{
    CRN_TRY(find_mark(v->t, v->run, mark, &v->mark));
    v->now.version = v->mark->version;
    v->gone = false;
    for (uint32_t rank = 0; rank < v->mark->nranks && !is_over(v); rank++)
        CRN_TRY(verify_part(v, mark, rank));
    return CAIRN_OK;
}

static cairn_status verdict(const verification *v, const char *name)
{
    if (v->stopped)
        return CAIRN_NOTHING;
    CRN_FAIL_IF(v->damaged, CAIRN_ECORRUPT, "run '%s' is damaged", name);
    return v->unread.code < 0 ? crn_err_give(&v->unread) : CAIRN_OK;
}

int cairn_trail_verify(cairn_trail *t, size_t run, size_t mark, cairn_finding_fn *fn, void *arg)
{
    cairn_run_info info = {.struct_bytes = sizeof info};
    verification v = {
        .t = t, .run = run, .fn = fn, .arg = arg, .now = {.struct_bytes = sizeof v.now}};
    cairn_status rc;
    CRN_TRY(cairn_trail_run(t, run, &info));
    size_t first = mark == CAIRN_ALL_MARKS ? 0 : mark;
    size_t last = mark == CAIRN_ALL_MARKS ? info.nmarks : mark + 1;
    CRN_FAIL_IF(last > info.nmarks, CAIRN_EINVAL, "run '%s' has %zu marks", info.name, info.nmarks);
    const crn_manifest_mark *k = crn_run_manifest(t->run.at[run].run)->mark.at;
    for (size_t i = first; i < last; i++)
        v.now.total_bytes += k[i].levels & CRN_IN_TRAIL ? k[i].nbytes : 0;
    CRN_TRY(crn_alloc_aligned(&v.chunk, CHUNK_BYTES, PAGE));
    rc = CAIRN_OK;
    for (size_t i = first; i < last && rc == CAIRN_OK && !v.stopped; i++)
        if (k[i].levels & CRN_IN_TRAIL)
            rc = verify_mark(&v, i);
    free(v.chunk);
    CRN_TRY(rc);
    return verdict(&v, info.name);
}
