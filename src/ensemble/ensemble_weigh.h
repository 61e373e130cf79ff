/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The weight of a particle, computed where its state is: each rank picks what it has of the
 * observations' elements, the ranks put these together, and all compute the same sum in the order
 * of the observations. Any layout gives the same bits.
 */
#ifndef CAIRN_ENSEMBLE_WEIGH_H
#define CAIRN_ENSEMBLE_WEIGH_H

#include "ensemble/ensemble_member.h"
#include "ensemble/ensemble_study.h"

typedef struct crn_weigher crn_weigher;

/* For the fields of a model, with this rank's pieces. */
cairn_status crn_weigher_create(const crn_study *study, const crn_state_fields *pieces,
                                crn_weigher **ret);
void crn_weigher_free(crn_weigher *w); /* NULL is allowed */

/* The logarithm of the likelihood of a cycle's observations, without its constant: 0 at most, and 0
 * where there are none; NAN where the member gives no number to compare with. Collective. */
cairn_status crn_weigh(crn_weigher *w, const cairn_ensemble *e, uint32_t cycle, double *ret);

#endif
