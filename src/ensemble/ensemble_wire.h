/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The header of a message between the jobs of a study: all kinds have the same fields, one encoder
 * and one decoder. docs/format/ensemble.md is the specification.
 */
#ifndef CAIRN_ENSEMBLE_WIRE_H
#define CAIRN_ENSEMBLE_WIRE_H

#include "base/base.h"

enum {
    CRN_WIRE_MAGIC = 0x4e455243, /* "CREN" */
    CRN_WIRE_VERSION = 1,
    CRN_WIRE_TEXT = 511
};

/* Bits of a task's rank: it starts from the model's own first state; its result is to be put on the
 * shelf by the runner; it is coded before, as the orders of the cycle say. */
enum { CRN_TASK_OWN_STATE = 1, CRN_TASK_KEEP = 2, CRN_TASK_CODED = 4 };

/* Bits of a weight's more: number has the logarithm of a weight; the state is safe on the shelf; it
 * is not in the cache, nor on the shelf. */
enum { CRN_WEIGHT_KNOWN = 1, CRN_WEIGHT_SAFE = 2, CRN_WEIGHT_LOST = 4 };

/* Bits of a state that a runner offers: it was made by this process, which has its weight. */
enum { CRN_HAVE_MADE = 1 };

#define CRN_WIRE_ROW(kind, number, name, data) CRN_WIRE_##kind = number,
typedef enum crn_wire_kind {
#include "ensemble/ensemble_wire_table.h"
} crn_wire_kind;
#undef CRN_WIRE_ROW

typedef struct crn_wire {
    crn_wire_kind kind;
    uint64_t study;       /* its number: others' messages are ignored */
    uint32_t incarnation; /* of the server, from 1 on; 0: none is meant */
    uint32_t cycle, member, attempt;
    uint32_t runner; /* the number of its job, unique in the study */
    uint32_t rank;
    uint64_t number, more; /* by kind */
    double seconds;        /* by kind */
    char text[CRN_WIRE_TEXT + 1];
} crn_wire;

void crn_wire_put(crn_buf *b, const crn_wire *w);

/* False when the bytes are not what crn_wire_put makes. */
bool crn_wire_get(const void *data, size_t n, crn_wire *ret);

/* The name of a kind, or NULL; may such a message have data? */
const char *crn_wire_name(crn_wire_kind kind);
bool crn_wire_has_data(crn_wire_kind kind);

#endif
