/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ensembles side by side, to learn what loss does to them: number 0 is coded without loss, each
 * other one with a setting of its own. State ensemble * members + p is member p of an ensemble, and
 * means the same in all of them: perturbations are keyed by cycle and member, and the update is
 * that of ensemble 0. States are coded before each propagation, also the first.
 *
 * A validation has two parts, each a study in a directory of its own: "plain", and, where
 * validate.noise is above 0, "noise", in which a small perturbation is keyed by ensemble, too, and
 * a second ensemble without loss stands beside the first.
 *
 *     c<cycle>.rates    what coding before the cycle's propagation gained, as the server wrote it
 *     c<cycle>.carried  of a particle filter: log-weights from the cycles before
 *     c<cycle>.ready    weights; all backgrounds of the cycle are on the shelf
 *     c<cycle>.s<n>     sums of a slice, as a validator left them
 *     c<cycle>.tests    tests of distributions; c<cycle>.ranks: ranks; c<cycle>.functions
 *     c<cycle>.csv      statistics of the cycle: it is validated
 */
#ifndef CAIRN_ENSEMBLE_SIDE_H
#define CAIRN_ENSEMBLE_SIDE_H

#include "codec/codec.h"
#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_study.h"
#include "validate/validate.h"

typedef struct crn_coding {
    char name[CRN_CODEC_TEXT]; /* as crn_codec_parse takes it; "none" for ensembles without loss */
    crn_codec_setting setting;
} crn_coding;

typedef CRN_VEC(crn_coding) crn_codings;

typedef CRN_VEC(char *) crn_name_list;

typedef struct crn_side {
    bool noisy;             /* the second part */
    crn_codings coding;     /* of each ensemble; [0] is none */
    crn_name_list variable; /* that are coded; none: all of floating-point values */
    uint32_t validators, lag;
    double perturb, noise;
    double discoveries; /* share of wrong ones among rejected distributions */
    crn_thresholds thresholds;
} crn_side;

/* Make a study that was opened one of ensembles side by side, in its own directory. CAIRN_EINVAL:
 * its configuration has no settings, or wrong ones, and what cannot be with them. */
cairn_status crn_side_open(crn_study *s, bool noisy);
void crn_side_free(crn_side *side); /* NULL is allowed */

/* Settings from a JSON file as seed 003's Listing 9.1 has it. CAIRN_EINVAL names the line. */
cairn_status crn_listing_read(const char *path, crn_codings *ret, crn_name_list *ret_variables);

/* Settings from words: "zfp:precision=16|24 f32" are three. CAIRN_EINVAL. */
cairn_status crn_codings_parse(const char *words, crn_codings *ret);

/* Is a field coded, and compared? */
bool crn_side_takes(const crn_side *side, const crn_state_field *f);

/* Code and decode a field of a state in place; *ret_rate is its bytes over the coded ones. */
cairn_status crn_field_code(const crn_codec_setting *setting, const crn_state_field *f, void *data,
                            double *ret_rate);

/* Name of a file of a cycle: "c000017.csv". */
char *crn_side_name(uint32_t cycle, const char *what, char buf[48]);

/* Is there such a file? */
bool crn_side_has(const crn_study *s, uint32_t cycle, const char *what);

/* The last of the cycles after from that are validated without a gap. */
uint32_t crn_side_validated(const crn_study *s, uint32_t from);

/* --- validators ----------------------------------------------------------------------------- */

/* Be a validator of a study whose launcher has started this process; ends when all cycles are
 * validated. */
cairn_status crn_validator_run(crn_study *s);

/* --- results -------------------------------------------------------------------------------- */

/* All that was found: stats[((cycle * nfields + field) * nensembles + ensemble) * members + p]. */
typedef struct crn_results {
    uint32_t ncycles, nensembles, nmembers;
    crn_name_list field;
    crn_name_list setting; /* of ensembles */
    crn_spread_stats *stats;
    double *rate, *ssim;
} crn_results;

/* The tables of a validation as validation.h5: groups by variable and setting. */
cairn_status crn_validation_export(const crn_study *s);

cairn_status crn_results_read(const crn_study *s, crn_results *ret);
void crn_results_done(crn_results *r);
size_t crn_results_at(const crn_results *r, uint32_t cycle, uint32_t field, uint32_t ensemble,
                      uint32_t member);

#endif
