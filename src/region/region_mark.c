/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark of regions, from where it is wanted to where all ranks have decided. What goes wrong with
 * it on one rank travels to where the ranks agree, and the mark is given up there.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LIMIT_SECONDS = 2 };

static void warn(const regions *r, const char *what)
{
    crn_log_write(crn_ckpt_log(r->c), CRN_LOG_WARN, CRN_LOG_EACH, "%s: %s", what,
                  crn_err_peek()->text);
}

static void note_failure(regions *r, cairn_status rc)
{
    if (rc >= 0 || r->failed)
        return;
    r->failed = true;
    warn(r, "this mark is given up");
}

/* --- keeping --------------------------------------------------------------------------------- */

/* A variable that moved is as it was; one of another size has other elements than at the place. */
static cairn_status check_shape(const regions *r, size_t var)
{
    uint64_t item;
    crn_box now;
    CRN_TRY(crn_ckpt_shape(r->c, r->name.at[var].name, &now, &item));
    CRN_FAIL_IF(crn_box_volume(&now) != crn_box_volume(&r->var.at[var].whole) ||
                    item != r->var.at[var].item,
                CAIRN_EMISMATCH, "variable '%s' has another size than its handle",
                r->name.at[var].name);
    return CAIRN_OK;
}

static cairn_status capture_box(const regions *r, size_t var, const crn_box *b)
{
    cairn_box box = {.struct_bytes = sizeof box, .ndims = (int)b->ndims};
    memcpy(box.extent, r->var.at[var].whole.hi, sizeof box.extent);
    memcpy(box.lo, b->lo, sizeof box.lo);
    memcpy(box.hi, b->hi, sizeof box.hi);
    return cairn_capture_box(r->c, r->name.at[var].name, &box);
}

static cairn_status capture_boxes(regions *r, size_t var, const crn_boxes *boxes)
{
    region_name *n = &r->name.at[var];
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < boxes->n && rc == CAIRN_OK; i++)
        rc = capture_box(r, var, &boxes->at[i]);
    if (rc != CAIRN_EUNSUPPORTED)
        return rc;
    n->whole =
        true; /* such a variable is marked as a whole; what is undecided still is as it was */
    return cairn_capture(r->c, n->name);
}

static cairn_status keep(void *arg, size_t var, const crn_boxes *boxes)
{
    regions *r = arg;
    region_name *n = &r->name.at[var];
    const uint64_t volume = crn_boxes_volume(boxes);
    n->kept_bytes += volume * r->var.at[var].item;
    n->reason = r->met_reason;
    n->list = r->met;
    if (n->whole)
        return CAIRN_OK;
    CRN_TRY(check_shape(r, var));
    const bool first = !n->captured;
    n->captured = true;
    if (first && volume == crn_box_volume(&r->var.at[var].whole)) {
        n->whole = true;
        return cairn_capture(r->c, n->name);
    }
    return capture_boxes(r, var, boxes);
}

/* --- the place ------------------------------------------------------------------------------- */

static bool has_handle(const regions *r, const char *name)
{
    for (size_t i = 0; i < r->name.n; i++)
        if (strcmp(r->name.at[i].name, name) == 0)
            return true;
    return strncmp(name, "region#", 7) == 0;
}

/* What regions do not speak of is kept as it is at the place. */
static cairn_status capture_others(regions *r)
{
    const char *name;
    for (size_t i = 0; (name = crn_ckpt_next_var(r->c, &i)) != NULL;)
        if (!has_handle(r, name))
            CRN_TRY(cairn_capture(r->c, name));
    return CAIRN_OK;
}

static bool is_protected(const regions *r, size_t var)
{
    uint64_t item;
    crn_box now;
    return crn_ckpt_shape(r->c, r->name.at[var].name, &now, &item) == CAIRN_OK;
}

static cairn_status begin_decision(regions *r)
{
    for (size_t i = 0; i < r->name.n; i++) {
        region_name *n = &r->name.at[i];
        if (!is_protected(r, i)) { /* it was released, and has nothing to be kept */
            r->var.at[i].modified.n = 0;
            r->var.at[i].all_modified = false;
        }
        n->captured = n->whole = false;
        n->kept_bytes = 0;
    }
    r->met_reason = REGION_LISTED;
    CRN_TRY(capture_others(r));
    CRN_TRY(crn_regions_capture_log(r));
    crn_decision_done(&r->decision);
    CRN_TRY(crn_decision_init(&r->decision, r->var.n));
    CRN_TRY(crn_decision_begin(&r->decision, &r->var, keep, r));
    r->met_reason = REGION_SCOPE;
    CRN_TRY(crn_scopes_decide(r, &r->decision, keep, r));
    r->met_reason = REGION_READ;
    for (size_t i = 0; r->check.on && i < r->var.n; i++)
        if (r->var.at[i].rule == CRN_KEEP_NEVER)
            crn_check_drop(r, i);
    return CAIRN_OK;
}

/* Collective: has the log of any rank reached its bound? Values may be longer on some ranks. */
static bool is_any_full(const regions *r)
{
    uint64_t full = r->full;
    return crn_comm_allreduce_u64(crn_ckpt_comm(r->c), CRN_REDUCE_MAX, &full, 1) < 0 || full > 0;
}

/* Collective: all ranks come here at the same count. */
static void begin_mark(regions *r)
{
    r->armed = r->at_once = r->overdue = false;
    if (is_any_full(r))
        return;
    const int rc = cairn_begin(r->c, r->count, CAIRN_AUTO);
    if (rc != CAIRN_OK) {
        if (rc < 0)
            warn(r, "no mark is taken");
        return;
    }
    r->open = r->marked = true;
    r->place_site = r->list.at[r->met].site;
    r->failed = r->broken.code < 0;
    r->place_count = r->count;
    r->mark_ns = crn_now_ns();
    note_failure(r, begin_decision(r));
}

static bool is_place(const regions *r, uint32_t site)
{
    return r->at_once || site == r->place ||
           (r->place_name && strcmp(r->site.at[site].name, r->place_name) == 0);
}

/* One region of the look-ahead. */
static cairn_status look_ahead(regions *r, const crn_accesses *a)
{
    if (r->count - r->place_count >= r->limit) {
        r->met_reason = REGION_UNKNOWN;
        return crn_decision_end(&r->decision, &r->var, keep, r);
    }
    return crn_decision_step(&r->decision, &r->var, a, keep, r);
}

cairn_status crn_regions_before(regions *r, uint32_t list)
{
    const region_list *l = &r->list.at[list];
    const crn_accesses a = {l->access, l->nused, l->touched};
    crn_check_after(r);
    r->met = list;
    if (r->armed && !r->open && is_place(r, l->site))
        begin_mark(r);
    r->met_reason = l->scope ? REGION_SCOPE : REGION_READ;
    if (r->open && !r->failed)
        note_failure(r, look_ahead(r, &a));
    if (r->gathers)
        CRN_TRY(crn_shadow_step(r, list));
    CRN_TRY(crn_modify(&r->var, &a));
    CRN_TRY(crn_regions_log_list(r, list));
    r->count++;
    return r->check.on ? crn_check_before(r, list) : CAIRN_OK;
}

/* --- where the ranks agree -------------------------------------------------------------------- */

static void end_mark(regions *r, bool give_up)
{
    r->open = false;
    if (give_up) {
        (void)cairn_cancel(r->c);
        return;
    }
    for (size_t i = 0; i < r->name.n; i++)
        if (!r->name.at[i].captured)
            (void)cairn_omit(r->c, r->name.at[i].name); /* if that fails, all of it is kept */
    if (cairn_commit(r->c) < 0) {
        warn(r, "a mark failed");
        return;
    }
    crn_regions_tell_mark(r);
}

/* How long a mark may look ahead. Unless the program says so: as long as the regions that it may
 * look at take on average, since a program with long steps is no worse for it. */
static double patience(const regions *r)
{
    const double each = (double)(crn_now_ns() - r->start_ns) * 1e-9 /
                        (double)CRN_MAX(r->count - r->start_count, UINT64_C(1));
    return r->seconds > 0 ? r->seconds : fmax(LIMIT_SECONDS, each * (double)r->limit);
}

/* End the open mark if all ranks have decided, or their time is over. Collective. */
static cairn_status agree(regions *r)
{
    crn_comm *comm = crn_ckpt_comm(r->c);
    enum { UNDECIDED, FAILED, LATE, N };
    const bool late = (double)(crn_now_ns() - r->mark_ns) * 1e-9 >= patience(r);
    uint64_t max[N] = {[UNDECIDED] = !r->failed && !crn_decision_is_made(&r->decision),
                       [FAILED] = r->failed,
                       [LATE] = late && crn_comm_rank(comm) == 0};
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, max, N));
    if (max[UNDECIDED] && !max[FAILED] && !max[LATE])
        return CAIRN_OK;
    if (max[UNDECIDED] && !max[FAILED]) {
        r->met_reason = REGION_UNKNOWN;
        note_failure(r, crn_decision_end(&r->decision, &r->var, keep, r));
        max[FAILED] = r->failed;
        CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &max[FAILED], 1));
    }
    end_mark(r, max[FAILED]);
    return CAIRN_OK;
}

static void tell_place(regions *r)
{
    const char *name = r->place_name ? r->place_name : r->site.at[r->place].name;
    if (r->place_told == r->place + 1)
        return;
    r->place_told = r->place + 1;
    crn_log_write(crn_ckpt_log(r->c), CRN_LOG_INFO, CRN_LOG_ROOT,
                  "marks begin at '%s'; region options say so with .place = \"%s\"", name, name);
}

cairn_status crn_regions_arm(regions *r)
{
    if (r->armed || r->open)
        return CAIRN_OK;
    if (r->gathers) {
        bool settled;
        CRN_TRY(crn_regions_choose(r, &r->place, &settled));
        r->gathers = !settled;
    }
    r->at_once = r->place == UINT32_MAX && !r->place_name;
    r->armed = true;
    r->armed_ns = crn_now_ns();
    r->armed_after_ns = r->armed_ns - r->mark_ns;
    if (!r->at_once)
        tell_place(r);
    return CAIRN_OK;
}

/* A second due time without the place: the mark begins at once. Rank 0's clock counts. Where the
 * program names the place it knows why: then marks begin there or not at all. */
static cairn_status wait_longer(regions *r)
{
    crn_comm *comm = crn_ckpt_comm(r->c);
    uint64_t late = crn_comm_rank(comm) == 0 &&
                    crn_now_ns() - r->armed_ns >= CRN_MAX(r->armed_after_ns, UINT64_C(1000000));
    if (r->at_once || r->overdue)
        return CAIRN_OK;
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &late, 1));
    r->at_once = late && !r->place_name;
    r->overdue = late && r->place_name;
    if (r->overdue)
        crn_log_write(crn_ckpt_log(r->c), CRN_LOG_WARN, CRN_LOG_ROOT,
                      "a mark has been due for long, and the program does not come to its place, "
                      "'%s': does a region have that name?",
                      r->place_name);
    return CAIRN_OK;
}

bool crn_regions_poll(void *arg)
{
    regions *r = arg;
    cairn_status rc = CAIRN_OK;
    if (r->phase != REGION_RUN)
        return false;
    crn_check_after(r);
    crn_check_tell(r);
    if (r->open)
        rc = agree(r);
    else if (r->armed)
        rc = wait_longer(r);
    else if (crn_ckpt_ask_due(r->c))
        rc = crn_regions_arm(r);
    if (rc < 0)
        warn(r, "no mark is taken");
    return false;
}

/* A mark that began before the program was asked to leave may lie on the nodes alone: one more is
 * armed by the next cairn_due, for which the program stays, but not forever. */
bool crn_regions_hold(void *arg)
{
    enum { STEPS = 3 };
    regions *r = arg;
    if (r->broken.code < 0)
        return false;
    if ((r->armed && !r->overdue) || r->open)
        return true;
    return !r->overdue && crn_ckpt_wants_last(r->c) && r->phase == REGION_RUN && r->nheld++ < STEPS;
}
