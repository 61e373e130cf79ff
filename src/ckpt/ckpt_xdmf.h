/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XDMF: small XML files beside HDF5 ones that tell ParaView and VisIt which datasets are fields on
 * a grid, and which files follow each other in time. Seen by src/ckpt only.
 */
#ifndef CAIRN_CKPT_XDMF_H
#define CAIRN_CKPT_XDMF_H

#include "store/store.h"

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
