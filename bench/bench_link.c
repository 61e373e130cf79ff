/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States between a runner and the server against ZeroMQ alone, by the same mechanism: one DEALER
 * and one ROUTER on 127.0.0.1 with CURVE, pieces of 4 MiB, of which so many are in flight as a
 * state has.
 *
 * NEEDS: zmq
 */
#include <string.h>
#include <zmq.h>

#include "bench.h"
#include "ensemble/ensemble.h"

enum { PIECE = 4 << 20, PIECES = 32 };

static void die(const char *what)
{
    fprintf(stderr, "bench_link: %s\n", what);
    exit(1);
}

/* --- ours ----------------------------------------------------------------------------------- */

static double time_ours(const crn_keys *keys, const unsigned char *data)
{
    crn_link *hub, *spoke;
    crn_letter m = {0};
    crn_wire w = {.kind = CRN_WIRE_PIECE, .study = 1};
    size_t came = 0;
    if (crn_link_listen(keys, "127.0.0.1", 0, &hub) < 0 ||
        crn_link_connect(keys, crn_link_address(hub), "r1.0", &spoke) < 0)
        die("no link");
    double begun = 0;
    for (size_t i = 0; i <= PIECES; i++) { /* the first shows that the connection is there */
        if (crn_link_send(spoke, NULL, &w, data, PIECE) != CAIRN_OK)
            die("cannot send");
        while (i == 0 && came == 0) {
            crn_link_wait(&hub, 1, -1, 100);
            came += crn_link_take(hub, &m, NULL) == CAIRN_OK;
            crn_letter_done(&m);
            begun = bench_seconds();
        }
    }
    while (came <= PIECES) {
        crn_link_wait(&hub, 1, -1, 100);
        while (crn_link_take(hub, &m, NULL) == CAIRN_OK) {
            came++;
            crn_letter_done(&m);
        }
    }
    double seconds = bench_seconds() - begun;
    crn_link_free(spoke);
    crn_link_free(hub);
    return seconds;
}

/* --- ZeroMQ's ------------------------------------------------------------------------------- */

static void *make(void *context, int type, const crn_keys *keys)
{
    const int on = 1, none = 0;
    void *s = zmq_socket(context, type);
    zmq_setsockopt(s, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none);
    if (type == ZMQ_ROUTER) {
        zmq_setsockopt(s, ZMQ_CURVE_SERVER, &on, sizeof on);
        zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, keys->hub_secret, CRN_KEY_TEXT);
    } else {
        zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, keys->hub_public, CRN_KEY_TEXT);
        zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, keys->spoke_public, CRN_KEY_TEXT);
        zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, keys->spoke_secret, CRN_KEY_TEXT);
    }
    return s;
}

static void send_piece(void *socket, const unsigned char *data)
{
    zmq_msg_t m;
    if (zmq_msg_init_size(&m, PIECE) != 0)
        die("no memory");
    memcpy(zmq_msg_data(&m), data, PIECE);
    if (zmq_msg_send(&m, socket, 0) < 0)
        die("cannot send");
}

/* The sender's name and the piece. */
static void take_piece(void *socket)
{
    zmq_msg_t m;
    for (int more = 1; more;) {
        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, socket, 0) < 0)
            die("cannot receive");
        more = zmq_msg_more(&m);
        zmq_msg_close(&m);
    }
}

static double time_zmq(const crn_keys *keys, const unsigned char *data)
{
    void *a = zmq_ctx_new(), *b = zmq_ctx_new();
    void *hub = make(a, ZMQ_ROUTER, keys), *spoke = make(b, ZMQ_DEALER, keys);
    char address[128];
    size_t n = sizeof address;
    if (zmq_bind(hub, "tcp://127.0.0.1:*") != 0 ||
        zmq_getsockopt(hub, ZMQ_LAST_ENDPOINT, address, &n) != 0 ||
        zmq_connect(spoke, address) != 0)
        die("no sockets");
    send_piece(spoke, data);
    take_piece(hub);
    double begun = bench_seconds();
    for (size_t i = 0; i < PIECES; i++)
        send_piece(spoke, data);
    for (size_t i = 0; i < PIECES; i++)
        take_piece(hub);
    double seconds = bench_seconds() - begun;
    zmq_close(spoke);
    zmq_close(hub);
    zmq_ctx_term(b);
    zmq_ctx_term(a);
    return seconds;
}

int main(void)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    crn_keys keys;
    unsigned char *data = malloc(PIECE);
    if (!data || crn_keys_make(&keys) < 0)
        die("no keys");
    memset(data, 7, PIECE);
    const double bytes = (double)PIECES * PIECE / 1e9;
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = bytes / time_ours(&keys, data);
        peer[i] = bytes / time_zmq(&keys, data);
    }
    bench_print(&(bench_result){.name = "ensemble.states",
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.9,
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(peer, BENCH_TURNS),
                                .note = "pieces of states, against ZeroMQ alone with CURVE"});
    free(data);
    return 0;
}
