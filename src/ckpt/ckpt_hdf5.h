/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HDF5: files for other tools. Seen by src/ckpt only.
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
#ifndef CAIRN_CKPT_HDF5_H
#define CAIRN_CKPT_HDF5_H

#include "base/base.h"
#include "hdf5/hdf5.h"
#include "store/store.h"

/*
 * Make the file name below dirfd, in place of what may be there, with the arrays of a frame, and
 * note in each where its bytes are to be written; those are undefined yet. With pieces, the arrays
 * are virtual: a rank's piece of each is what the rank's own file of the mark says. Not durable.
 */
cairn_status crn_hdf5_frame(int dirfd, const char *name, crn_frame *f, bool pieces);

#endif
