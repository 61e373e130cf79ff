/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States on the study's shelf. The analysis of cycle c is there when a<member> of version c is, of
 * every member that was not dropped before; so for backgrounds, b<member>. The newest of both that
 * is whole is where a new server goes on: after a whole background the analysis is computed again,
 * which needs no earlier analysis; after a whole analysis, backgrounds of the next cycle that are
 * there are not computed again.
 *
 * DESIGN of the keeper: a thread that lives for one analysis. It puts the analysis, which nobody
 * changes until it has been joined, and then drops what is not needed any more. The loop starts it
 * after an update and joins it before the next.
 */
#include "ensemble/ensemble_server.h"

#include <inttypes.h>

static cairn_status shelf_failed(int rc)
{
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

/* The study owns its shelf: what happens to that is in the study's log. */
static void note_event(void *arg, const char *event)
{
    const crn_server *s = arg;
    json_t *object = json_loads(event, 0, NULL);
    if (object)
        crn_study_event(s->study, "shelf", "{s:o}", "shelf", object);
}

cairn_status crn_states_open(crn_server *s)
{
    char *path;
    if (s->twin)
        return CAIRN_OK;
    CRN_TRY(crn_study_path(s->study, "shelf", &path));
    int rc = cairn_shelf_open(path, NULL, &s->keeper.shelf);
    free(path);
    if (rc < 0)
        return shelf_failed(rc);
    cairn_shelf_listen(s->keeper.shelf, note_event, s);
    return CAIRN_OK;
}

void crn_states_close(crn_server *s)
{
    crn_keeper_join(s);
    crn_export_done(s);
    cairn_shelf_close(s->keeper.shelf);
}

/* --- one state ------------------------------------------------------------------------------ */

static size_t name_fields(const crn_server *s, const unsigned char *state, cairn_field *field)
{
    for (size_t i = 0; i < s->layout.field.n; i++)
        field[i] = crn_layout_field(&s->layout, i, state);
    return s->layout.field.n;
}

static int put(crn_server *s, char kind, uint32_t member, uint32_t cycle,
               const unsigned char *state)
{
    char key[32];
    cairn_field field[CRN_MEMBER_FIELDS];
    size_t n = name_fields(s, state, field);
    snprintf(key, sizeof key, "%c%06u", kind, member);
    return cairn_state_put(s->keeper.shelf, key, cycle, NULL, field, n);
}

static cairn_status get(crn_server *s, char kind, uint32_t member, uint32_t cycle,
                        unsigned char *state)
{
    char key[32];
    cairn_field field[CRN_MEMBER_FIELDS];
    size_t n = name_fields(s, state, field);
    snprintf(key, sizeof key, "%c%06u", kind, member);
    int rc = cairn_state_get(s->keeper.shelf, key, cycle, field, n);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

bool crn_states_keep_background(const crn_server *s)
{
    return !s->twin && (s->study->keep == CRN_KEEP_BOTH || s->study->keep == CRN_KEEP_BACKGROUND);
}

cairn_status crn_states_put_background(crn_server *s, uint32_t member)
{
    if (!crn_states_keep_background(s))
        return CAIRN_OK;
    crn_keeper_join(s);
    int rc = put(s, 'b', member, s->cycle, s->background[member]);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

/* --- what is there -------------------------------------------------------------------------- */

typedef struct found {
    uint64_t version;
    char kind;
    uint32_t member;
} found;

typedef CRN_VEC(found) findings;

static int note(void *arg, const cairn_state_info *info)
{
    char *end;
    unsigned long member = strtoul(info->key + 1, &end, 10);
    if ((info->key[0] != 'a' && info->key[0] != 'b') || end == info->key + 1 || *end)
        return 0; /* not ours */
    return crn_vec_push((findings *)arg, (found){info->version, info->key[0], (uint32_t)member}) <
           0;
}

static int by_version(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->version < y->version ? -1 : x->version > y->version;
}

/* By kind and version. */
static cairn_status look(crn_server *s, findings *ret)
{
    int rc = cairn_state_list(s->keeper.shelf, NULL, true, 0, note, ret);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOMEM, "no memory for the list of states");
    if (rc < 0)
        return shelf_failed(rc);
    if (ret->n > 0)
        qsort(ret->at, ret->n, sizeof *ret->at, by_version);
    return CAIRN_OK;
}

/* The newest cycle of which all active members are there; -1: none. */
static int64_t newest_whole(const crn_server *s, const findings *f, char kind)
{
    int64_t best = -1;
    uint32_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const found *x = &f->at[i];
        if (i > 0 && by_version(x - 1, x) != 0)
            n = 0;
        n += x->member < s->nmembers && s->member[x->member].state != CRN_MEMBER_DROPPED;
        if (x->kind == kind && n == s->nactive)
            best = (int64_t)x->version;
    }
    return best;
}

/* --- taking up a study ---------------------------------------------------------------------- */

cairn_status crn_ledger_read(crn_server *s)
{
    char *text, *rest = NULL;
    unsigned cycle, member;
    cairn_status rc = crn_study_read(s->study->dir, "ledger", &text);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, "dropped %u %u", &cycle, &member) == 2 && member < s->nmembers &&
            s->member[member].state != CRN_MEMBER_DROPPED) {
            s->member[member].state = CRN_MEMBER_DROPPED;
            s->nactive--;
        }
    free(text);
    return CAIRN_OK;
}

static cairn_status load_background(crn_server *s, uint32_t member, uint32_t cycle)
{
    CRN_TRY(get(s, 'b', member, cycle, s->background[member]));
    s->member[member].state = CRN_MEMBER_DONE;
    s->ndone++;
    return CAIRN_OK;
}

static cairn_status load_all(crn_server *s, char kind, uint32_t cycle)
{
    const uint64_t begun = crn_now_ns();
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state != CRN_MEMBER_DROPPED)
            CRN_TRY(kind == 'a' ? get(s, 'a', m, cycle, s->analysis[m])
                                : load_background(s, m, cycle));
    *(kind == 'a' ? &s->revival.get_analysis : &s->revival.get_background) =
        (double)(crn_now_ns() - begun) * 1e-9;
    return CAIRN_OK;
}

/* Backgrounds of the cycle that is to be propagated, as far as they are there. */
static cairn_status load_some(crn_server *s, const findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const found *b = &f->at[i];
        if (b->kind == 'b' && b->version == s->cycle && b->member < s->nmembers &&
            s->member[b->member].state == CRN_MEMBER_TODO)
            CRN_TRY(load_background(s, b->member, s->cycle));
    }
    return CAIRN_OK;
}

static cairn_status take_up(crn_server *s, const findings *f, bool *ret_analyse)
{
    const bool seen = s->study->asynchronous; /* what earlier states showed is not kept */
    const int64_t a = newest_whole(s, f, 'a'), b = seen ? -1 : newest_whole(s, f, 'b');
    if (a < 0 && b < 0)
        return CAIRN_NOTHING;
    *ret_analyse = b > a;
    s->cycle = (uint32_t)(b > a ? b : a + 1);
    crn_schedule_begin(s);
    if (b > a)
        CRN_TRY(load_all(s, 'b', s->cycle));
    else {
        CRN_TRY(load_all(s, 'a', s->cycle - 1));
        CRN_TRY(seen ? CAIRN_OK : load_some(s, f));
    }
    crn_study_event(s->study, "resumed", "{s:i,s:i,s:s}", "cycle", s->cycle, "members", s->ndone,
                    "from", b > a ? "background" : "analysis");
    return CAIRN_OK;
}

cairn_status crn_states_take_up(crn_server *s, bool *ret_analyse)
{
    findings f = {0};
    if (s->twin)
        return CAIRN_NOTHING;
    CRN_TRY(crn_ledger_read(s));
    cairn_status rc = look(s, &f);
    if (rc == CAIRN_OK)
        rc = take_up(s, &f, ret_analyse);
    crn_vec_done(&f);
    return rc;
}

/* --- the keeper ----------------------------------------------------------------------------- */

static cairn_status put_all(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        if (s->member[m].state == CRN_MEMBER_DROPPED)
            continue;
        int rc = put(s, 'a', m, s->keeper.cycle, s->analysis[m]);
        if (rc < 0)
            return shelf_failed(rc);
    }
    return CAIRN_OK;
}

/* Which states does nobody need once the keeper's cycle is safe? With backgrounds alone, that of
 * the cycle is what the analysis is computed from. */
static bool is_spent(const crn_keeper *k, const found *f)
{
    if (f->kind == 'b' && f->version > k->validated)
        return false;
    if (f->kind == 'a')
        return f->version < k->cycle;
    return k->put ? f->version <= k->cycle : f->version < k->cycle;
}

static cairn_status drop_spent(crn_server *s)
{
    findings f = {0};
    cairn_status rc = look(s, &f);
    for (size_t i = 0; rc == CAIRN_OK && i < f.n; i++) {
        char key[32];
        if (!is_spent(&s->keeper, &f.at[i]))
            continue;
        snprintf(key, sizeof key, "%c%06u", f.at[i].kind, f.at[i].member);
        int dropped = cairn_state_drop(s->keeper.shelf, key, f.at[i].version);
        rc = dropped < 0 ? shelf_failed(dropped) : CAIRN_OK;
    }
    crn_vec_done(&f);
    return rc;
}

static void *keep(void *arg)
{
    crn_server *s = arg;
    crn_keeper *k = &s->keeper;
    k->rc = k->put ? put_all(s) : CAIRN_OK;
    if (k->rc == CAIRN_OK)
        k->rc = crn_export_write(s);
    if (k->rc == CAIRN_OK)
        k->rc = drop_spent(s);
    snprintf(k->text, sizeof k->text, "%s", k->rc < 0 ? crn_err_peek()->text : "");
    k->seconds = (double)(crn_now_ns() - k->begun_ns) / 1e9;
    atomic_store(&k->ended, true); /* all of the above is seen by who sees this */
    return NULL;
}

/* Keep the analysis of a cycle. The first members are always kept: they are no analysis that could
 * be computed from a background. */
void crn_keeper_start(crn_server *s, uint32_t cycle)
{
    crn_keeper *k = &s->keeper;
    if (s->twin)
        return;
    crn_keeper_join(s);
    k->cycle = cycle;
    const crn_keep what = s->study->keep;
    k->put = what == CRN_KEEP_BOTH || what == CRN_KEEP_ANALYSIS ||
             (what == CRN_KEEP_BACKGROUND && cycle == 0);
    k->validated = s->study->side ? s->validated : UINT32_MAX;
    k->begun_ns = crn_now_ns();
    atomic_store(&k->ended, false);
    k->rc = crn_export_prepare(s);
    if (k->rc < 0) {
        crn_study_event(s->study, "not_kept", "{s:i,s:s}", "cycle", cycle, "why",
                        crn_err_peek()->text);
        return;
    }
    if (pthread_create(&k->thread, NULL, keep, s) == 0)
        k->works = true;
    else
        keep(s);
}

void crn_keeper_join(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    if (!k->works)
        return;
    pthread_join(k->thread, NULL);
    k->works = false;
    double seconds = k->seconds;
    s->revival.keep += k->rc == CAIRN_OK && k->put ? seconds : 0;
    s->revival.nkept += k->rc == CAIRN_OK && k->put;
    if (k->rc < 0)
        crn_study_event(s->study, "not_kept", "{s:i,s:s}", "cycle", k->cycle, "why", k->text);
    else
        crn_study_event(s->study, "kept", "{s:i,s:f}", "cycle", k->cycle, "seconds", seconds);
}
