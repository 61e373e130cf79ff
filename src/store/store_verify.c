/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn_trail_verify: every block of every mark that the trail holds, against its digest.
 */
#include "store/store_inspect.h"

enum { CHUNK_BYTES = 16 << 20 }; /* read and checked between two reports of progress */

static bool is_over(const crn_verification *v)
{
    return v->stopped || v->gone;
}

void crn_verify_tell(crn_verification *v, int status, const char *text, uint64_t block)
{
    v->now.status = status;
    v->now.text = text;
    v->now.block = block;
    if (v->fn && !v->stopped)
        v->stopped = v->fn(v->arg, &v->now) != 0;
    v->now.text = NULL; /* it lives during the call only */
}

static bool was_dropped(const crn_verification *v)
{
    return crn_verify_is_stale(v) &&
           crn_trail_dropped(v->t->trail, v->t->run.at[v->run].name, v->mark);
}

static bool is_damage(cairn_status rc)
{
    return rc == CAIRN_ECORRUPT || rc == CAIRN_ENOTFOUND || rc == CAIRN_EMISMATCH ||
           rc == CAIRN_EUNSUPPORTED;
}

cairn_status crn_verify_note(crn_verification *v, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    if (is_damage(rc))
        v->damaged = true;
    else if (rc != CAIRN_EIO)
        return rc;
    else if (v->unread.code == CAIRN_OK) /* the machine cannot read it: that is not damage */
        v->unread = why;
    crn_verify_tell(v, rc, why.text, UINT64_MAX);
    return CAIRN_OK;
}

/* The same of a part or a variable in it, unless the mark was dropped meanwhile. */
static cairn_status note(crn_verification *v, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    v->gone = is_damage(rc) && was_dropped(v);
    if (v->gone)
        return CAIRN_OK;
    (void)crn_err_give(&why);
    return crn_verify_note(v, rc);
}

/* Where a damaged block lies: "4096 bytes at byte 8192 of 'part-000000'". */
static void format_place(const crn_verification *v, const crn_block *b, char *buf, size_t cap)
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

static void report_blocks(crn_verification *v, const crn_var *var, const crn_bad_blocks *bad)
{
    v->gone = bad->n > 0 && was_dropped(v);
    for (size_t i = 0; i < bad->n && !is_over(v); i++) {
        char text[CRN_ERR_TEXT], place[128];
        format_place(v, &var->table[bad->at[i]], place, sizeof place);
        snprintf(text, sizeof text,
                 "mark %" PRIu64 ", rank %u, variable '%s', block %" PRIu64 " is damaged (%s)",
                 v->now.version, v->now.rank, var->spec.name, bad->at[i], place);
        v->damaged = true;
        crn_verify_tell(v, CAIRN_ECORRUPT, text, bad->at[i]);
    }
}

static cairn_status verify_variable(crn_verification *v, crn_var *var)
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
        crn_verify_tell(v, CAIRN_OK, "", UINT64_MAX);
    }
    return CAIRN_OK;
}

cairn_status crn_verify_share(crn_verification *v, const crn_manifest_mark *k)
{
    cairn_trail *t = v->t;
    v->mark = k;
    v->gone = false;
    v->now.version = k->version;
    v->now.variable = NULL;
    cairn_status rc = crn_inspect_load(t, k->version);
    if (rc < 0)
        return note(v, rc);
    for (size_t i = 0; i < t->mark->nvars && !is_over(v); i++) {
        v->now.variable = t->mark->var[i].spec.name;
        CRN_TRY(verify_variable(v, &t->mark->var[i]));
    }
    return CAIRN_OK;
}

static cairn_status verdict(const crn_verification *v, const char *name)
{
    if (v->stopped)
        return CAIRN_NOTHING;
    CRN_FAIL_IF(v->damaged, CAIRN_ECORRUPT, "run '%s' is damaged", name);
    return v->unread.code < 0 ? crn_err_give(&v->unread) : CAIRN_OK;
}

int cairn_trail_verify(cairn_trail *t, size_t run, size_t mark, cairn_finding_fn *fn, void *arg)
{
    cairn_run_info info = {.struct_bytes = sizeof info};
    crn_verification v = {
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
    rc = crn_verify_parts(&v, first, last);
    free(v.chunk);
    if (rc == CAIRN_OK && mark == CAIRN_ALL_MARKS && !v.stopped)
        rc = crn_verify_trees(&v);
    CRN_TRY(rc);
    return verdict(&v, info.name);
}
