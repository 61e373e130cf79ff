/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States on the study's shelf. The analysis of cycle c is there when a<member> of version c is, of
 * every member that was not dropped before; so for backgrounds, b<member>. The newest of both that
 * is whole is where a new server goes on: after a whole background the analysis is computed again,
 * which needs no earlier analysis; after a whole analysis, backgrounds of the next cycle that are
 * there are not computed again.
 *
 * A server of several ranks has the same shelf: each rank puts and gets the members that are at
 * home there (ensemble_ranks.h), and rank 0 chooses where to go on.
 *
 * DESIGN of the keeper: a thread that lives for one step of keeping an analysis. On all ranks it
 * puts the analyses that are at home there, which nobody changes until it has been joined; then it
 * writes what is exported, one rank after the other; then rank 0 drops what is not needed any more.
 * A server of one rank makes one step of all that. The loop starts it after an update and joins it
 * before the next.
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

/* Whole states. */
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

cairn_status crn_states_put_background(crn_server *s, uint32_t member, const unsigned char *whole)
{
    if (!crn_states_keep_background(s))
        return CAIRN_OK;
    CRN_TRY(crn_states_refuse(s, member, s->cycle));
    int rc = put(s, 'b', member, s->cycle, whole);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

/* The runner has put it before the server could judge it: nobody may go on from it, and it must not
 * stand in the way of a better one. The keeper may have the shelf's handle now. */
cairn_status crn_states_refuse(crn_server *s, uint32_t member, uint32_t cycle)
{
    char key[32], *path;
    cairn_shelf *shelf;
    if (!crn_states_keep_background(s))
        return CAIRN_OK;
    snprintf(key, sizeof key, "b%06u", member);
    CRN_TRY(crn_study_path(s->study, "shelf", &path));
    int rc = cairn_shelf_open(path, NULL, &shelf);
    free(path);
    if (rc < 0)
        return shelf_failed(rc);
    rc = cairn_state_drop(shelf, key, cycle);
    cairn_status status = rc < 0 && rc != CAIRN_ENOTFOUND ? shelf_failed(rc) : CAIRN_OK;
    cairn_shelf_close(shelf);
    return status;
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

/* What rank 0 has found: where to go on, and with what. */
typedef struct plan {
    bool any, analyse; /* from whole backgrounds: the analysis is computed again */
    uint32_t cycle;
    uint8_t *background; /* of each member: get it */
} plan;

static void plan_some(const crn_server *s, const findings *f, plan *p)
{
    for (size_t i = 0; i < f->n; i++) {
        const found *b = &f->at[i];
        if (b->kind == 'b' && b->version == p->cycle && b->member < s->nmembers)
            p->background[b->member] = s->member[b->member].state != CRN_MEMBER_DROPPED;
    }
}

static cairn_status choose(crn_server *s, plan *p)
{
    findings f = {0};
    const bool seen = s->study->asynchronous; /* what earlier states showed is not kept */
    cairn_status rc = look(s, &f);
    if (rc == CAIRN_OK) {
        const int64_t a = newest_whole(s, &f, 'a'), b = seen ? -1 : newest_whole(s, &f, 'b');
        p->any = a >= 0 || b >= 0;
        p->analyse = b > a;
        p->cycle = (uint32_t)(b > a ? b : a + 1);
        if (p->any && !seen)
            plan_some(s, &f, p);
    }
    crn_vec_done(&f);
    return rc;
}

/* A server may have died before it judged a background: what is not as the study wants it goes. */
static cairn_status weed_out(crn_server *s, uint32_t member, uint32_t cycle,
                             const unsigned char *state, uint64_t *nbad)
{
    char why[160];
    crn_state_layout whole = s->layout;
    whole.first = 0;
    whole.end = whole.nbytes;
    if (!crn_rows_find_bad(&whole, state, why, sizeof why))
        return CAIRN_OK;
    ++*nbad;
    return crn_states_refuse(s, member, cycle);
}

/* States of a kind, wanted ones, to where all ranks have their slices of them; CAIRN_NOTHING: some
 * were backgrounds that nobody may go on from, and are there no more. Collective. */
static cairn_status load(crn_server *s, char kind, uint32_t cycle, const uint8_t *wanted,
                         double *ret_s)
{
    const bool alone = s->ranks.size == 1;
    unsigned char **slice = kind == 'a' ? s->analysis : s->background;
    const uint64_t begun = crn_now_ns();
    uint64_t nbad = 0;
    cairn_status rc = CAIRN_OK;
    for (uint32_t m = 0; rc == CAIRN_OK && m < s->nmembers; m++)
        if (wanted[m] && crn_ranks_has_home(&s->ranks, m)) {
            unsigned char *to = alone ? slice[m] : s->whole[m];
            rc = get(s, kind, m, cycle, to);
            if (rc == CAIRN_OK && kind == 'b')
                rc = weed_out(s, m, cycle, to, &nbad);
        }
    CRN_TRY(crn_comm_agree(s->ranks.comm, rc));
    CRN_TRY(crn_comm_allreduce_u64(s->ranks.comm, CRN_REDUCE_SUM, &nbad, 1));
    if (nbad > 0)
        return CAIRN_NOTHING;
    if (!alone)
        CRN_TRY(crn_ranks_scatter(s, wanted, s->whole, slice));
    *ret_s = (double)(crn_now_ns() - begun) * 1e-9;
    return CAIRN_OK;
}

/* The analysis comes last: it is what stays whole at its home. */
static cairn_status carry_out(crn_server *s, const plan *p, uint8_t *active)
{
    double some;
    crn_schedule_begin(s);
    for (uint32_t m = 0; m < s->nmembers; m++) {
        active[m] = s->member[m].state != CRN_MEMBER_DROPPED;
        if (p->background[m]) {
            s->member[m].state = CRN_MEMBER_DONE;
            s->ndone++;
        }
    }
    cairn_status rc = CAIRN_OK;
    if (s->ndone > 0)
        rc = load(s, 'b', s->cycle, p->background, p->analyse ? &s->revival.get_background : &some);
    if (rc != CAIRN_OK)
        return rc;
    return p->analyse ? CAIRN_OK : load(s, 'a', s->cycle - 1, active, &s->revival.get_analysis);
}

/* Again where backgrounds had to go. */
static cairn_status take_up_once(crn_server *s, plan *p, bool *ret_again)
{
    uint8_t *active;
    memset(p->background, 0, s->nmembers);
    CRN_TRY(crn_ranks_share(s, s->ranks.rank == 0 ? choose(s, p) : CAIRN_OK, p,
                            offsetof(plan, background)));
    CRN_TRY(crn_ranks_share(s, CAIRN_OK, p->background, s->nmembers));
    if (!p->any)
        return CAIRN_NOTHING;
    s->cycle = p->cycle;
    CRN_TRY(crn_comm_agree(s->ranks.comm, crn_alloc(&active, s->nmembers)));
    cairn_status rc = carry_out(s, p, active);
    free(active);
    *ret_again = rc == CAIRN_NOTHING;
    if (rc == CAIRN_OK)
        crn_study_event(s->study, "resumed", "{s:i,s:i,s:s}", "cycle", s->cycle, "members",
                        s->ndone, "from", p->analyse ? "background" : "analysis");
    return rc;
}

static cairn_status take_up(crn_server *s, plan *p)
{
    cairn_status rc;
    bool again;
    do {
        again = false;
        rc = take_up_once(s, p, &again);
    } while (again);
    return rc;
}

cairn_status crn_states_take_up(crn_server *s, bool *ret_analyse)
{
    plan p = {0};
    if (s->twin)
        return CAIRN_NOTHING;
    cairn_status rc = crn_ledger_read(s);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&p.background, s->nmembers);
    rc = crn_comm_agree(s->ranks.comm, rc);
    if (rc == CAIRN_OK)
        rc = take_up(s, &p);
    *ret_analyse = p.analyse;
    free(p.background);
    return rc;
}

/* --- the keeper ----------------------------------------------------------------------------- */

static cairn_status put_all(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        if (s->member[m].state == CRN_MEMBER_DROPPED || !crn_ranks_has_home(&s->ranks, m))
            continue;
        int rc = put(s, 'a', m, s->keeper.cycle, s->whole[m]);
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

static cairn_status make_step(crn_server *s)
{
    const crn_keeper *k = &s->keeper;
    const bool alone = s->ranks.size == 1;
    if (k->step == CRN_KEEPER_PUTS && k->put)
        CRN_TRY(put_all(s));
    if (k->step == CRN_KEEPER_EXPORTS || alone)
        CRN_TRY(crn_export_write(s));
    return k->step == CRN_KEEPER_DROPS || alone ? drop_spent(s) : CAIRN_OK;
}

static void *keep(void *arg)
{
    crn_server *s = arg;
    crn_keeper *k = &s->keeper;
    k->rc = make_step(s);
    snprintf(k->text, sizeof k->text, "%s", k->rc < 0 ? crn_err_peek()->text : "");
    k->seconds += (double)(crn_now_ns() - k->begun_ns) / 1e9;
    atomic_store(&k->ended, true); /* all of the above is seen by who sees this */
    return NULL;
}

static void start_step(crn_server *s, crn_keeper_step step)
{
    crn_keeper *k = &s->keeper;
    k->step = step;
    k->begun_ns = crn_now_ns();
    atomic_store(&k->ended, false);
    s->ranks.nkept = 0;
    k->works = true;
    k->threaded = pthread_create(&k->thread, NULL, keep, s) == 0;
    if (!k->threaded)
        keep(s);
}

static void not_kept(crn_server *s, const char *why)
{
    if (why != s->keeper.text)
        snprintf(s->keeper.text, sizeof s->keeper.text, "%s", why);
    s->keeper.rc = CAIRN_EIO;
    s->keeper.step = CRN_KEEPER_RESTS;
    crn_study_event(s->study, "not_kept", "{s:i,s:s}", "cycle", s->keeper.cycle, "why", why);
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
    k->seconds = 0;
    k->rc = crn_comm_agree(s->ranks.comm, crn_export_prepare(s));
    if (k->rc < 0)
        not_kept(s, crn_err_peek()->text);
    else
        start_step(s, CRN_KEEPER_PUTS);
}

static void note_kept(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    s->revival.keep += k->put ? k->seconds : 0;
    s->revival.nkept += k->put;
    crn_study_event(s->study, "kept", "{s:i,s:f}", "cycle", k->cycle, "seconds", k->seconds);
}

void crn_keeper_wait(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    if (k->works && k->threaded)
        pthread_join(k->thread, NULL);
    k->threaded = false;
}

/* Of one rank: all is done with its only step. Of several, others may still be at it. */
void crn_keeper_join(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    if (!k->works)
        return;
    crn_keeper_wait(s);
    k->works = false;
    if (s->ranks.size > 1)
        return;
    k->step = CRN_KEEPER_RESTS;
    if (k->rc < 0)
        not_kept(s, k->text);
    else
        note_kept(s);
}

/* --- the keepers of several ranks ----------------------------------------------------------- */

bool crn_keeper_works(const crn_server *s)
{
    return s->ranks.size > 1 && s->keeper.step != CRN_KEEPER_RESTS;
}

void crn_keeper_export(crn_server *s)
{
    start_step(s, CRN_KEEPER_EXPORTS);
}

/* This rank's step has ended: rank 0 is to know. */
static cairn_status report(crn_server *s)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_KEPT;
    w.cycle = s->keeper.cycle;
    snprintf(w.text, sizeof w.text, "%s", s->keeper.text);
    s->keeper.step = CRN_KEEPER_RESTS;
    return crn_ranks_report(s, &w);
}

static cairn_status order_export(crn_server *s)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_EXPORT;
    w.cycle = s->keeper.cycle;
    return crn_ranks_order(s, s->ranks.nkept + 1, &w, NULL, 0);
}

/* Rank 0: a step has ended on this rank (own) or another. */
static cairn_status go_on(crn_server *s, bool own)
{
    crn_keeper *k = &s->keeper;
    const bool all = !k->works && s->ranks.nkept + 1 == s->ranks.size;
    if (k->step == CRN_KEEPER_EXPORTS && !all)
        return own || s->ranks.nkept > 0 ? order_export(s) : CAIRN_OK;
    if (k->step == CRN_KEEPER_PUTS && all)
        start_step(s, s->study->hdf5 == CRN_HDF5_NONE ? CRN_KEEPER_DROPS : CRN_KEEPER_EXPORTS);
    else if (k->step == CRN_KEEPER_EXPORTS)
        start_step(s, CRN_KEEPER_DROPS);
    else if (k->step == CRN_KEEPER_DROPS) {
        k->step = CRN_KEEPER_RESTS;
        note_kept(s);
    }
    return CAIRN_OK;
}

cairn_status crn_keeper_look(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    if (!k->works || !atomic_load(&k->ended))
        return CAIRN_OK;
    crn_keeper_join(s);
    if (s->ranks.size == 1)
        return CAIRN_OK;
    if (s->ranks.rank > 0)
        return report(s);
    if (k->rc < 0) {
        not_kept(s, k->text);
        return CAIRN_OK;
    }
    return go_on(s, true);
}

cairn_status crn_keeper_heard(crn_server *s, const crn_wire *w)
{
    crn_keeper *k = &s->keeper;
    if (w->cycle != k->cycle || k->step == CRN_KEEPER_RESTS)
        return CAIRN_OK; /* this one has failed on another rank */
    if (w->text[0]) {
        crn_keeper_join(s);
        not_kept(s, w->text);
        return CAIRN_OK;
    }
    s->ranks.nkept++;
    return go_on(s, false);
}
