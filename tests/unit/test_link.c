/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links between the jobs of a study: who has its keys is heard, and nobody else: neither one who
 * knows the hub's public key but has a key of his own, nor bytes that are no ZeroMQ.
 *
 * NEEDS: zmq
 */
#include "harness/harness.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ensemble/ensemble_zmq.h"

enum { PATIENCE = 600 }; /* times 50 ms */

static const crn_wire hello = {.kind = CRN_WIRE_HELLO, .study = 7, .text = "r1"};

/* The next message of a hub; waits for it. */
static void take(crn_link *hub, crn_letter *ret)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (crn_link_take(hub, ret, NULL) == CAIRN_OK)
            return;
        crn_link_wait(&hub, 1, -1, 50);
    }
    fail_msg("no message came");
}

static void say_hello(const crn_keys *keys, crn_link *hub, const char *name, crn_link **ret)
{
    assert_int_equal(crn_link_connect(keys, crn_link_address(hub), name, ret), CAIRN_OK);
    assert_int_equal(crn_link_send(*ret, NULL, &hello, NULL, 0), CAIRN_OK);
}

static void test_messages_go_both_ways(void **state)
{
    (void)state;
    crn_keys keys;
    crn_link *hub, *spoke;
    crn_letter m = {0};
    assert_int_equal(crn_keys_make(&keys), CAIRN_OK);
    assert_int_equal(crn_link_listen(&keys, "127.0.0.1", 0, &hub), CAIRN_OK);
    say_hello(&keys, hub, "r1.0", &spoke);
    take(hub, &m);
    assert_string_equal(m.peer, "r1.0");
    assert_int_equal(m.wire.study, 7);
    crn_letter_done(&m);
    crn_wire piece = {.kind = CRN_WIRE_PIECE, .study = 7, .number = 3};
    assert_int_equal(crn_link_send(hub, "r1.0", &piece, "12345", 5), CAIRN_OK);
    assert_int_equal(crn_link_send(hub, "r2.0", &piece, "12345", 5), CAIRN_NOTHING);
    take(spoke, &m);
    assert_int_equal(m.nbytes, 5);
    assert_memory_equal(m.data, "12345", 5);
    crn_letter_done(&m);
    assert_int_equal(crn_link_refused(hub), 0);
    crn_link_free(spoke);
    crn_link_free(hub);
}

static void test_other_keys_are_refused(void **state)
{
    (void)state;
    crn_keys keys, others;
    crn_link *hub, *stranger, *friend;
    crn_letter m = {0};
    assert_int_equal(crn_keys_make(&keys), CAIRN_OK);
    assert_int_equal(crn_keys_make(&others), CAIRN_OK);
    memcpy(others.hub_public, keys.hub_public, sizeof keys.hub_public); /* which is no secret */
    assert_int_equal(crn_link_listen(&keys, "127.0.0.1", 0, &hub), CAIRN_OK);
    say_hello(&others, hub, "r1.0", &stranger);
    for (int i = 0; i < PATIENCE && crn_link_refused(hub) == 0; i++)
        crn_link_wait(&hub, 1, -1, 50);
    assert_true(crn_link_refused(hub) > 0);
    assert_int_equal(crn_link_take(hub, &m, NULL), CAIRN_NOTHING);
    say_hello(&keys, hub, "r2.0", &friend);
    take(hub, &m);
    assert_string_equal(m.peer, "r2.0");
    crn_letter_done(&m);
    crn_link_free(stranger);
    crn_link_free(friend);
    crn_link_free(hub);
}

/* Bytes of a program that speaks something else. */
static void shout(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    unsigned port;
    assert_int_equal(sscanf(address, "tcp://%63[^:]:%u", host, &port), 2);
    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    unsigned char data[4096];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    assert_int_equal(send(fd, data, sizeof data, MSG_NOSIGNAL), (ssize_t)sizeof data);
    close(fd);
}

static void test_noise_harms_nobody(void **state)
{
    (void)state;
    crn_keys keys;
    crn_link *hub, *spoke;
    crn_letter m = {0};
    uint64_t nbad = 0;
    assert_int_equal(crn_keys_make(&keys), CAIRN_OK);
    assert_int_equal(crn_link_listen(&keys, "127.0.0.1", 0, &hub), CAIRN_OK);
    for (int i = 0; i < 5; i++)
        shout(crn_link_address(hub));
    say_hello(&keys, hub, "r1.0", &spoke);
    take(hub, &m);
    crn_letter_done(&m);
    assert_int_equal(crn_link_take(hub, &m, &nbad), CAIRN_NOTHING);
    crn_link_free(spoke);
    crn_link_free(hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages_go_both_ways),
                                       cmocka_unit_test(test_other_keys_are_refused),
                                       cmocka_unit_test(test_noise_harms_nobody)};
    crn_keys keys;
    if (crn_keys_make(&keys) == CAIRN_EUNSUPPORTED)
        return 0; /* built without ZeroMQ */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
