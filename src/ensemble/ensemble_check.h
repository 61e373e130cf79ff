/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What launcher and server agree on about a check: how many runners it needs.
 */
#ifndef CAIRN_ENSEMBLE_CHECK_H
#define CAIRN_ENSEMBLE_CHECK_H

#include "ensemble/ensemble_study.h"

enum { CRN_CHECK_RUNNERS = 2 /* as the study starts them */, CRN_CHECK_MEMBERS = 2 };

/* A command that starts the model on another number of ranks, the caller's to free; NULL: none is
 * known. */
cairn_status crn_check_other(const crn_study *s, char **ret);

#endif
