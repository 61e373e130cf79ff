/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replay of a trace on the ranks of this job: setting up, the loop over events, and the sums at
 * the end.
 */
#include "replay/replay.h"

#include "comm/comm.h"

cairn_status crn_play_mpi(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    if (rc == MPI_SUCCESS)
        return CAIRN_OK;
    if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS)
        n = 0;
    return crn_fail(CAIRN_EINTERNAL, "%s: %.*s", what, n, text);
}

int64_t crn_event_value(const crn_traced_event *e, unsigned kind, int nth, int64_t otherwise)
{
    int at = -1;
    for (int next = crn_event_find(e, kind, 0); next >= 0 && nth >= 0; nth--) {
        at = next;
        next = crn_event_find(e, kind, next + 1);
    }
    return at < 0 ? otherwise : e->value[at];
}

crn_list crn_event_list(const crn_traced_event *e, unsigned kind, int nth)
{
    int at = crn_event_find(e, kind, 0);
    for (; nth > 0 && at >= 0; nth--)
        at = crn_event_find(e, kind, at + 1);
    return at < 0 ? (crn_list){NULL, 0} : e->list[at];
}

int64_t crn_play_value(const crn_player *p, unsigned kind, int nth, int64_t otherwise)
{
    return crn_event_value(&p->e, kind, nth, otherwise);
}

crn_list crn_play_list(const crn_player *p, unsigned kind, int nth)
{
    return crn_event_list(&p->e, kind, nth);
}

void crn_play_skip(crn_player *p)
{
    p->result->nskipped++;
    p->result->nevents--;
}

cairn_status crn_play_skip_event(crn_player *p)
{
    crn_play_skip(p);
    return CAIRN_OK;
}

/* Remarks of the recorder, beginning and end. */
cairn_status crn_play_remark(crn_player *p)
{
    p->result->nevents--;
    return CAIRN_OK;
}

/* What was done where it began. */
cairn_status crn_play_nothing(crn_player *p)
{
    (void)p;
    return CAIRN_OK;
}

cairn_status crn_play_reissue(crn_player *p)
{
    return crn_play_rows[p->e.place->call].play(p);
}

cairn_status crn_play_issue_call(const crn_player *p, crn_play_args *a)
{
    return crn_play_mpi(crn_play_rows[p->e.place->call].issue(a), p->e.call->name);
}

/* ---- events ---- */

static bool awaits_message(unsigned traits)
{
    return traits & CRN_TRAIT_BLOCKS && traits & (CRN_TRAIT_RECEIVES | CRN_TRAIT_PROBES);
}

/* With shadows, sends alone count: receives, waits and probes follow from them. */
static cairn_status play_by_shadows(crn_player *p, crn_bind *bind, crn_meaning *m)
{
    CRN_TRY(crn_meaning_of(m, bind, &p->e, &p->e.comm, NULL));
    const cairn_trace_message *message = m->many.n > 0 ? m->many.at : m->few;
    for (size_t i = 0; i < m->nmessages; i++)
        CRN_TRY(crn_shadows_send(p, &message[i], 0));
    return awaits_message(p->e.call->traits) ? crn_shadows_wait(p) : CAIRN_OK;
}

static cairn_status play_event(crn_player *p, crn_bind *bind, crn_meaning *m)
{
    p->result->nevents++;
    if (p->by_shadows && p->e.call->layer == CRN_LAYER_P2P)
        return play_by_shadows(p, bind, m);
    return crn_play_reissue(p);
}

static cairn_status play_events(crn_player *p)
{
    crn_bind bind;
    crn_meaning m = {0};
    cairn_status rc = crn_bind_init(&bind, p->t, (uint32_t)p->rank);
    while (rc == CAIRN_OK && crn_walk_next(p->walk, &p->e)) {
        if (p->by_shadows) /* first: what it takes is taken off the computing */
            rc = crn_shadows_follow(p);
        if (rc == CAIRN_OK)
            rc = crn_play_compute(p);
        const uint64_t start = crn_now_ns();
        if (rc == CAIRN_OK)
            rc = play_event(p, &bind, &m);
        crn_play_passed(p, crn_now_ns() - start);
        if (rc == CAIRN_OK && p->shadows)
            rc = crn_shadows_learn(p);
        if (rc == CAIRN_OK && p->by_shadows)
            rc = crn_bind_learn(&bind, &p->e);
    }
    if (rc < 0)
        crn_err_prefix("rank %d, event %llu, %s: ", p->rank, (unsigned long long)p->result->nevents,
                       p->e.call->name);
    crn_meaning_done(&m);
    crn_bind_done(&bind);
    return rc;
}

static cairn_status play(crn_player *p)
{
    CRN_TRY_MPI(MPI_Barrier(MPI_COMM_WORLD));
    p->began = crn_now_ns();
    CRN_TRY(play_events(p));
    CRN_TRY(crn_sides_finish(p));
    if (p->by_shadows)
        CRN_TRY(crn_shadows_finish(p));
    CRN_TRY(crn_play_finish(p));
    p->result->seconds = (double)(crn_now_ns() - p->began) * 1e-9;
    return CAIRN_OK;
}

/* ---- setting up ---- */

static bool communicates(const crn_lane *l)
{
    for (size_t i = 0; i < l->nsymbols; i++) {
        crn_layer layer = crn_call_row(l->symbol[i].call)->layer;
        if (l->symbol[i].call != CRN_CALL_NONE && layer >= CRN_LAYER_P2P &&
            layer <= CRN_LAYER_MPIIO)
            return true;
    }
    return false;
}

/* Whom a thread talks to is known, but not in which order threads of a rank do so. */
static bool needs_shadows(const crn_trace *t)
{
    bool threads = false;
    for (size_t i = 1; i < t->nlanes; i++)
        threads |= communicates(&t->lane[i]);
    return t->precision < 100 || threads;
}

/* Of what each rank gets in it, a lossless trace has the sum alone. */
static bool has_sums(const crn_lane *l)
{
    for (size_t i = 0; i < l->nsymbols; i++)
        if (crn_call_has(l->symbol[i].call, CRN_TRAIT_SUMS))
            return true;
    return false;
}

static cairn_status set_up(crn_player *p)
{
    p->payload.random = true;
    p->by_shadows = needs_shadows(p->t);
    CRN_TRY(crn_times_init(&p->times, p->t, 0, (uint32_t)p->rank));
    CRN_TRY(crn_play_find_cores(p));
    CRN_TRY(crn_play_types_make(p));
    CRN_TRY(crn_play_comms_make(p));
    CRN_TRY(crn_walk_open(p->t, 0, (uint32_t)p->rank, p->opt->seed, &p->walk));
    CRN_TRY(crn_scout_create(p->t, (uint32_t)p->rank, p->opt->seed, &p->scout));
    if (p->by_shadows || has_sums(&p->t->lane[0]))
        CRN_TRY(crn_shadows_create(p, &p->shadows));
    CRN_TRY(crn_sides_create(p, &p->sides));
    return crn_watch_start(p, &p->watch);
}

static void tear_down(crn_player *p)
{
    crn_watch_stop(p->watch);
    crn_sides_free(p->sides);
    crn_shadows_free(p->shadows);
    crn_scout_free(p->scout);
    crn_walk_close(p->walk);
    crn_times_done(&p->times);
    crn_play_types_free(p);
    for (size_t i = 0; i < p->slot.n; i++)
        crn_play_slot_done(&p->slot.at[i]);
    crn_vec_done(&p->slot);
    crn_vec_done(&p->late);
    crn_vec_done(&p->message);
    crn_play_memory_done(&p->payload);
    crn_play_memory_done(&p->scratch);
}

/* Seconds are the slowest rank's, the rest is summed up. */
static cairn_status sum_up(crn_comm *comm, cairn_replay_result *r)
{
    uint64_t *const part[] = {&r->nevents,    &r->nskipped,   &r->nskipped_threads, &r->nlate,
                              &r->sent_bytes, &r->read_bytes, &r->written_bytes};
    enum { PARTS = sizeof part / sizeof *part };
    uint64_t sum[PARTS];
    for (int i = 0; i < PARTS; i++)
        sum[i] = *part[i];
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, PARTS));
    CRN_TRY(crn_comm_allreduce_f64(comm, CRN_REDUCE_MAX, &r->seconds, 1));
    for (int i = 0; i < PARTS; i++)
        *part[i] = sum[i];
    return CAIRN_OK;
}

/*
 * Setting up is agreed upon; a failure in the middle is not, since the others may wait for this
 * rank for ever: the caller's program should end then, and the launcher ends the others.
 */
static cairn_status replay(crn_player *p, crn_comm *comm)
{
    CRN_TRY(crn_comm_agree(comm, set_up(p)));
    CRN_TRY(crn_comm_agree(comm, crn_play_files_create(p, &p->files)));
    CRN_TRY(play(p));
    crn_play_windows_free(p);
    crn_play_comms_free(p);
    crn_play_files_free(p, p->files);
    p->files = NULL;
    return sum_up(comm, p->result);
}

/* A call of the trace that is recorded, but has no function for the replay; NULL: none. */
static const char *find_unknown(const crn_trace *t)
{
    for (size_t i = 0; i < t->nlanes; i++)
        for (size_t k = 0; k < t->lane[i].nsymbols; k++) {
            const uint32_t call = t->lane[i].symbol[k].call;
            if (call != CRN_CALL_NONE && crn_call_has(call, CRN_TRAIT_UNMODELLED))
                return crn_call_row(call)->name;
        }
    return NULL;
}

enum { COUNT_MAX = 1 << 30 };

/* A value of either sequence of which a group's values are sums is that large. */
static bool is_large(const crn_seq *s)
{
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t n;
    bool large = false;
    crn_seq_iter_init(&it, s);
    while (!large && crn_seq_next_run(&it, UINT32_MAX, &v, &stride, &n)) {
        large = v > COUNT_MAX / 2 || v + (int64_t)(n - 1) * stride > COUNT_MAX / 2;
        if (s->n == 0)
            break; /* one value for all */
    }
    return large;
}

static bool has_large(const crn_symbol *s)
{
    bool large = false;
    for (size_t c = 1; c < s->ncolumns; c++) {
        const unsigned kind = crn_symbol_kind(s, c);
        const crn_column *column = &s->column[c];
        if (kind != CRN_KIND_COUNT && kind != CRN_KIND_TOTAL)
            continue;
        for (size_t g = 0; g < column->ngroups && !large; g++)
            large = is_large(&column->group[g].base) || is_large(&column->group[g].value);
    }
    return large;
}

/* A call with counts that the replay cannot hand to the calls that it makes; NULL: none. */
static const char *find_large(const crn_trace *t)
{
    for (size_t i = 0; i < t->nlanes; i++)
        for (size_t k = 0; k < t->lane[i].nsymbols; k++)
            if (t->lane[i].symbol[k].call != CRN_CALL_NONE && has_large(&t->lane[i].symbol[k]))
                return crn_call_row(t->lane[i].symbol[k].call)->name;
    return NULL;
}

static cairn_status check(const cairn_trace *trace, int size)
{
    CRN_FAIL_IF((uint32_t)size != trace->t->nranks, CAIRN_EMISMATCH,
                "'%s' has %u rank%s, this job %d: start it as 'mpirun -n %u cairn trace replay %s'",
                trace->path, trace->t->nranks, trace->t->nranks == 1 ? "" : "s", size,
                trace->t->nranks, trace->path);
    CRN_FAIL_IF(trace->incomplete.n > 0, CAIRN_EUNSUPPORTED,
                "'%s' is incomplete (%s): its replay would wait for ever for what is missing",
                trace->path, (char *)trace->incomplete.at);
    CRN_FAIL_IF(trace->t->nlanes == 0, CAIRN_ECORRUPT, "'%s' has no events", trace->path);
    const char *unknown = find_unknown(trace->t);
    CRN_FAIL_IF(unknown, CAIRN_EUNSUPPORTED, "'%s' has calls of %s, which cannot be replayed",
                trace->path, unknown);
    const char *large = find_large(trace->t);
    CRN_FAIL_IF(
        large, CAIRN_EUNSUPPORTED,
        "'%s' has calls of %s with half a billion elements or more, which cannot be replayed",
        trace->path, large);
    return CAIRN_OK;
}

static cairn_status replay_on_world(cairn_trace *trace, const cairn_replay_options *opt,
                                    cairn_replay_result *r)
{
    crn_comm *comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &r->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r->size);
    CRN_TRY(check(trace, r->size));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CRN_TRY(crn_comm_create(MPI_COMM_WORLD, &comm));
    crn_player p = {.t = trace->t, .opt = opt, .result = r, .rank = r->rank, .size = r->size};
    const int slack = crn_play_set_slack(1);
    cairn_status rc = replay(&p, comm);
    crn_play_set_slack(slack);
    tear_down(&p);
    crn_comm_free(comm);
    return rc;
}

int cairn_trace_replay(cairn_trace *trace, const cairn_replay_options *options,
                       cairn_replay_result *result)
{
    int was_running, over;
    cairn_replay_options opt;
    cairn_replay_result ours = {.recorded = (double)trace->t->lasted * 1e-9};
    CRN_TRY(crn_struct_in(options, &opt));
    CRN_TRY(crn_struct_check(result));
    CRN_FAIL_IF(opt.speed < 0 || opt.patience < 0, CAIRN_EINVAL,
                "speed and patience must not be negative");
    MPI_Finalized(&over);
    CRN_FAIL_IF(over, CAIRN_EINVAL, "MPI was finalised before the replay");
    MPI_Initialized(&was_running);
    if (!was_running)
        CRN_TRY_MPI(MPI_Init(NULL, NULL));
    cairn_status rc = replay_on_world(trace, &opt, &ours);
    (void)crn_struct_out(&ours, result); /* also after a failure, which it may explain */
    /* after a failure in the middle, MPI_Finalize would wait for the others */
    if (!was_running && (rc == CAIRN_OK || rc == CAIRN_EMISMATCH || rc == CAIRN_EUNSUPPORTED))
        MPI_Finalize();
    return rc;
}
