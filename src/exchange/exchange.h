/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange: marks as files of other tools, and back: HDF5 and XDMF. Row 3.
 *
 * The calls that users have are <cairn/exchange.h>; here is what a session needs to let the vault
 * make such files (crn_frame_fn).
 *
 * Design. HDF5 lays a file out and reads foreign ones; the bytes of variables never pass through
 * it. A frame is made first: groups, datasets with their space reserved in one piece, attributes.
 * Where each dataset begins is then known (H5Dget_offset), and all ranks write their pieces there
 * at once with Cairn's own input and output, past the page cache, in the background, with faults
 * injected like everywhere else.
 *
 * Why not through the library on all ranks: no parallel HDF5 is safe to be called by two threads at
 * once, so that the engine's thread could not write for a program that uses HDF5 itself.
 */
#ifndef CAIRN_EXCHANGE_EXCHANGE_H
#define CAIRN_EXCHANGE_EXCHANGE_H

#include <cairn/exchange.h>

#include "base/base.h"
#include "store/store.h"

/* --- files of shares ----------------------------------------------------------------------- */

/* What a file is made of: shares of ranks, each in a part. */
typedef struct crn_export_source {
    const char *name; /* that the file has as its run, */
    uint64_t version, wall_ns, nbytes;
    uint32_t nranks;
    /* The share of a rank; whoever asks frees the mark and closes the part. */
    cairn_status (*open)(void *arg, uint32_t rank, crn_part **ret_part, crn_mark **ret);
    void *arg;
} crn_export_source;

/* Make it, at how->path, as cairn_export does; trail, run and version of how are not looked at. */
cairn_status crn_export_shares(const crn_export_source *from, const cairn_export_options *how,
                               cairn_export_result *ret);

/* What callers say of it, checked: *ours is a copy. ret may be NULL. */
cairn_status crn_export_check(const cairn_export_options *how, cairn_export_options *ours,
                              const cairn_export_result *ret);

/* --- frames -------------------------------------------------------------------------------- */

/*
 * Make the file name below dirfd, in place of what may be there, with the arrays of a frame, and
 * note in each where its bytes are to be written; those are undefined yet. With pieces, the arrays
 * are virtual: a rank's piece of each is what the rank's own file of the mark says. Not durable.
 */
cairn_status crn_hdf5_frame(int dirfd, const char *name, crn_frame *f, bool pieces);

/* --- XDMF --------------------------------------------------------------------------------- */

/*
 * Small XML files beside HDF5 ones that show ParaView and VisIt which datasets are fields on a
 * grid, and which files follow each other in time.
 */
enum { CRN_XDMF_BYTES_MAX = 16 << 20 }; /* of a file that is read again */

/*
 * Write the fields of a frame, whose HDF5 file is called h5 there, to name below dirfd: global
 * arrays of two or three dimensions with elements that are numbers. CAIRN_NOTHING: there is none.
 */
cairn_status crn_xdmf_write(int dirfd, const char *name, const crn_frame *f, const char *h5);

/*
 * A time series: begin it, add the moment of a file that crn_xdmf_write made (before stands before
 * the names of HDF5 files in it, which lie elsewhere then), and put it in place.
 */
void crn_xdmf_begin(crn_buf *b);
cairn_status crn_xdmf_reopen(crn_buf *b, int dirfd, const char *name); /* what was put in place */
cairn_status crn_xdmf_add(crn_buf *b, int dirfd, const char *name, const char *before);
cairn_status crn_xdmf_end(crn_buf *b, int dirfd, const char *name);

#endif
