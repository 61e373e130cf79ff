/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A configuration: a value for each row of the option table, taken from the default, then the INI
 * file, then the environment variable CAIRN_<SECTION>_<KEY>. An unknown section or key, a key that
 * is set twice or a bad value is an error that names file, line and key (or the variable).
 */
#ifndef CAIRN_BASE_CONFIG_H
#define CAIRN_BASE_CONFIG_H

#include "base/base_buf.h"
#include "base/base_opt.h"

typedef struct crn_config crn_config;

/*
 * Defaults, then the file at path (NULL: the file that CAIRN_CONFIG names, if any), then the
 * environment. CAIRN_EINVAL for content, CAIRN_ENOTFOUND when path is not there, CAIRN_ENOMEM.
 */
cairn_status crn_config_load(const char *path, crn_config **ret);

/* The same from text in memory; name stands for the file in messages. No environment. */
cairn_status crn_config_parse(const char *name, const char *text, size_t nbytes, crn_config **ret);

/* The same over another table, which must outlive the result: for tests. */
cairn_status crn_config_parse_with(const crn_opt *rows, size_t nrows, const char *name,
                                   const char *text, size_t nbytes, crn_config **ret);
void crn_config_free(crn_config *cfg);

/* Did someone give this option a value? It may be the default's, and is a demand nevertheless: what
 * cannot be met must be refused, where a default may be relaxed. */
bool crn_config_is_given(const crn_config *cfg, crn_opt_id id);

/* The same of an option of the section "variable", for one of them. */
bool crn_config_is_given_for(const crn_config *cfg, crn_opt_id id, const char *name);

/* Values; the type must be the row's. crn_config_word gives the index of the word in the range. */
bool crn_config_bool(const crn_config *cfg, crn_opt_id id);
uint64_t crn_config_count(const crn_config *cfg, crn_opt_id id);
uint64_t crn_config_nbytes(const crn_config *cfg, crn_opt_id id);
double crn_config_seconds(const crn_config *cfg, crn_opt_id id);
int crn_config_word(const crn_config *cfg, crn_opt_id id);
const char *crn_config_text(const crn_config *cfg, crn_opt_id id); /* as given; any type */

/*
 * Options of the section "variable" may also be given for one variable, in a section
 * [variable NAME] of the file; this is NAME's value, or the general one, and its text. The same
 * holds for the sections field, observation and region of tables that have them.
 */
crn_opt_value crn_config_variable(const crn_config *cfg, crn_opt_id id, const char *name);
const char *crn_config_for_variable(const crn_config *cfg, crn_opt_id id, const char *name);

/* The names that such a section is given for, in the order of the file; NULL: no more. */
const char *crn_config_name_at(const crn_config *cfg, const char *section, size_t index);

/* All that the configuration says, as bytes that are equal where it says the same. */
void crn_config_put(const crn_config *cfg, crn_buf *buf);

#endif
