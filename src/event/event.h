/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event: the log of a run (docs/format/events.md), a line of JSON per event. One structure per
 * kind, made from event_table.h; members may stand in any order, unknown ones are ignored.
 *
 *     crn_event e = {.kind = CRN_EVENT_CLOSE, .close = {.finished = true}};
 *     char *line = crn_event_encode(&e);
 */
#ifndef CAIRN_EVENT_H
#define CAIRN_EVENT_H

#include "base/base.h"
#include "event/event_table.h"

#define CRN_EVENT_NO_VERSION UINT64_MAX

/* --- structures --------------------------------------------------------------------------- */

typedef enum crn_event_kind {
    CRN_EVENT_OTHER, /* of a kind that is unknown here */
#define CRN_KIND(constant, name) CRN_EVENT_##constant,
    CRN_EVENT_KINDS(CRN_KIND, CRN_KIND)
#undef CRN_KIND
        CRN_NEVENTS
} crn_event_kind;

typedef uint64_t crn_event_type_VERSION, crn_event_type_COUNT;
typedef double crn_event_type_REAL, crn_event_type_REAL_OR_NULL;
typedef int crn_event_type_INT_OR_NULL;
typedef bool crn_event_type_FLAG;
typedef const char *crn_event_type_TEXT;
typedef json_t *crn_event_type_JSON;

#define CRN_FIELD(type, name) crn_event_type_##type name;
#define CRN_STRUCT(constant, name)                                                                 \
    typedef struct crn_event_##name {                                                              \
        CRN_EVENT_##constant##_MEMBERS(CRN_FIELD, CRN_FIELD)                                       \
    } crn_event_##name;
#define CRN_NO_STRUCT(constant, name)
CRN_EVENT_KINDS(CRN_STRUCT, CRN_NO_STRUCT)
CRN_EVENT_PARTS(CRN_STRUCT)
#undef CRN_FIELD
#undef CRN_STRUCT

typedef struct crn_event {
    crn_event_kind kind;
    double time;  /* seconds since 1970 */
    json_t *json; /* of one that was read: the whole object, which has its texts */
    union {
#define CRN_MEMBER(constant, name) crn_event_##name name;
        CRN_EVENT_KINDS(CRN_MEMBER, CRN_NO_STRUCT)
#undef CRN_MEMBER
    };
} crn_event;
#undef CRN_NO_STRUCT

typedef CRN_VEC(crn_event) crn_event_list;

/* Release JSON members, of one to be written as of one that was read. */
void crn_event_done(crn_event *e);
void crn_events_done(crn_event_list *events);

/* --- writing ------------------------------------------------------------------------------ */

/* The event as a line without its end, to be freed; NULL: no memory. A number or text that JSON
 * cannot have is left out. */
char *crn_event_encode(const crn_event *e);

/* --- reading ------------------------------------------------------------------------------ */

#define CRN_EVENT_BIT(constant) (1u << CRN_EVENT_##constant)

/* Lines that are wanted. Others are recognised without being parsed, so a few events of a long log
 * cost little. */
typedef struct crn_event_filter {
    uint32_t kinds; /* bits: of any version */
    uint32_t some;  /* bits: of those versions that want returns true for */
    bool (*want)(void *arg, crn_event_kind kind, uint64_t version);
    void *arg;
    uint32_t times; /* bits, of those above: only when it was; no members, and json is NULL */
} crn_event_filter;

/* From a line of the log; false: it is not an event, or not wanted (filter NULL: all are). After
 * true crn_event_done is due. */
bool crn_event_decode(const char *line, const crn_event_filter *filter, crn_event *ret);

/* The text of a member's value in a line that need not be an event, wherever the member stands;
 * NULL: it has none, or has its name in other characters. */
const char *crn_event_peek(const char *line, const char *name);

/* --- parts of events ---------------------------------------------------------------------- */

#define CRN_PART(constant, name)                                                                   \
    json_t *crn_event_##name##_encode(const crn_event_##name *part);                               \
    crn_event_##name crn_event_##name##_decode(json_t *object);
CRN_EVENT_PARTS(CRN_PART)
#undef CRN_PART

/* A number of an object as a REAL is read: 0 when it is missing, or one that cannot be. */
double crn_event_number(json_t *object, const char *name);

/* Until when a leg worked that was seen to end: its last sign of life, where nobody knows better.
 */
double crn_event_worked_until(const crn_event_ended *e);

/* When a mark was begun. Where MPI is not for threads, the log has it at a later call only. */
double crn_event_begun(const crn_event *mark);

/* The version of the mark that an event is about, or CRN_EVENT_NO_VERSION. */
uint64_t crn_event_version(const crn_event *e);

/* A member of an event that was read as it stands in the log, to hand on; null when it is missing.
 * e may be NULL. The kind is named so that the compiler knows whether it has such a member. */
#define CRN_EVENT_COPY(e, kind, name)                                                              \
    ((void)sizeof(((const crn_event_##kind *)0)->name), crn_event_copy(e, #name))
json_t *crn_event_copy(const crn_event *e, const char *name);

#endif
