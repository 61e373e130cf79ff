/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trial: codecs tried on the values of a mark. Row 4. The calls are <cairn/codecs.h>.
 *
 *   trial_sample.c  which values
 *   trial_try.c     what a setting makes of them
 *
 * Stretches are large enough for any block that a codec wants, and are cut into blocks as a session
 * would do it for the setting.
 */
#ifndef CAIRN_TRIAL_H
#define CAIRN_TRIAL_H

#include <cairn/codecs.h>

#include "base/base.h"
#include "codec/codec.h"
#include "validate/validate.h"

/* A piece of the variable of some rank, in one piece of memory. */
typedef struct trial_stretch {
    size_t off, nbytes; /* in the sample */
    crn_codec_shape shape;
} trial_stretch;

struct cairn_sample {
    crn_elem elem;
    unsigned char *data, *reads; /* what the program had, what a reader gets */
    double *x, *y, *sorted;      /* likewise as numbers, and x in order; NULL for bytes */
    size_t nbytes, nvalues;
    CRN_VEC(trial_stretch) stretch;
    crn_buf scratch, encoded;
    cairn_sample_info info;
};

/* Values of the kind as numbers. */
void crn_trial_numbers(crn_elem elem, const void *from, size_t n, double *to);

#endif
