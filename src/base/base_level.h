/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The level table: one row per level, cheapest first. Everything that exists once per level comes
 * from it: the enum, names, options (level.NAME, keep.NAME), fault stages, the arguments of 'cairn
 * plan', and the table of implementations in the module level.
 *
 * To add a level: 1. a row here; 2. src/level/level_<name>.c with its crn_level_ops (level_local.c
 * is the template); 3. its constant in <cairn/ckpt.h>; 4. the guide. tests/unit/test_level_table.c
 * checks every row.
 *
 *     OWN(ID, name, survives, mtbf, keep)                 the level that every mark has
 *     ROW(ID, name, survives, mtbf, keep, every, note)    a level that marks are raised to
 *
 * survives: what may be lost; mtbf: the option with the mean time between failures that need the
 * level; keep, every: defaults of the options; note: ends the help of level.NAME.
 */
#ifndef CAIRN_BASE_LEVEL_H
#define CAIRN_BASE_LEVEL_H

/* clang-format off */
#define CRN_LEVELS(OWN, ROW)                                                                       \
    OWN(LOCAL,   local,   "processes",     MTBF,       "2")                                        \
    ROW(PARTNER, partner, "a node",        MTBF_NODE,  "1", "4",                                   \
        "; on one node none, or refused if set")                                                   \
    ROW(ENCODED, encoded, "several nodes", MTBF_GROUP, "1", "0", "")                               \
    ROW(GLOBAL,  global,  "the machine",   MTBF_ALL,   "2", "16", "")
/* clang-format on */

#define CRN_LEVEL_CONSTANT(id, ...) CRN_LEVEL_##id,
typedef enum crn_level {
    CRN_LEVELS(CRN_LEVEL_CONSTANT, CRN_LEVEL_CONSTANT) CRN_NLEVELS,
    CRN_LEVEL_RAISED = CRN_LEVEL_LOCAL + 1 /* the first one that marks are raised to */
} crn_level;
#undef CRN_LEVEL_CONSTANT

const char *crn_level_name(crn_level level);

#endif
