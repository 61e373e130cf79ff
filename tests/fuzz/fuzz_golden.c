/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A golden file from any bytes, as they are and with a right digest: it is refused with a sentence,
 * or what can be read of it is compared with itself, and nothing in it differs.
 */
#include "diff/diff.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Use the sketches of a share on a block of zeros: they have been found sound. */
static void use_sketches(diff_share *share)
{
    static unsigned char zeros[1 << 16];
    for (size_t i = 0; share->described && i < share->described->nvars; i++) {
        const crn_trees_var *v = &share->described->var[i];
        diff_sketch sketch;
        const bool found = crn_diff_sketch_find(share, v, &sketch);
        for (size_t k = 0; found && k < v->nbounds && v->var.nblocks > 0; k++) {
            const diff_sketch_block b = crn_diff_sketch_block(&sketch, k, 0);
            const uint32_t nbytes = crn_var_block_bytes(&v->var, 0);
            crn_sketcher *s;
            crn_digest d;
            if (nbytes > sizeof zeros ||
                crn_sketcher_create(v->var.spec.item, &v->bound[k], &s) < 0)
                continue;
            const bool fits = crn_sketch_digest(s, b.kind, b.data, b.nbytes, zeros, nbytes, &d);
            assert(fits);
            (void)fits;
            crn_sketcher_free(s);
        }
    }
}

/* Compare all units of a mark that is whole. */
static void compare_mark(diff_worker *w, diff_side side[2], size_t i)
{
    const diff_mark *mark[2] = {&side[0].mark.at[i], &side[1].mark.at[i]};
    diff_rows rows = {0};
    for (uint32_t r = 0; r < mark[0]->nranks; r++) {
        diff_share share;
        if (crn_diff_share_open(&side[0], mark[0], r, &share) == CAIRN_OK)
            use_sketches(&share);
        cairn_status rc = crn_diff_unit(w, side, mark, r, &rows, NULL);
        assert(rc == CAIRN_OK);
    }
    for (size_t k = 0; k < rows.n; k++) /* but damaged nodes prove nothing */
        assert(rows.at[k].verdict == CAIRN_SAME || rows.at[k].text[0]);
    crn_diff_rows_done(&rows);
}

static bool open_side(diff_side *s, crn_comm *comm, const uint8_t *data, size_t nbytes, bool heal)
{
    unsigned char *copy;
    if (crn_alloc(&copy, nbytes + 1) < 0)
        return false;
    memcpy(copy, data, nbytes);
    if (heal && nbytes >= sizeof(crn_digest)) {
        const crn_digest d = crn_digest_of(copy, nbytes - sizeof d);
        memcpy(copy + nbytes - sizeof d, d.b, sizeof d.b);
    }
    cairn_status rc = crn_diff_golden_of(s, "fuzz", copy, nbytes);
    if (rc == CAIRN_OK)
        rc = crn_diff_check_whole(s, comm);
    assert(rc == CAIRN_OK || crn_err_peek()->text[0]);
    return rc == CAIRN_OK;
}

static void check(diff_worker *w, crn_comm *comm, const uint8_t *data, size_t nbytes, bool heal)
{
    diff_side side[2] = {{0}};
    const bool first = open_side(&side[0], comm, data, nbytes, heal);
    if (first && open_side(&side[1], comm, data, nbytes, heal))
        for (size_t i = 0; i < side[0].mark.n; i++)
            compare_mark(w, side, i);
    crn_diff_close(&side[0]);
    crn_diff_close(&side[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const diff_question ask;
    static diff_worker *worker;
    static crn_comm *comm;
    if (!worker && (crn_diff_worker_create(&ask, &worker) < 0 || crn_comm_create_self(&comm) < 0))
        return 0;
    check(worker, comm, data, nbytes, false);
    check(worker, comm, data, nbytes, true);
    return 0;
}
