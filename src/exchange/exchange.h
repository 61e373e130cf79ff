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

#include "base/base.h"
#include "store/store.h"

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
