/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growable arrays of any type:
 *
 *     CRN_VEC(int) v = {0};
 *     CRN_TRY(crn_vec_push(&v, 42));
 *     for (size_t i = 0; i < v.n; i++)
 *         use(v.at[i]);
 *     crn_vec_done(&v);
 */
#ifndef CAIRN_BASE_VEC_H
#define CAIRN_BASE_VEC_H

#include <stdlib.h>

#include "base/base_mem.h"

#define CRN_VEC(type)                                                                              \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t n, cap;                                                                             \
    }

/* Make room for at least more items beyond v->n. */
#define crn_vec_reserve(v, more)                                                                   \
    crn_vec_grow((void **)&(v)->at, &(v)->cap, (v)->n, (more), sizeof *(v)->at)

/* Append one item. */
#define crn_vec_push(v, ...)                                                                       \
    (crn_vec_reserve((v), 1) < 0 ? CAIRN_ENOMEM : ((v)->at[(v)->n++] = (__VA_ARGS__), CAIRN_OK))

/* Free the items; the vector is empty and usable again. */
#define crn_vec_done(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)

cairn_status crn_vec_grow(void **at, size_t *cap, size_t n, size_t more, size_t item);

#endif
