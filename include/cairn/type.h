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

/* Bytes of one element; 0 when type is not one of the above. */
CAIRN_API size_t cairn_type_bytes(cairn_type type);

/* The name, such as "float64"; NULL when type is not one of the above. */
CAIRN_API const char *cairn_type_name(cairn_type type);

/*
 * A member of a structure, for cairn_define_type (<cairn/ckpt.h>). Its type is one of the above or
 * a structure that was defined before; a member with room for several elements is an array.
 *
 *     typedef struct particle { uint64_t id; double x[3]; pair cell; } particle;
 *     const cairn_member member[] = {CAIRN_MEMBER(particle, id, CAIRN_UINT64),
 *                                    CAIRN_MEMBER(particle, x, CAIRN_FLOAT64),
 *                                    CAIRN_MEMBER(particle, cell, pair_type)};
 *     cairn_define_type(c, sizeof(particle), member, 3, &particle_type);
 *
 * Bytes between members are kept as they are: programs that want unchanged structures to be seen
 * as unchanged, clear them once.
 */
typedef struct cairn_member {
    const char *name;
    size_t offset, nbytes;
    cairn_type type;
} cairn_member;

/* clang-format off */
#define CAIRN_MEMBER(structure, member, type) \
    {#member, offsetof(structure, member), sizeof(((structure *)0)->member), type}
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
