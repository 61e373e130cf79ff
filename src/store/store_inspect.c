/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of <cairn/trail.h>: looking into a trail from outside; but for the check of all
 * that is in it, store_verify.c.
 */
#include "store/store_inspect.h"

static const crn_part_options reading = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};

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

cairn_status crn_inspect_mark(cairn_trail *t, size_t run, size_t mark,
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
    CRN_TRY(crn_inspect_mark(t, run, mark, &k));
    cairn_mark_info m = {.version = k->version,
                         .wall_ns = k->wall_ns,
                         .nbytes = k->nbytes,
                         .nranks = k->nranks,
                         .levels = k->levels};
    return crn_struct_out(&m, info);
}

cairn_status crn_inspect_open(cairn_trail *t, size_t run, const crn_manifest_mark *k, uint32_t rank)
{
    if (t->part && t->part_run == run && t->part_series == k->series && t->part_rank == rank)
        return CAIRN_OK;
    forget_part(t);
    CRN_TRY(
        crn_run_part(t->run.at[run].run, k->series, rank, k->nranks, false, &reading, &t->part));
    crn_part_distrust(t->part);
    t->part_run = run;
    t->part_series = k->series;
    t->part_rank = rank;
    return CAIRN_OK;
}

cairn_status crn_inspect_load(cairn_trail *t, uint64_t version)
{
    if (t->mark && t->mark->version == version)
        return CAIRN_OK;
    crn_mark_free(t->mark);
    t->mark = NULL;
    return crn_part_load(t->part, version, &t->mark);
}

cairn_status crn_inspect_part(cairn_trail *t, size_t run, size_t mark, uint32_t rank)
{
    const crn_manifest_mark *k;
    CRN_TRY(crn_inspect_mark(t, run, mark, &k));
    CRN_FAIL_IF(rank >= k->nranks, CAIRN_EINVAL, "mark %" PRIu64 " was written by %u ranks",
                k->version, k->nranks);
    CRN_FAIL_IF(!(k->levels & CRN_IN_TRAIL), CAIRN_ENOTFOUND,
                "mark %" PRIu64 " is not in the trail, but on the nodes that wrote it", k->version);
    CRN_TRY(crn_inspect_open(t, run, k, rank));
    return crn_inspect_load(t, k->version);
}

int cairn_trail_part(cairn_trail *t, size_t run, size_t mark, uint32_t rank, cairn_part_info *info)
{
    crn_part_info p;
    CRN_TRY(crn_inspect_part(t, run, mark, rank));
    crn_part_describe(t->part, &p);
    cairn_part_info r = {.file_bytes = p.file_bytes,
                         .nmarks = p.nmarks,
                         .nvars = t->mark->nvars,
                         .fallback = p.fallback};
    return crn_struct_out(&r, info);
}

static cairn_status tell_kept(const crn_var_spec *spec, cairn_variable_info *r)
{
    crn_kept kept = {0};
    CRN_TRY(crn_kept_parse(spec->attributes, &kept));
    r->whole_bytes = kept.partial ? kept.nelements * spec->item : spec->nbytes;
    r->kept_bytes = kept.partial ? crn_kept_count(&kept) * spec->item : spec->nbytes;
    crn_vec_done(&kept.box);
    return CAIRN_OK;
}

int cairn_trail_variable(cairn_trail *t, size_t run, size_t mark, uint32_t rank, size_t var,
                         cairn_variable_info *info)
{
    CRN_TRY(crn_inspect_part(t, run, mark, rank));
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
                             .ndims = v->spec.ndims,
                             .table_bytes = v->nblocks * v->entry_bytes};
    for (uint32_t i = 0; i < v->spec.ndims; i++) {
        r.global[i] = v->spec.global[i];
        r.offset[i] = v->spec.offset[i];
        r.count[i] = v->spec.count[i];
    }
    crn_digest_format(&v->root, r.root);
    CRN_TRY(tell_kept(&v->spec, &r));
    return crn_struct_out(&r, info);
}

int cairn_trail_read(cairn_trail *t, size_t run, size_t mark, uint32_t rank, const char *name,
                     void *dst, size_t nbytes)
{
    CRN_TRY(crn_inspect_part(t, run, mark, rank));
    crn_var *v = crn_mark_find(t->mark, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "mark %" PRIu64 " has no variable '%s' on rank %u",
                t->mark->version, name, rank);
    CRN_FAIL_IF(v->spec.nbytes != nbytes, CAIRN_EMISMATCH,
                "variable '%s' has %" PRIu64 " bytes on rank %u, not %zu", name, v->spec.nbytes,
                rank, nbytes);
    return crn_mark_read(t->part, t->mark, v, 0, v->nblocks, dst, NULL);
}
