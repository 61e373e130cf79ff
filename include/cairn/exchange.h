/* SPDX-License-Identifier: BSD-3-Clause
 *
 * State for other tools, and from them: marks as HDF5 files, which h5dump, h5py, ParaView and the
 * like read without Cairn, and marks made of HDF5 files, so that a program can start from data that
 * it did not write itself. 'cairn export' and 'cairn import' are made of these calls; a session
 * writes such files by itself when its configuration says so (global.format). One process, no MPI.
 *
 * In the file every variable is a dataset; slashes in its name are groups. Pieces of a global array
 * (cairn_protect_part) are joined to that array. Of other variables the ranks' elements lie one
 * behind the other: as ranks x elements where all have as many, else as a list, with the place
 * where each rank begins in /cairn/starts. Attributes: what cairn_describe said of each variable;
 * run, version, time (seconds since 1970), date and nranks of the file.
 *
 * Returns are codes of <cairn/error.h>; the sentence is cairn_error_text(). All of them return
 * CAIRN_EUNSUPPORTED where the HDF5 library is not installed.
 */
#ifndef CAIRN_EXCHANGE_H
#define CAIRN_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called from time to time. Nonzero ends the work: CAIRN_NOTHING, and nothing was made. */
typedef int cairn_progress_fn(void *arg, uint64_t done_bytes, uint64_t total_bytes);

typedef struct cairn_export_options {
    size_t struct_bytes; /* <cairn/version.h> */
    const char *trail, *run;
    uint64_t version;            /* of the mark, which must be in the trail */
    const char *path;            /* of the file to make; one that is there is replaced at the end */
    const char *series;          /* name of an XDMF file beside it that is to have the mark as its
                                    next moment, the first one making it anew; or NULL */
    cairn_progress_fn *progress; /* or NULL */
    void *arg;
    uint64_t nmoments; /* moments that series has so far: 0, or that of the last result */
} cairn_export_options;

typedef struct cairn_export_result {
    size_t struct_bytes;
    uint64_t nvars, nbytes; /* datasets, and bytes in them */
    uint64_t nmoments;      /* moments that series has now */
} cairn_export_result;

/*
 * Make an HDF5 file of a mark, each block verified on the way, and an XDMF file beside it (the
 * path's ".h5" replaced by ".xmf") if it has an array that can be shown. Not collective. On failure
 * what was at path stays. ret may be NULL. CAIRN_ENOTFOUND (no such run or mark, or not in the
 * trail), CAIRN_ECORRUPT, CAIRN_EMISMATCH (ranks disagree on a variable), CAIRN_EUNSUPPORTED,
 * CAIRN_EIO, CAIRN_ENOSPC, CAIRN_ENOMEM, CAIRN_EINVAL.
 */
CAIRN_API CAIRN_CHECK int cairn_export(const cairn_export_options *how, cairn_export_result *ret);

typedef struct cairn_import_options {
    size_t struct_bytes; /* <cairn/version.h> */
    const char *path;    /* of the HDF5 file */
    const char *trail;   /* made if there is none */
    const char *run;     /* to be made; NULL: the next free "run-N" */
    uint64_t version;    /* of the mark */
    uint32_t nranks;     /* to cut arrays for, along their first dimension; 0: as many as the file
                            says, which is one if it does not come from Cairn */
    cairn_progress_fn *progress; /* or NULL */
    void *arg;
} cairn_import_options;

typedef struct cairn_import_result {
    size_t struct_bytes;
    char name[129];         /* of the run */
    uint64_t nvars, nbytes; /* variables, and bytes of state */
    uint64_t nskipped; /* datasets whose elements are no numbers or that lie in other files, and
                          groups that were met before: left out */
} cairn_import_result;

/*
 * Make a run with one mark of the datasets of an HDF5 file. A program that protects variables of
 * these names and types resumes from it. An array of up to 8 dimensions becomes a global one; a
 * single value, and a variable of each rank in a file that Cairn wrote, is a variable of each rank
 * again. Not collective; ret may be NULL. CAIRN_ENOTFOUND (no such file), CAIRN_EIO (not HDF5, or
 * it cannot be read), CAIRN_EBUSY (the run exists), CAIRN_EMISMATCH (the ranks that the file has
 * variables of are not nranks), CAIRN_EUNSUPPORTED, CAIRN_ENOSPC, CAIRN_ENOMEM, CAIRN_EINVAL.
 */
CAIRN_API CAIRN_CHECK int cairn_import(const cairn_import_options *how, cairn_import_result *ret);

#ifdef __cplusplus
}
#endif
#endif
