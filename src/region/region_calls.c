/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The public calls.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <string.h>

enum { LIMIT_REGIONS = 300, LOG_MIB = 64 };
enum { REDUCED = 50 }; /* reductions from one at which ranks agree on marks to the next */

static regions *regions_of(const cairn *c)
{
    return c ? crn_ckpt_guest((cairn *)c)->self : NULL;
}

static void free_texts(char **at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(at[i]);
}

/* The session is about to be closed: a look at the last region. Collective. */
static void leave(void *self)
{
    regions *r = self;
    crn_check_after(r);
    crn_check_tell(r);
}

static void regions_free(void *self)
{
    regions *r = self;
    crn_regions_forget_lists(r);
    crn_vec_done(&r->scope);
    crn_check_done(&r->check);
    crn_vec_done(&r->mean);
    crn_vec_done(&r->undecided);
    for (size_t i = 0; i < r->var.n; i++) {
        crn_region_var_done(&r->var.at[i]);
        free(r->name.at[i].name);
    }
    crn_vec_done(&r->var);
    crn_vec_done(&r->name);
    free_texts(r->told.at, r->told.n);
    for (size_t i = 0; i < r->modified.n; i++)
        free(r->modified.at[i].name);
    crn_vec_done(&r->told);
    crn_vec_done(&r->modified);
    crn_decision_done(&r->decision);
    crn_buf_done(&r->log);
    crn_buf_done(&r->payload);
    crn_buf_done(&r->state);
    crn_buf_done(&r->texts);
    free(r->place_name);
    free(r->place_text);
    free(r);
}

cairn_status crn_regions_get(cairn *c, regions **ret)
{
    crn_guest *g = crn_ckpt_guest(c);
    regions *r = g->self;
    if (!r) {
        CRN_TRY(crn_alloc(&r, 1));
        r->c = c;
        r->place = UINT32_MAX;
        *g = (crn_guest){.self = r, .done = regions_free};
    }
    *ret = r;
    return CAIRN_OK;
}

cairn_status crn_regions_break(regions *r, cairn_status rc)
{
    if (rc < 0 && r->broken.code == 0) {
        r->broken = *crn_err_peek();
        if (r->broken.text[0] == 0) { /* a public call has moved its sentence to the session */
            r->broken.code = rc;
            snprintf(r->broken.text, sizeof r->broken.text, "%s", cairn_last_error(r->c));
        }
        r->failed = true;
        crn_log_write(crn_ckpt_log(r->c), CRN_LOG_ERROR, CRN_LOG_EACH, "%s", r->broken.text);
    }
    return rc;
}

/* --- variables ---------------------------------------------------------------------------------
 */

static cairn_status shape_of(cairn *c, const char *name, int ndims, const uint64_t *extent,
                             crn_box *ret, uint64_t *ret_item)
{
    crn_box own;
    CRN_TRY(crn_ckpt_shape(c, name, &own, ret_item));
    *ret = own;
    if (ndims == 0)
        return CAIRN_OK;
    CRN_FAIL_IF(ndims < 1 || ndims > CRN_DIMS_MAX || !extent, CAIRN_EINVAL,
                "variable '%s': 1 to %d dimensions, not %d", name, CRN_DIMS_MAX, ndims);
    *ret = crn_box_of((uint32_t)ndims, NULL, extent);
    CRN_FAIL_IF(crn_box_volume(ret) != crn_box_volume(&own), CAIRN_EINVAL,
                "variable '%s' has %" PRIu64 " elements, and its extents make %" PRIu64, name,
                crn_box_volume(&own), crn_box_volume(ret));
    return CAIRN_OK;
}

static cairn_status get_variable(cairn *c, const char *name, int ndims, const uint64_t *extent,
                                 cairn_var *ret)
{
    regions *r;
    region_name n = {0};
    crn_region_var v;
    crn_box whole;
    uint64_t item;
    CRN_FAIL_IF(!name, CAIRN_EINVAL, "a variable has a name");
    CRN_TRY(shape_of(c, name, ndims, extent, &whole, &item));
    CRN_TRY(crn_regions_get(c, &r));
    for (size_t i = 0; i < r->name.n; i++)
        if (strcmp(r->name.at[i].name, name) == 0) {
            *ret = (cairn_var)i + 1;
            return CAIRN_OK;
        }
    CRN_FAIL_IF(r->open, CAIRN_EINVAL, "variable '%s': a mark is open", name);
    CRN_FAIL_IF(r->var.n == REGION_VARS, CAIRN_EINVAL, "regions have at most %d variables",
                REGION_VARS);
    CRN_TRY(crn_vec_reserve(&r->var, 1));
    CRN_TRY(crn_vec_reserve(&r->name, 1));
    CRN_TRY(crn_strdup(name, &n.name));
    crn_region_var_init(&v, &whole, item);
    r->var.at[r->var.n++] = v;
    r->name.at[r->name.n++] = n;
    crn_shadows_forget(r); /* of fewer variables */
    *ret = (cairn_var)r->var.n;
    return CAIRN_OK;
}

cairn_var cairn_variable_shaped(cairn *c, const char *name, int ndims, const uint64_t *extent)
{
    cairn_var ret = 0;
    if (c)
        (void)crn_ckpt_result(c, get_variable(c, name, ndims, extent, &ret));
    return ret;
}

cairn_var cairn_variable(cairn *c, const char *name)
{
    return cairn_variable_shaped(c, name, 0, NULL);
}

static int set_rule(cairn *c, cairn_var var, crn_keep_rule rule)
{
    regions *r = regions_of(c);
    if (!r || var == 0 || var > r->var.n)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL, "%u is no variable of regions", var));
    crn_keep_rule *now = &r->var.at[var - 1].rule;
    if (r->listed)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL,
                                           "variable '%s': a list of data says what is kept",
                                           r->name.at[var - 1].name));
    if (*now != CRN_KEEP_NEEDED && *now != rule)
        return crn_ckpt_result(c, crn_fail(CAIRN_EINVAL,
                                           "variable '%s' cannot be kept always and never",
                                           r->name.at[var - 1].name));
    *now = rule;
    return CAIRN_OK;
}

int cairn_always(cairn *c, cairn_var var)
{
    return set_rule(c, var, CRN_KEEP_ALWAYS);
}

int cairn_never(cairn *c, cairn_var var)
{
    return set_rule(c, var, CRN_KEEP_NEVER);
}

/* --- beginning ---------------------------------------------------------------------------------
 */

/* A list of data: these are kept, and nothing else. */
static cairn_status set_list(regions *r, const cairn_region_options *o)
{
    CRN_FAIL_IF(o->nkeep > 0 && (!o->keep || !o->place), CAIRN_EINVAL,
                "a list of data is what the program needs at one place: region options name it");
    for (size_t i = 0; i < r->var.n && o->nkeep > 0; i++) {
        CRN_FAIL_IF(r->var.at[i].rule != CRN_KEEP_NEEDED, CAIRN_EINVAL,
                    "variable '%s' is to be kept always or never, and there is a list of data",
                    r->name.at[i].name);
        r->var.at[i].rule = CRN_KEEP_NEVER;
    }
    for (size_t i = 0; i < o->nkeep; i++) {
        CRN_FAIL_IF(o->keep[i] == 0 || o->keep[i] > r->var.n, CAIRN_EINVAL,
                    "list of data: %u is no variable of regions", o->keep[i]);
        r->var.at[o->keep[i] - 1].rule = CRN_KEEP_ALWAYS;
    }
    r->listed = o->nkeep > 0;
    return CAIRN_OK;
}

static cairn_status start(cairn *c, const cairn_region_options *how)
{
    regions *r;
    cairn_region_options o = {.struct_bytes = sizeof o};
    if (how)
        CRN_TRY(crn_struct_in(how, &o));
    CRN_TRY(crn_regions_get(c, &r));
    CRN_FAIL_IF(r->phase != REGION_OFF, CAIRN_EINVAL, "cairn_regions was called before");
    CRN_TRY(set_list(r, &o));
    if (o.place)
        CRN_TRY(crn_strdup(o.place, &r->place_name));
    r->limit = o.regions ? o.regions : LIMIT_REGIONS;
    r->seconds = o.seconds;
    r->log_max = o.log_bytes ? o.log_bytes : (uint64_t)LOG_MIB << 20;
    r->gathers = !r->place_name;
    r->mark_ns = r->start_ns = crn_now_ns();
    r->check.on = crn_ckpt_checks(c);
    crn_guest *g = crn_ckpt_guest(c);
    g->due = crn_regions_poll;
    g->holds = crn_regions_hold;
    g->leave = leave;
    return crn_regions_start(r);
}

int cairn_regions(cairn *c, const cairn_region_options *how)
{
    if (!c)
        return crn_fail(CAIRN_EINVAL, "cairn_regions: there is no session");
    cairn_status rc = start(c, how);
    if (rc < 0 && regions_of(c))
        (void)crn_regions_break(regions_of(c), rc);
    return crn_ckpt_result(c, rc);
}

static cairn_status get_running(cairn *c, regions **ret)
{
    regions *r = regions_of(c);
    CRN_FAIL_IF(!r || r->phase == REGION_OFF, CAIRN_EINVAL, "cairn_regions was not called");
    *ret = r;
    return CAIRN_OK;
}

static cairn_status end_initialisation(cairn *c)
{
    regions *r;
    CRN_TRY(get_running(c, &r));
    if (r->phase == REGION_INIT) {
        r->phase = r->forwarded ? REGION_FORWARD : REGION_REPLAY;
        return CAIRN_OK;
    }
    CRN_FAIL_IF(r->scope.n > 0, CAIRN_EINVAL, "the initialisation phase ends outside of scopes");
    CRN_FAIL_IF(r->has_init || r->marked || r->forwarded || r->phase != REGION_RUN || r->open,
                CAIRN_EINVAL,
                "the initialisation phase ends once, before the first mark and forward point");
    r->has_init = true;
    r->log.n = 0;
    for (size_t i = 0; i < r->var.n; i++) {
        r->var.at[i].modified.n = 0;
        r->var.at[i].all_modified = false;
    }
    crn_shadows_forget(r);
    return CAIRN_OK;
}

int cairn_initialised(cairn *c)
{
    return c ? crn_ckpt_result(c, end_initialisation(c))
             : crn_fail(CAIRN_EINVAL, "cairn_initialised: there is no session");
}

/* --- regions -----------------------------------------------------------------------------------
 */

int crn_regions_pass(regions *r, uint32_t list)
{
    if (r->phase != REGION_RUN)
        return crn_regions_skip(r, list);
    CRN_TRY(crn_regions_before(r, list));
    return 1;
}

static int enter(regions *r, const char *site, const cairn_access *access, size_t n)
{
    uint32_t list;
    CRN_TRY(crn_regions_list(r, site, access, n, &list));
    if (r->scope.n > 0)
        crn_scopes_mention(r, list);
    return crn_regions_pass(r, list);
}

int crn_regions_call(cairn *c, const char *site, const cairn_access *access, size_t n,
                     crn_region_call *call)
{
    regions *r = regions_of(c);
    int rc;
    if (r && r->phase != REGION_OFF && site && (access || n == 0))
        rc = call(r, site, access, n);
    else
        rc = crn_fail(CAIRN_EINVAL, "a region has a name, and cairn_regions comes before it");
    if (rc < 0 && r)
        (void)crn_regions_break(r, rc);
    if (rc < 0 && c)
        (void)crn_ckpt_result(c, rc);
    return rc;
}

int cairn_region_enter(cairn *c, const char *site, const cairn_access *access, size_t n)
{
    return crn_regions_call(c, site, access, n, enter);
}

/* --- values ------------------------------------------------------------------------------------
 */

static cairn_status pass_value(regions *r, void *value, size_t nbytes)
{
    switch (r->phase) {
    case REGION_REPLAY:
        return crn_regions_take_value(r, value, nbytes);
    case REGION_RUN:
        crn_check_after(r);
        if (r->check.on)
            crn_check_value(r, value, nbytes);
        return crn_regions_log_value(r, value, nbytes);
    default:
        return CAIRN_OK;
    }
}

int cairn_value(cairn *c, void *value, size_t nbytes)
{
    regions *r = NULL;
    if (!c || !value)
        return crn_fail(CAIRN_EINVAL, "cairn_value: there is no session, or no value");
    cairn_status rc = get_running(c, &r);
    if (rc == CAIRN_OK)
        rc = crn_regions_break(r, pass_value(r, value, nbytes));
    return crn_ckpt_result(c, rc);
}

static cairn_status reduce(regions *r, double *value, size_t n, cairn_reduction how)
{
    static const crn_reduction op[] = {CRN_REDUCE_MIN, CRN_REDUCE_MAX, CRN_REDUCE_SUM};
    CRN_FAIL_IF((unsigned)how > CAIRN_SUM, CAIRN_EINVAL, "%d is no reduction", (int)how);
    if (r->phase == REGION_FORWARD)
        return CAIRN_OK;
    if (r->phase != REGION_REPLAY)
        CRN_TRY(crn_comm_allreduce_f64(crn_ckpt_comm(r->c), op[how], value, n));
    CRN_TRY(pass_value(r, value, n * sizeof *value));
    if (r->open || ++r->nreduced % REDUCED == 0)
        (void)crn_regions_poll(r);
    return CAIRN_OK;
}

int cairn_reduce(cairn *c, double *value, size_t n, cairn_reduction how)
{
    regions *r = NULL;
    if (!c || !value)
        return crn_fail(CAIRN_EINVAL, "cairn_reduce: there is no session, or no value");
    cairn_status rc = get_running(c, &r);
    if (rc == CAIRN_OK)
        rc = crn_regions_break(r, reduce(r, value, n, how));
    return crn_ckpt_result(c, rc);
}

static cairn_status forward(regions *r, void *payload, size_t nbytes)
{
    CRN_FAIL_IF(r->phase == REGION_INIT, CAIRN_EINVAL,
                "a forward point lies behind the initialisation phase");
    CRN_FAIL_IF(r->scope.n > 0, CAIRN_EINVAL, "a forward point lies outside of scopes");
    if (r->phase == REGION_FORWARD)
        return crn_regions_take_payload(r, payload, nbytes);
    CRN_FAIL_IF(r->phase == REGION_REPLAY, CAIRN_EMISMATCH,
                "on the way back to mark %" PRIu64 ": there was no forward point", r->version);
    r->payload.n = r->log.n = 0;
    crn_put_bytes(&r->payload, payload, nbytes);
    r->forwarded = true;
    r->full = false;
    r->base = r->count;
    return crn_buf_status(&r->payload);
}

int cairn_forward(cairn *c, void *payload, size_t nbytes)
{
    regions *r = NULL;
    if (!c || !payload)
        return crn_fail(CAIRN_EINVAL, "cairn_forward: there is no session, or no payload");
    cairn_status rc = get_running(c, &r);
    if (rc == CAIRN_OK)
        rc = crn_regions_break(r, forward(r, payload, nbytes));
    return crn_ckpt_result(c, rc);
}

int cairn_trigger(cairn *c)
{
    regions *r = NULL;
    if (!c)
        return crn_fail(CAIRN_EINVAL, "cairn_trigger: there is no session");
    cairn_status rc = get_running(c, &r);
    if (rc == CAIRN_OK && r->phase == REGION_RUN)
        rc = crn_regions_arm(r);
    return crn_ckpt_result(c, rc);
}

bool cairn_replaying(const cairn *c)
{
    const regions *r = regions_of(c);
    return r && r->phase != REGION_OFF && r->phase != REGION_RUN;
}
