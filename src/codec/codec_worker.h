/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A process that decodes and can do nothing else; see codec_worker.c for how it is started. The two
 * share an area of memory, 2 * cap bytes from a page on: what is to be decoded, then what it was
 * decoded to. Requests and replies are single packets of a socket.
 */
#ifndef CAIRN_CODEC_WORKER_H
#define CAIRN_CODEC_WORKER_H

#include "codec/codec_ops.h"

#include <sys/types.h>

/* Descriptors of the program when it starts. It closes the second one, and all others. */
enum { CRN_WORKER_SOCKET = 0, CRN_WORKER_AREA = 1 };

typedef struct crn_worker_request {
    uint32_t codec, elem;
    uint64_t n, nbytes; /* to decode, and to decode to; both at most cap */
} crn_worker_request;

/* The first reply comes without a request, when the process has locked itself up. */
typedef struct crn_worker_reply {
    uint32_t good;
    uint32_t last; /* the process has used much of its time, and ends */
} crn_worker_reply;

/* A program as it would lie in a file. */
typedef struct crn_program {
    const unsigned char *at;
    size_t nbytes;
} crn_program;

/* The one that is part of the library: src/codec/decoder, embedded by CMake. */
extern const crn_program crn_decoder_program;

/* What a process may use. */
typedef struct crn_worker_limits {
    size_t cap;            /* bytes of a block, decoded or not */
    unsigned cpu_seconds;  /* of its whole life: it ends itself in time before that */
    unsigned wait_seconds; /* for one reply; only a process that plays dead takes so long */
} crn_worker_limits;

typedef struct crn_worker {
    int sock;
    unsigned char *area;
    crn_worker_limits limits;
    bool busy;               /* the pool's, as the next */
    struct crn_worker *next; /* of all */
} crn_worker;

typedef enum crn_worker_answer {
    CRN_WORKER_GOOD,
    CRN_WORKER_REFUSES, /* these bytes are not what encode makes */
    CRN_WORKER_DIED,    /* crashed, was killed, or exceeded its limits */
    CRN_WORKER_HANGS
} crn_worker_answer;

/* Start a process. CAIRN_EIO, CAIRN_ENOMEM; CAIRN_EUNSUPPORTED when it cannot lock itself up. */
cairn_status crn_worker_start(const crn_program *program, const crn_worker_limits *limits,
                              crn_worker **ret);

/* Have it decode n bytes from src into exactly nbytes at dst. *ret_usable: may it be asked again?
 */
crn_worker_answer crn_worker_ask(crn_worker *w, const crn_worker_request *request, const void *src,
                                 void *dst, bool *ret_usable);

/* End the process: it sees that the socket is closed, or runs into its limit. NULL is allowed. */
void crn_worker_end(crn_worker *w);

#endif
