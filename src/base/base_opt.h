/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options: one table for the whole project (base_opt_table.h). A row has section, key, type,
 * default, range or words, and one line of help; parsing, checking, 'cairn help config' and the
 * manual page all come from it. Where values come from is base_config.h.
 *
 * To add an option: 1. a row in base_opt_table.h; 2. read it with crn_config_<type>(cfg,
 * CRN_OPT_...).
 */
#ifndef CAIRN_BASE_OPT_H
#define CAIRN_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base_err.h"
#include "base/base_level.h"

typedef enum crn_opt_type {
    CRN_OPT_BOOL,    /* yes no true false on off 1 0 */
    CRN_OPT_COUNT,   /* a whole number within the range, or its word for "no limit" */
    CRN_OPT_NBYTES,  /* a byte size within the range: "64KiB" */
    CRN_OPT_SECONDS, /* a duration within the range: "1.5h" */
    CRN_OPT_WORD,    /* one of the words in the range, as "auto|uring|threads" */
    CRN_OPT_TEXT     /* anything */
} crn_opt_type;

typedef struct crn_opt {
    const char *section, *key;
    crn_opt_type type;
    const char *def;   /* as a user would write it */
    const char *range; /* what is allowed, as below */
    const char *help;  /* one line */
} crn_opt;

/*
 * Ranges are shown to people as they stand: "" for none, "auto|uring|threads" for words, and for
 * numbers "<low>..<high>" in the row's own units, where <high> may be left out, then perhaps
 * ", a power of two", then perhaps "|<word>", a word that means no limit (UINT64_MAX or infinity):
 *
 *     "1..64"    "1KiB..4MiB, a power of two"    "1..|all"
 */

typedef union crn_opt_value {
    bool yes;
    uint64_t n; /* COUNT, NBYTES */
    double x;   /* SECONDS */
    int word;   /* its index in the range */
} crn_opt_value;

/* Check text against the row and take its value. CAIRN_EINVAL says what is wrong with it. */
cairn_status crn_opt_parse(const crn_opt *row, const char *text, crn_opt_value *ret);

/* The row's environment variable, "CAIRN_KEEP_LOCAL", into buf of CRN_OPT_ENV bytes. */
char *crn_opt_env(const crn_opt *row, char *buf);

enum { CRN_OPT_ENV = 80 };

/* What the type expects, in a word or two: "byte size". */
const char *crn_opt_type_name(crn_opt_type type);

#define CRN_OPT_ROW(id, section, key, type, def, range, help) CRN_OPT_##id,
typedef enum crn_opt_id {
#include "base/base_opt_table.h"
    CRN_OPT_COUNT_OF
} crn_opt_id;
#undef CRN_OPT_ROW

/* The table, and a row of it. */
extern const crn_opt crn_opt_table[CRN_OPT_COUNT_OF];
const crn_opt *crn_opt_row(crn_opt_id id);

/* The options of a level: mean time between the failures that need it, marks to retain, and every
 * how many marks it is raised to (not for CRN_LEVEL_LOCAL, which every mark has). */
crn_opt_id crn_opt_mtbf(crn_level level);
crn_opt_id crn_opt_keep(crn_level level);
crn_opt_id crn_opt_every(crn_level level);

#endif
