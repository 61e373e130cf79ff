/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sockets between the jobs of a study: ZeroMQ, loaded when it is first used, with CURVE. A hub
 * listens and knows its peers by the names that they give themselves; a spoke is connected to one
 * hub. Messages have a header (ensemble_wire.h) and perhaps data. A message to a peer that is gone
 * is dropped; one that comes is taken whole or not at all.
 */
#ifndef CAIRN_ENSEMBLE_ZMQ_H
#define CAIRN_ENSEMBLE_ZMQ_H

#include "base/base.h"
#include "ensemble/ensemble_wire.h"

enum { CRN_KEY_TEXT = 41, CRN_PEER_NAME = 63, CRN_ADDRESS_TEXT = 256 };

/* Keys of a study, as text (Z85): of its hubs, and of those that may connect to them. */
typedef struct crn_keys {
    char hub_public[CRN_KEY_TEXT], hub_secret[CRN_KEY_TEXT];
    char spoke_public[CRN_KEY_TEXT], spoke_secret[CRN_KEY_TEXT];
} crn_keys;

cairn_status crn_keys_make(crn_keys *ret); /* CAIRN_EUNSUPPORTED, CAIRN_EINTERNAL */

typedef struct crn_link crn_link;

/* Listen at "host:port" (port 0: any); the address that others connect to is crn_link_address. */
cairn_status crn_link_listen(const crn_keys *keys, const char *host, unsigned port, crn_link **ret);

/* Connect to an address under a name, which no other peer of that hub has. Does not wait. */
cairn_status crn_link_connect(const crn_keys *keys, const char *address, const char *name,
                              crn_link **ret);
void crn_link_free(crn_link *l); /* what was sent a moment ago may still get there; NULL allowed */
void crn_link_drop(crn_link *l); /* the hub is dead: nothing gets there, and is waited for */
const char *crn_link_address(const crn_link *l);
uint64_t crn_link_refused(const crn_link *l); /* connections to a hub with another key */

/* A message that came. */
typedef struct crn_letter {
    char peer[CRN_PEER_NAME + 1]; /* who sent it; a hub knows */
    crn_wire wire;
    const unsigned char *data;
    size_t nbytes;
    void *held; /* its frames, in which data lies */
    int nheld;
} crn_letter;

void crn_letter_done(crn_letter *m); /* a zeroed one is allowed */

/*
 * Send a message: to a peer, where l is a hub. Without waiting; CAIRN_NOTHING: the peer is gone, or
 * takes nothing now. CAIRN_EIO, CAIRN_ENOMEM.
 */
cairn_status crn_link_send(crn_link *l, const char *peer, const crn_wire *wire, const void *data,
                           size_t nbytes);

/* Take the next message that came; CAIRN_NOTHING: there is none. What is no message of ours is
 * counted in *nbad (NULL: it is not) and left out. */
cairn_status crn_link_take(crn_link *l, crn_letter *ret, uint64_t *nbad);

/* Wait until one of n links (NULL ones are left out) or the descriptor (-1: none) has something, at
 * most so many milliseconds. */
void crn_link_wait(crn_link *const *link, size_t n, int fd, long ms);

#endif
