/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Aligning two bodies: the heaviest common subsequence. Equal ends are cut off first, which is all
 * that most bodies need. What is then too long for the quadratic table is matched greedily.
 */
#include "tracefmt/tracefmt_merge_impl.h"

enum { TABLE = 1 << 22, LOOK_AHEAD = 256 };

typedef struct problem {
    const uint32_t *a, *b;
    size_t a0, a1, b0, b1; /* what is left between the equal ends */
    const uint32_t *weight;
} problem;

static cairn_status add(crn_pairs *ret, size_t a, size_t b)
{
    return crn_vec_push(ret, (crn_pair){a, b});
}

/* Walk the table from its start: best[i][j] is the weight that a[i..] and b[j..] share. */
static cairn_status follow_table(const problem *p, const uint32_t *best, size_t width,
                                 crn_pairs *ret)
{
    size_t i = 0, j = 0, n = p->a1 - p->a0, m = p->b1 - p->b0;
    while (i < n || j < m) {
        const uint32_t *at = &best[i * width + j];
        if (i < n && j < m && p->a[p->a0 + i] == p->b[p->b0 + j] &&
            *at == at[width + 1] + p->weight[p->a[p->a0 + i]]) {
            CRN_TRY(add(ret, p->a0 + i++, p->b0 + j++));
        } else if (i < n && (j == m || at[width] >= at[1])) {
            CRN_TRY(add(ret, p->a0 + i++, SIZE_MAX));
        } else {
            CRN_TRY(add(ret, SIZE_MAX, p->b0 + j++));
        }
    }
    return CAIRN_OK;
}

static cairn_status by_table(const problem *p, crn_pairs *ret)
{
    size_t n = p->a1 - p->a0, m = p->b1 - p->b0, width = m + 1;
    uint32_t *best;
    CRN_TRY(crn_alloc(&best, (n + 1) * width));
    for (size_t i = n; i-- > 0;) {
        for (size_t j = m; j-- > 0;) {
            uint32_t *at = &best[i * width + j], symbol = p->a[p->a0 + i];
            *at = CRN_MAX(at[width], at[1]);
            if (symbol == p->b[p->b0 + j])
                *at = CRN_MAX(*at, at[width + 1] + p->weight[symbol]);
        }
    }
    cairn_status rc = follow_table(p, best, width, ret);
    free(best);
    return rc;
}

/* Each symbol of a takes the next equal one of b within sight. */
static cairn_status by_looking_ahead(const problem *p, crn_pairs *ret)
{
    size_t j = p->b0;
    for (size_t i = p->a0; i < p->a1; i++) {
        size_t k = j, end = CRN_MIN(p->b1, j + LOOK_AHEAD);
        while (k < end && p->b[k] != p->a[i])
            k++;
        if (k == end) {
            CRN_TRY(add(ret, i, SIZE_MAX));
            continue;
        }
        while (j < k)
            CRN_TRY(add(ret, SIZE_MAX, j++));
        CRN_TRY(add(ret, i, j++));
    }
    while (j < p->b1)
        CRN_TRY(add(ret, SIZE_MAX, j++));
    return CAIRN_OK;
}

cairn_status crn_align(const uint32_t *a, size_t na, const uint32_t *b, size_t nb,
                       const uint32_t *weight, crn_pairs *ret)
{
    problem p = {.a = a, .b = b, .a1 = na, .b1 = nb, .weight = weight};
    for (; p.a0 < na && p.b0 < nb && a[p.a0] == b[p.b0]; p.a0++, p.b0++)
        CRN_TRY(add(ret, p.a0, p.b0));
    while (p.a1 > p.a0 && p.b1 > p.b0 && a[p.a1 - 1] == b[p.b1 - 1]) {
        p.a1--;
        p.b1--;
    }
    bool small = (p.a1 - p.a0 + 1) * (p.b1 - p.b0 + 1) <= TABLE;
    CRN_TRY(small ? by_table(&p, ret) : by_looking_ahead(&p, ret));
    for (; p.a1 < na; p.a1++, p.b1++)
        CRN_TRY(add(ret, p.a1, p.b1));
    return CAIRN_OK;
}
