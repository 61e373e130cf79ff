/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Verbs of 'cairn ensemble' that have a file of their own: the words are those after the file.
 */
#ifndef CAIRN_CMD_ENSEMBLE_H
#define CAIRN_CMD_ENSEMBLE_H

#include "cmd/cmd.h"
#include "ensemble/ensemble.h"

int cmd_ensemble_status(crn_study *study, char **words);
int cmd_ensemble_log(crn_study *study, char **words);

#endif
