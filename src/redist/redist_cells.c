/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directory of cells.
 */
#include "redist/redist.h"

#include <inttypes.h>

/* Cells are kept in ranges of equal length, the last may be shorter; some ranks may have none. */
static uint64_t range_length(crn_comm *comm, uint64_t global)
{
    const uint64_t n = (uint64_t)crn_comm_size(comm);
    return CRN_MAX(global / n + (global % n != 0), 1);
}

/* --- telling ------------------------------------------------------------------------------ */

/* Ascending numbers have ascending keepers: what one of them gets lies together. */
static cairn_status tell(crn_comm *comm, uint64_t length, const crn_cell *have, size_t n,
                         crn_parcels *ret)
{
    crn_outbox out = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0, end; i < n && rc == CAIRN_OK; i = end) {
        const uint64_t keeper = have[i].number / length;
        crn_buf *buf;
        for (end = i + 1; end < n && have[end].number / length == keeper;)
            end++;
        rc = crn_outbox_for(&out, (int)keeper, &buf);
        if (rc == CAIRN_OK)
            crn_put_bytes(buf, &have[i], (end - i) * sizeof *have);
    }
    rc = crn_outbox_swap(&out, comm, rc, ret);
    crn_outbox_done(&out);
    return rc;
}

static int compare_cells(const void *x, const void *y)
{
    const crn_cell *a = x, *b = y;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Every cell of this rank's range, and each once? */
static cairn_status check_range(crn_comm *comm, const char *name, uint64_t length, uint64_t global,
                                const crn_cells *kept)
{
    const uint64_t rank = (uint64_t)crn_comm_rank(comm);
    uint64_t next = CRN_MIN(rank * length, global);
    const uint64_t end = CRN_MIN(next + length, global);
    for (size_t i = 0; i < kept->n; i++, next++) {
        const crn_cell *k = &kept->at[i];
        CRN_FAIL_IF(i > 0 && k->number == k[-1].number, CAIRN_EINVAL,
                    "variable '%s': cell %" PRIu64 " belongs to rank %" PRIu32
                    " and to rank %" PRIu32,
                    name, k->number, k[-1].rank, k->rank);
        CRN_FAIL_IF(k->number != next, CAIRN_EINVAL,
                    "variable '%s': cell %" PRIu64 " of %" PRIu64 " belongs to no rank", name, next,
                    global);
    }
    CRN_FAIL_IF(next < end, CAIRN_EINVAL,
                "variable '%s': cell %" PRIu64 " of %" PRIu64 " belongs to no rank", name, next,
                global);
    return CAIRN_OK;
}

static cairn_status keep(const crn_parcels *told, crn_cells *ret)
{
    for (size_t i = 0; i < told->in.n; i++) {
        const size_t n = told->in.at[i].n / sizeof(crn_cell);
        CRN_TRY(crn_vec_reserve(ret, n));
        memcpy(ret->at + ret->n, told->in.at[i].data, n * sizeof(crn_cell));
        ret->n += n;
    }
    if (ret->n > 0)
        qsort(ret->at, ret->n, sizeof *ret->at, compare_cells);
    return CAIRN_OK;
}

/* --- asking ------------------------------------------------------------------------------- */

/* Questions are cells with a number alone; kept has all of the range, in order. */
static cairn_status answer(crn_comm *comm, const crn_cells *kept, const crn_parcels *asked,
                           crn_parcels *ret)
{
    crn_outbox out = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < asked->in.n && rc == CAIRN_OK; i++) {
        crn_buf *buf;
        rc = crn_outbox_for(&out, asked->in.at[i].peer, &buf);
        for (size_t at = 0; rc == CAIRN_OK && at < asked->in.at[i].n; at += sizeof(crn_cell)) {
            crn_cell cell;
            memcpy(&cell, asked->in.at[i].data + at, sizeof cell);
            crn_put_bytes(buf, &kept->at[cell.number - kept->at[0].number], sizeof cell);
        }
    }
    rc = crn_outbox_swap(&out, comm, rc, ret);
    crn_outbox_done(&out);
    return rc;
}

/* Keepers answer in the order of questions, and come by ascending rank, as ranges do. */
static cairn_status ask(crn_comm *comm, uint64_t length, const crn_cells *kept, crn_cell *want,
                        size_t n)
{
    crn_parcels asked = {0}, answers = {0};
    cairn_status rc = tell(comm, length, want, n, &asked);
    if (rc == CAIRN_OK)
        rc = answer(comm, kept, &asked, &answers);
    for (size_t i = 0; rc == CAIRN_OK && i < answers.in.n; i++) {
        memcpy(want, answers.in.at[i].data, answers.in.at[i].n);
        want += answers.in.at[i].n / sizeof *want;
    }
    crn_parcels_done(&asked);
    crn_parcels_done(&answers);
    return rc;
}

cairn_status crn_cells_find(crn_comm *comm, const char *name, uint64_t global, const crn_cell *have,
                            size_t nhave, crn_cell *want, size_t nwant)
{
    const uint64_t length = range_length(comm, global);
    crn_parcels told = {0};
    crn_cells kept = {0};
    cairn_status rc = tell(comm, length, have, nhave, &told);
    if (rc == CAIRN_OK) {
        rc = keep(&told, &kept);
        if (rc == CAIRN_OK)
            rc = check_range(comm, name, length, global, &kept);
        rc = crn_comm_agree(comm, rc);
    }
    if (rc == CAIRN_OK)
        rc = ask(comm, length, &kept, want, nwant);
    crn_parcels_done(&told);
    crn_vec_done(&kept);
    return rc;
}
