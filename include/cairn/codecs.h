/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trying codecs on the values of a mark: how small, how fast and how exact would a variable be with
 * a setting of '[variable] codec' and 'loss'? 'cairn codecs' is made of these calls. One process,
 * no MPI.
 *
 *     cairn_sample_options of = {.struct_bytes = sizeof of, .trail = "trail", .run = "run-1",
 *                                .version = 100, .variable = "temperature"};
 *     cairn_trial result = {.struct_bytes = sizeof result};
 *     cairn_sample *s;
 *     if (cairn_sample_take(&of, &s) == CAIRN_OK) {
 *         if (cairn_sample_try(s, "zfp", "abs 1e-6", CAIRN_TRIAL_ALL, &result) == CAIRN_OK)
 *             printf("rate %g, largest error %g\n", result.rate, result.error);
 *         cairn_sample_free(s);
 *     }
 *
 * Returns are codes of <cairn/error.h>; the sentence is cairn_error_text().
 */
#ifndef CAIRN_CODECS_H
#define CAIRN_CODECS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_sample cairn_sample;

typedef struct cairn_sample_options {
    size_t struct_bytes; /* <cairn/version.h> */
    const char *trail, *run;
    uint64_t version; /* of a mark that is in the trail */
    const char *variable;
    uint64_t sample_bytes; /* of values, over all ranks, taken at random; 0: 8 MiB */
    uint64_t seed;         /* another one takes others */
} cairn_sample_options;

typedef struct cairn_sample_info {
    size_t struct_bytes;
    char type[16];                /* "float64", "float32", or "bytes" for all others */
    uint32_t ndims;               /* that codecs see */
    uint64_t nbytes;              /* of the variable over all ranks, */
    uint64_t sample_bytes;        /* and of the sample; the same where it is all */
    uint64_t nstretches, nsample; /* stretches of memory in the variable, and in the sample */
    double min, max;              /* of the finite values */
    uint64_t nspecial;            /* values that are not finite */
    int bits;           /* of the mantissa that hold 99% of what neighbours tell of each other; -1:
                           they tell nothing, or these are no numbers */
    double information; /* in bits a value */
    char lost[96];      /* what a codec may have lost of these values already, or "" */
} cairn_sample_info;

/*
 * Take a sample of a variable in a mark: stretches of memory, each with the same probability,
 * verified. Not collective. CAIRN_ENOTFOUND (no such run, mark or variable, or not in the trail),
 * CAIRN_ECORRUPT, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EINVAL.
 */
CAIRN_API CAIRN_CHECK int cairn_sample_take(const cairn_sample_options *of, cairn_sample **ret);

/* Free a sample; NULL is allowed. */
CAIRN_API void cairn_sample_free(cairn_sample *s);

/* Describe it. Never fails but for CAIRN_EINVAL. */
CAIRN_API CAIRN_CHECK int cairn_sample_describe(const cairn_sample *s, cairn_sample_info *ret);

/* What takes longest to find out: similarity of planes, and the test of distributions. */
#define CAIRN_TRIAL_SSIM 1u
#define CAIRN_TRIAL_KS   2u
#define CAIRN_TRIAL_ALL  3u

/* What became of a sample. Without errors of values it is as exact as can be: error 0, psnr
 * infinite, ssim and ks_p 1. */
typedef struct cairn_trial {
    size_t struct_bytes;
    char codec[96], loss[96]; /* as a configuration has them */
    bool lossy;               /* the setting may lose something */
    uint64_t nblocks, nbytes, stored;
    uint64_t nstricter, nunbound, nspecial, nsmaller, naside; /* fallbacks, as cairn-show(1) */
    double rate;                                              /* bytes in memory by those stored */
    double rate_low, rate_high; /* between these with 95% confidence for the whole variable */
    double encode, decode;      /* bytes of memory a second, each block checked on the way */
    double error, rms;          /* the largest, and the root of the mean square */
    double exceeding;           /* with 95% confidence, at most this share of the variable's
                                   stretches has a larger error; 0: the sample is all */
    double psnr;                /* dB */
    double decorrelation;       /* 1 - rho */
    double ssim; /* the smallest of the planes of the last two dimensions; NAN: there are none */
    double ks, ks_p; /* distance of the distributions, and how likely that is by chance */
} cairn_trial;

/*
 * Store the sample as a setting says, get it back, and compare. what: CAIRN_TRIAL_SSIM and
 * CAIRN_TRIAL_KS, else those are NAN. Not collective; a sample is used by one thread at a time.
 * CAIRN_EINVAL (no such setting), CAIRN_EUNSUPPORTED (not in this build), CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_sample_try(cairn_sample *s, const char *codec, const char *loss,
                                           unsigned what, cairn_trial *ret);

#ifdef __cplusplus
}
#endif
#endif
