/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coming back: which mark, does it fit what the program protects, and where its blocks are.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>

/* --- does it fit -------------------------------------------------------------------------- */

/* Append to the text in buf, as far as there is room. */
static void append(char *buf, size_t cap, const char *fmt, ...)
{
    const size_t n = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + n, cap - n, fmt, ap);
    va_end(ap);
}

static void append_dims(char *buf, size_t cap, const uint64_t *dims, uint32_t ndims)
{
    for (uint32_t d = 0; d < ndims; d++)
        append(buf, cap, "%s%" PRIu64, d ? " x " : "", dims[d]);
}

/* A long description is shown where it begins to differ from the other one. */
static void append_type(char *buf, size_t cap, const char *type, const char *other)
{
    enum { WIDTH = 90, BEFORE = 30 };
    size_t same = 0;
    while (type[same] && type[same] == other[same])
        same++;
    const size_t skip = strlen(type) > WIDTH && same > BEFORE ? same - BEFORE : 0;
    append(buf, cap, "%s%.*s%s", skip > 0 ? "..." : "", WIDTH, type + skip,
           strlen(type + skip) > WIDTH ? "..." : "");
}

/* "float64[12]", or "float64[4 x 6 of 8 x 6 at 4 x 0]" for a piece of an array. */
static void format_shape(const crn_var_spec *s, const crn_var_spec *other, char *buf, size_t cap)
{
    const uint64_t items = s->nbytes / s->item;
    buf[0] = 0;
    append_type(buf, cap, s->type, other->type);
    append(buf, cap, "[");
    append_dims(buf, cap, s->ndims > 0 ? s->count : &items, CRN_MAX(s->ndims, 1));
    if (s->ndims > 0) {
        append(buf, cap, " of ");
        append_dims(buf, cap, s->global, s->ndims);
        append(buf, cap, " at ");
        append_dims(buf, cap, s->offset, s->ndims);
    }
    append(buf, cap, "]");
}

static bool same_dims(const crn_var_spec *a, const uint64_t *x, const uint64_t *y)
{
    return a->ndims == 0 || memcmp(x, y, a->ndims * sizeof *x) == 0;
}

/* Of as many dimensions: the same piece of the same whole? */
static bool same_place(const crn_var_spec *a, const crn_var_spec *b)
{
    return same_dims(a, a->global, b->global) && same_dims(a, a->offset, b->offset) &&
           same_dims(a, a->count, b->count);
}

static bool same_shape(const crn_var_spec *a, const crn_var_spec *b)
{
    return strcmp(a->type, b->type) == 0 && a->item == b->item && a->nbytes == b->nbytes &&
           a->ndims == b->ndims && same_place(a, b);
}

/* Are the cells that an index declares, and their items, those of the mark's index? */
static bool same_cells(const ckpt_var *v, const crn_var *there)
{
    for (uint64_t i = 0; i < there->nblocks; i++) {
        const crn_digest d = crn_digest_of((const unsigned char *)v->data + i * v->block,
                                           crn_var_block_bytes(there, i));
        if (!crn_digest_equal(&d, &there->table[i].digest))
            return false;
    }
    return true;
}

static cairn_status check_variable(const cairn *c, const crn_mark *share, const ckpt_var *v)
{
    const crn_var *there = crn_mark_find(share, v->name);
    const crn_var_spec here = crn_ckpt_spec(v);
    char a[192], b[192];
    CRN_FAIL_IF(!there, CAIRN_EMISMATCH,
                "rank %d: variable '%s' is protected, but mark %" PRIu64 " does not have it",
                crn_comm_rank(c->comm), v->name, share->version);
    CRN_FAIL_IF(v->layout != crn_layout_of(&there->spec), CAIRN_EMISMATCH,
                "rank %d: variable '%s' is protected in another way than in mark %" PRIu64,
                crn_comm_rank(c->comm), v->name, share->version);
    CRN_FAIL_IF(v->layout == CKPT_INDEX &&
                    (v->nbytes != there->spec.nbytes || !same_cells(v, there)),
                CAIRN_EMISMATCH,
                "rank %d: the cells of '%s', or how many items they have, are not those of mark "
                "%" PRIu64,
                crn_comm_rank(c->comm), v->name, share->version);
    if (same_shape(&here, &there->spec))
        return CAIRN_OK;
    format_shape(&here, &there->spec, a, sizeof a);
    format_shape(&there->spec, &here, b, sizeof b);
    return crn_fail(CAIRN_EMISMATCH,
                    "rank %d: variable '%s' is %s, but in mark %" PRIu64 " it is %s",
                    crn_comm_rank(c->comm), v->name, a, share->version, b);
}

static cairn_status check_ranks(const cairn *c, const crn_manifest_mark *mark)
{
    CRN_FAIL_IF(mark->nranks != (uint32_t)crn_comm_size(c->comm), CAIRN_EMISMATCH,
                "mark %" PRIu64 " was written by %u ranks, and %d are here", mark->version,
                mark->nranks, crn_comm_size(c->comm));
    return CAIRN_OK;
}

static cairn_status check_share(cairn *c, const crn_mark *share)
{
    for (size_t i = 0; i < c->var.n; i++)
        CRN_TRY(check_variable(c, share, &c->var.at[i]));
    if (crn_config_bool(c->cfg, CRN_OPT_RESUME_SUBSET))
        return CAIRN_OK;
    for (size_t i = 0; i < share->nvars; i++)
        CRN_FAIL_IF(!crn_ckpt_find(c, share->var[i].spec.name), CAIRN_EMISMATCH,
                    "rank %d: mark %" PRIu64 " has a variable '%s' that is not protected; set "
                    "resume.subset to resume without it",
                    crn_comm_rank(c->comm), share->version, share->var[i].spec.name);
    return CAIRN_OK;
}

/* --- bringing it back --------------------------------------------------------------------- */

/* What a variable in larger memory is loaded to first. */
static cairn_status make_room(const cairn *c, crn_want *want)
{
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < c->var.n && rc == CAIRN_OK; i++)
        if (c->var.at[i].padded)
            rc = crn_alloc(&want[i].dst, c->var.at[i].nbytes);
        else
            want[i].dst = (unsigned char *)c->var.at[i].data;
    return rc;
}

static void unpack(const cairn *c, const crn_want *want, bool loaded)
{
    for (size_t i = 0; i < c->var.n; i++) {
        if (!c->var.at[i].padded)
            continue;
        if (loaded)
            crn_ckpt_unpack(&c->var.at[i], want[i].dst);
        free(want[i].dst);
    }
}

static cairn_status load_share(cairn *c, const crn_manifest_mark *mark, const crn_mark *share,
                               crn_load_stats *stats)
{
    crn_want *want = NULL;
    cairn_status rc = crn_comm_agree(c->comm, crn_alloc(&want, c->var.n));
    CRN_TRY(rc);
    for (size_t i = 0; i < c->var.n; i++) {
        const crn_var *v = crn_mark_find(share, c->var.at[i].name);
        want[i] = (crn_want){
            .rank = (uint32_t)crn_comm_rank(c->comm), .share = share, .var = v, .n = v->nblocks};
    }
    rc = crn_comm_agree(c->comm, make_room(c, want));
    if (rc == CAIRN_OK)
        rc = crn_vault_load(c->vault, mark, want, c->var.n, stats);
    unpack(c, want, rc == CAIRN_OK);
    free(want);
    return rc;
}

static void tell(cairn *c, const crn_manifest_mark *mark, const crn_load_stats *mine,
                 uint64_t start)
{
    uint64_t v[3 * CRN_NLEVELS];
    for (int l = 0; l < CRN_NLEVELS; l++) {
        v[3 * l] = mine->from[l].blocks;
        v[3 * l + 1] = mine->from[l].bytes;
        v[3 * l + 2] = mine->from[l].bad;
    }
    if (crn_comm_allreduce_u64(c->comm, CRN_REDUCE_SUM, v, 3 * CRN_NLEVELS) < 0)
        return;
    json_t *from = json_object();
    for (int l = 0; l < CRN_NLEVELS; l++)
        if (v[3 * l] + v[3 * l + 2] > 0)
            json_object_set_new(from, crn_level_name((crn_level)l),
                                json_pack("{s:I, s:I, s:I}", "blocks", (json_int_t)v[3 * l],
                                          "bytes", (json_int_t)v[3 * l + 1], "bad",
                                          (json_int_t)v[3 * l + 2]));
    crn_ckpt_event(c, "{s:s, s:I, s:f, s:o}", "event", "resume", "version",
                   (json_int_t)mark->version, "seconds", (double)(crn_now_ns() - start) * 1e-9,
                   "from", from);
    if (crn_comm_rank(c->comm) != 0)
        json_decref(from);
    crn_log_write(&c->log, CRN_LOG_INFO, CRN_LOG_ROOT, "resumed from mark %" PRIu64, mark->version);
}

/* Bring back one mark. CAIRN_ENOTFOUND: it cannot be produced, and an older one may be. */
static cairn_status try_mark(cairn *c, const crn_manifest_mark *mark)
{
    const uint32_t me = (uint32_t)crn_comm_rank(c->comm);
    const uint64_t start = crn_now_ns();
    crn_load_stats stats = {0};
    crn_mark *share = NULL;
    CRN_TRY(check_ranks(c, mark));
    CRN_TRY(crn_vault_can_load(c->vault, mark));
    CRN_TRY(crn_vault_describe(c->vault, mark, &me, 1, &share));
    crn_stage_enter(CRN_STAGE_RESUME);
    cairn_status rc = crn_comm_agree(c->comm, check_share(c, share));
    if (rc == CAIRN_OK)
        rc = load_share(c, mark, share, &stats);
    crn_mark_free(share);
    CRN_TRY(rc);
    tell(c, mark, &stats, start);
    return CAIRN_OK;
}

/* The newest mark, or the one called for, that can be brought back; older ones are tried where a
 * newer one turns out to be lost. */
static cairn_status resume(cairn *c, const uint64_t *wanted, uint64_t *ret)
{
    CRN_FAIL_IF(c->open, CAIRN_EINVAL, "mark %" PRIu64 " is open", c->job.version);
    crn_ckpt_beat(c);
    crn_engine_finish(c);
    if (c->mark.n == 0 && !wanted) {
        c->resumed = true;
        return CAIRN_NOTHING;
    }
    crn_vault_use_comm(c->vault, c->comm);
    CRN_TRY(crn_vault_survey(c->vault, c->mark.at, c->mark.n));
    cairn_status rc = CAIRN_NOTHING;
    for (size_t i = c->mark.n; i-- > 0;) {
        const crn_manifest_mark mark = c->mark.at[i];
        if (wanted && mark.version != *wanted)
            continue;
        rc = try_mark(c, &mark);
        if (rc == CAIRN_OK) {
            c->resumed = c->rewind = true;
            c->resumed_from = mark.version;
            c->last_mark_ns = crn_now_ns();
            if (ret)
                *ret = mark.version;
            return CAIRN_OK;
        }
        if (rc != CAIRN_ENOTFOUND)
            return rc;
        c->lost_from = CRN_MIN(c->lost_from, mark.version);
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
        crn_ckpt_event(c, "{s:s, s:I, s:s}", "event", "lost", "version", (json_int_t)mark.version,
                       "text", crn_err_peek()->text);
    }
    CRN_FAIL_IF(wanted && rc == CAIRN_NOTHING, CAIRN_ENOTFOUND, "run '%s' has no mark %" PRIu64,
                crn_run_name(c->run), *wanted);
    if (!wanted) /* nothing can be produced: if the program goes on, it begins anew */
        c->resumed = true;
    return rc;
}

int cairn_resume(cairn *c, uint64_t *version)
{
    return crn_ckpt_result(c, resume(c, NULL, version));
}

int cairn_resume_at(cairn *c, uint64_t version)
{
    return crn_ckpt_result(c, resume(c, &version, NULL));
}

/* The newest mark that can be produced, as far as the files and earlier tries tell. */
static cairn_status find_newest(cairn *c, crn_manifest_mark *ret)
{
    crn_engine_finish(c);
    if (c->mark.n == 0)
        return CAIRN_NOTHING;
    crn_vault_use_comm(c->vault, c->comm);
    CRN_TRY(crn_vault_survey(c->vault, c->mark.at, c->mark.n));
    for (size_t i = c->mark.n; i-- > 0;) {
        if (c->mark.at[i].version >= c->lost_from)
            continue;
        cairn_status rc = crn_vault_can_load(c->vault, &c->mark.at[i]);
        if (rc == CAIRN_OK)
            *ret = c->mark.at[i];
        if (rc != CAIRN_ENOTFOUND)
            return rc;
    }
    return crn_fail(CAIRN_ENOTFOUND, "run '%s' has marks, but none can be produced",
                    crn_run_name(c->run));
}

int cairn_probe(cairn *c, uint64_t *version)
{
    crn_manifest_mark mark;
    cairn_status rc = find_newest(c, &mark);
    if (rc == CAIRN_OK && version)
        *version = mark.version;
    return crn_ckpt_result(c, rc);
}

static cairn_status probe_count(cairn *c, const char *name, size_t *ret)
{
    const uint32_t me = (uint32_t)crn_comm_rank(c->comm);
    crn_manifest_mark mark;
    crn_mark *share;
    cairn_status rc = find_newest(c, &mark);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(check_ranks(c, &mark));
    CRN_TRY(crn_vault_describe(c->vault, &mark, &me, 1, &share));
    const crn_var *v = crn_mark_find(share, name);
    *ret = v ? (size_t)(v->spec.nbytes / v->spec.item) : 0;
    crn_mark_free(share);
    return CAIRN_OK;
}

int cairn_probe_count(cairn *c, const char *name, size_t *count)
{
    return crn_ckpt_result(c, probe_count(c, name, count));
}
