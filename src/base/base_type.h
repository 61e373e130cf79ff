/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of elements as text, which is how files keep them: the name of a scalar ("float64"), or the
 * description of a compound (docs/format.md, section 4.5):
 *
 *     {48:id@0:uint64,x@8:float64[3],cell@32:{8:i@0:int32,j@4:int32}}
 *
 * Equal types have equal texts: members are ordered by where they lie, and nothing is optional.
 */
#ifndef CAIRN_BASE_TYPE_H
#define CAIRN_BASE_TYPE_H

#include <stdint.h>

#include <cairn/type.h>

#include "base/base_err.h"

enum {
    CRN_TYPE_TEXT = 4095,    /* bytes of a type's text */
    CRN_TYPE_MEMBERS = 1024, /* of one compound */
    CRN_TYPE_DEPTH = 8,      /* compounds within compounds */
    CRN_MEMBER_NAME = 127
};

typedef struct crn_type_tree crn_type_tree;

typedef struct crn_type_member {
    char name[CRN_MEMBER_NAME + 1];
    uint32_t offset;
    uint32_t count; /* of an array's elements; 0: not an array */
    crn_type_tree *type;
} crn_type_member;

struct crn_type_tree {
    cairn_type scalar; /* 0: a compound */
    uint32_t nbytes;
    size_t n; /* members, by ascending offset; they do not overlap */
    crn_type_member *member;
};

/* Read a text. CAIRN_EINVAL says what is wrong with it, CAIRN_ENOMEM. */
cairn_status crn_type_parse(const char *text, crn_type_tree **ret);
void crn_type_free(crn_type_tree *t); /* NULL is allowed */

/* A member as a program declares it. */
typedef struct crn_member_spec {
    const char *name;
    size_t offset, nbytes; /* several elements of the type are an array */
    const char *type;      /* as text, */
    size_t item;           /* and bytes of one element */
} crn_member_spec;

/*
 * The text of a compound of nbytes with n members in any order. CAIRN_EINVAL names the member and
 * what is wrong with it. Free *ret.
 */
cairn_status crn_type_compose(size_t nbytes, const crn_member_spec *member, size_t n, char **ret);

#endif
