/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between which marks two runs part: the last one that surely agrees, and the first that both have
 * and that differs. A mark that only one of them has proves nothing; one that is not proven equal
 * does not count as agreeing.
 */
#include "cause/cause.h"

#include <mpi.h>

typedef struct comparing {
    cairn_explanation *x;
    cairn_parting *p; /* its */
    uint64_t version; /* of the mark whose rows come */
    bool any, agrees; /* there is such a mark; so far it does */
    bool failed;
} comparing;

static bool is_alone(const cairn_comparison_row *r)
{
    return !r->variable && (r->verdict == CAIRN_ONLY_FIRST || r->verdict == CAIRN_ONLY_SECOND);
}

static void forget_row(cairn_explanation *x)
{
    for (int i = 0; i < 4; i++) {
        free(x->text[i]);
        x->text[i] = NULL;
    }
}

/* A copy of a row, whose strings live during the callback only. */
static bool keep_row(cairn_explanation *x, const cairn_comparison_row *r)
{
    const char *const from[] = {r->variable, r->type, r->bound, r->text};
    cairn_comparison_row *first = &x->parting.first;
    forget_row(x);
    for (int i = 0; i < 4; i++)
        if (from[i] && crn_strdup(from[i], &x->text[i]) < 0)
            return false;
    *first = *r;
    first->variable = x->text[0];
    first->type = x->text[1];
    first->bound = x->text[2];
    first->text = x->text[3];
    return true;
}

/* Rows come mark by mark: with the first of another one the mark before is known to agree. */
static void begin_mark(comparing *c, uint64_t version)
{
    if (c->any && c->version == version)
        return;
    if (c->any && c->agrees) {
        c->p->from_start = false;
        c->p->from = c->version;
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
    c->p->differ = r->verdict > CAIRN_INCONCLUSIVE;
    c->p->to = r->version;
    if (c->p->differ || (r->verdict != CAIRN_SAME && c->p->first.struct_bytes == 0))
        c->failed = !keep_row(c->x, r);
    return c->p->differ || c->failed;
}

int cairn_explain(const char *first, const char *second, const cairn_comparison_options *how,
                  cairn_explanation **ret)
{
    cairn_comparison_options all = {.struct_bytes = sizeof all};
    cairn_comparison result = {.struct_bytes = sizeof result};
    cairn_explanation *x;
    *ret = NULL;
    if (how)
        CRN_TRY(crn_struct_in(how, &all));
    CRN_TRY(crn_alloc(&x, 1));
    x->parting = (cairn_parting){.struct_bytes = sizeof x->parting, .from_start = true};
    comparing c = {.x = x, .p = &x->parting};
    all.struct_bytes = sizeof all;
    all.all = true; /* on_row ends it: also past marks that only one run has */
    all.row = on_row;
    all.arg = &c;
    int rc = cairn_compare(MPI_COMM_SELF, first, second, &all, &result);
    if (rc >= 0 && c.failed)
        rc = crn_fail(CAIRN_ENOMEM, "no memory");
    if (rc < 0) {
        cairn_explain_close(x);
        return rc;
    }
    *ret = x;
    return CAIRN_OK;
}

int cairn_explain_parting(const cairn_explanation *x, cairn_parting *ret)
{
    return crn_struct_out(&x->parting, ret);
}

void cairn_explain_close(cairn_explanation *x)
{
    if (!x)
        return;
    forget_row(x);
    free(x);
}
