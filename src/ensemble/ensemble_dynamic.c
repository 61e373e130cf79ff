/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic mode: its configuration, and orders as text.
 */
#include "ensemble/ensemble_dynamic.h"

#include <math.h>

/* --- the configuration ---------------------------------------------------------------------- */

static const char *text_of(const crn_study *s, crn_study_opt id)
{
    return crn_config_text(s->config, (crn_opt_id)id);
}

static cairn_status add_ladder(const crn_study *s, const char *field, const char *codecs,
                               const char *sigma, bool check, crn_ladders *to)
{
    crn_ladder l = {0};
    cairn_status rc = crn_codings_parse(codecs, &l.coding);
    snprintf(l.field, sizeof l.field, "%s", field);
    if (rc == CAIRN_OK && (crn_parse_real(sigma, &l.sigma) < 0 || !(l.sigma >= 0)))
        rc = crn_fail(CAIRN_EINVAL, "sigma is '%s', not a number from 0 on", sigma);
    if (rc == CAIRN_OK && check && !(l.sigma > 0))
        rc = crn_fail(CAIRN_EINVAL, "sigma is missing: which error is tolerated at most? Or set "
                                    "dynamic.check = no");
    if (rc == CAIRN_OK)
        rc = crn_vec_push(to, l);
    if (rc < 0) {
        crn_vec_done(&l.coding);
        crn_err_prefix("'%s', %s%s: ", s->file, field[0] ? "codecs of field " : "[dynamic]", field);
    }
    return rc;
}

/* [field NAME] codecs, then [dynamic] settings for all others. */
static cairn_status read_ladders(const crn_study *s, crn_dynamic *d)
{
    const char *name, *all = text_of(s, CRN_STUDY_DYNAMIC_SETTINGS);
    const char *sigma = text_of(s, CRN_STUDY_DYNAMIC_SIGMA);
    for (size_t i = 0; (name = crn_config_name_at(s->config, "field", i)); i++) {
        const char *own =
            crn_config_for_variable(s->config, (crn_opt_id)CRN_STUDY_FIELD_CODECS, name);
        const char *its =
            crn_config_for_variable(s->config, (crn_opt_id)CRN_STUDY_FIELD_SIGMA, name);
        if (own[0])
            CRN_TRY(add_ladder(s, name, own, its[0] ? its : sigma, d->check, &d->ladder));
    }
    return all[0] ? add_ladder(s, "", all, sigma, d->check, &d->ladder) : CAIRN_OK;
}

static cairn_status read_listing(const crn_study *s, crn_dynamic *d)
{
    const char *name = text_of(s, CRN_STUDY_DYNAMIC_LISTING);
    char *path;
    if (!name[0])
        return CAIRN_OK;
    CRN_TRY(crn_study_beside(s, name, &path));
    cairn_status rc = crn_listing_dynamic(path, &d->ladder);
    free(path);
    return rc;
}

static cairn_status read_all(const crn_study *s, crn_dynamic *d)
{
    d->check = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_DYNAMIC_CHECK);
    d->measure = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_DYNAMIC_MEASURE);
    d->retry = (uint32_t)crn_config_count(s->config, (crn_opt_id)CRN_STUDY_DYNAMIC_RETRY);
    CRN_TRY(read_listing(s, d));
    CRN_TRY(read_ladders(s, d));
    CRN_FAIL_IF(d->ladder.n > 0 && !s->particle.on && s->keep != CRN_KEEP_BACKGROUND, CAIRN_EINVAL,
                "'%s': dynamic mode needs study.keep = background: an analysis is computed again "
                "from what was stored",
                s->file);
    return CAIRN_OK;
}

cairn_status crn_dynamic_read(const crn_study *s, crn_dynamic **ret)
{
    crn_dynamic *d;
    CRN_TRY(crn_alloc(&d, 1));
    cairn_status rc = read_all(s, d);
    if (rc < 0 || d->ladder.n == 0) {
        crn_dynamic_free(d);
        d = NULL;
    }
    *ret = d;
    return rc;
}

void crn_ladders_done(crn_ladders *l)
{
    for (size_t i = 0; i < l->n; i++)
        crn_vec_done(&l->at[i].coding);
    crn_vec_done(l);
}

void crn_dynamic_free(crn_dynamic *d)
{
    if (!d)
        return;
    crn_ladders_done(&d->ladder);
    free(d);
}

/* --- orders as text ------------------------------------------------------------------------- */

void crn_orders_put(const crn_orders *o, crn_buf *b)
{
    crn_put_text(b, "orders %u check %d trial %d stopped %d control %u\n", o->cycle, o->check,
                 o->trial, o->stopped, o->control);
    for (size_t i = 0; i < o->ladder.n; i++) {
        const crn_ladder *l = &o->ladder.at[i];
        crn_put_text(b, "field %s %.17g\n", l->field, l->sigma);
        for (size_t k = 0; k < l->coding.n; k++)
            crn_put_text(b, "codec %s\n", l->coding.at[k].name);
    }
}

static cairn_status take_line(crn_orders *o, const char *line)
{
    crn_ladder l = {0};
    crn_coding c = {0};
    if (sscanf(line, "field %63s %lg", l.field, &l.sigma) == 2)
        return crn_vec_push(&o->ladder, l);
    if (sscanf(line, "codec %95s", c.name) != 1 || o->ladder.n == 0)
        return crn_fail(CAIRN_ECORRUPT, "the orders of cycle %u have a line that no server writes",
                        o->cycle);
    return crn_vec_push(&o->ladder.at[o->ladder.n - 1].coding, c);
}

cairn_status crn_orders_get(const char *text, crn_orders *ret)
{
    crn_orders o = {0};
    int check, trial, stopped;
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(sscanf(text, "orders %u check %d trial %d stopped %d control %u", &o.cycle, &check,
                       &trial, &stopped, &o.control) != 5,
                CAIRN_ECORRUPT, "the orders of a cycle are not understood");
    o.check = check, o.trial = trial, o.stopped = stopped;
    for (const char *at = strchr(text, '\n'); rc == CAIRN_OK && at && at[1];
         at = strchr(at + 1, '\n'))
        rc = take_line(&o, at + 1);
    if (rc < 0)
        crn_orders_done(&o);
    else
        *ret = o;
    return rc;
}

void crn_orders_done(crn_orders *o)
{
    crn_ladders_done(&o->ladder);
}
