/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of cairn bench.
 */
#ifndef CAIRN_CMD_BENCH_H
#define CAIRN_CMD_BENCH_H

#include "cmd/cmd.h"

/* Which sizes of blocks fit the run that name stands for; of a trail, its last one. */
int cmd_bench_trail(const char *name, bool json);

#endif
