/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision what a mark must keep.
 */
#include "region/region_decide.h"

#include <string.h>

void crn_region_var_init(crn_region_var *v, const crn_box *whole, uint64_t item)
{
    *v = (crn_region_var){.whole = *whole, .item = item, .nbytes = crn_box_volume(whole) * item};
}

void crn_region_var_done(crn_region_var *v)
{
    crn_vec_done(&v->modified);
}

cairn_status crn_decision_init(crn_decision *d, size_t nvars)
{
    const size_t words = crn_bits_words(nvars);
    *d = (crn_decision){.nvars = nvars};
    cairn_status rc = crn_alloc(&d->open, words);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&d->known, words);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&d->rest, nvars);
    if (rc < 0)
        crn_decision_done(d);
    return rc;
}

void crn_decision_done(crn_decision *d)
{
    for (size_t i = 0; d->rest && i < d->nvars; i++)
        crn_vec_done(&d->rest[i]);
    free(d->rest);
    free(d->known);
    free(d->open);
    *d = (crn_decision){0};
}

static cairn_status keep_whole(const crn_region_var *v, size_t i, crn_keep_fn *keep, void *arg)
{
    crn_box box = v->whole;
    const crn_boxes one = {.at = &box, .n = 1};
    return crn_box_volume(&box) > 0 ? keep(arg, i, &one) : CAIRN_OK;
}

cairn_status crn_decision_begin(crn_decision *d, const crn_region_vars *vars, crn_keep_fn *keep,
                                void *arg)
{
    const size_t words = crn_bits_words(d->nvars);
    memset(d->open, 0, words * sizeof *d->open);
    memset(d->known, 0, words * sizeof *d->known);
    for (size_t i = 0; i < d->nvars; i++) {
        const crn_region_var *v = &vars->at[i];
        if (v->rule == CRN_KEEP_ALWAYS)
            CRN_TRY(keep_whole(v, i, keep, arg));
        else if (v->rule == CRN_KEEP_NEEDED && v->modified.n > 0)
            crn_bit_set(d->open, i);
    }
    return CAIRN_OK;
}

bool crn_decision_is_made(const crn_decision *d)
{
    for (size_t i = 0; i < crn_bits_words(d->nvars); i++)
        if (d->open[i])
            return false;
    return true;
}

/* What is undecided of a variable that is open. */
static const crn_boxes *rest_of(const crn_decision *d, const crn_region_vars *vars, size_t i)
{
    return crn_bit(d->known, i) ? &d->rest[i] : &vars->at[i].modified;
}

cairn_status crn_decision_end_var(crn_decision *d, const crn_region_vars *vars, size_t var,
                                  crn_keep_fn *keep, void *arg)
{
    if (!crn_bit(d->open, var))
        return CAIRN_OK;
    crn_bit_clear(d->open, var);
    return keep(arg, var, rest_of(d, vars, var));
}

cairn_status crn_decision_end(crn_decision *d, const crn_region_vars *vars, crn_keep_fn *keep,
                              void *arg)
{
    for (size_t i = 0; i < d->nvars; i++)
        CRN_TRY(crn_decision_end_var(d, vars, i, keep, arg));
    return CAIRN_OK;
}

/* Let rest, and not what was modified, say what is undecided: that is about to change. */
static cairn_status separate(crn_decision *d, const crn_region_vars *vars, size_t i)
{
    if (crn_bit(d->known, i))
        return CAIRN_OK;
    CRN_TRY(crn_boxes_copy(&d->rest[i], &vars->at[i].modified));
    crn_bit_set(d->known, i);
    return CAIRN_OK;
}

/* A part of a variable is decided: it goes from what is undecided, to *cut unless that is NULL. */
static cairn_status decide(crn_decision *d, const crn_region_vars *vars, const crn_access *a,
                           crn_boxes *cut)
{
    CRN_TRY(separate(d, vars, a->var));
    CRN_TRY(crn_boxes_remove(&d->rest[a->var], &a->box, cut));
    if (d->rest[a->var].n == 0)
        crn_bit_clear(d->open, a->var);
    return CAIRN_OK;
}

static cairn_status read_part(crn_decision *d, const crn_region_vars *vars, const crn_access *a,
                              crn_keep_fn *keep, void *arg)
{
    crn_boxes cut = {0};
    cairn_status rc = decide(d, vars, a, &cut);
    if (rc == CAIRN_OK && cut.n > 0)
        rc = keep(arg, a->var, &cut);
    crn_vec_done(&cut);
    return rc;
}

static cairn_status step_read(crn_decision *d, const crn_region_vars *vars, const crn_access *a,
                              crn_keep_fn *keep, void *arg)
{
    if (a->all)
        return crn_decision_end_var(d, vars, a->var, keep, arg);
    return read_part(d, vars, a, keep, arg);
}

static cairn_status step_write(crn_decision *d, const crn_region_vars *vars, const crn_access *a,
                               crn_keep_fn *keep, void *arg)
{
    if (a->all) {
        crn_bit_clear(d->open, a->var);
        return CAIRN_OK;
    }
    CRN_TRY(decide(d, vars, a, NULL));
    if (d->rest[a->var].n > CRN_REGION_FRAGMENTS)
        return crn_decision_end_var(d, vars, a->var, keep, arg);
    return CAIRN_OK;
}

/* Of a region it is not known whether it reads before it writes: what it reads counts first. */
cairn_status crn_decision_step(crn_decision *d, const crn_region_vars *vars, const crn_accesses *a,
                               crn_keep_fn *keep, void *arg)
{
    bool met = false;
    for (size_t i = 0; i < crn_bits_words(d->nvars); i++)
        met = met || d->open[i] & a->touched[i];
    if (!met)
        return CAIRN_OK;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].reads && crn_bit(d->open, a->at[i].var))
            CRN_TRY(step_read(d, vars, &a->at[i], keep, arg));
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].writes && crn_bit(d->open, a->at[i].var))
            CRN_TRY(step_write(d, vars, &a->at[i], keep, arg));
    return CAIRN_OK;
}

/* The set of boxes is exact up to a number of them; then all of it counts as modified. */
static cairn_status modify(crn_region_var *v, const crn_access *a)
{
    CRN_TRY(crn_boxes_add(&v->modified, a->all ? &v->whole : &a->box));
    v->all_modified = v->modified.n > CRN_REGION_FRAGMENTS ||
                      crn_boxes_volume(&v->modified) == crn_box_volume(&v->whole);
    if (v->all_modified) {
        v->modified.n = 1; /* there is room for one: something was added */
        v->modified.at[0] = v->whole;
    }
    return CAIRN_OK;
}

cairn_status crn_modify(crn_region_vars *vars, const crn_accesses *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].writes && !vars->at[a->at[i].var].all_modified)
            CRN_TRY(modify(&vars->at[a->at[i].var], &a->at[i]));
    return CAIRN_OK;
}
