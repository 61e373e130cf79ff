/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small trail for tests: two variables on several ranks, one of which changes a little from mark
 * to mark. Versions are 10, 20, ...
 */
#ifndef CAIRN_TESTS_SMALL_TRAIL_H
#define CAIRN_TESTS_SMALL_TRAIL_H

#include "harness/harness.h"
#include "store/store.h"

enum { SMALL_CELLS = 4096, SMALL_BLOCK = 4096, SMALL_SERIES = 1 };

static inline double small_value(uint32_t rank, uint64_t mark, uint64_t i)
{
    return (double)rank + 0.001 * (double)i + (i / 512 == mark % 8 ? (double)mark : 0.0);
}

static inline cairn_status small_part_mark(crn_part *part, uint32_t rank, uint32_t nranks,
                                           uint64_t mark, uint64_t keep)
{
    double field[SMALL_CELLS];
    uint64_t step = 10 * mark, global = (uint64_t)SMALL_CELLS * nranks;
    uint64_t offset = (uint64_t)SMALL_CELLS * rank, count = SMALL_CELLS;
    crn_draft *d;
    size_t v;
    crn_var_spec field_spec = {.name = "temperature",
                               .type = "float64",
                               .item = 8,
                               .block = SMALL_BLOCK,
                               .nbytes = sizeof field,
                               .ndims = 1,
                               .global = &global,
                               .offset = &offset,
                               .count = &count};
    crn_var_spec step_spec = {
        .name = "step", .type = "uint64", .item = 8, .block = SMALL_BLOCK, .nbytes = 8};
    for (uint64_t i = 0; i < SMALL_CELLS; i++)
        field[i] = small_value(rank, mark, i);
    CRN_TRY(crn_draft_begin(part, step, &d));
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_draft_add(d, &field_spec, &v));
    CRN_TRY_OUT(rc, crn_draft_put_all(d, v, field));
    CRN_TRY_OUT(rc, crn_draft_add(d, &step_spec, &v));
    CRN_TRY_OUT(rc, crn_draft_put_all(d, v, &step));
    return crn_draft_commit(d, keep, NULL);
out:
    crn_draft_drop(d);
    return rc;
}

/* One mark of all ranks. Parts retain more than the manifest keeps, until they are trimmed. */
static inline cairn_status small_run_mark(crn_run *run, uint32_t nranks, uint64_t mark,
                                          uint64_t retain, uint64_t keep)
{
    const crn_part_options opt = {CRN_IO_AUTO, 8, true};
    const crn_manifest_mark k = {.version = 10 * mark,
                                 .wall_ns = crn_wall_ns(),
                                 .nbytes = nranks * (uint64_t)(SMALL_CELLS * 8 + 8),
                                 .series = SMALL_SERIES,
                                 .nranks = nranks,
                                 .levels = CRN_IN_TRAIL};
    crn_part *part;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        CRN_TRY(crn_run_part(run, SMALL_SERIES, rank, nranks, true, &opt, &part));
        CRN_TRY(small_part_mark(part, rank, nranks, mark, retain));
        crn_part_close(part);
    }
    CRN_TRY(crn_run_commit(run, &k, keep));
    for (uint32_t rank = 0; retain > keep && rank < nranks; rank++) {
        CRN_TRY(crn_run_part(run, SMALL_SERIES, rank, nranks, true, &opt, &part));
        CRN_TRY(crn_part_trim(part, keep));
        crn_part_close(part);
    }
    return CAIRN_OK;
}

/* Write nmarks marks of nranks ranks to a run of the trail at path; a new run when name is NULL. */
static inline cairn_status small_trail(const char *path, const char *name, uint32_t nranks,
                                       uint64_t nmarks, uint64_t keep)
{
    crn_trail *t;
    crn_run *run;
    CRN_TRY(crn_trail_open(path, true, &t));
    CRN_TRY(crn_run_create(t, name, &run));
    for (uint64_t mark = 1; mark <= nmarks; mark++)
        CRN_TRY(small_run_mark(run, nranks, mark, keep, keep));
    crn_run_close(run);
    crn_trail_close(t);
    return CAIRN_OK;
}

/* Two more marks of such a run, which keeps one from now on, in the order of the commit protocol: a
 * part gives up a mark only when the manifest no longer lists it. */
static inline cairn_status small_trail_more(const char *path, const char *name, uint32_t nranks,
                                            uint64_t mark)
{
    crn_trail *t;
    crn_run *run;
    CRN_TRY(crn_trail_open(path, false, &t));
    CRN_TRY(crn_run_open(t, name, true, &run));
    CRN_TRY(small_run_mark(run, nranks, mark, 2, 1));
    CRN_TRY(small_run_mark(run, nranks, mark + 1, 2, 1));
    crn_run_close(run);
    crn_trail_close(t);
    return CAIRN_OK;
}

#endif
