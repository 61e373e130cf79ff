/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of observations with correlated errors: covariances as a file gives them, or variances
 * with a correlation that falls with the distance.
 */
#include "observe/observe_read.h"

#include <inttypes.h>
#include <math.h>

void crn_obs_blocks_free(crn_obs_set *s)
{
    for (size_t i = 0; i < s->nblocks; i++) {
        free(s->block[i].covariance);
        free(s->block[i].root);
    }
    free(s->block);
    s->block = NULL;
    s->nblocks = 0;
}

/* Cholesky's factor; false: the matrix is not positive definite. */
static bool factor(size_t n, const double *a, double *l)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = k; i < n; i++) {
            double sum = a[i + k * n];
            for (size_t j = 0; j < k; j++)
                sum -= l[i + j * n] * l[k + j * n];
            if (i == k && !(sum > 0))
                return false;
            l[i + k * n] = i == k ? sqrt(sum) : sum / l[k + k * n];
        }
    return true;
}

int crn_obs_matrix_order(const void *a, const void *b)
{
    const crn_obs_matrix *x = a, *y = b;
    if (x->cycle != y->cycle)
        return x->cycle < y->cycle ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

static const crn_obs_matrix *find_matrix(const crn_obs_set *s, const crn_obs_item *first)
{
    const crn_obs_matrix wanted = {.cycle = s->cycle, .type = first->type, .group = first->group};
    return s->obs->matrix.n == 0 ? NULL
                                 : bsearch(&wanted, s->obs->matrix.at, s->obs->matrix.n,
                                           sizeof wanted, crn_obs_matrix_order);
}

static cairn_status take_matrix(const crn_obs_set *s, const crn_obs_matrix *m, crn_obs_block *b)
{
    size_t at[CRN_OBS_BLOCK];
    for (size_t i = 0; i < b->n; i++) {
        at[i] = s->item[b->first + i].rank;
        CRN_FAIL_IF(at[i] >= m->n, CAIRN_EINVAL,
                    "block %u of type '%s' has more than the %zu observations of its covariances",
                    m->group, s->obs->type.at[m->type].name, m->n);
    }
    for (size_t i = 0; i < b->n; i++) {
        for (size_t k = 0; k < b->n; k++)
            b->covariance[i + k * b->n] = m->value[at[i] * m->n + at[k]];
        s->item[b->first + i].variance = b->covariance[i + i * b->n];
    }
    return CAIRN_OK;
}

static cairn_status correlate(const crn_obs_set *s, crn_obs_block *b)
{
    const crn_obs_item *it = &s->item[b->first];
    const crn_obs_type *t = &s->obs->type.at[it->type];
    CRN_FAIL_IF(!(t->correlation > 0), CAIRN_EINVAL,
                "block %u of type '%s' has no covariances: give them in the file, or a correlation "
                "length in [observation %s]",
                it->group, t->name, t->name);
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < b->n; k++) {
            CRN_FAIL_IF(!it[i].placed, CAIRN_EINVAL,
                        "block %u of type '%s': an observation has no place", it->group, t->name);
            double d = crn_obs_distance(&s->obs->setup.space, it[i].place, it[k].place);
            b->covariance[i + k * b->n] =
                sqrt(it[i].variance * it[k].variance) * exp(-d / t->correlation);
        }
    return CAIRN_OK;
}

static cairn_status factor_block(const crn_obs_set *s, crn_obs_block *b)
{
    const crn_obs_item *it = &s->item[b->first];
    free(b->root);
    b->root = NULL;
    CRN_TRY(crn_alloc(&b->root, b->n * b->n));
    CRN_FAIL_IF(!factor(b->n, b->covariance, b->root), CAIRN_EINVAL,
                "the covariances of block %u of type '%s' are not positive definite", it->group,
                s->obs->type.at[it->type].name);
    return CAIRN_OK;
}

static cairn_status add_block(crn_obs_set *s, size_t first, size_t n)
{
    crn_obs_block *b = &s->block[s->nblocks++];
    *b = (crn_obs_block){.first = first, .n = n};
    CRN_FAIL_IF(n > CRN_OBS_BLOCK, CAIRN_EINVAL, "a block of %zu observations: at most %d", n,
                CRN_OBS_BLOCK);
    CRN_TRY(crn_alloc(&b->covariance, n * n));
    const crn_obs_matrix *m = find_matrix(s, &s->item[first]);
    CRN_TRY(m ? take_matrix(s, m, b) : correlate(s, b));
    return factor_block(s, b);
}

cairn_status crn_obs_blocks_make(crn_obs_set *s)
{
    size_t n = 0, length;
    for (size_t i = 0; i < s->n; i++)
        n += s->item[i].group != CRN_OBS_NONE;
    if (n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&s->block, n));
    for (size_t i = 0; i < s->n; i += length) {
        const crn_obs_item *a = &s->item[i];
        for (length = 1; i + length < s->n && a->group != CRN_OBS_NONE &&
                         a[length].group == a->group && a[length].type == a->type;)
            length++;
        if (a->group != CRN_OBS_NONE)
            CRN_TRY(add_block(s, i, length));
    }
    return CAIRN_OK;
}

/* One block without those that are left out; first counts what is kept before it. */
static void shrink(crn_obs_block *b, const crn_obs_flag *flag)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->n; i++)
        kept += flag[i] == CRN_OBS_USED;
    size_t to = 0;
    for (size_t k = 0; k < b->n; k++) /* in place: what is read lies behind what is written */
        for (size_t i = 0; i < b->n; i++)
            if (flag[i] == CRN_OBS_USED && flag[k] == CRN_OBS_USED)
                b->covariance[to++] = b->covariance[i + k * b->n];
    b->n = kept;
}

cairn_status crn_obs_blocks_shrink(crn_obs_set *s, const crn_obs_flag *flag)
{
    size_t at = 0, before = 0, nblocks = 0;
    for (size_t k = 0; k < s->nblocks; k++) {
        crn_obs_block b = s->block[k];
        s->block[k] = (crn_obs_block){0}; /* it has one owner, whatever fails */
        for (; at < b.first; at++)
            before += flag[at] == CRN_OBS_USED;
        shrink(&b, flag + b.first);
        b.first = before;
        if (b.n > 0) {
            s->block[nblocks++] = b;
            CRN_TRY(factor_block(s, &s->block[nblocks - 1]));
        } else {
            free(b.covariance);
            free(b.root);
        }
    }
    s->nblocks = nblocks;
    return CAIRN_OK;
}
