/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States that failed. The state that a task began with goes to a shelf of its own, failed/ of the
 * study's directory, as m<member> of version <cycle>, when an attempt is burned; 'cairn ensemble
 * try' gives it to one runner once more, and reports what became of it. The study is not touched.
 */
#include "ensemble/ensemble_check.h"
#include "ensemble/ensemble_server.h"

#include <inttypes.h>

static cairn_status shelf_failed(int rc)
{
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

static cairn_status open_shelf(const crn_study *study, cairn_shelf **ret)
{
    char *path;
    CRN_TRY(crn_study_path(study, "failed", &path));
    int rc = cairn_shelf_open(path, NULL, ret);
    free(path);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

static size_t name_fields(const crn_server *s, const unsigned char *state, cairn_field *field)
{
    for (size_t i = 0; i < s->layout.field.n; i++)
        field[i] = crn_layout_field(&s->layout, i, state);
    return s->layout.field.n;
}

static cairn_status put(crn_server *s, uint32_t member)
{
    char key[32];
    cairn_field field[CRN_MEMBER_FIELDS];
    cairn_shelf *shelf;
    const size_t n = name_fields(s, s->whole[member], field);
    snprintf(key, sizeof key, "m%06u", member);
    CRN_TRY(open_shelf(s->study, &shelf));
    int rc = cairn_state_put(shelf, key, s->cycle, NULL, field, n);
    cairn_status status = rc < 0 ? shelf_failed(rc) : CAIRN_OK;
    cairn_shelf_close(shelf);
    return status;
}

void crn_failed_keep(crn_server *s, uint32_t member)
{
    if (s->member[member].recorded || !s->analysis || s->twin)
        return;
    s->member[member].recorded = true;
    if (!crn_ranks_has_home(&s->ranks, member))
        (void)crn_ranks_order_home(s, member);
    else if (put(s, member) < 0)
        crn_study_event(s->study, "not_kept", "{s:i,s:s}", "cycle", s->cycle, "why",
                        crn_err_peek()->text);
    else
        crn_study_event(s->study, "recorded", "{s:i,s:i}", "cycle", s->cycle, "member", member);
}

/* --- trying ---------------------------------------------------------------------------------- */

/* The newest state of the member on the shelf; CAIRN_TRY names it. */
static int newest(void *arg, const cairn_state_info *info)
{
    uint64_t *version = arg;
    *version = info->version > *version ? info->version : *version;
    return 0;
}

static cairn_status load(crn_server *s, cairn_shelf *shelf, uint32_t member)
{
    char key[32];
    uint64_t version = 0;
    cairn_field field[CRN_MEMBER_FIELDS];
    const size_t n = name_fields(s, s->analysis[0], field);
    snprintf(key, sizeof key, "m%06u", member);
    int rc = cairn_state_list(shelf, key, true, 0, newest, &version);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    CRN_FAIL_IF(version == 0, CAIRN_ENOTFOUND,
                "member %u has not failed: '%s/failed' has no state of it", member, s->study->dir);
    rc = cairn_state_get(shelf, key, version, field, n);
    if (rc < 0)
        return shelf_failed(rc);
    s->cycle = (uint32_t)version;
    return CAIRN_OK;
}

static cairn_status begin(crn_server *s)
{
    cairn_shelf *shelf;
    const char *text = getenv("CAIRN_ENSEMBLE_TRY");
    uint64_t member;
    CRN_FAIL_IF(!text || crn_parse_count(text, &member) < 0, CAIRN_EINVAL,
                "CAIRN_ENSEMBLE_TRY names no member");
    CRN_TRY(crn_gather_begin(s));
    CRN_TRY(open_shelf(s->study, &shelf));
    cairn_status rc = load(s, shelf, (uint32_t)member);
    cairn_shelf_close(shelf);
    CRN_TRY(rc);
    s->phase = CRN_PHASE_CYCLE;
    return CAIRN_OK;
}

static void tell(crn_server *s, crn_cause cause, bool ok, const char *found)
{
    crn_study_event(s->study, "tried", "{s:i,s:b,s:s,s:s}", "cycle", s->cycle, "ok", ok, "kind",
                    ok ? "done" : crn_cause_word(cause), "found", found);
    s->phase = CRN_PHASE_OVER;
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    if (r->ntasks > 0)
        return CAIRN_OK;
    w.attempt = 1;
    w.number = s->study->steps;
    w.more = s->study->spin + (s->cycle - 1) * s->study->steps;
    crn_server_task(s, r, &w);
    crn_gather_send(s, r, &w, s->analysis[0]);
    return CAIRN_OK;
}

static cairn_status take(crn_server *s, crn_runner_row *r, const crn_wire *done)
{
    char why[160], took[CRN_NUMBER_TEXT];
    if (done->number != 0)
        tell(s, CRN_CAUSE_REFUSED, false, done->text);
    else if (crn_rows_find_bad(&s->layout, r->incoming, why, sizeof why))
        tell(s, CRN_CAUSE_STATE, false, why);
    else
        tell(s, CRN_CAUSE_LOST, true, crn_format_seconds(done->seconds, took, sizeof took));
    return CAIRN_OK;
}

static cairn_status letter(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    return crn_gather_letter(s, r, m, take);
}

static cairn_status lose(crn_server *s, crn_runner_row *r, const char *why)
{
    tell(s, r->cause, false, why);
    return CAIRN_OK;
}

static void overdue(crn_server *s, uint32_t member)
{
    (void)s, (void)member;
}

static cairn_status nothing(crn_server *s)
{
    (void)s;
    return CAIRN_OK;
}

static cairn_status close_try(crn_server *s, cairn_status rc)
{
    (void)s;
    return rc;
}

const crn_method crn_method_try = {.open = nothing,
                                   .begin = begin,
                                   .join = crn_gather_join,
                                   .give = give,
                                   .letter = letter,
                                   .lose = lose,
                                   .overdue = overdue,
                                   .advance = nothing,
                                   .tick = nothing,
                                   .close = close_try,
                                   .free = crn_gather_done};
