/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_zmq.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#if CRN_WITH_ZMQ
#include <zmq.h>

#define ZMQ_CALLS(X)                                                                               \
    X(zmq_ctx_new)                                                                                 \
    X(zmq_ctx_term)                                                                                \
    X(zmq_socket)                                                                                  \
    X(zmq_close)                                                                                   \
    X(zmq_setsockopt)                                                                              \
    X(zmq_getsockopt)                                                                              \
    X(zmq_bind)                                                                                    \
    X(zmq_connect)                                                                                 \
    X(zmq_msg_init)                                                                                \
    X(zmq_msg_init_size) X(zmq_msg_data) X(zmq_msg_size) X(zmq_msg_send) X(zmq_msg_recv)           \
        X(zmq_msg_close) X(zmq_msg_more) X(zmq_poll) X(zmq_curve_keypair) X(zmq_errno)             \
            X(zmq_strerror) X(zmq_z85_decode)
#define MEMBER(name) __typeof__(name) *name;
static struct {
    ZMQ_CALLS(MEMBER)
} lib;
#define NAME(name) #name,
static const char *const names[] = {ZMQ_CALLS(NAME) NULL};
static crn_library library = {CRN_ZMQ_LIBRARY, names, (void **)&lib, PTHREAD_MUTEX_INITIALIZER,
                              false};

enum { LINGER_MS = 2000, FRAMES_MAX = 3, BEAT_MS = 5000 };

struct crn_link {
    void *context, *socket;
    bool hub;
    char address[CRN_ADDRESS_TEXT];
    /* of a hub: the guard, which ends with the context */
    void *guard;
    pthread_t guard_thread;
    bool guarded;
    unsigned char allowed[32]; /* the one key that may connect */
    _Atomic uint64_t nrefused;
};

static cairn_status fail_zmq(const char *what, const char *subject)
{
    return crn_fail(CAIRN_EIO, "cannot %s '%s': %s", what, subject,
                    lib.zmq_strerror(lib.zmq_errno()));
}

cairn_status crn_keys_make(crn_keys *ret)
{
    CRN_TRY(crn_library_load(&library));
    if (lib.zmq_curve_keypair(ret->hub_public, ret->hub_secret) != 0 ||
        lib.zmq_curve_keypair(ret->spoke_public, ret->spoke_secret) != 0)
        return crn_fail(CAIRN_EUNSUPPORTED, "this ZeroMQ makes no keys (CURVE): %s",
                        lib.zmq_strerror(lib.zmq_errno()));
    return CAIRN_OK;
}

/* --- who may connect ------------------------------------------------------------------------ */

/*
 * CURVE lets anyone in who knows the hub's public key. The guard answers ZeroMQ's question about
 * each connection (ZAP, rfc.zeromq.org/spec/27): only the study's own key may.
 */
enum { ZAP_FRAMES = 7, ZAP_ID = 1, ZAP_MECHANISM = 5, ZAP_KEY = 6 };

static bool is_ours(const crn_link *l, zmq_msg_t *frame, int n)
{
    return n == ZAP_FRAMES && lib.zmq_msg_size(&frame[ZAP_MECHANISM]) == 5 &&
           memcmp(lib.zmq_msg_data(&frame[ZAP_MECHANISM]), "CURVE", 5) == 0 &&
           lib.zmq_msg_size(&frame[ZAP_KEY]) == sizeof l->allowed &&
           memcmp(lib.zmq_msg_data(&frame[ZAP_KEY]), l->allowed, sizeof l->allowed) == 0;
}

static bool answer(void *socket, const void *data, size_t n, bool more)
{
    zmq_msg_t m;
    if (lib.zmq_msg_init_size(&m, n) != 0)
        return false;
    if (n > 0)
        memcpy(lib.zmq_msg_data(&m), data, n);
    return lib.zmq_msg_send(&m, socket, more ? ZMQ_SNDMORE : 0) >= 0;
}

/* One question; false: the context is being ended. */
static bool guard_once(crn_link *l)
{
    zmq_msg_t frame[ZAP_FRAMES];
    int n = 0;
    bool more = true, ok = true;
    while (ok && more && n < ZAP_FRAMES) {
        lib.zmq_msg_init(&frame[n]);
        ok = lib.zmq_msg_recv(&frame[n], l->guard, 0) >= 0;
        more = ok && lib.zmq_msg_more(&frame[n]) != 0;
        n++;
    }
    if (ok) {
        const bool ours = is_ours(l, frame, n);
        const char *code = ours ? "200" : "400", *text = ours ? "OK" : "no key of this study";
        atomic_fetch_add(&l->nrefused, !ours);
        ok = answer(l->guard, "1.0", 3, true) &&
             answer(l->guard, n > ZAP_ID ? lib.zmq_msg_data(&frame[ZAP_ID]) : "",
                    n > ZAP_ID ? lib.zmq_msg_size(&frame[ZAP_ID]) : 0, true) &&
             answer(l->guard, code, 3, true) && answer(l->guard, text, strlen(text), true) &&
             answer(l->guard, "", 0, true) && answer(l->guard, "", 0, false);
    }
    while (n > 0)
        lib.zmq_msg_close(&frame[--n]);
    return ok;
}

static void *guard(void *arg)
{
    crn_link *l = arg;
    while (guard_once(l))
        ;
    lib.zmq_close(l->guard);
    return NULL;
}

/* Before the hub listens: without a guard nobody gets in. */
static bool start_guard(crn_link *l, const crn_keys *keys)
{
    const int none = 0;
    if (!lib.zmq_z85_decode(l->allowed, keys->spoke_public))
        return false;
    l->guard = lib.zmq_socket(l->context, ZMQ_REP);
    if (!l->guard)
        return false;
    l->guarded = lib.zmq_setsockopt(l->guard, ZMQ_LINGER, &none, sizeof none) == 0 &&
                 lib.zmq_bind(l->guard, "inproc://zeromq.zap.01") == 0 &&
                 pthread_create(&l->guard_thread, NULL, guard, l) == 0;
    if (!l->guarded)
        lib.zmq_close(l->guard);
    return l->guarded && lib.zmq_setsockopt(l->socket, ZMQ_ZAP_DOMAIN, "cairn", 5) == 0;
}

uint64_t crn_link_refused(const crn_link *l)
{
    return atomic_load(&l->nrefused);
}

/* --- making links --------------------------------------------------------------------------- */

static bool set_int(crn_link *l, int option, int value)
{
    return lib.zmq_setsockopt(l->socket, option, &value, sizeof value) == 0;
}

static bool set_key(crn_link *l, int option, const char *key)
{
    return lib.zmq_setsockopt(l->socket, option, key, CRN_KEY_TEXT) == 0;
}

static bool set_keys(crn_link *l, const crn_keys *keys)
{
    if (l->hub)
        return set_int(l, ZMQ_CURVE_SERVER, 1) && set_key(l, ZMQ_CURVE_SECRETKEY, keys->hub_secret);
    return set_key(l, ZMQ_CURVE_SERVERKEY, keys->hub_public) &&
           set_key(l, ZMQ_CURVE_PUBLICKEY, keys->spoke_public) &&
           set_key(l, ZMQ_CURVE_SECRETKEY, keys->spoke_secret);
}

/* Nothing is dropped because a peer is slow, a peer that comes back under its name takes over, and
 * a connection over which nothing comes any more is given up and made again. */
static bool set_options(crn_link *l, const crn_keys *keys)
{
    return set_int(l, ZMQ_LINGER, LINGER_MS) && set_int(l, ZMQ_SNDHWM, 0) &&
           set_int(l, ZMQ_RCVHWM, 0) && set_int(l, ZMQ_HEARTBEAT_IVL, BEAT_MS) &&
           set_int(l, ZMQ_RECONNECT_IVL, 50) && set_int(l, ZMQ_RECONNECT_IVL_MAX, 1000) &&
           (!l->hub ||
            (set_int(l, ZMQ_ROUTER_HANDOVER, 1) && set_int(l, ZMQ_ROUTER_MANDATORY, 1))) &&
           set_keys(l, keys);
}

static cairn_status link_make(const crn_keys *keys, bool hub, crn_link **ret)
{
    crn_link *l;
    CRN_TRY(crn_library_load(&library));
    CRN_TRY(crn_alloc(&l, 1));
    l->hub = hub;
    l->context = lib.zmq_ctx_new();
    l->socket = l->context ? lib.zmq_socket(l->context, hub ? ZMQ_ROUTER : ZMQ_DEALER) : NULL;
    if (!l->socket || !set_options(l, keys)) {
        cairn_status rc = fail_zmq("make", "a socket");
        crn_link_free(l);
        return rc;
    }
    *ret = l;
    return CAIRN_OK;
}

cairn_status crn_link_listen(const crn_keys *keys, const char *host, unsigned port, crn_link **ret)
{
    crn_link *l;
    char at[CRN_ADDRESS_TEXT];
    size_t n = sizeof l->address;
    CRN_TRY(link_make(keys, true, &l));
    if (port > 0)
        snprintf(at, sizeof at, "tcp://%s:%u", host, port);
    else
        snprintf(at, sizeof at, "tcp://%s:*", host);
    if (!start_guard(l, keys) || lib.zmq_bind(l->socket, at) != 0 ||
        lib.zmq_getsockopt(l->socket, ZMQ_LAST_ENDPOINT, l->address, &n) != 0) {
        cairn_status rc = fail_zmq("listen at", at);
        crn_link_free(l);
        return rc;
    }
    *ret = l;
    return CAIRN_OK;
}

cairn_status crn_link_connect(const crn_keys *keys, const char *address, const char *name,
                              crn_link **ret)
{
    crn_link *l;
    CRN_TRY(link_make(keys, false, &l));
    snprintf(l->address, sizeof l->address, "%s", address);
    if (lib.zmq_setsockopt(l->socket, ZMQ_ROUTING_ID, name, strlen(name)) != 0 ||
        lib.zmq_connect(l->socket, address) != 0) {
        cairn_status rc = fail_zmq("connect to", address);
        crn_link_free(l);
        return rc;
    }
    *ret = l;
    return CAIRN_OK;
}

void crn_link_free(crn_link *l)
{
    if (!l)
        return;
    if (l->socket)
        lib.zmq_close(l->socket);
    if (l->context)
        lib.zmq_ctx_term(l->context);
    if (l->guarded)
        pthread_join(l->guard_thread, NULL);
    free(l);
}

void crn_link_drop(crn_link *l)
{
    if (l && l->socket)
        (void)set_int(l, ZMQ_LINGER, 0);
    crn_link_free(l);
}

const char *crn_link_address(const crn_link *l)
{
    return l->address;
}

/* --- messages ------------------------------------------------------------------------------- */

static bool send_frame(crn_link *l, const void *data, size_t n, bool more)
{
    zmq_msg_t m;
    if (lib.zmq_msg_init_size(&m, n) != 0)
        return false;
    if (n > 0)
        memcpy(lib.zmq_msg_data(&m), data, n);
    if (lib.zmq_msg_send(&m, l->socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0)
        return true;
    lib.zmq_msg_close(&m);
    return false;
}

cairn_status crn_link_send(crn_link *l, const char *peer, const crn_wire *wire, const void *data,
                           size_t nbytes)
{
    crn_buf head = {0};
    crn_wire_put(&head, wire);
    cairn_status rc = crn_buf_status(&head);
    if (rc == CAIRN_OK && l->hub && !send_frame(l, peer, strlen(peer), true))
        rc = lib.zmq_errno() == EHOSTUNREACH || lib.zmq_errno() == EAGAIN
                 ? CAIRN_NOTHING
                 : fail_zmq("send to", peer);
    if (rc == CAIRN_OK && (!send_frame(l, head.at, head.n, nbytes > 0) ||
                           (nbytes > 0 && !send_frame(l, data, nbytes, false))))
        rc = lib.zmq_errno() == EAGAIN ? CAIRN_NOTHING : fail_zmq("send to", l->address);
    crn_buf_done(&head);
    return rc;
}

void crn_letter_done(crn_letter *m)
{
    zmq_msg_t *frame = m->held;
    for (int i = 0; i < m->nheld; i++)
        lib.zmq_msg_close(&frame[i]);
    free(frame);
    *m = (crn_letter){0};
}

/* The frames of one message; how many came, of which the first FRAMES_MAX are kept. 0: none. */
static int take_frames(crn_link *l, zmq_msg_t *frame)
{
    int n = 0;
    for (bool more = true; more; n++) {
        zmq_msg_t extra, *to = n < FRAMES_MAX ? &frame[n] : &extra;
        lib.zmq_msg_init(to);
        if (lib.zmq_msg_recv(to, l->socket, ZMQ_DONTWAIT) < 0) {
            lib.zmq_msg_close(to);
            break;
        }
        more = lib.zmq_msg_more(to) != 0;
        if (to == &extra)
            lib.zmq_msg_close(&extra);
    }
    return n;
}

/* Is it a message of ours? Then data points into its last frame. */
static bool read_letter(const crn_link *l, int n, crn_letter *m)
{
    zmq_msg_t *frame = m->held;
    const int head = l->hub ? 1 : 0;
    if (n <= head || n > head + 2)
        return false;
    size_t name = l->hub ? lib.zmq_msg_size(&frame[0]) : 0;
    if (name > CRN_PEER_NAME)
        return false;
    memcpy(m->peer, lib.zmq_msg_data(&frame[0]), name);
    m->peer[name] = 0;
    if (strlen(m->peer) != name ||
        !crn_wire_get(lib.zmq_msg_data(&frame[head]), lib.zmq_msg_size(&frame[head]), &m->wire))
        return false;
    m->data = n == head + 2 ? lib.zmq_msg_data(&frame[head + 1]) : NULL;
    m->nbytes = n == head + 2 ? lib.zmq_msg_size(&frame[head + 1]) : 0;
    return m->nbytes == 0 || crn_wire_has_data(m->wire.kind);
}

cairn_status crn_link_take(crn_link *l, crn_letter *ret, uint64_t *nbad)
{
    for (;;) {
        zmq_msg_t *frame;
        CRN_TRY(crn_alloc(&frame, FRAMES_MAX));
        int n = take_frames(l, frame);
        crn_letter m = {.held = frame, .nheld = CRN_MIN(n, (int)FRAMES_MAX)};
        if (n > 0 && read_letter(l, n, &m)) {
            *ret = m;
            return CAIRN_OK;
        }
        crn_letter_done(&m);
        if (n == 0)
            return CAIRN_NOTHING;
        if (nbad)
            (*nbad)++;
    }
}

void crn_link_wait(crn_link *const *link, size_t n, int fd, long ms)
{
    enum { POLLED = 64 };
    zmq_pollitem_t item[POLLED + 1];
    int m = 0;
    if (n > POLLED) /* the others are looked at again soon */
        ms = CRN_MIN(ms, 2L);
    for (size_t i = 0; i < n && m < POLLED; i++)
        if (link[i])
            item[m++] = (zmq_pollitem_t){.socket = link[i]->socket, .events = ZMQ_POLLIN};
    if (fd >= 0)
        item[m++] = (zmq_pollitem_t){.fd = fd, .events = ZMQ_POLLIN};
    lib.zmq_poll(item, m, ms);
}

#else

static cairn_status missing(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without ZeroMQ, which ensembles need "
                                        "(-DCAIRN_WITH_ZMQ=ON)");
}

cairn_status crn_keys_make(crn_keys *ret)
{
    (void)ret;
    return missing();
}

cairn_status crn_link_listen(const crn_keys *keys, const char *host, unsigned port, crn_link **ret)
{
    (void)keys, (void)host, (void)port, (void)ret;
    return missing();
}

cairn_status crn_link_connect(const crn_keys *keys, const char *address, const char *name,
                              crn_link **ret)
{
    (void)keys, (void)address, (void)name, (void)ret;
    return missing();
}

void crn_link_free(crn_link *l)
{
    (void)l;
}

void crn_link_drop(crn_link *l)
{
    (void)l;
}

const char *crn_link_address(const crn_link *l)
{
    (void)l;
    return "";
}

uint64_t crn_link_refused(const crn_link *l)
{
    (void)l;
    return 0;
}

void crn_letter_done(crn_letter *m)
{
    (void)m;
}

cairn_status crn_link_send(crn_link *l, const char *peer, const crn_wire *wire, const void *data,
                           size_t nbytes)
{
    (void)l, (void)peer, (void)wire, (void)data, (void)nbytes;
    return missing();
}

cairn_status crn_link_take(crn_link *l, crn_letter *ret, uint64_t *nbad)
{
    (void)l, (void)ret, (void)nbad;
    return missing();
}

void crn_link_wait(crn_link *const *link, size_t n, int fd, long ms)
{
    (void)link, (void)n, (void)fd, (void)ms;
}

#endif
