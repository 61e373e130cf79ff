/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parts of 'cairn codecs': which settings are tried, which one meets a wish, and how fast this
 * machine's storage is.
 */
#ifndef CAIRN_CMD_CODECS_H
#define CAIRN_CMD_CODECS_H

#include <cairn/codecs.h>

#include "cmd/cmd.h"

/* A setting that was tried. */
typedef struct codecs_row {
    cairn_trial trial;
    bool front;           /* no other one is as small and as exact, and better in one of these */
    double safe, restart; /* times, by those without a codec; NAN: storage was not measured */
} codecs_row;

typedef CRN_VEC(codecs_row) codecs_rows;

/* What a user wants of what a reader gets; NAN: nothing. */
typedef struct codecs_wish {
    double max, rel, rms, psnr, rho, ssim, ks;
    char loss[96]; /* that a session keeps: max and rel */
} codecs_wish;

/* From "rho=0.99999,ssim=0.9995,max=1e-3"; false after an error was set (crn_err_peek). */
bool codecs_parse_wish(const char *text, codecs_wish *ret);

/* Bytes a second; 0: not measured. */
typedef struct codecs_storage {
    double write, read;
} codecs_storage;

/* Write and read a file without a name in a folder; what cannot be measured is 0. */
codecs_storage codecs_measure(const char *folder);

/* Called before each trial. */
typedef void codecs_step_fn(void *arg, size_t done, size_t all);

/* Try the usual settings. CAIRN_OK, or the library's failure (cairn_error_text). */
int codecs_try_usual(cairn_sample *s, const cairn_sample_info *info, codecs_step_fn *step,
                     void *arg, codecs_rows *ret);

/* Try all settings of all codecs, and find the smallest that meets the wish. */
int codecs_search(cairn_sample *s, const cairn_sample_info *info, const codecs_wish *wish,
                  codecs_step_fn *step, void *arg, codecs_row *ret);

/* Mark the front of the rows, and set their times, of which the first has no codec. */
void codecs_rank(codecs_rows *rows, const codecs_storage *storage);
void codecs_set_times(codecs_row *row, const codecs_row *none, const codecs_storage *storage);

#endif
