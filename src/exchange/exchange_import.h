/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark made of an HDF5 file: first all of the file is looked at (exchange_look.c), then it is
 * taken over (exchange_import.c). Seen by src/exchange only.
 */
#ifndef CAIRN_EXCHANGE_IMPORT_H
#define CAIRN_EXCHANGE_IMPORT_H

#include <cairn/exchange.h>

#include "exchange/exchange.h"
#include "hdf5/hdf5.h"

/* A dataset that becomes a variable. All of its elements together have at most INT64_MAX bytes. */
typedef struct crn_source {
    char *name, *type, *attributes;
    hid_t dataset, memory; /* memory: the type as it is read */
    uint32_t ndims;        /* 0: a single value, which every rank gets */
    uint64_t dims[CRN_DIMS_MAX];
    size_t item;
    bool by_rank;
    uint64_t *start; /* by rank: where each rank's elements begin, flat; nranks + 1 */
} crn_source;

typedef struct crn_importer {
    const cairn_import_options *how;
    cairn_import_result result;
    const crn_h5 *h5; /* locked */
    hid_t file;
    uint32_t nranks;
    CRN_VEC(crn_source) source;
    uint64_t total_bytes;
    crn_trail *trail;
    crn_run *run;
    unsigned char *window;
} crn_importer;

/* Open the file and find all that can become a variable; the rest is counted. */
cairn_status crn_import_look(crn_importer *im);

/* Close the file and what belongs to it; one that was never opened is allowed. */
void crn_import_leave(crn_importer *im);

#endif
