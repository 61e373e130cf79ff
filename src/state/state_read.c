/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Getting states. A reader takes no lock: the writer may drop a state, and use its space again,
 * while it is read. Then digests fail, and the index tells that the state is gone.
 */
#include "state/state_read.h"

#include <inttypes.h>

/* --- parts -------------------------------------------------------------------------------- */

void crn_readers_done(cairn_shelf *s)
{
    for (size_t i = 0; i < STATE_READERS; i++) {
        crn_part_close(s->reader[i].part);
        s->reader[i] = (state_reader){0};
    }
}

static bool has_state(crn_part *part, const state_entry *e)
{
    uint64_t wall_ns;
    return crn_part_find_state(part, (crn_state_name){e->key, e->version}, &wall_ns) &&
           wall_ns == e->wall_ns;
}

/* The slot of a part, or of the one that was not used for longest. */
static state_reader *slot_for(cairn_shelf *s, uint32_t series, uint32_t rank)
{
    state_reader *oldest = &s->reader[0];
    for (size_t i = 0; i < STATE_READERS; i++) {
        state_reader *r = &s->reader[i];
        if (r->part && r->series == series && r->rank == rank)
            return r;
        oldest = r->used < oldest->used ? r : oldest;
    }
    return oldest;
}

/* A part that was opened before the state was put does not know it, and is opened again. */
cairn_status crn_reader_part(cairn_shelf *s, const state_entry *e, uint32_t rank, crn_part **ret)
{
    if (s->part && e->series == s->series && rank == (uint32_t)crn_comm_rank(s->comm) &&
        !crn_shelf_is_putting(s)) {
        *ret = s->part;
        return CAIRN_OK;
    }
    state_reader *r = slot_for(s, e->series, rank);
    if (!r->part || r->series != e->series || r->rank != rank || !has_state(r->part, e)) {
        crn_part *part;
        CRN_TRY(crn_writer_part(s, e->series, rank, e->nranks, false, &part));
        crn_part_close(r->part);
        *r = (state_reader){.series = e->series, .rank = rank, .part = part};
    }
    r->used = ++s->clock;
    *ret = r->part;
    return CAIRN_OK;
}

static cairn_status load(cairn_shelf *s, const state_entry *e, uint32_t rank, crn_part **part,
                         crn_mark **ret)
{
    CRN_TRY(crn_reader_part(s, e, rank, part));
    CRN_FAIL_IF(!has_state(*part, e), CAIRN_ENOTFOUND,
                "the part of process %" PRIu32 " of writer %" PRIu32 " does not have it", rank,
                e->series);
    return crn_part_load_state(*part, (crn_state_name){e->key, e->version}, ret);
}

/* A part that was opened before a state was dropped and copied here again, which has the time that
 * it had, knows where the first copy lay. */
cairn_status crn_reader_load(cairn_shelf *s, const state_entry *e, uint32_t rank, crn_part **part,
                             crn_mark **ret)
{
    const cairn_status rc = load(s, e, rank, part, ret);
    if (rc != CAIRN_ECORRUPT && rc != CAIRN_ENOTFOUND)
        return rc;
    crn_readers_done(s);
    return load(s, e, rank, part, ret);
}

cairn_status crn_reader_sum(cairn_shelf *s, const state_entry *e, crn_digest *ret,
                            uint64_t *ret_nbytes)
{
    crn_digest *share;
    cairn_status rc = CAIRN_OK;
    uint64_t total = 0, nbytes;
    CRN_TRY(crn_alloc(&share, e->nranks));
    for (uint32_t r = 0; r < e->nranks && rc == CAIRN_OK; r++) {
        crn_part *part;
        crn_mark *m = NULL;
        rc = crn_reader_load(s, e, r, &part, &m);
        if (rc == CAIRN_OK)
            rc = crn_mark_digest(m, false, &share[r], &nbytes);
        total += rc == CAIRN_OK ? nbytes : 0;
        crn_mark_free(m);
    }
    if (rc == CAIRN_OK) {
        *ret = crn_shares_digest(share, e->nranks);
        *ret_nbytes = total;
    }
    free(share);
    return rc;
}

/* --- fields ------------------------------------------------------------------------------- */

static const char *kind_of(crn_var_layout layout)
{
    return layout == CRN_LAYOUT_LIST     ? "a list"
           : layout == CRN_LAYOUT_RAGGED ? "items in cells"
                                         : "an array";
}

static crn_var_layout layout_asked(const cairn_field *f)
{
    return f->kind == CAIRN_FIELD_LIST    ? CRN_LAYOUT_LIST
           : f->kind == CAIRN_FIELD_CELLS ? CRN_LAYOUT_RAGGED
           : f->ndims > 0                 ? CRN_LAYOUT_PIECE
                                          : CRN_LAYOUT_OWN;
}

static cairn_status check_type(const crn_var *v, const crn_var_spec *want, crn_var_layout asked)
{
    const crn_var_layout layout = crn_layout_of(&v->spec);
    CRN_FAIL_IF(strcmp(v->spec.type, want->type) != 0 || v->spec.ndims != want->ndims,
                CAIRN_EMISMATCH, "field '%s' is %s of %" PRIu32 " dimensions, not %s of %" PRIu32,
                want->name, v->spec.type, v->spec.ndims, want->type, want->ndims);
    CRN_FAIL_IF(layout != asked, CAIRN_EMISMATCH, "field '%s' is %s, not %s", want->name,
                kind_of(layout), kind_of(asked));
    for (uint32_t d = 0; d < want->ndims; d++)
        CRN_FAIL_IF(v->spec.global[d] != want->global[d], CAIRN_EMISMATCH,
                    "field '%s', dimension %" PRIu32 ": the array has %" PRIu64
                    " elements, not %" PRIu64,
                    want->name, d, v->spec.global[d], want->global[d]);
    return CAIRN_OK;
}

/* What one process put that is no piece of an array: as it was. */
static cairn_status get_plain(const getting *g, crn_part *part, const crn_mark *m, crn_var *v,
                              size_t i)
{
    const crn_var_spec *want = &g->spec[i];
    CRN_FAIL_IF(g->entry.nranks > 1, CAIRN_EMISMATCH,
                "field '%s' was put by %" PRIu32 " processes, each its own, and is no array",
                want->name, g->entry.nranks);
    CRN_FAIL_IF(v->spec.nbytes != want->nbytes, CAIRN_EMISMATCH,
                "field '%s' has %" PRIu64 " elements, not %" PRIu64, want->name,
                v->spec.nbytes / v->spec.item, want->nbytes / want->item);
    return crn_mark_read(part, m, v, 0, v->nblocks, g->field[i].data, NULL);
}

static cairn_status get_field(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i)
{
    switch (layout_asked(&g->field[i])) {
    case CRN_LAYOUT_LIST:
        return crn_get_list(g, part, m, v, i);
    case CRN_LAYOUT_RAGGED:
        return crn_get_cells(g, part, m, v, i);
    case CRN_LAYOUT_PIECE:
        return g->follows[i] ? CAIRN_OK : crn_get_boxes(g, part, m, v, i);
    default:
        return get_plain(g, part, m, v, i);
    }
}

/* What the share of one process has of the fields that are asked for. */
static cairn_status get_share(getting *g, crn_part *part, const crn_mark *m)
{
    for (size_t i = 0; i < g->n; i++) {
        const crn_var *v = crn_mark_find(m, g->spec[i].name);
        g->found[i] |= v != NULL;
        if (v)
            CRN_TRY(check_type(v, &g->spec[i], layout_asked(&g->field[i])));
    }
    for (size_t i = 0; i < g->n; i++) {
        crn_var *v = crn_mark_find(m, g->spec[i].name);
        if (v)
            CRN_TRY(get_field(g, part, m, v, i));
    }
    return CAIRN_OK;
}

static cairn_status check_items(const getting *g, size_t i)
{
    const cairn_field *f = &g->field[i];
    CRN_FAIL_IF(f->kind == CAIRN_FIELD_CELLS && g->before[i] != f->ncells, CAIRN_EMISMATCH,
                "field '%s': %" PRIu64 " of %zu cells are there", f->name, g->before[i], f->ncells);
    CRN_FAIL_IF(f->kind == CAIRN_FIELD_LIST && (g->got[i] != g->spec[i].nbytes ||
                                                (f->global[0] > 0 && f->global[0] != g->before[i])),
                CAIRN_EMISMATCH, "field '%s': the list has %" PRIu64 " items", f->name,
                g->before[i]);
    return CAIRN_OK;
}

/* The bytes are as many as they should be, which an overlap beside a hole gives, too. */
static cairn_status check_tiling(getting *g, size_t i)
{
    const crn_var_spec *s = &g->spec[i];
    const crn_box want = crn_box_of(s->ndims, s->offset, s->count);
    crn_tiling t;
    if (g->claim[i].n < 2)
        return CAIRN_OK;
    CRN_TRY(crn_claims_check(g->claim[i].at, g->claim[i].n, &want, &t));
    CRN_FAIL_IF(t.fault != CRN_TILING_WHOLE, CAIRN_EMISMATCH,
                "field '%s': two processes have put the same elements there, and nobody others",
                s->name);
    return CAIRN_OK;
}

static cairn_status check_whole(getting *g)
{
    for (size_t i = 0; i < g->n; i++) {
        CRN_FAIL_IF(!g->found[i], CAIRN_ENOTFOUND, "it has no field '%s'", g->spec[i].name);
        CRN_FAIL_IF(g->spec[i].ndims > 0 && g->got[i] != g->spec[i].nbytes, CAIRN_EMISMATCH,
                    "field '%s': what was put has %s there", g->spec[i].name,
                    g->got[i] < g->spec[i].nbytes ? "a hole" : "an overlap");
        CRN_TRY(check_tiling(g, i));
        CRN_TRY(check_items(g, i));
    }
    return CAIRN_OK;
}

/* Call use with the share of each process. */
static cairn_status each_share(getting *g,
                               cairn_status (*use)(getting *g, crn_part *part, const crn_mark *m))
{
    for (uint32_t r = 0; r < g->entry.nranks; r++) {
        crn_part *part;
        crn_mark *m;
        CRN_TRY(crn_reader_load(g->shelf, &g->entry, r, &part, &m));
        const cairn_status rc = use(g, part, m);
        crn_mark_free(m);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

static cairn_status get_shares(getting *g)
{
    memset(g->found, 0, g->n * sizeof *g->found);
    memset(g->got, 0, g->n * sizeof *g->got);
    memset(g->before, 0, g->n * sizeof *g->before);
    for (size_t i = 0; i < g->n; i++)
        g->claim[i].n = 0;
    CRN_TRY(each_share(g, get_share));
    return check_whole(g);
}

bool crn_is_damage(cairn_status rc)
{
    return rc == CAIRN_ECORRUPT || rc == CAIRN_ENOTFOUND || rc == CAIRN_EIO ||
           rc == CAIRN_EMISMATCH;
}

/*
 * Get, and when that fails, see whether the state is still the one that was found. If it was
 * dropped it is gone; if it was put anew meanwhile, that one is got; else the failure is one.
 */
cairn_status crn_get_or_gone(getting *g, cairn_status (*get)(getting *g))
{
    enum { TRIES = 5 };
    cairn_status rc = CAIRN_OK;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t wall_ns = g->entry.wall_ns;
        rc = crn_state_index_find(g->shelf->index, g->name, &g->entry);
        CRN_TRY(rc);
        CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOTFOUND,
                    i == 0 ? "there is no such state" : "it was dropped meanwhile");
        if (i > 1 && wall_ns == g->entry.wall_ns) /* twice the same, from parts opened in between */
            return crn_err_give(&g->why);
        rc = get(g);
        if (rc == CAIRN_OK || !crn_is_damage(rc))
            return rc;
        g->why = *crn_err_peek();
        crn_readers_done(g->shelf);
    }
    return rc;
}

/* --- verifying ---------------------------------------------------------------------------- */

enum { WINDOW = CRN_BLOCK_MAX }; /* bytes of memory: one block of any size at least */

/* Read all variables, piece by piece: reading checks. */
static cairn_status read_share(getting *g, crn_part *part, const crn_mark *m)
{
    if (!g->window)
        CRN_TRY(crn_io_memory(WINDOW, &g->window));
    for (size_t i = 0; i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        const uint64_t most = WINDOW / v->spec.block;
        for (uint64_t at = 0, n; at < v->nblocks; at += n) {
            n = CRN_MIN(most, v->nblocks - at);
            CRN_TRY(crn_mark_read(part, m, v, at, n, g->window, NULL));
        }
    }
    return CAIRN_OK;
}

static cairn_status verify_shares(getting *g)
{
    crn_digest sum;
    uint64_t nbytes;
    CRN_TRY(crn_reader_sum(g->shelf, &g->entry, &sum, &nbytes));
    CRN_FAIL_IF(!crn_digest_equal(&sum, &g->entry.digest), CAIRN_ECORRUPT,
                "what the parts have is not what the index says");
    return each_share(g, read_share);
}

cairn_status crn_state_verify(cairn_shelf *s, crn_state_name name)
{
    getting g = {.shelf = s, .name = name};
    const cairn_status rc = crn_get_or_gone(&g, verify_shares);
    free(g.window);
    return rc;
}

static cairn_status verify_share(getting *g, crn_part *part, const crn_mark *m,
                                 const crn_digest *digest)
{
    crn_digest now;
    uint64_t nbytes;
    CRN_TRY(crn_mark_digest(m, false, &now, &nbytes));
    CRN_FAIL_IF(digest && !crn_digest_equal(&now, digest), CAIRN_ECORRUPT,
                "what the part has is not what the index says");
    return read_share(g, part, m);
}

cairn_status crn_share_verify(cairn_shelf *s, const state_entry *e, uint32_t rank,
                              const crn_digest *digest)
{
    getting g = {.shelf = s, .entry = *e};
    crn_part *part;
    crn_mark *m;
    crn_readers_done(s); /* not what a part said when it was opened */
    CRN_TRY(crn_reader_load(s, e, rank, &part, &m));
    const cairn_status rc = verify_share(&g, part, m, digest);
    crn_mark_free(m);
    free(g.window);
    return rc;
}

/* --- getting ------------------------------------------------------------------------------ */

/* Chain the fields of the same name. */
static cairn_status chain(getting *g)
{
    crn_index last = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < g->n && rc == CAIRN_OK; i++) {
        const uint64_t hash = crn_hash_text(g->spec[i].name);
        size_t probe = 0;
        uint32_t at;
        g->next[i] = STATE_NO_FIELD;
        while (!g->follows[i] && crn_index_next(&last, hash, &probe, &at))
            g->follows[i] = strcmp(g->spec[at].name, g->spec[i].name) == 0;
        if (g->follows[i]) {
            g->next[at] = i;
            crn_index_move(&last, hash, at, i);
        } else {
            rc = crn_index_add(&last, hash, i);
        }
    }
    crn_index_done(&last);
    return rc;
}

static cairn_status prepare(getting *g)
{
    CRN_TRY(crn_alloc(&g->spec, g->n));
    CRN_TRY(crn_alloc(&g->next, g->n));
    CRN_TRY(crn_alloc(&g->follows, g->n));
    CRN_TRY(crn_alloc(&g->found, g->n));
    CRN_TRY(crn_alloc(&g->got, g->n));
    CRN_TRY(crn_alloc(&g->before, g->n));
    CRN_TRY(crn_alloc(&g->claim, g->n));
    for (size_t i = 0; i < g->n; i++)
        CRN_TRY(crn_field_spec(g->shelf, &g->field[i], &g->spec[i]));
    return chain(g);
}

cairn_status crn_state_get(cairn_shelf *s, crn_state_name name, const cairn_field *field, size_t n)
{
    getting g = {.shelf = s, .name = name, .field = field, .n = n};
    cairn_status rc = prepare(&g);
    if (rc == CAIRN_OK)
        rc = crn_get_or_gone(&g, get_shares);
    free(g.spec);
    free(g.next);
    free(g.follows);
    free(g.found);
    free(g.got);
    free(g.before);
    for (size_t i = 0; g.claim && i < n; i++)
        crn_vec_done(&g.claim[i]);
    free(g.claim);
    return rc;
}

/* --- counting ----------------------------------------------------------------------------- */

static cairn_status count_share(getting *g, crn_part *part, const crn_mark *m)
{
    crn_var *v = crn_mark_find(m, g->cells_of);
    if (!v)
        return CAIRN_OK;
    *g->found = true;
    CRN_FAIL_IF(crn_layout_of(&v->spec) != CRN_LAYOUT_RAGGED, CAIRN_EMISMATCH,
                "field '%s' is %s, not items in cells", g->cells_of,
                kind_of(crn_layout_of(&v->spec)));
    return crn_count_cells(g, part, m, v);
}

static cairn_status count_shares(getting *g)
{
    *g->found = false;
    g->ncounted = 0;
    CRN_TRY(each_share(g, count_share));
    CRN_FAIL_IF(!*g->found, CAIRN_ENOTFOUND, "it has no field '%s'", g->cells_of);
    CRN_FAIL_IF(g->ncounted != g->ncells, CAIRN_EMISMATCH, "field '%s': %zu of %zu cells are there",
                g->cells_of, g->ncounted, g->ncells);
    return CAIRN_OK;
}

cairn_status crn_state_cells(cairn_shelf *s, crn_state_name name, const char *field, size_t ncells,
                             const uint64_t *cell, uint64_t *nitems)
{
    bool found;
    getting g = {.shelf = s,
                 .name = name,
                 .found = &found,
                 .cells_of = field,
                 .ncells = ncells,
                 .cell = cell,
                 .nitems = nitems};
    for (size_t i = 1; i < ncells; i++)
        CRN_FAIL_IF(cell[i] <= cell[i - 1], CAIRN_EINVAL,
                    "cell %" PRIu64 " follows cell %" PRIu64 ": numbers must grow", cell[i],
                    cell[i - 1]);
    return crn_get_or_gone(&g, count_shares);
}
