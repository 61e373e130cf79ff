/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Models that are run by command: "./model {in} {out}" for each task, with the state as datasets of
 * HDF5 or netCDF-4 files. The runner is then a process of this program.
 */
#ifndef CAIRN_ENSEMBLE_COMMAND_H
#define CAIRN_ENSEMBLE_COMMAND_H

#include "ensemble/ensemble_study.h"

/* Does the study run its model so? */
bool crn_command_is_used(const crn_study *s);

/* What starts a runner: the study's own command, or, with {in}, this program around it. other: with
 * another number of ranks, for a check. The caller's to free. */
cairn_status crn_command_line(const crn_study *s, const char *program, const char *command,
                              bool other, char **ret);

/* Put values in place of {in}, {out}, {steps}, {step}, {cycle}, {member}, {attempt}; what is no
 * such name stays. */
typedef struct crn_command_values {
    const char *in, *out;
    uint64_t steps, step, cycle, member, attempt;
} crn_command_values;

cairn_status crn_command_fill(const char *command, const crn_command_values *v, char **ret);

#endif
