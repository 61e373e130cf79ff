/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Structures of the table to JSON and back, by one row for each of their members.
 */
#include "event/event.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

/* --- the table ---------------------------------------------------------------------------- */

typedef enum member_type {
    VERSION,
    COUNT,
    REAL,
    REAL_OR_NULL,
    INT_OR_NULL,
    FLAG,
    TEXT,
    JSON
} member_type;

typedef struct member {
    const char *name;
    member_type type;
    bool optional;
    size_t at; /* in the structure */
} member;

/* The members of a structure, up to one without a name. */
#define ALWAYS(type, name)   {#name, type, false, offsetof(S, name)},
#define OPTIONAL(type, name) {#name, type, true, offsetof(S, name)},
#define RETURN_MEMBERS(constant, name)                                                             \
    {                                                                                              \
        typedef crn_event_##name S;                                                                \
        static const member row[] = {CRN_EVENT_##constant##_MEMBERS(ALWAYS, OPTIONAL){0}};         \
        return row;                                                                                \
    }

static const member *members_of(crn_event_kind kind)
{
    static const member none[] = {{0}};
#define CASE(constant, name)                                                                       \
    case CRN_EVENT_##constant:                                                                     \
        RETURN_MEMBERS(constant, name)
#define NO_CASE(constant, name)
    switch (kind) {
        CRN_EVENT_KINDS(CASE, NO_CASE)
    default:
        return none;
    }
}

static const char *const kind_name[CRN_NEVENTS] = {
#define NAME(constant, name) [CRN_EVENT_##constant] = #name,
    CRN_EVENT_KINDS(NAME, NAME)};

/* All structures of the union begin where it begins. */
static void *structure_of(const crn_event *e)
{
    return (void *)&e->mark;
}

/* --- encoding ----------------------------------------------------------------------------- */

static bool is_absent(const member *m, const void *at)
{
    switch (m->type) {
    case VERSION:
        return *(const uint64_t *)at == CRN_EVENT_NO_VERSION;
    case COUNT:
        return *(const uint64_t *)at == 0;
    case REAL_OR_NULL:
        return isnan(*(const double *)at);
    case FLAG:
        return !*(const bool *)at;
    case TEXT:
        return !*(const char *const *)at;
    case JSON:
        return !*(json_t *const *)at;
    default:
        return false;
    }
}

/* NULL also for what JSON cannot have. */
static json_t *encode_value(member_type type, const void *at)
{
    switch (type) {
    case VERSION:
    case COUNT:
        return json_integer((json_int_t) * (const uint64_t *)at);
    case REAL_OR_NULL:
        if (isnan(*(const double *)at))
            return json_null();
        return json_real(*(const double *)at);
    case REAL:
        return json_real(*(const double *)at);
    case INT_OR_NULL:
        return *(const int *)at < 0 ? json_null() : json_integer(*(const int *)at);
    case FLAG:
        return json_boolean(*(const bool *)at);
    case TEXT:
        return json_string(*(const char *const *)at);
    case JSON:
        return json_incref(*(json_t *const *)at);
    }
    return NULL;
}

static void encode(const member *m, const void *structure, json_t *object)
{
    for (; m->name; m++) {
        const void *at = (const char *)structure + m->at;
        json_t *value = m->optional && is_absent(m, at) ? NULL : encode_value(m->type, at);
        if (value)
            json_object_set_new(object, m->name, value);
    }
}

char *crn_event_encode(const crn_event *e)
{
    json_t *object = json_object();
    json_object_set_new(object, "event", json_string(kind_name[e->kind]));
    encode(members_of(e->kind), structure_of(e), object);
    json_object_set_new(object, "time", json_real(e->time));
    char *line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(object);
    return line;
}

/* --- decoding ----------------------------------------------------------------------------- */

/* A log may have been damaged: a time or size that cannot be is taken for 0. */
static double real_of(json_t *value)
{
    const double x = json_number_value(value);
    return x >= -1e18 && x <= 1e18 ? x : 0;
}

static uint64_t count_of(json_t *value)
{
    const double x = real_of(value);
    if (!(x > 0))
        return 0;
    return json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)x;
}

static void decode_value(member_type type, json_t *value, void *at)
{
    switch (type) {
    case VERSION:
        *(uint64_t *)at =
            json_is_integer(value) ? (uint64_t)json_integer_value(value) : CRN_EVENT_NO_VERSION;
        break;
    case COUNT:
        *(uint64_t *)at = count_of(value);
        break;
    case REAL:
        *(double *)at = real_of(value);
        break;
    case REAL_OR_NULL:
        *(double *)at = json_is_number(value) ? real_of(value) : NAN;
        break;
    case INT_OR_NULL:
        *(int *)at = json_is_number(value) ? (int)CRN_MIN(count_of(value), INT_MAX) : -1;
        break;
    case FLAG:
        *(bool *)at = json_is_true(value);
        break;
    case TEXT:
        *(const char **)at = json_string_value(value);
        break;
    case JSON:
        *(json_t **)at = json_incref(value);
        break;
    }
}

static void decode(const member *m, json_t *object, void *structure)
{
    for (; m->name; m++)
        decode_value(m->type, json_object_get(object, m->name), (char *)structure + m->at);
}

void crn_event_done(crn_event *e)
{
    for (const member *m = members_of(e->kind); m->name; m++)
        if (m->type == JSON)
            json_decref(*(json_t **)((char *)structure_of(e) + m->at));
    json_decref(e->json);
    *e = (crn_event){0};
}

void crn_events_done(crn_event_list *events)
{
    for (size_t i = 0; i < events->n; i++)
        crn_event_done(&events->at[i]);
    crn_vec_done(events);
}

/* --- which lines -------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t\r");
}

/* Behind the string that begins at s. */
static const char *skip_string(const char *s)
{
    for (s++; *s && *s != '"'; s++)
        if (*s == '\\' && s[1])
            s++;
    return *s ? s + 1 : s;
}

const char *crn_event_peek(const char *line, const char *name)
{
    const size_t nname = strlen(name);
    int depth = 0;
    for (const char *s = line; *s;) {
        if (*s != '"') {
            depth += (*s == '{' || *s == '[') - (*s == '}' || *s == ']');
            s++;
            continue;
        }
        const char *end = skip_string(s), *colon = skip_blanks(end);
        if (depth == 1 && *colon == ':' && (size_t)(end - s) == nname + 2 &&
            memcmp(s + 1, name, nname) == 0)
            return skip_blanks(colon + 1);
        s = end;
    }
    return NULL;
}

static crn_event_kind find_kind(const char *name, size_t n)
{
    for (crn_event_kind k = CRN_EVENT_OTHER + 1; k < CRN_NEVENTS; k++)
        if (strncmp(name, kind_name[k], n) == 0 && !kind_name[k][n])
            return k;
    return CRN_EVENT_OTHER;
}

static bool is_wanted(const crn_event_filter *f, crn_event_kind kind, uint64_t version)
{
    return f->kinds >> kind & 1 || (f->some >> kind & 1 && f->want(f->arg, kind, version));
}

/* Of a line that is whole the time is known without parsing it: it is written last. */
static bool take_time(const crn_event_filter *f, crn_event_kind kind, const char *line,
                      crn_event *ret)
{
    const char *time = f->times >> kind & 1 ? crn_event_peek(line, "time") : NULL;
    char *end;
    if (!time)
        return false;
    *ret = (crn_event){.kind = kind, .time = strtod(time, &end)};
    return strcmp(end, "}") == 0 && fabs(ret->time) <= 1e18;
}

/* The kind of a line, as far as can be seen without parsing it. */
static bool see_kind(const char *line, crn_event_kind *ret)
{
    const char *name = crn_event_peek(line, "event");
    const size_t n = name && *name == '"' ? strcspn(name + 1, "\"\\") : 0;
    if (n == 0 || name[n + 1] != '"')
        return false;
    *ret = find_kind(name + 1, n);
    return true;
}

/* Could the line be wanted, as far as can be seen likewise? */
static bool may_be_wanted(const crn_event_filter *f, crn_event_kind kind, const char *line)
{
    if (f->kinds >> kind & 1 || !(f->some >> kind & 1))
        return f->kinds >> kind & 1;
    const char *version = crn_event_peek(line, "version");
    return !version || f->want(f->arg, kind, (uint64_t)strtoll(version, NULL, 10));
}

/* Of an object that has been parsed. */
static bool take(json_t *object, const crn_event_filter *f, crn_event *e)
{
    json_t *name = json_object_get(object, "event");
    if (!json_is_string(name))
        return false;
    e->kind = find_kind(json_string_value(name), json_string_length(name));
    uint64_t version;
    decode_value(VERSION, json_object_get(object, "version"), &version);
    return !f || is_wanted(f, e->kind, version);
}

bool crn_event_decode(const char *line, const crn_event_filter *filter, crn_event *ret)
{
    crn_event_kind kind;
    const bool seen = filter && see_kind(line, &kind);
    *ret = (crn_event){0};
    if (!CRN_WITH_JANSSON) /* not even the times, which are read without it */
        return false;
    if (seen && !may_be_wanted(filter, kind, line))
        return false;
    if (seen && take_time(filter, kind, line, ret))
        return true;
    json_t *object = json_loads(line, 0, NULL);
    *ret = (crn_event){0};
    if (!take(object, filter, ret)) {
        json_decref(object);
        return false;
    }
    ret->json = object;
    ret->time = real_of(json_object_get(object, "time"));
    decode(members_of(ret->kind), object, structure_of(ret));
    return true;
}

/* --- parts -------------------------------------------------------------------------------- */

#define PART(constant, name)                                                                       \
    static const member *members_of_##name(void) RETURN_MEMBERS(constant, name)                    \
        json_t *crn_event_##name##_encode(const crn_event_##name *part)                            \
    {                                                                                              \
        json_t *object = json_object();                                                            \
        encode(members_of_##name(), part, object);                                                 \
        return object;                                                                             \
    }                                                                                              \
    crn_event_##name crn_event_##name##_decode(json_t *object)                                     \
    {                                                                                              \
        crn_event_##name part;                                                                     \
        decode(members_of_##name(), object, &part);                                                \
        return part;                                                                               \
    }
CRN_EVENT_PARTS(PART)

double crn_event_number(json_t *object, const char *name)
{
    return real_of(json_object_get(object, name));
}

double crn_event_worked_until(const crn_event_ended *e)
{
    return e->until > 0 ? e->until : e->seen;
}

double crn_event_begun(const crn_event *mark)
{
    return mark->mark.begun > 0 ? mark->mark.begun : mark->time - CRN_MAX(mark->mark.stored, 0.0);
}

uint64_t crn_event_version(const crn_event *e)
{
    for (const member *m = members_of(e->kind); m->name; m++)
        if (m->type == VERSION)
            return *(const uint64_t *)((const char *)structure_of(e) + m->at);
    return CRN_EVENT_NO_VERSION;
}

json_t *crn_event_copy(const crn_event *e, const char *name)
{
    json_t *value = e ? json_object_get(e->json, name) : NULL;
    return value ? json_incref(value) : json_null();
}
