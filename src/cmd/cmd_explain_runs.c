/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between which marks two runs part: the last one that surely agrees, and the first that both have
 * and that differs. A mark that only one of them has tells nothing, one that is not proven equal is
 * not known to agree.
 */
#include "cmd/cmd_explain.h"

#include <mpi.h>

typedef struct comparing {
    cmd_parting *p;
    uint64_t version; /* of the mark whose rows come */
    bool any, agrees; /* there is such a mark; so far it does */
    bool failed;
} comparing;

static bool is_alone(const cairn_comparison_row *r)
{
    return !r->variable && (r->verdict == CAIRN_ONLY_FIRST || r->verdict == CAIRN_ONLY_SECOND);
}

/* A copy of a row, whose strings live during the callback only. */
static bool keep_row(cmd_parting *p, const cairn_comparison_row *r)
{
    const char *const from[] = {r->variable, r->type, r->bound, r->text};
    cmd_parting_done(p);
    for (int i = 0; i < 4; i++)
        if (from[i] && crn_strdup(from[i], &p->text[i]) < 0)
            return false;
    p->first = *r;
    p->first.variable = p->text[0];
    p->first.type = p->text[1];
    p->first.bound = p->text[2];
    p->first.text = p->text[3];
    return true;
}

/* Rows come mark by mark: with the first of another one the mark before is known to agree. */
static void begin_mark(comparing *c, uint64_t version)
{
    if (c->any && c->version == version)
        return;
    if (c->any && c->agrees) {
        c->p->stretch.from_start = false;
        c->p->stretch.from = c->version;
    }
    c->version = version;
    c->any = c->agrees = true;
    c->p->nmarks++;
}

static int on_row(void *arg, const cairn_comparison_row *r)
{
    comparing *c = arg;
    if (is_alone(r)) {
        c->p->nalone++;
        return 0;
    }
    begin_mark(c, r->version);
    c->agrees &= r->verdict == CAIRN_SAME;
    c->p->verdict = CRN_MAX(c->p->verdict, r->verdict);
    c->p->differ = r->verdict > CAIRN_UNTOLD;
    c->p->stretch.to = r->version;
    if (c->p->differ || (r->verdict != CAIRN_SAME && c->p->first.struct_bytes == 0))
        c->failed = !keep_row(c->p, r);
    return c->p->differ || c->failed;
}

/* When a run's mark was taken; 0 if that is not known, as of trees without data. */
static uint64_t time_of(const char *run, uint64_t version)
{
    cmd_place place;
    cairn_run_info info = {.struct_bytes = sizeof info};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    uint64_t taken = 0;
    if (cmd_place_open(run, &place) != CMD_YES)
        return 0;
    if (cairn_trail_run(place.trail, place.first, &info) == CAIRN_OK)
        for (size_t i = 0; i < info.nmarks && taken == 0; i++)
            if (cairn_trail_mark(place.trail, place.first, i, &mark) == CAIRN_OK &&
                mark.version == version)
                taken = mark.wall_ns;
    cmd_place_close(&place);
    return taken;
}

int cmd_parting_find(const cairn_comparison_options *how, char *const run[2], cmd_parting *ret)
{
    cairn_comparison_options all = *how;
    cairn_comparison result = {.struct_bytes = sizeof result};
    comparing c = {.p = ret};
    *ret = (cmd_parting){.stretch = {.from_start = true}};
    all.struct_bytes = sizeof all;
    all.all = true; /* on_row ends it: also past marks that only one run has */
    all.row = on_row;
    all.arg = &c;
    if (cairn_compare(MPI_COMM_SELF, run[0], run[1], &all, &result) < 0)
        return cmd_fail("%s", cairn_error_text());
    for (int i = 0; i < 2 && ret->differ; i++)
        ret->stretch.taken_ns[i] = time_of(run[i], ret->stretch.to);
    return c.failed ? cmd_fail("no memory") : CMD_YES;
}

void cmd_parting_done(cmd_parting *p)
{
    for (int i = 0; i < 4; i++) {
        free(p->text[i]);
        p->text[i] = NULL;
    }
}
