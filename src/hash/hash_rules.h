/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The constants of the rules that make keys of values (hash_tolerant.c), for one bound and type;
 * and what code for vectors needs. Inside of hash only.
 */
#ifndef CAIRN_HASH_RULES_H
#define CAIRN_HASH_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash/hash.h"

#ifdef __FAST_MATH__
#error "keys of values need IEEE arithmetic"
#endif

/* The integers have the type's width. */
typedef struct crn_rules {
    double limit, magic; /* T and M */
    double width;        /* w of rule 1; 0: values below T are their own keys */
    uint64_t half, keep; /* rule 2: added to the bits, then the bits that stay */
    bool only_absolute;  /* rule 2 changes nothing */
} crn_rules;

crn_rules crn_rules_of(const crn_bound *b, size_t item);

/*
 * The values of vectors, written with the vector types of gcc and clang, once for each width that
 * processors have. A comparison gives a mask of all ones or zeros in each lane.
 */
enum { VECTOR_MAX = 64 };

#define ALL(v_type, x)   ((x) - (v_type){0}) /* x in each lane */
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

#endif
