/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options: one table for the whole project (base_opt_table.h). A row has section, key, type,
 * default, range or words, and one line of help; parsing, checking, 'cairn help config' and the
 * manual page all come from it. A value is taken from the default, then the INI file, then the
 * environment variable CAIRN_<SECTION>_<KEY>. An unknown key or a bad value is an error that names
 * file, line and key (or the variable).
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

typedef enum crn_opt_type {
    CRN_OPT_BOOL,    /* yes no true false on off 1 0 */
    CRN_OPT_COUNT,   /* a whole number within the range */
    CRN_OPT_REAL,    /* a finite number within the range */
    CRN_OPT_NBYTES,  /* a byte size within the range: "64KiB" */
    CRN_OPT_SECONDS, /* a duration within the range: "1.5h" */
    CRN_OPT_WORD,    /* one of the words in the range, as "auto|uring|threads" */
    CRN_OPT_TEXT     /* anything */
} crn_opt_type;

typedef struct crn_opt {
    const char *section, *key;
    crn_opt_type type;
    const char *def;   /* as a user would write it */
    const char *range; /* "1..64", "1KiB..4MiB", "a|b|c", or "" for none */
    const char *help;  /* one line */
} crn_opt;

#define CRN_OPT_ROW(id, section, key, type, def, range, help) CRN_OPT_##id,
typedef enum crn_opt_id {
#include "base/base_opt_table.h"
    CRN_OPT_COUNT_OF
} crn_opt_id;
#undef CRN_OPT_ROW

const crn_opt *crn_opt_row(crn_opt_id id);

typedef struct crn_config crn_config;

/*
 * Defaults, then the file at path (NULL: the file that CAIRN_CONFIG names, if any), then the
 * environment. CAIRN_EINVAL for content, CAIRN_ENOTFOUND when path is not there, CAIRN_ENOMEM.
 */
cairn_status crn_config_load(const char *path, crn_config **ret);

/* The same from text in memory; name stands for the file in messages. No environment. */
cairn_status crn_config_parse(const char *name, const char *text, size_t nbytes, crn_config **ret);
void crn_config_free(crn_config *cfg);

/* Set one option as if by the file; where is named in messages ("--keep", for instance). */
cairn_status crn_config_set(crn_config *cfg, crn_opt_id id, const char *value, const char *where);

/* Values; the type must be the row's. crn_config_word gives the index of the word in the range. */
bool crn_config_bool(const crn_config *cfg, crn_opt_id id);
uint64_t crn_config_count(const crn_config *cfg, crn_opt_id id);
double crn_config_real(const crn_config *cfg, crn_opt_id id);
uint64_t crn_config_nbytes(const crn_config *cfg, crn_opt_id id);
double crn_config_seconds(const crn_config *cfg, crn_opt_id id);
int crn_config_word(const crn_config *cfg, crn_opt_id id);
const char *crn_config_text(const crn_config *cfg, crn_opt_id id); /* as given; any type */

/*
 * Options of the section "variable" may also be given for one variable, in a section
 * [variable NAME] of the file; this is NAME's value as text, or the general one.
 */
const char *crn_config_for_variable(const crn_config *cfg, crn_opt_id id, const char *name);

#endif
