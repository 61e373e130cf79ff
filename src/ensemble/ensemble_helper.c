/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The helper's thread. It owns the sockets, its handles of cache and shelf, and the list of states;
 * the model's thread and it share the mailbox, under its lock, and nothing else.
 *
 * A state that was made goes: storing (the model's put is under way), here, pushed, safe. One that
 * is wanted: coming, here. The server hears of each step that it counts on. A push or a fetch is
 * wholly there or not at all, whatever dies; one that fails is tried again.
 */
#include "ensemble/ensemble_helper.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { IDLE_MS = 200, BUSY_MS = 2, RETRY_NS = 500000000, GREET_NS = 1000000000 };

typedef enum place { STORING, WANTED, COMING, HERE } place;
typedef enum safety { UNSAFE, PUSHING, SAFE } safety;

typedef struct state {
    uint32_t cycle, member;
    place place;
    safety safety;
    bool made;     /* by this process, which knows its weight */
    bool reported; /* the server has its weight */
    bool awaited;  /* by the model's thread */
    bool from_peer;
    double logw;
    char digest[33], peer[CRN_WIRE_TEXT + 1];
    cairn_transfer *transfer; /* put, push or fetch */
    uint64_t begun_ns, retry_ns;
    double push_s; /* that the push has taken */
} state;

/* What the model's thread says. */
typedef struct note {
    enum { MADE, NEED } kind;
    state state;
    bool again;
} note;

typedef struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    CRN_VEC(note) note; /* to the helper */
    bool ask, has_done, quit;
    crn_wire done;
    bool putting; /* the put's shelf is the helper's */
    bool over, has_task;
    crn_wire task;
    crn_buf data;
    bool ready; /* the answer to a need */
    cairn_status rc;
    char why[CRN_ERR_TEXT];
} mailbox;

struct crn_helper {
    crn_helper_setup o;
    char *cache_path, *shelf_path, host[128];
    crn_buf *fields;
    pthread_t thread;
    int wake;
    mailbox box;
    crn_link *launcher, *server;
    uint32_t incarnation;
    bool welcome;  /* the server knows what this node has */
    bool asked;    /* the server knows that the model waits */
    crn_wire busy; /* the task that the model has, or whose result is not answered */
    bool is_busy, has_done;
    crn_wire done;
    uint64_t greeted_ns;
    cairn_shelf *from, *shelf; /* pushes */
    cairn_shelf *to, *source;  /* fetches, and drops */
    CRN_VEC(state) state;
};

void crn_helper_key(uint32_t member, uint32_t node, uint32_t nnodes, char key[CRN_STATE_KEY])
{
    if (nnodes == 1)
        snprintf(key, CRN_STATE_KEY, "p%06u", member);
    else
        snprintf(key, CRN_STATE_KEY, "p%06u.%u", member, node);
}

static void key_of(const crn_helper *h, const state *st, char key[CRN_STATE_KEY])
{
    crn_helper_key(st->member, h->o.node, h->o.nnodes, key);
}

static state *find(crn_helper *h, uint32_t cycle, uint32_t member)
{
    for (size_t i = 0; i < h->state.n; i++)
        if (h->state.at[i].cycle == cycle && h->state.at[i].member == member)
            return &h->state.at[i];
    return NULL;
}

/* What was made cannot be weighed, and is as if it had never been. */
static bool has_no_weight(const state *st)
{
    return st->made && isnan(st->logw);
}

/* --- talking -------------------------------------------------------------------------------- */

static void tell(crn_helper *h, crn_wire *w, const void *data, size_t nbytes)
{
    w->study = h->o.study->id;
    w->incarnation = h->incarnation;
    w->runner = h->o.number;
    if (w->kind != CRN_WIRE_FIELDS)
        w->rank = h->o.rank;
    if (h->server)
        (void)crn_link_send(h->server, NULL, w, data, nbytes);
}

static void tell_weight(crn_helper *h, state *st, uint64_t flags)
{
    crn_wire w = {.kind = CRN_WIRE_WEIGHT, .cycle = st->cycle, .member = st->member, .more = flags};
    if (st->made)
        w.more |= CRN_WEIGHT_KNOWN;
    memcpy(&w.number, &st->logw, sizeof w.number);
    w.seconds = st->push_s;
    snprintf(w.text, sizeof w.text, "%s", st->digest);
    tell(h, &w, NULL, 0);
    st->reported = true;
}

static void tell_loaded(crn_helper *h, const state *st, uint64_t nbytes, const char *why)
{
    crn_wire w = {.kind = CRN_WIRE_LOADED,
                  .cycle = st->cycle,
                  .member = st->member,
                  .number = why != NULL,
                  .more = nbytes,
                  .seconds = st->begun_ns ? (double)(crn_now_ns() - st->begun_ns) / 1e9 : 0};
    snprintf(w.text, sizeof w.text, "%s", why ? why : st->from_peer ? "peer" : "");
    tell(h, &w, NULL, 0);
}

static const char no_digest[] = "00000000000000000000000000000000";

static bool is_offered(const state *st)
{
    return (st->place == HERE || st->place == STORING) && !has_no_weight(st);
}

/* What this node has, and what the model is at. Said again until it is answered. */
static void tell_have(crn_helper *h)
{
    crn_wire w = {.kind = CRN_WIRE_HAVE, .number = h->o.nnodes, .more = h->is_busy};
    crn_buf b = {0};
    uint32_t n = 0;
    if (h->is_busy) {
        w.cycle = h->busy.cycle;
        w.member = h->busy.member;
        w.attempt = h->busy.attempt;
    }
    snprintf(w.text, sizeof w.text, "%s:%.300s", h->host, h->cache_path);
    for (size_t i = 0; i < h->state.n; i++)
        n += is_offered(&h->state.at[i]);
    crn_put_u32(&b, n);
    for (size_t i = 0; i < h->state.n; i++) {
        const state *st = &h->state.at[i];
        if (!is_offered(st))
            continue;
        crn_put_u32(&b, st->cycle);
        crn_put_u32(&b, st->member);
        crn_put_u32(&b, st->made ? CRN_HAVE_MADE : 0);
        crn_put_bytes(&b, st->digest[0] ? st->digest : no_digest, 32);
    }
    if (crn_buf_status(&b) == CAIRN_OK)
        tell(h, &w, b.at, b.n);
    crn_buf_done(&b);
    h->greeted_ns = crn_now_ns();
}

/* --- the server ----------------------------------------------------------------------------- */

static void register_ranks(crn_helper *h)
{
    for (uint32_t k = 0; h->fields && k < h->o.nranks; k++) {
        crn_wire w = {.kind = CRN_WIRE_FIELDS, .rank = k, .number = h->o.nranks};
        tell(h, &w, h->fields[k].at, h->fields[k].n);
    }
}

/* Weights, and what is safe, that the last server may not have written down. */
static void repeat_weights(crn_helper *h)
{
    for (size_t i = 0; i < h->state.n; i++) {
        state *st = &h->state.at[i];
        if (st->place == HERE && (st->reported || st->safety == SAFE))
            tell_weight(h, st, st->safety == SAFE ? CRN_WEIGHT_SAFE : 0);
    }
}

static void connect_server(crn_helper *h, const crn_wire *serve)
{
    char name[64];
    crn_link_drop(h->server);
    h->server = NULL;
    h->incarnation = serve->incarnation;
    h->welcome = h->asked = false;
    if (!serve->text[0])
        return;
    snprintf(name, sizeof name, "%s.%u", h->o.job, h->o.rank);
    if (crn_link_connect(&h->o.study->keys, serve->text, name, &h->server) < 0)
        return;
    register_ranks(h);
    tell_have(h);
}

static void hear_launcher(crn_helper *h)
{
    crn_letter m = {0};
    while (crn_link_take(h->launcher, &m, NULL) == CAIRN_OK) {
        const crn_wire *w = &m.wire;
        if (w->study == h->o.study->id && w->kind == CRN_WIRE_STOP) {
            pthread_mutex_lock(&h->box.lock);
            h->box.over = true;
            pthread_cond_broadcast(&h->box.changed);
            pthread_mutex_unlock(&h->box.lock);
        } else if (w->study == h->o.study->id && w->kind == CRN_WIRE_SERVE &&
                   w->incarnation > h->incarnation)
            connect_server(h, w);
        crn_letter_done(&m);
    }
}

static void want(crn_helper *h, uint32_t cycle, uint32_t member, const char *peer)
{
    state st = {.cycle = cycle, .member = member, .place = WANTED, .safety = SAFE, .logw = NAN};
    const state *there = find(h, cycle, member);
    if (there && there->place == HERE)
        tell_loaded(h, there, 0, NULL);
    if (there)
        return;
    snprintf(st.peer, sizeof st.peer, "%s", peer);
    (void)crn_vec_push(&h->state, st);
}

static void remove_state(const crn_helper *h, const state *st)
{
    char key[CRN_STATE_KEY];
    key_of(h, st, key);
    (void)!cairn_state_drop(h->to, key, st->cycle);
}

/* Remove a state from the cache. What is needed now is not. */
static void evict(crn_helper *h, uint32_t cycle, uint32_t member)
{
    state *st = find(h, cycle, member);
    if (!st || st->place != HERE || st->safety == PUSHING || st->awaited)
        return;
    remove_state(h, st);
    *st = h->state.at[--h->state.n];
}

static void take_task(crn_helper *h, const crn_letter *m)
{
    mailbox *box = &h->box;
    pthread_mutex_lock(&box->lock);
    crn_buf_done(&box->data);
    crn_put_bytes(&box->data, m->data, m->nbytes);
    box->task = m->wire;
    box->has_task = true;
    h->busy = m->wire;
    h->is_busy = true;
    h->has_done = false; /* answered */
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

static void hear_server(crn_helper *h)
{
    crn_letter m = {0};
    while (h->server && crn_link_take(h->server, &m, NULL) == CAIRN_OK) {
        const crn_wire *w = &m.wire;
        if (w->study == h->o.study->id && w->incarnation == h->incarnation) {
            if (w->kind == CRN_WIRE_TASK)
                take_task(h, &m);
            else if (w->kind == CRN_WIRE_LOAD)
                want(h, w->cycle, w->member, w->text);
            else if (w->kind == CRN_WIRE_EVICT)
                evict(h, w->cycle, w->member);
            else if (w->kind == CRN_WIRE_HAVE && !h->welcome) {
                h->welcome = true;
                repeat_weights(h);
            }
        }
        crn_letter_done(&m);
    }
}

/* --- states --------------------------------------------------------------------------------- */

static void answer_need(crn_helper *h, state *st, cairn_status rc, const char *why)
{
    mailbox *box = &h->box;
    if (!st->awaited)
        return;
    st->awaited = false;
    pthread_mutex_lock(&box->lock);
    box->ready = true;
    box->rc = rc;
    snprintf(box->why, sizeof box->why, "%s", why);
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

static void put_ended(crn_helper *h)
{
    pthread_mutex_lock(&h->box.lock);
    h->box.putting = false;
    pthread_cond_broadcast(&h->box.changed);
    pthread_mutex_unlock(&h->box.lock);
}

static void note_digest(crn_helper *h, cairn_shelf *shelf, state *st)
{
    char key[CRN_STATE_KEY];
    cairn_state_info info = {.struct_bytes = sizeof info};
    key_of(h, st, key);
    if (cairn_state_describe(shelf, key, st->cycle, &info, NULL, NULL) == CAIRN_OK)
        memcpy(st->digest, info.digest, sizeof st->digest);
}

/* The model's put: has it come to its end? False: there is no state. */
static bool mind_put(crn_helper *h, state *st)
{
    if (st->transfer && !cairn_transfer_done(st->transfer, NULL))
        return true;
    cairn_status rc = CAIRN_OK;
    if (st->transfer) {
        rc = (cairn_status)cairn_transfer_wait(st->transfer);
        st->transfer = NULL;
        put_ended(h);
    }
    if (rc < 0) {
        tell_weight(h, st, CRN_WEIGHT_LOST);
        return false;
    }
    st->place = HERE;
    if (has_no_weight(st)) {
        remove_state(h, st);
        return false;
    }
    note_digest(h, h->from, st);
    if (h->o.study->particle.early && st->made)
        tell_weight(h, st, 0);
    return true;
}

static void begin_push(crn_helper *h, state *st)
{
    char key[CRN_STATE_KEY];
    if (crn_now_ns() < st->retry_ns)
        return;
    key_of(h, st, key);
    st->begun_ns = crn_now_ns();
    if (cairn_state_push(h->from, key, st->cycle, h->shelf, h->o.study->particle.limit,
                         &st->transfer) == CAIRN_OK &&
        st->transfer)
        st->safety = PUSHING;
    else
        st->retry_ns = crn_now_ns() + RETRY_NS;
}

/* The shelf has the member by another runner, put from other pieces: that one counts. */
static bool yield_to_other(crn_helper *h, state *st)
{
    note_digest(h, h->shelf, st);
    tell_weight(h, st, CRN_WEIGHT_SAFE);
    tell_loaded(h, st, 0, "another runner's state is on the shelf");
    st->safety = SAFE;
    st->awaited = false;
    evict(h, st->cycle, st->member);
    return true;
}

/* False: the list has changed. */
static bool mind_push(crn_helper *h, state *st)
{
    if (!cairn_transfer_done(st->transfer, NULL))
        return true;
    cairn_status rc = (cairn_status)cairn_transfer_wait(st->transfer);
    st->transfer = NULL;
    if (rc == CAIRN_EMISMATCH)
        return !yield_to_other(h, st);
    st->safety = rc < 0 ? UNSAFE : SAFE;
    st->push_s = (double)(crn_now_ns() - st->begun_ns) / 1e9;
    st->retry_ns = crn_now_ns() + RETRY_NS;
    if (rc >= 0)
        tell_weight(h, st, CRN_WEIGHT_SAFE);
    else {
        crn_wire w = {
            .kind = CRN_WIRE_LOADED, .cycle = st->cycle, .member = st->member, .number = 2};
        snprintf(w.text, sizeof w.text, "%.400s", cairn_error_text());
        tell(h, &w, NULL, 0);
    }
    return true;
}

/* The cache of another runner on this node; NULL: it cannot be opened. */
static cairn_shelf *open_peer(const crn_helper *h, const state *st)
{
    const size_t n = strlen(h->host);
    cairn_shelf *peer = NULL;
    if (strncmp(st->peer, h->host, n) != 0 || st->peer[n] != ':' ||
        cairn_shelf_open(st->peer + n + 1, NULL, &peer) < 0)
        return NULL;
    return peer;
}

/* From a peer's cache at once, as it is near; false: it must come from the shelf. */
static bool fetch_from_peer(crn_helper *h, state *st, const char *key)
{
    cairn_transfer *t = NULL;
    cairn_shelf *peer = st->peer[0] ? open_peer(h, st) : NULL;
    bool got = false;
    if (peer && cairn_state_fetch(h->to, key, st->cycle, peer, 0, &t) == CAIRN_OK && t)
        got = cairn_transfer_wait(t) >= 0;
    cairn_shelf_close(peer);
    st->peer[0] = 0;
    st->from_peer = got;
    return got;
}

static void loaded(crn_helper *h, state *st, uint64_t nbytes)
{
    st->place = HERE;
    note_digest(h, h->to, st);
    tell_loaded(h, st, nbytes, NULL);
    answer_need(h, st, CAIRN_OK, "");
}

/* A fetch has failed: it is tried again, unless the state is not there. False: the list has
 * changed. */
static bool fetch_failed(crn_helper *h, state *st, cairn_status rc)
{
    st->place = WANTED;
    st->retry_ns = crn_now_ns() + RETRY_NS;
    if (rc != CAIRN_ENOTFOUND && rc != CAIRN_ECORRUPT)
        return true;
    tell_loaded(h, st, 0, cairn_error_text());
    answer_need(h, st, rc, cairn_error_text());
    *st = h->state.at[--h->state.n];
    return false;
}

static bool begin_fetch(crn_helper *h, state *st)
{
    char key[CRN_STATE_KEY];
    if (crn_now_ns() < st->retry_ns)
        return true;
    key_of(h, st, key);
    st->begun_ns = crn_now_ns();
    if (fetch_from_peer(h, st, key)) {
        loaded(h, st, 0);
        return true;
    }
    int rc = cairn_state_fetch(h->to, key, st->cycle, h->source, h->o.study->particle.limit,
                               &st->transfer);
    if (rc < 0)
        return fetch_failed(h, st, (cairn_status)rc);
    st->place = COMING;
    return true;
}

static bool mind_fetch(crn_helper *h, state *st)
{
    uint64_t nbytes = 0;
    if (st->transfer && !cairn_transfer_done(st->transfer, &nbytes))
        return true;
    cairn_status rc = CAIRN_OK;
    if (st->transfer)
        rc = (cairn_status)cairn_transfer_wait(st->transfer);
    st->transfer = NULL;
    if (rc < 0)
        return fetch_failed(h, st, rc);
    loaded(h, st, nbytes);
    return true;
}

/* One step with a state, if there is one to take; false: the list has changed. */
static bool mind(crn_helper *h, state *st)
{
    if (st->place == STORING && !mind_put(h, st)) {
        *st = h->state.at[--h->state.n];
        return false;
    }
    if (st->place == WANTED)
        return begin_fetch(h, st);
    if (st->place == COMING)
        return mind_fetch(h, st);
    else if (st->place == HERE && st->safety == PUSHING)
        return mind_push(h, st);
    else if (st->place == HERE && st->safety == UNSAFE)
        begin_push(h, st);
    return true;
}

static void mind_all(crn_helper *h)
{
    for (size_t i = 0; i < h->state.n;)
        i += mind(h, &h->state.at[i]);
}

static bool has_work(const crn_helper *h)
{
    for (size_t i = 0; i < h->state.n; i++)
        if (h->state.at[i].place != HERE || h->state.at[i].safety != SAFE)
            return true;
    return false;
}

/* --- the mailbox ---------------------------------------------------------------------------- */

static void on_made(crn_helper *h, const note *n)
{
    state *st = find(h, n->state.cycle, n->state.member);
    if (!st) {
        (void)crn_vec_push(&h->state, n->state);
    } else if (n->state.transfer) { /* it was wanted, and is made instead */
        if (st->transfer) {
            cairn_transfer_cancel(st->transfer);
            (void)!cairn_transfer_wait(st->transfer);
        }
        *st = n->state;
    } else if (!has_no_weight(&n->state)) { /* once more: the cache has it from before */
        st->made = true;
        st->logw = n->state.logw;
        if (st->safety == SAFE || h->o.study->particle.early)
            tell_weight(h, st, st->safety == SAFE ? CRN_WEIGHT_SAFE : 0);
    }
}

static void on_need(crn_helper *h, const note *n)
{
    state *st = find(h, n->state.cycle, n->state.member);
    if (st && n->again && st->place == HERE && st->safety == SAFE) {
        remove_state(h, st);
        *st = h->state.at[--h->state.n];
        st = NULL;
    }
    if (!st) {
        want(h, n->state.cycle, n->state.member, n->state.peer);
        st = find(h, n->state.cycle, n->state.member);
    }
    if (!st)
        return;
    st->awaited = true;
    if (st->place == HERE)
        answer_need(h, st, CAIRN_OK, "");
}

static bool take_notes(crn_helper *h)
{
    mailbox *box = &h->box;
    uint64_t count;
    (void)!read(h->wake, &count, sizeof count);
    pthread_mutex_lock(&box->lock);
    const bool quit = box->quit, ask = box->ask;
    CRN_VEC(note) all = {0};
    (void)crn_vec_reserve(&all, box->note.n);
    for (size_t i = 0; i < box->note.n && all.at; i++)
        all.at[all.n++] = box->note.at[i];
    box->note.n = 0;
    if (box->has_done) {
        h->done = box->done;
        h->has_done = true;
        box->has_done = false;
        h->asked = false;
    }
    pthread_mutex_unlock(&box->lock);
    for (size_t i = 0; i < all.n; i++)
        all.at[i].kind == MADE ? on_made(h, &all.at[i]) : on_need(h, &all.at[i]);
    crn_vec_done(&all);
    if (ask && h->welcome && h->server && !h->asked && h->o.node == 0) {
        crn_wire w = {.kind = CRN_WIRE_ASK};
        if (h->has_done)
            tell(h, &h->done, NULL, 0);
        tell(h, &w, NULL, 0);
        h->asked = true;
    }
    return !quit;
}

static void *help(void *arg)
{
    crn_helper *h = arg;
    do {
        crn_link *const link[] = {h->launcher, h->server};
        crn_link_wait(link, 2, h->wake, has_work(h) ? BUSY_MS : IDLE_MS);
        hear_launcher(h);
        hear_server(h);
        mind_all(h);
        if (h->server && !h->welcome && crn_now_ns() > h->greeted_ns + GREET_NS)
            tell_have(h);
    } while (take_notes(h));
    return NULL;
}

static void wake(crn_helper *h)
{
    uint64_t one = 1;
    (void)!write(h->wake, &one, sizeof one);
}

static void send_note(crn_helper *h, const note *n)
{
    pthread_mutex_lock(&h->box.lock);
    (void)crn_vec_push(&h->box.note, *n);
    pthread_mutex_unlock(&h->box.lock);
    wake(h);
}

void crn_helper_made(crn_helper *h, uint32_t cycle, uint32_t member, double logw,
                     cairn_transfer *put)
{
    note n = {.kind = MADE,
              .state = {.cycle = cycle,
                        .member = member,
                        .place = STORING,
                        .made = true,
                        .logw = logw,
                        .transfer = put}};
    pthread_mutex_lock(&h->box.lock);
    h->box.putting = put != NULL;
    pthread_mutex_unlock(&h->box.lock);
    send_note(h, &n);
}

void crn_helper_await_put(crn_helper *h)
{
    pthread_mutex_lock(&h->box.lock);
    while (h->box.putting)
        pthread_cond_wait(&h->box.changed, &h->box.lock);
    pthread_mutex_unlock(&h->box.lock);
}

void crn_helper_ask(crn_helper *h, const crn_wire *done)
{
    pthread_mutex_lock(&h->box.lock);
    if (done) {
        h->box.done = *done;
        h->box.has_done = true;
    }
    h->box.ask = true;
    pthread_mutex_unlock(&h->box.lock);
    wake(h);
}

bool crn_helper_await_task(crn_helper *h, crn_wire *ret, crn_buf *data)
{
    mailbox *box = &h->box;
    pthread_mutex_lock(&box->lock);
    while (!box->has_task && !box->over)
        pthread_cond_wait(&box->changed, &box->lock);
    const bool over = box->over;
    if (!over) {
        *ret = box->task;
        *data = box->data;
        box->data = (crn_buf){0};
        box->has_task = box->ask = false;
    }
    pthread_mutex_unlock(&box->lock);
    return !over;
}

cairn_status crn_helper_need(crn_helper *h, uint32_t cycle, uint32_t member, const char *peer,
                             bool again)
{
    mailbox *box = &h->box;
    note n = {.kind = NEED, .state = {.cycle = cycle, .member = member}, .again = again};
    snprintf(n.state.peer, sizeof n.state.peer, "%s", peer);
    send_note(h, &n);
    pthread_mutex_lock(&box->lock);
    while (!box->ready && !box->over)
        pthread_cond_wait(&box->changed, &box->lock);
    cairn_status rc = box->ready ? box->rc : CAIRN_ECANCELED;
    if (rc < 0)
        rc = crn_fail(rc, "%s", box->ready ? box->why : "the study is over");
    box->ready = false;
    pthread_mutex_unlock(&box->lock);
    return rc;
}

/* --- beginning and end ---------------------------------------------------------------------- */

static cairn_status open_shelf(const char *path, cairn_shelf **ret)
{
    int rc = cairn_shelf_open(path, NULL, ret);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    return CAIRN_OK;
}

static cairn_status open_all(crn_helper *h)
{
    CRN_TRY(open_shelf(h->cache_path, &h->from));
    CRN_TRY(open_shelf(h->cache_path, &h->to));
    CRN_TRY(open_shelf(h->shelf_path, &h->shelf));
    return open_shelf(h->shelf_path, &h->source);
}

/* States that an earlier runner has left in the cache: those that are not safe are pushed. */
static int take_left(void *arg, const cairn_state_info *info)
{
    crn_helper *h = arg;
    char key[CRN_STATE_KEY];
    state st = {.cycle = (uint32_t)info->version, .place = HERE, .logw = NAN};
    st.member = (uint32_t)strtoul(info->key + 1, NULL, 10);
    key_of(h, &st, key);
    if (strcmp(key, info->key) != 0)
        return 0;
    memcpy(st.digest, info->digest, sizeof st.digest);
    if (cairn_state_has(h->shelf, key, info->version) == CAIRN_OK)
        st.safety = SAFE;
    return crn_vec_push(&h->state, st) < 0;
}

static cairn_status connect_launcher(crn_helper *h)
{
    char *address, name[64];
    CRN_TRY(crn_study_read(h->o.study->dir, "launcher", &address));
    address[strcspn(address, "\n")] = 0;
    if (h->o.node == 0)
        snprintf(name, sizeof name, "%s", h->o.job);
    else
        snprintf(name, sizeof name, "%s.%u", h->o.job, h->o.node);
    cairn_status rc = crn_link_connect(&h->o.study->keys, address, name, &h->launcher);
    free(address);
    CRN_TRY(rc);
    crn_wire w = {.kind = CRN_WIRE_HELLO, .study = h->o.study->id, .runner = h->o.number};
    snprintf(w.text, sizeof w.text, "%s", h->o.job);
    (void)crn_link_send(h->launcher, NULL, &w, NULL, 0);
    return CAIRN_OK;
}

static cairn_status copy_setup(crn_helper *h)
{
    CRN_TRY(crn_strdup(h->o.cache, &h->cache_path));
    CRN_TRY(crn_study_path(h->o.study, "shelf", &h->shelf_path));
    (void)gethostname(h->host, sizeof h->host - 1);
    if (h->o.node > 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&h->fields, h->o.nranks));
    for (uint32_t k = 0; k < h->o.nranks; k++) {
        crn_put_bytes(&h->fields[k], h->o.fields[k].at, h->o.fields[k].n);
        CRN_TRY(crn_buf_status(&h->fields[k]));
    }
    return CAIRN_OK;
}

static cairn_status start(crn_helper *h)
{
    CRN_TRY(copy_setup(h));
    CRN_TRY(open_all(h));
    int rc = cairn_state_list(h->to, "p", true, 0, take_left, h);
    CRN_FAIL_IF(rc != CAIRN_OK, rc < 0 ? (cairn_status)rc : CAIRN_ENOMEM,
                "cannot list the cache '%s': %s", h->cache_path, cairn_error_text());
    CRN_TRY(connect_launcher(h));
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wake < 0)
        return crn_fail_sys(errno, "cannot make an event");
    int failed = pthread_create(&h->thread, NULL, help, h);
    if (failed)
        return crn_fail_sys(failed, "cannot start a thread");
    return CAIRN_OK;
}

static void helper_free(crn_helper *h)
{
    for (size_t i = 0; i < h->state.n; i++)
        if (h->state.at[i].transfer) {
            cairn_transfer_cancel(h->state.at[i].transfer);
            (void)!cairn_transfer_wait(h->state.at[i].transfer);
        }
    crn_vec_done(&h->state);
    cairn_shelf_close(h->from);
    cairn_shelf_close(h->shelf);
    cairn_shelf_close(h->to);
    cairn_shelf_close(h->source);
    crn_link_free(h->server);
    crn_link_free(h->launcher);
    for (uint32_t k = 0; h->fields && k < h->o.nranks; k++)
        crn_buf_done(&h->fields[k]);
    free(h->fields);
    crn_vec_done(&h->box.note);
    crn_buf_done(&h->box.data);
    pthread_mutex_destroy(&h->box.lock);
    pthread_cond_destroy(&h->box.changed);
    if (h->wake >= 0)
        close(h->wake);
    free(h->cache_path);
    free(h->shelf_path);
    free(h);
}

cairn_status crn_helper_start(const crn_helper_setup *setup, crn_helper **ret)
{
    crn_helper *h;
    CRN_TRY(crn_alloc(&h, 1));
    h->o = *setup;
    h->wake = -1;
    pthread_mutex_init(&h->box.lock, NULL);
    pthread_cond_init(&h->box.changed, NULL);
    cairn_status rc = start(h);
    if (rc < 0) {
        helper_free(h);
        return rc;
    }
    *ret = h;
    return CAIRN_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void crn_helper_stop(crn_helper *h, bool over)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->box.lock);
    h->box.quit = true;
    pthread_mutex_unlock(&h->box.lock);
    wake(h);
    pthread_join(h->thread, NULL);
    if (h->server && !over && h->o.node == 0) {
        crn_wire w = {.kind = CRN_WIRE_LEAVE};
        tell(h, &w, NULL, 0);
    }
    char *cache = NULL;
    if (over)
        (void)crn_strdup(h->cache_path, &cache);
    helper_free(h);
    if (cache) /* what it had is on the shelf, or is not needed */
        (void)nftw(cache, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(cache);
}
