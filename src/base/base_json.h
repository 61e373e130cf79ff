/* SPDX-License-Identifier: BSD-3-Clause
 *
 * jansson; and where a build has none (CAIRN_WITH_JANSSON=OFF), its calls as they are when there is
 * no memory: no value comes to be, and nothing is found in those that are not there. Such a build
 * writes and reads no event log and prints no JSON; whoever asks for it asks crn_json_present
 * first.
 */
#ifndef CAIRN_BASE_JSON_H
#define CAIRN_BASE_JSON_H

#include "base/base_err.h"

/* CAIRN_EUNSUPPORTED, with a sentence about what needs it: "a report". */
cairn_status crn_json_present(const char *what);

#if CRN_WITH_JANSSON

#include <jansson.h>

#else

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct json_t json_t;
typedef long long json_int_t;
typedef struct json_error_t {
    char text[1];
    int line;
} json_error_t;

#define JSON_INTEGER_FORMAT    "lld"
#define JSON_COMPACT           0
#define JSON_ENCODE_ANY        0
#define JSON_PRESERVE_ORDER    0
#define JSON_REJECT_DUPLICATES 0
#define JSON_INDENT(n)         0
#define JSON_REAL_PRECISION(n) 0

/* The arguments are evaluated and not used; the first counts nothing. */
json_t *crn_json_none(int first, ...); /* NULL */
int crn_json_fails(int first, ...);    /* -1 */
long crn_json_zero(int first, ...);    /* 0 */

#define CRN_JSON_IS(type, ...)           ((type)crn_json_zero(0, __VA_ARGS__))
#define json_object()                    crn_json_none(0)
#define json_array()                     crn_json_none(0)
#define json_null()                      crn_json_none(0)
#define json_pack(...)                   crn_json_none(0, __VA_ARGS__)
#define json_vpack_ex(...)               crn_json_none(0, __VA_ARGS__)
#define json_sprintf(...)                crn_json_none(0, __VA_ARGS__)
#define json_boolean(v)                  crn_json_none(0, (v))
#define json_integer(v)                  crn_json_none(0, (v))
#define json_real(v)                     crn_json_none(0, (v))
#define json_string(s)                   crn_json_none(0, (s))
#define json_stringn(s, n)               crn_json_none(0, (s), (n))
#define json_loads(...)                  crn_json_none(0, __VA_ARGS__)
#define json_copy(v)                     crn_json_none(0, (v))
#define json_incref(v)                   crn_json_none(0, (v))
#define json_decref(v)                   ((void)(v))
#define json_object_get(o, name)         crn_json_none(0, (o), (name))
#define json_array_get(a, i)             crn_json_none(0, (a), (i))
#define json_object_set(...)             crn_json_fails(0, __VA_ARGS__)
#define json_object_set_new(...)         crn_json_fails(0, __VA_ARGS__)
#define json_object_set_new_nocheck(...) crn_json_fails(0, __VA_ARGS__)
#define json_object_update(...)          crn_json_fails(0, __VA_ARGS__)
#define json_object_update_missing(...)  crn_json_fails(0, __VA_ARGS__)
#define json_object_del(...)             crn_json_fails(0, __VA_ARGS__)
#define json_object_clear(o)             crn_json_fails(0, (o))
#define json_array_append(...)           crn_json_fails(0, __VA_ARGS__)
#define json_array_append_new(...)       crn_json_fails(0, __VA_ARGS__)
#define json_dumpf(...)                  crn_json_fails(0, __VA_ARGS__)
#define json_dumps(...)                  ((char *)crn_json_none(0, __VA_ARGS__))
#define json_is_object(v)                CRN_JSON_IS(bool, v)
#define json_is_array(v)                 CRN_JSON_IS(bool, v)
#define json_is_string(v)                CRN_JSON_IS(bool, v)
#define json_is_number(v)                CRN_JSON_IS(bool, v)
#define json_is_integer(v)               CRN_JSON_IS(bool, v)
#define json_is_true(v)                  CRN_JSON_IS(bool, v)
#define json_is_false(v)                 CRN_JSON_IS(bool, v)
#define json_is_null(v)                  CRN_JSON_IS(bool, v)
#define json_equal(a, b)                 CRN_JSON_IS(bool, a, b)
#define json_object_size(v)              CRN_JSON_IS(size_t, v)
#define json_array_size(v)               CRN_JSON_IS(size_t, v)
#define json_string_length(v)            CRN_JSON_IS(size_t, v)
#define json_integer_value(v)            CRN_JSON_IS(json_int_t, v)
#define json_real_value(v)               CRN_JSON_IS(double, v)
#define json_number_value(v)             CRN_JSON_IS(double, v)
#define json_string_value(v)             ((const char *)crn_json_none(0, (v)))
#define json_array_foreach(array, index, value)                                                    \
    for ((index) = 0, (value) = json_array_get(array, index); (value); (index)++)
#define json_object_foreach(object, key, value)                                                    \
    for ((key) = "", (value) = json_object_get(object, key); (value);)

#endif

#endif
