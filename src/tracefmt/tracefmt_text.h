/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events as lines of text, for dumps and for the plain log: the same event gives the same line,
 * whether it comes from the recorder or from a walk.
 *
 *     MPI_Send at cg+0x14a2 count=700 type=8 peer=3 tag=1 comm=0
 */
#ifndef CAIRN_TRACEFMT_TEXT_H
#define CAIRN_TRACEFMT_TEXT_H

#include "tracefmt/tracefmt_build.h"
#include "tracefmt/tracefmt_walk.h"

/* The tables that an event's numbers point into; of a crn_trace or of a crn_tables. */
typedef struct crn_trace_texts {
    char *const *string;
    size_t nstrings;
    const crn_site *site;
    size_t nsites;
    const crn_type *type;
    size_t ntypes;
} crn_trace_texts;

crn_trace_texts crn_names_of_trace(const crn_trace *t);
crn_trace_texts crn_names_of_tables(const crn_tables *t);

/* Append one line, without its end. A type is shown by its size; values that were drawn get '~'. */
void crn_text_event(crn_buf *b, const crn_trace_texts *n, const crn_traced_event *e);

/* The same for an event as the recorder has it. */
void crn_text_record(crn_buf *b, const crn_trace_texts *n, const crn_record *r);

#endif
