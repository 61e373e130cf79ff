/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn plan: what its files share. A request is solved and shown in the same way whether its
 * numbers come from the command line or from a run.
 */
#ifndef CAIRN_CMD_PLAN_H
#define CAIRN_CMD_PLAN_H

#include "cmd/cmd.h"

#include <cairn/planner.h>

typedef struct cmd_plan_request {
    cairn_plan_input in;
    const char *level[CAIRN_PLAN_LEVELS]; /* names, the cheapest first */
    unsigned nruns;                       /* to simulate, or 0 */
} cmd_plan_request;

enum { PLAN_SCALES = 3, PLAN_AROUND = 5, PLAN_WORDS = 160 };

typedef struct cmd_plan_answer {
    cairn_plan_schedule best;
    cairn_plan_schedule around[PLAN_AROUND]; /* the same levels, a quarter to four intervals */
    cairn_plan_schedule worse[PLAN_SCALES][PLAN_SCALES]; /* [failures][highest level's costs] */
    cairn_plan_trial trial;
} cmd_plan_answer;

/* Below this a week of work takes twenty years. */
#define PLAN_HOPELESS 0.001

/* CMD_YES, or CMD_NO when no schedule lets such a run end; CMD_UNKNOWN after saying why. */
int cmd_plan_solve(const cmd_plan_request *r, cmd_plan_answer *ret);

int cmd_plan_print(const cmd_plan_request *r, const cmd_plan_answer *a, int code);
json_t *cmd_plan_json(const cmd_plan_request *r, const cmd_plan_answer *a);

/* Pieces of both: a number with the four digits that it is worth; "local, 1 in 12 global", into
 * PLAN_WORDS bytes. */
json_t *cmd_plan_number(double v);
json_t *cmd_plan_json_schedule(const cmd_plan_request *r, const cairn_plan_schedule *s);
char *cmd_plan_levels(const cmd_plan_request *r, const cairn_plan_schedule *s, char *buf);

/* From a run: TRAIL or TRAIL/RUN. */
int cmd_plan_trail(const char *place, unsigned nruns, bool json);

#endif
