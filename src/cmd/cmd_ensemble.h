/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Verbs of 'cairn ensemble' that have a file of their own: the words are those after the file.
 */
#ifndef CAIRN_CMD_ENSEMBLE_H
#define CAIRN_CMD_ENSEMBLE_H

#include "cmd/cmd.h"
#include "ensemble/ensemble.h"

/* Hand each line of the events to fn; CMD_YES, or CMD_UNKNOWN after saying why. */
int cmd_ensemble_events(crn_study *study, void (*fn)(const char *line, void *arg), void *arg);

/* Run launcher and server on a study; a negative result was reported. CAIRN_NOTHING: stopped. */
int cmd_ensemble_launch(crn_study *study, crn_study_mode mode);

int cmd_ensemble_check(crn_study *study, char **words);
int cmd_ensemble_try(crn_study *study, char **words);
int cmd_ensemble_validate(crn_study *study, char **words);
int cmd_ensemble_validator(crn_study *study, char **words);
int cmd_ensemble_bound(const char *seeds, const char *cycles); /* NULL: the default */
int cmd_ensemble_status(crn_study *study, char **words);
int cmd_ensemble_log(crn_study *study, char **words);

#endif
