/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One unit of work: a rank's piece of each variable of a mark, held against the second side.
 */
#include "diff/diff_unit.h"

/* --- global arrays whose pieces other ranks have -------------------------------------------- */

bool crn_diff_find_elsewhere(diff_unit *u, int side, const char *name, diff_share *ret,
                             diff_var *ret_var)
{
    for (uint32_t r = 0; r < u->mark[side]->nranks; r++) {
        if (crn_diff_share_open(&u->side[side], u->mark[side], r, ret) == CAIRN_OK &&
            crn_diff_share_find(ret, name, ret_var))
            return true;
        crn_diff_share_close(ret);
    }
    return false;
}

static bool is_elsewhere(diff_unit *u, int side, const char *name)
{
    diff_share other = {0};
    diff_var v;
    const bool found = crn_diff_find_elsewhere(u, side, name, &other, &v);
    crn_diff_share_close(&other);
    return found;
}

/* Is it known which rank's values belong to which? */
static bool is_shared_out(const crn_var_spec *spec)
{
    return spec->ndims > 0 || crn_diff_is_keyed(spec);
}

/* See to a variable, of share k, that the other side's share does not have. */
static cairn_status compare_unpaired(diff_unit *u, int k, diff_var v[2])
{
    const crn_var_spec *spec = &v[k].var->spec;
    diff_share other = {0};
    if (k == 0 && is_shared_out(spec) && crn_diff_find_elsewhere(u, 1, spec->name, &other, &v[1])) {
        cairn_status rc = crn_diff_pair(u, v, false);
        crn_diff_share_close(&other);
        return rc;
    }
    if (spec->ndims == 0 && !crn_diff_same_ranks(u) && is_elsewhere(u, !k, spec->name))
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                           "rank %u of '%s' does not have it, and others have", u->share[!k].rank,
                           u->side[!k].name);
    else
        crn_diff_row_judge(&u->row, k == 0 ? CAIRN_ONLY_FIRST : CAIRN_ONLY_SECOND,
                           "rank %u has it in '%s' only", u->share[k].rank, u->side[k].name);
    return CAIRN_OK;
}

/* --- the unit ------------------------------------------------------------------------------- */

/* The second side's share of the unit's rank; where it has fewer ranks, of its first. */
static cairn_status open_second(diff_unit *u, uint32_t rank)
{
    const uint32_t n = u->mark[1]->nranks;
    u->alone[1] = rank < n && (crn_diff_same_ranks(u) || rank == 0);
    for (int k = u->lonely; k < 2 && !crn_diff_same_ranks(u) && rank > 0; k++)
        CRN_TRY(crn_diff_share_open(&u->side[k], u->mark[k], 0, &u->first[k]));
    return crn_diff_share_open(&u->side[1], u->mark[1], rank < n ? rank : 0, &u->share[1]);
}

/* Does the unit of rank 0 see to a variable of the ranks' own? */
static bool is_left_to_first(const diff_unit *u, const crn_var_spec *spec)
{
    diff_var v;
    for (int k = 0; k < 2 && !is_shared_out(spec); k++)
        if (u->first[k].side && crn_diff_share_find(&u->first[k], spec->name, &v) &&
            v.var->spec.ndims == 0)
            return true;
    return false;
}

static cairn_status merge(diff_unit *u, diff_rows *rows, pthread_mutex_t *lock)
{
    if (lock)
        pthread_mutex_lock(lock);
    cairn_status rc = crn_diff_rows_merge(rows, &u->row);
    if (lock)
        pthread_mutex_unlock(lock);
    return rc;
}

/* Is a variable of the second share compared where the first side has it? */
static bool is_seen_to(diff_unit *u, const crn_var_spec *spec, bool paired)
{
    return paired || (is_shared_out(spec) && is_elsewhere(u, 0, spec->name));
}

/* What a rank holds around its piece is compared where it belongs to a piece, and cells with their
 * items. */
static bool is_asked_for(const diff_unit *u, const crn_var_spec *spec)
{
    const char *name = u->w->ask->variable;
    const bool ours = crn_var_has_layout(spec, "halo") || crn_var_has_layout(spec, "index");
    return !ours && (!name || strcmp(spec->name, name) == 0);
}

/* A row tells that a variable was not looked at. */
static cairn_status leave_out(diff_unit *u, int k, const crn_var_spec *spec, diff_rows *rows,
                              pthread_mutex_t *lock)
{
    CRN_TRY(crn_diff_row_init(&u->row, spec, u->at));
    u->at.step++;
    u->row.excluded = true;
    if (k == 0)
        crn_diff_see(u->w, spec->nbytes);
    return merge(u, rows, lock);
}

/* Compare variable i of the first share; or, with k = 1, see to one of the second that has no pair.
 */
static cairn_status compare_var(diff_unit *u, int k, size_t i, diff_rows *rows,
                                pthread_mutex_t *lock)
{
    diff_var v[2];
    v[k] = crn_diff_share_var(&u->share[k], i);
    const crn_var_spec *spec = &v[k].var->spec;
    if (!is_asked_for(u, spec))
        return CAIRN_OK;
    if (crn_diff_is_excluded(spec->name, u->w->ask->exclude))
        return leave_out(u, k, spec, rows, lock);
    const bool paired = crn_diff_share_find(&u->share[!k], spec->name, &v[!k]);
    if (is_left_to_first(u, spec) || (k == 1 && is_seen_to(u, spec, paired)))
        return CAIRN_OK;
    CRN_TRY(crn_diff_row_init(&u->row, spec, u->at));
    u->at.step++;
    u->seen = false;
    cairn_status rc = paired ? crn_diff_paired(u, v) : compare_unpaired(u, k, v);
    if (rc < 0) {
        crn_diff_row_done(&u->row);
        return rc;
    }
    if (k == 0 && !u->seen)
        crn_diff_see(u->w, spec->nbytes);
    return merge(u, rows, lock);
}

/* What cannot be described at all gets a row of its own. */
static cairn_status untold(diff_unit *u, diff_rows *rows, pthread_mutex_t *lock)
{
    const crn_var_spec whole = {.name = "*", .type = "", .item = 1};
    (void)crn_diff_explain(u, crn_err_peek()->code);
    CRN_TRY(crn_diff_row_init(&u->row, &whole, u->at));
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "%s", crn_err_peek()->text);
    return merge(u, rows, lock);
}

/* A rank beyond those of the first side may have variables that no other has. */
static cairn_status compare_shares(diff_unit *u, bool beyond, diff_rows *rows,
                                   pthread_mutex_t *lock)
{
    for (size_t i = 0; !beyond && i < crn_diff_share_nvars(&u->share[0]); i++)
        CRN_TRY(compare_var(u, 0, i, rows, lock));
    for (size_t i = 0; i < crn_diff_share_nvars(&u->share[1]); i++)
        CRN_TRY(compare_var(u, 1, i, rows, lock));
    return CAIRN_OK;
}

/* Close a share; nodes that no other unit looks at need not stay in memory. */
static void close_share(diff_unit *u, int k)
{
    diff_share *s = &u->share[k];
    for (size_t i = 0; u->alone[k] && s->described && i < s->described->nvars; i++)
        crn_trees_unload(&s->described->var[i]);
    crn_diff_share_close(s);
    crn_diff_share_close(&u->first[k]);
}

cairn_status crn_diff_unit(diff_worker *w, diff_side side[2], const diff_mark *mark[2],
                           uint32_t rank, diff_rows *rows, pthread_mutex_t *lock)
{
    const bool beyond = rank >= mark[0]->nranks;
    diff_unit u = {.w = w, .side = side, .mark = mark, .alone = {!beyond}, .at = {rank, 0}};
    cairn_status rc = crn_diff_share_open(&side[0], mark[0], beyond ? 0 : rank, &u.share[0]);
    if (rc == CAIRN_OK)
        rc = open_second(&u, rank);
    if (rc == CAIRN_OK)
        rc = compare_shares(&u, beyond, rows, lock);
    else if (rc != CAIRN_ENOMEM)
        rc = untold(&u, rows, lock);
    close_share(&u, 0);
    close_share(&u, 1);
    crn_vec_done(&u.fields);
    return rc;
}

cairn_status crn_diff_share(diff_worker *w, const diff_share *first, diff_side side[2],
                            const diff_mark *mark[2], diff_rows *rows)
{
    diff_unit u = {
        .w = w, .side = side, .mark = mark, .share = {*first}, .alone = {true}, .lonely = true};
    cairn_status rc = open_second(&u, first->rank);
    if (rc == CAIRN_OK)
        rc = compare_shares(&u, false, rows, NULL);
    else if (rc != CAIRN_ENOMEM)
        rc = untold(&u, rows, NULL);
    close_share(&u, 1);
    crn_vec_done(&u.fields);
    return rc;
}
