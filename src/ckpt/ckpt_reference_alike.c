/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Do the ranks of this run hold alike what rank 0 has compared with the reference for all of them?
 * Rank 0 tells what it has, as a number for each variable, and the others whether they have the
 * same.
 */
#include "ckpt/ckpt_session.h"

typedef CRN_VEC(uint64_t) keys;

/* A number that stands for a variable's name, type, size and values. */
static uint64_t key_of(const crn_var *v)
{
    struct {
        crn_digest name, type, root;
        uint64_t nbytes, block;
    } all = {.name = crn_digest_of(v->spec.name, strlen(v->spec.name)),
             .type = crn_digest_of(v->spec.type, strlen(v->spec.type)),
             .root = v->root,
             .nbytes = v->spec.nbytes,
             .block = v->nblocks > 1 ? v->spec.block : 0}; /* the root of one block is its digest */
    const crn_digest d = crn_digest_of(&all, sizeof all);
    uint64_t key;
    memcpy(&key, d.b, sizeof key);
    return key;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The keys of all variables that are no piece of an array, to be looked up. */
static cairn_status list_keys(const crn_trees_mark *mine, keys *ret)
{
    for (size_t i = 0; mine && i < mine->nvars; i++)
        if (mine->var[i].var.spec.ndims == 0)
            CRN_TRY(crn_vec_push(ret, key_of(&mine->var[i].var)));
    if (ret->n > 0)
        qsort(ret->at, ret->n, sizeof *ret->at, ascending);
    return CAIRN_OK;
}

/* The keys of rank 0's rows, in their order. */
static cairn_status row_keys(const crn_trees_mark *mine, const diff_rows *rows, keys *ret)
{
    for (size_t i = 0; i < rows->n; i++) {
        const crn_trees_var *v =
            mine && rows->at[i].alike ? crn_trees_find(mine, rows->at[i].variable) : NULL;
        if (v)
            CRN_TRY(crn_vec_push(ret, key_of(&v->var)));
    }
    return CAIRN_OK;
}

/* Replace each key of rank 0 by whether a rank lacks it. Collective. */
static cairn_status ask_all(crn_comm *comm, const crn_trees_mark *mine, keys *asked)
{
    keys own = {0};
    uint64_t n = asked->n;
    CRN_TRY(crn_comm_bcast(comm, &n, sizeof n, 0));
    cairn_status rc = list_keys(mine, &own);
    if (rc == CAIRN_OK && crn_comm_rank(comm) > 0)
        rc = crn_vec_reserve(asked, n);
    rc = crn_comm_agree(comm, rc);
    if (rc == CAIRN_OK && n > 0)
        rc = crn_comm_bcast(comm, asked->at, n * sizeof *asked->at, 0);
    for (uint64_t i = 0; rc == CAIRN_OK && i < n; i++)
        asked->at[i] =
            own.n == 0 || !bsearch(&asked->at[i], own.at, own.n, sizeof *own.at, ascending);
    if (rc == CAIRN_OK && n > 0)
        rc = crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, asked->at, n);
    crn_vec_done(&own);
    return rc;
}

cairn_status crn_reference_alike(crn_comm *comm, const crn_trees_mark *mine, diff_rows *rows)
{
    keys asked = {0};
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(comm) == 0)
        rc = row_keys(mine, rows, &asked);
    rc = crn_comm_agree(comm, rc);
    if (rc == CAIRN_OK)
        rc = ask_all(comm, mine, &asked);
    for (size_t i = 0, k = 0; rc == CAIRN_OK && crn_comm_rank(comm) == 0 && i < rows->n; i++) {
        diff_row *r = &rows->at[i];
        if (!r->alike || !mine || !crn_trees_find(mine, r->variable) || !asked.at[k++])
            continue;
        r->verdict = CAIRN_SAME; /* what rank 0 alone has found does not count */
        r->ndiffering = 0;
        crn_diff_row_judge(r, CAIRN_INCONCLUSIVE, "the ranks of this run do not hold it alike");
    }
    crn_vec_done(&asked);
    return rc;
}
