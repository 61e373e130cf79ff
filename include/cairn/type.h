/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of elements. They are kept with every variable, so that a mark is refused to a program that
 * would misread it, and so that other tools can show the values.
 */
#ifndef CAIRN_TYPE_H
#define CAIRN_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t cairn_type;

enum {
    CAIRN_BYTES = 1, /* anything; counted in bytes */
    CAIRN_INT8,
    CAIRN_INT16,
    CAIRN_INT32,
    CAIRN_INT64,
    CAIRN_UINT8,
    CAIRN_UINT16,
    CAIRN_UINT32,
    CAIRN_UINT64,
    CAIRN_FLOAT32,
    CAIRN_FLOAT64
};

/* Bytes of one element; 0 when there is no such type. Never fails otherwise. */
CAIRN_API size_t cairn_type_bytes(cairn_type type);

/* The name, such as "float64"; NULL when there is no such type. */
CAIRN_API const char *cairn_type_name(cairn_type type);

#ifdef __cplusplus
}
#endif
#endif
