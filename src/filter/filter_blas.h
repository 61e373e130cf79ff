/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of BLAS and LAPACKE that filters use, loaded when they are first needed: OpenBLAS
 * starts threads as soon as it is loaded, which a model's process must not have.
 */
#ifndef CAIRN_FILTER_BLAS_H
#define CAIRN_FILTER_BLAS_H

#include "filter/filter_ops.h"

#if CRN_WITH_LAPACKE
#include <math.h>

#include <cblas.h>
#include <lapacke.h>

/* What OpenBLAS has beyond the standard; its own header is not always the one that is found. */
void openblas_set_num_threads(int n);
char *openblas_get_corename(void);

#define CRN_BLAS_CALLS(X)    X(cblas_dgemm) X(openblas_set_num_threads) X(openblas_get_corename)
#define CRN_LAPACKE_CALLS(X) X(LAPACKE_dsyev) X(LAPACKE_dgeqrf) X(LAPACKE_dorgqr)

#define CRN_BLAS_MEMBER(name) __typeof__(name) *name;
typedef struct crn_blas {
    CRN_BLAS_CALLS(CRN_BLAS_MEMBER)
} crn_blas;
typedef struct crn_lapacke {
    CRN_LAPACKE_CALLS(CRN_BLAS_MEMBER)
} crn_lapacke;
#undef CRN_BLAS_MEMBER

/* Both, ready and with one thread. CAIRN_EUNSUPPORTED. */
cairn_status crn_filter_load(const crn_blas **blas, const crn_lapacke **lapacke);
#endif

#endif
