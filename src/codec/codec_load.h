/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries of codecs that are loaded when they are first used, because they bring run-times of
 * other languages along (zfp: OpenMP's, fpzip: C++'s), which a C program should not get for
 * nothing.
 */
#ifndef CAIRN_CODEC_LOAD_H
#define CAIRN_CODEC_LOAD_H

#include <pthread.h>

#include "codec/codec.h"

typedef struct crn_codec_library {
    const char *file;         /* as the loader knows it */
    const char *const *names; /* of functions, ended by NULL */
    void **calls;             /* where they go, one after the other */
    pthread_mutex_t mutex;
    _Atomic bool loaded;
} crn_codec_library;

/* Load it, once; any thread may call it. CAIRN_EUNSUPPORTED. */
cairn_status crn_codec_load(crn_codec_library *library);

#endif
