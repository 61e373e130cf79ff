/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The method of particle filters: states stay in the runners' caches and on the shelf, and the
 * server gets weights alone. The schedule (particle/particle.h) says who propagates what, loads
 * what ahead, and removes what. All that it is told is in the journal before anybody hears of it.
 */
#include "ensemble/ensemble_particle_server.h"

#include <inttypes.h>
#include <math.h>

enum { RETURN_NS = 5 * 1000000000LL };

crn_particles *crn_particles_of(const crn_server *s)
{
    return s->mine;
}

/* --- runners -------------------------------------------------------------------------------- */

static crn_peer *find_peer(const crn_particles *p, uint32_t number)
{
    for (size_t i = 0; i < p->peer.n; i++)
        if (p->peer.at[i]->number == number)
            return p->peer.at[i];
    return NULL;
}

static void peer_free(crn_peer *peer)
{
    crn_vec_done(&peer->root);
    crn_vec_done(&peer->offer);
    crn_vec_done(&peer->assigned);
    free(peer);
}

cairn_status crn_particles_expect(crn_particles *p, uint32_t number, crn_peer **ret)
{
    crn_peer *peer = find_peer(p, number);
    if (!peer) {
        CRN_TRY(crn_alloc(&peer, 1));
        peer->number = number;
        peer->expected_ns = crn_now_ns();
        cairn_status rc = crn_vec_push(&p->peer, peer);
        if (rc < 0) {
            free(peer);
            return rc;
        }
        CRN_TRY(crn_sched_join(p->sched, &peer->sched));
    }
    *ret = peer;
    return CAIRN_OK;
}

static void to_nodes(crn_server *s, const crn_peer *peer, const crn_wire *w)
{
    for (size_t i = 0; i < peer->root.n; i++)
        crn_server_to_rank(s, peer->row, peer->root.at[i], w, NULL, 0);
}

static void order(crn_server *s, const crn_peer *peer, crn_wire_kind kind, crn_particle x,
                  const char *text)
{
    crn_wire w = crn_server_wire(s, kind);
    w.cycle = (uint32_t)x.cycle;
    w.member = x.member;
    snprintf(w.text, sizeof w.text, "%s", text);
    to_nodes(s, peer, &w);
}

/* Another runner of the same host that has a state in its cache. */
static const char *cache_of_another(const crn_particles *p, const crn_peer *peer, crn_particle x)
{
    uint32_t runner;
    const size_t host = strcspn(peer->cache, ":");
    if (!p->s->study->particle.peers || peer->nnodes != 1 ||
        !crn_sched_holder(p->sched, x, peer->sched, &runner))
        return "";
    for (size_t i = 0; i < p->peer.n; i++) {
        const crn_peer *other = p->peer.at[i];
        if (other->sched == runner && other->row && other->nnodes == 1 &&
            strncmp(other->cache, peer->cache, host + 1) == 0)
            return other->cache;
    }
    return "";
}

/* What the runner's cache should lose, and what it should get before it asks for it. */
static void mind_cache(crn_particles *p, crn_peer *peer)
{
    crn_particle x;
    if (!peer->row)
        return;
    while (crn_sched_evict(p->sched, peer->sched, &x))
        order(p->s, peer, CRN_WIRE_EVICT, x, "");
    if (!peer->loads && crn_sched_foretell(p->sched, peer->sched, &x)) {
        peer->loading = x;
        peer->loads = true;
        order(p->s, peer, CRN_WIRE_LOAD, x, cache_of_another(p, peer, x));
    }
}

static cairn_status join(crn_server *s, crn_runner_row *r)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer;
    CRN_TRY(crn_particles_expect(p, r->number, &peer));
    peer->row = r;
    peer->nhave = 0;
    r->mine = peer;
    return CAIRN_OK;
}

/* --- what runners have ---------------------------------------------------------------------- */

static crn_digest mixed(crn_digest a, const crn_digest *b)
{
    for (size_t i = 0; i < sizeof a.b; i++)
        a.b[i] ^= b->b[i];
    return a;
}

static cairn_status take_offer(crn_peer *peer, const crn_offer *o)
{
    for (size_t i = 0; i < peer->offer.n; i++) {
        crn_offer *x = &peer->offer.at[i];
        if (x->cycle == o->cycle && x->member == o->member) {
            x->nnodes++;
            x->made &= o->made;
            x->digest = mixed(x->digest, &o->digest);
            return CAIRN_OK;
        }
    }
    return crn_vec_push(&peer->offer, *o);
}

static cairn_status read_offers(crn_particles *p, crn_peer *peer, const crn_letter *m)
{
    crn_cursor c = crn_cursor_of(m->data, m->nbytes);
    const uint32_t n = crn_get_u32(&c);
    for (uint32_t i = 0; i < n && !c.failed; i++) {
        char text[CRN_DIGEST_TEXT] = "";
        crn_offer o = {.nnodes = 1, .cycle = crn_get_u32(&c), .member = crn_get_u32(&c)};
        o.made = (crn_get_u32(&c) & CRN_HAVE_MADE) != 0;
        crn_get_bytes(&c, text, CRN_DIGEST_TEXT - 1);
        crn_cursor_expect(&c, crn_digest_parse_text(text, &o.digest));
        if (!c.failed && o.member < p->s->nmembers)
            CRN_TRY(take_offer(peer, &o));
    }
    p->s->nbad += c.failed;
    return CAIRN_OK;
}

/* Is it the state that the journal knows? Only then is it believed. */
static bool is_known(const crn_particles *p, const crn_offer *o)
{
    const crn_particle_row *row = &p->row[o->member];
    if (o->cycle == p->s->cycle)
        return row->has_digest && crn_digest_equal(&row->digest, &o->digest);
    return o->cycle + 1 == p->s->cycle && p->had[o->member] &&
           crn_digest_equal(&p->was[o->member], &o->digest);
}

static cairn_status believe(crn_particles *p, crn_peer *peer, const crn_offer *o)
{
    const crn_particle x = {o->cycle, o->member};
    if (p->s->phase != CRN_PHASE_CYCLE)
        return CAIRN_OK;
    const bool fresh = o->cycle == p->s->cycle && o->made; /* its weight will come */
    if (o->nnodes != peer->nnodes || (!fresh && !is_known(p, o))) {
        order(p->s, peer, CRN_WIRE_EVICT, x, "");
        return CAIRN_OK;
    }
    if (o->cycle == p->s->cycle)
        return crn_sched_finished(p->sched, peer->sched, o->member);
    return crn_sched_offer(p->sched, peer->sched, x);
}

static bool has_offer(const crn_peer *peer, uint32_t cycle, uint32_t member)
{
    for (size_t i = 0; i < peer->offer.n; i++)
        if (peer->offer.at[i].cycle == cycle && peer->offer.at[i].member == member)
            return true;
    return false;
}

/* Tasks of an earlier server of which the runner knows nothing. */
static cairn_status take_back(crn_particles *p, crn_peer *peer)
{
    const crn_runner_row *r = peer->row;
    for (size_t i = 0; i < peer->assigned.n; i++) {
        const uint32_t m = peer->assigned.at[i];
        if (has_offer(peer, p->s->cycle, m) || (r->busy && r->task.member == m))
            continue;
        CRN_TRY(crn_sched_failed(p->sched, peer->sched, m));
        CRN_TRY(crn_schedule_failed(p->s, m, r->number, CRN_CAUSE_LOST, "lost with the server"));
    }
    peer->assigned.n = 0;
    return CAIRN_OK;
}

static cairn_status welcome(crn_server *s, const crn_runner_row *r, uint32_t rank)
{
    const crn_wire w = crn_server_wire(s, CRN_WIRE_HAVE);
    crn_server_to_rank(s, r, rank, &w, NULL, 0);
    return CAIRN_OK;
}

/* A runner that is at a task of an earlier server. */
static cairn_status on_busy(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    const crn_peer *peer = r->mine;
    if (w->cycle != s->cycle || w->member >= s->nmembers || s->phase == CRN_PHASE_OVER)
        return CAIRN_OK;
    r->task = *w;
    r->busy = true;
    r->begun_ns = crn_now_ns();
    if (s->phase != CRN_PHASE_CYCLE || s->member[w->member].state == CRN_MEMBER_DONE)
        return CAIRN_OK;
    s->member[w->member].state = CRN_MEMBER_RUNNING;
    return crn_sched_resume(crn_particles_of(s)->sched, peer->sched, w->member);
}

static cairn_status on_have(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    const crn_wire *w = &m->wire;
    if (w->number == 0 || w->number > r->nranks || w->rank >= r->nranks) {
        s->nbad++;
        return CAIRN_OK;
    }
    for (size_t i = 0; i < peer->root.n; i++)
        if (peer->root.at[i] == w->rank)
            return welcome(s, r, w->rank); /* it was said again before the answer came */
    CRN_TRY(crn_vec_push(&peer->root, w->rank));
    peer->nnodes = (uint32_t)w->number;
    peer->nhave++;
    if (w->rank == 0) {
        snprintf(peer->cache, sizeof peer->cache, "%s", w->text);
        if (w->more)
            CRN_TRY(on_busy(s, r, w));
    }
    CRN_TRY(read_offers(p, peer, m));
    if (peer->nhave == peer->nnodes) {
        for (size_t i = 0; i < peer->offer.n; i++)
            CRN_TRY(believe(p, peer, &peer->offer.at[i]));
        CRN_TRY(take_back(p, peer));
        peer->offer.n = 0;
    }
    return welcome(s, r, w->rank);
}

/* --- tasks ---------------------------------------------------------------------------------- */

/* What makes a copy differ from its parent. */
static crn_particle_task moved(const crn_particles *p, const crn_task *t)
{
    const crn_study *study = p->s->study;
    crn_particle_task x = {.parent = t->parent};
    const bool copy = t->member > 0 && p->parent[t->member - 1] == t->parent;
    if (p->s->cycle == 1) {
        x.purpose = CRN_FOR_INITIAL;
        x.deviation = study->spread;
    } else if (copy && p->shift) {
        x.nrows = p->s->layout.nrows;
        x.row = p->shift + (size_t)t->member * x.nrows;
    } else if (copy && study->particle.perturb > 0) {
        x.purpose = CRN_FOR_COPY;
        x.deviation = study->particle.perturb;
    }
    return x;
}

static cairn_status send_task(crn_particles *p, crn_peer *peer, const crn_task *t)
{
    crn_server *s = p->s;
    crn_member_row *m = &s->member[t->member];
    crn_wire w = crn_server_wire(s, CRN_WIRE_TASK);
    crn_buf b = {0};
    const crn_particle_task x = moved(p, t);
    m->state = CRN_MEMBER_RUNNING;
    s->nrepeated += m->attempt > 0;
    m->copies++;
    w.member = t->member;
    w.attempt = ++m->attempt;
    w.number = s->study->steps;
    w.more = s->study->spin + (s->cycle - 1) * s->study->steps;
    if (t->load)
        snprintf(w.text, sizeof w.text, "%s",
                 cache_of_another(p, peer, (crn_particle){s->cycle - 1, t->parent}));
    CRN_TRY(crn_dynamic_task(s, &w));
    CRN_TRY(crn_particles_note_task(p, t->member, w.attempt, peer->number));
    crn_particle_task_put(&b, &x);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        crn_server_task_with(s, peer->row, &w, b.at, b.n);
    crn_buf_done(&b);
    return rc;
}

static cairn_status give(crn_server *s, crn_runner_row *r)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    crn_task t;
    if (peer->nhave < peer->nnodes || peer->nnodes == 0)
        return CAIRN_OK;
    cairn_status rc = crn_sched_next(p->sched, peer->sched, &t);
    if (rc != CAIRN_OK)
        return rc < 0 ? rc : CAIRN_OK;
    const uint64_t now = crn_now_ns();
    if (peer->idle_ns > 0)
        p->idle_ns += now - peer->idle_ns;
    peer->idle_ns = 0;
    CRN_TRY(send_task(p, peer, &t));
    crn_study_event(s->study, "task", "{s:i,s:i,s:i,s:i,s:o,s:s,s:b,s:b}", "cycle", s->cycle,
                    "member", t.member, "parent", t.parent, "attempt", s->member[t.member].attempt,
                    "runner", json_sprintf("r%u", r->number), "from", t.load ? "storage" : "cache",
                    "stolen", t.stolen, "again", t.again);
    mind_cache(p, peer);
    return CAIRN_OK;
}

/* --- members that fail ---------------------------------------------------------------------- */

/* A member's task has ended without a result; when its attempts are used up it has the weight 0,
 * and resampling replaces it, unless the study is to stop. */
static cairn_status failed(crn_particles *p, uint32_t member, uint32_t runner, crn_cause cause,
                           const char *why)
{
    crn_server *s = p->s;
    CRN_TRY(crn_schedule_failed(s, member, runner, cause, why));
    CRN_TRY(crn_particles_note_failed(p, member));
    if (s->member[member].state != CRN_MEMBER_FAILED || p->row[member].gave_up)
        return CAIRN_OK;
    CRN_TRY(crn_particles_note_given_up(p, member));
    p->row[member].gave_up = true;
    CRN_TRY(crn_sched_weight(p->sched, member, -INFINITY));
    CRN_TRY(crn_sched_safe(p->sched, member));
    crn_study_event(s->study, "given_up", "{s:i,s:i,s:s}", "cycle", s->cycle, "member", member,
                    "why", why);
    return CAIRN_OK;
}

static cairn_status lose(crn_server *s, crn_runner_row *r, const char *why)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    const bool matters = r->busy && r->task.cycle == s->cycle && s->phase == CRN_PHASE_CYCLE;
    const uint32_t member = r->task.member;
    if (!peer)
        return CAIRN_OK;
    CRN_TRY(crn_sched_leave(p->sched, peer->sched));
    for (size_t i = 0; i < p->peer.n; i++)
        if (p->peer.at[i] == peer)
            p->peer.at[i] = p->peer.at[--p->peer.n];
    peer_free(peer);
    r->mine = NULL;
    return matters ? failed(p, member, r->number, r->cause, why) : CAIRN_OK;
}

static cairn_status forget_expected(crn_particles *p, crn_peer *peer, const char *why)
{
    cairn_status rc = crn_sched_leave(p->sched, peer->sched);
    for (size_t i = 0; rc == CAIRN_OK && i < peer->assigned.n; i++)
        rc = failed(p, peer->assigned.at[i], peer->number, CRN_CAUSE_LOST, why);
    for (size_t i = 0; i < p->peer.n; i++)
        if (p->peer.at[i] == peer)
            p->peer.at[i] = p->peer.at[--p->peer.n];
    peer_free(peer);
    return rc;
}

static cairn_status gone(crn_server *s, uint32_t number, const char *why)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = find_peer(p, number);
    return peer && !peer->row ? forget_expected(p, peer, why) : CAIRN_OK;
}

static void overdue(crn_server *s, uint32_t member)
{
    (void)crn_sched_overdue(crn_particles_of(s)->sched, member);
}

/* --- results -------------------------------------------------------------------------------- */

static cairn_status on_done(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    if (s->phase == CRN_PHASE_FIRST && w->cycle == 0) { /* its state will be announced when safe */
        CRN_FAIL_IF(w->number != CRN_DONE_WELL, CAIRN_EPEER, "the model's first state: %s",
                    w->text);
        p->first_runner = r->number;
        return CAIRN_OK;
    }
    r->busy = false;
    peer->idle_ns = crn_now_ns();
    if (w->cycle != s->cycle || w->member >= s->nmembers || s->phase != CRN_PHASE_CYCLE) {
        s->nstale++;
        return CAIRN_OK;
    }
    p->waited_ns += w->more;
    if (w->number != CRN_DONE_WELL) {
        CRN_TRY(crn_sched_failed(p->sched, peer->sched, w->member));
        return failed(p, w->member, r->number,
                      w->number == CRN_DONE_REFUSED ? CRN_CAUSE_REFUSED : CRN_CAUSE_LOST, w->text);
    }
    s->member[w->member].copies -= s->member[w->member].copies > 0;
    CRN_TRY(crn_sched_finished(p->sched, peer->sched, w->member));
    crn_schedule_took(s, w->seconds);
    p->busy_s += w->seconds;
    crn_study_event(s->study, "done", "{s:i,s:i,s:o,s:o,s:o}", "cycle", s->cycle, "member",
                    w->member, "runner", json_sprintf("r%u", r->number), "seconds",
                    crn_study_real(w->seconds), "waited", crn_study_real((double)w->more / 1e9));
    mind_cache(p, peer);
    return CAIRN_OK;
}

/* All nodes of the runner have pushed their share. */
static bool is_pushed(crn_particle_row *row, const crn_peer *peer, const crn_digest *digest)
{
    if (row->safe_runner != peer->number) {
        row->safe_runner = peer->number;
        row->nsafe = 0;
        row->pushed = (crn_digest){0};
    }
    row->pushed = mixed(row->pushed, digest);
    return ++row->nsafe == peer->nnodes;
}

static cairn_status take_weight(crn_particles *p, const crn_wire *w, double logw,
                                const crn_digest *digest)
{
    crn_particle_row *row = &p->row[w->member];
    if (isnan(logw))
        logw = -INFINITY;
    cairn_status rc = crn_sched_weight(p->sched, w->member, logw);
    if (rc != CAIRN_OK)
        return rc < 0 ? rc : CAIRN_OK;
    row->digest = *digest;
    row->has_digest = true;
    CRN_TRY(crn_particles_note_weight(p, w->member, logw, digest));
    crn_study_event(p->s->study, "weight", "{s:i,s:i,s:o,s:o,s:f}", "cycle", p->s->cycle, "member",
                    w->member, "logw", crn_study_real(logw), "runner",
                    json_sprintf("r%u", w->runner), "push", w->seconds);
    return CAIRN_OK;
}

static cairn_status take_safe(crn_particles *p, uint32_t member)
{
    cairn_status rc = crn_sched_safe(p->sched, member);
    if (rc != CAIRN_OK)
        return rc < 0 ? rc : CAIRN_OK;
    CRN_TRY(crn_particles_note_safe(p, member, &p->row[member].digest));
    p->s->member[member].state = CRN_MEMBER_DONE;
    p->s->ndone++;
    return CAIRN_OK;
}

static cairn_status on_weight(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    crn_digest digest = {0};
    double logw;
    if (w->cycle != s->cycle || w->member >= s->nmembers ||
        (w->text[0] && !crn_digest_parse_text(w->text, &digest))) {
        s->nstale++;
        return CAIRN_OK;
    }
    crn_particle_row *row = &p->row[w->member];
    const bool pushed = (w->more & CRN_WEIGHT_SAFE) && is_pushed(row, peer, &digest);
    if (s->phase == CRN_PHASE_FIRST)
        return pushed ? crn_particles_first(s, &row->pushed) : CAIRN_OK;
    if (s->phase != CRN_PHASE_CYCLE)
        return CAIRN_OK;
    if (w->more & CRN_WEIGHT_LOST) {
        CRN_TRY(crn_sched_failed(p->sched, peer->sched, w->member));
        return failed(p, w->member, r->number, CRN_CAUSE_LOST, "its state could not be kept");
    }
    memcpy(&logw, &w->number, sizeof logw);
    if ((w->more & CRN_WEIGHT_KNOWN) && w->rank == 0)
        CRN_TRY(take_weight(p, w, logw, &digest));
    if ((w->more & CRN_WEIGHT_SAFE) && w->rank == 0)
        crn_dynamic_stored(s, w->cycle, w->member, w->seconds);
    if (pushed && isnan(crn_sched_weights(p->sched)[w->member])) {
        row->safe_runner = 0; /* a dead runner has left it: its weight is lost, it is made again */
    } else if (pushed) {
        row->digest = row->pushed;
        CRN_TRY(take_safe(p, w->member));
    }
    mind_cache(p, peer);
    return s->method->advance(s);
}

static cairn_status on_loaded(crn_server *s, crn_runner_row *r, const crn_wire *w)
{
    crn_particles *p = crn_particles_of(s);
    crn_peer *peer = r->mine;
    const crn_particle x = {w->cycle, w->member};
    if (w->member >= s->nmembers || w->rank != 0)
        return CAIRN_OK;
    if (w->number == 2) {
        crn_study_event(s->study, "storage", "{s:o,s:i,s:s}", "runner",
                        json_sprintf("r%u", r->number), "member", w->member, "why", w->text);
        return CAIRN_OK;
    }
    if (peer->loads && peer->loading.cycle == x.cycle && peer->loading.member == x.member)
        peer->loads = false;
    if (w->number != 0) {
        if (w->cycle == s->cycle)
            CRN_TRY(crn_sched_failed(p->sched, peer->sched, w->member));
        return CAIRN_OK;
    }
    if (x.cycle > s->cycle || s->phase != CRN_PHASE_CYCLE)
        return CAIRN_OK;
    p->loaded_nbytes += w->more;
    if (w->more > 0 && strcmp(w->text, "peer") != 0)
        crn_dynamic_loaded(s, w->cycle, w->member, w->seconds);
    p->npeer_loads += strcmp(w->text, "peer") == 0;
    if (crn_sched_loaded(p->sched, peer->sched, x) == CAIRN_OK)
        crn_study_event(s->study, "loaded", "{s:i,s:i,s:o,s:f,s:I,s:s}", "cycle", w->cycle,
                        "member", w->member, "runner", json_sprintf("r%u", r->number), "seconds",
                        w->seconds, "bytes", (json_int_t)w->more, "from",
                        w->text[0] ? "peer" : "storage");
    mind_cache(p, peer);
    return CAIRN_OK;
}

static cairn_status letter(crn_server *s, crn_runner_row *r, const crn_letter *m)
{
    switch (m->wire.kind) {
    case CRN_WIRE_HAVE:
        return on_have(s, r, m);
    case CRN_WIRE_DONE:
        CRN_TRY(on_done(s, r, &m->wire));
        return s->method->advance(s);
    case CRN_WIRE_WEIGHT:
        return on_weight(s, r, &m->wire);
    case CRN_WIRE_LOADED:
        return on_loaded(s, r, &m->wire);
    default:
        s->nbad++;
        return CAIRN_OK;
    }
}

/* --- the study ------------------------------------------------------------------------------ */

cairn_status crn_particles_create(crn_server *s)
{
    crn_particles *p;
    const uint32_t n = s->nmembers;
    CRN_TRY(crn_alloc(&p, 1));
    s->mine = p;
    p->s = s;
    p->journal.fd = -1;
    CRN_TRY(crn_alloc(&p->row, n));
    CRN_TRY(crn_alloc(&p->count, n));
    CRN_TRY(crn_alloc(&p->parent, n));
    CRN_TRY(crn_alloc(&p->was, n));
    CRN_TRY(crn_alloc(&p->had, n));
    CRN_TRY(crn_alloc(&p->carried, n));
    return crn_alloc(&p->weight, n);
}

static cairn_status open_particles(crn_server *s)
{
    char *path;
    CRN_TRY(crn_particles_create(s));
    crn_particles *p = crn_particles_of(s);
    CRN_TRY(crn_kernel_record(s));
    CRN_TRY(crn_study_path(s->study, "shelf", &path));
    int rc = cairn_shelf_open(path, NULL, &p->sweeper.shelf);
    free(path);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    return crn_particles_read_journal(p, NULL);
}

static cairn_status begin(crn_server *s)
{
    crn_particles *p = crn_particles_of(s);
    const crn_study_particle *o = &s->study->particle;
    const crn_sched_options options = {
        .capacity = o->capacity,
        .strict = o->strict,
        .certain = o->ahead && o->resampling == CRN_RESAMPLE_SYSTEMATIC && o->threshold >= 1,
        .log_max = 0,
        .seed = s->study->seed,
        .cycle = p->taken_up ? s->cycle - 1 : 0};
    CRN_TRY(crn_sched_create(s->nmembers, &options, &p->sched));
    s->phase = !p->taken_up                  ? CRN_PHASE_FIRST
               : s->cycle > s->study->cycles ? CRN_PHASE_OVER
                                             : CRN_PHASE_CYCLE;
    if (s->phase != CRN_PHASE_CYCLE)
        return CAIRN_OK;
    CRN_TRY(crn_sched_begin(p->sched, p->count));
    crn_particles_name_parents(p);
    if (p->resampled && o->jitter > 0)
        CRN_TRY(crn_particles_shift(p));
    CRN_TRY(crn_particles_take_up(p));
    crn_sweeper_start(p);
    return s->method->advance(s);
}

static cairn_status advance(crn_server *s)
{
    const crn_particles *p = crn_particles_of(s);
    if (s->phase != CRN_PHASE_CYCLE || !crn_sched_complete(p->sched))
        return CAIRN_OK;
    return crn_particles_update(s);
}

/* Runners that an earlier server knew and that do not come back. */
static cairn_status tick(crn_server *s)
{
    crn_particles *p = crn_particles_of(s);
    for (size_t i = 0; i < p->peer.n; i++) {
        crn_peer *peer = p->peer.at[i];
        if (!peer->row && crn_now_ns() > peer->expected_ns + RETURN_NS) {
            CRN_TRY(forget_expected(p, peer, "did not come back"));
            return advance(s);
        }
    }
    if (p->sweeper.works && atomic_load(&p->sweeper.ended))
        crn_sweeper_join(p);
    return crn_journal_sync(&p->journal, true);
}

static cairn_status close_particles(crn_server *s, cairn_status rc)
{
    crn_particles *p = crn_particles_of(s);
    if (!p)
        return rc;
    crn_sweeper_join(p);
    if (p->journal.fd >= 0 && rc == CAIRN_OK)
        rc = crn_journal_sync(&p->journal, false);
    return rc;
}

static void free_particles(crn_server *s)
{
    crn_particles *p = crn_particles_of(s);
    if (!p)
        return;
    crn_sweeper_join(p);
    cairn_shelf_close(p->sweeper.shelf);
    free(p->sweeper.count);
    crn_journal_close(&p->journal);
    crn_sched_free(p->sched);
    while (p->peer.n > 0)
        peer_free(p->peer.at[--p->peer.n]);
    crn_vec_done(&p->peer);
    free(p->row);
    free(p->count);
    free(p->parent);
    free(p->was);
    free(p->had);
    free(p->carried);
    free(p->weight);
    free(p->shift);
    free(p);
}

const crn_method crn_method_particle = {.open = open_particles,
                                        .begin = begin,
                                        .join = join,
                                        .give = give,
                                        .letter = letter,
                                        .lose = lose,
                                        .gone = gone,
                                        .overdue = overdue,
                                        .advance = advance,
                                        .tick = tick,
                                        .close = close_particles,
                                        .free = free_particles};
