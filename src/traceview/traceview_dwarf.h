/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Debugging information of programs and libraries, by elfutils' libdw, which is loaded when it is
 * first needed.
 */
#ifndef CAIRN_TRACEVIEW_DWARF_H
#define CAIRN_TRACEVIEW_DWARF_H

#include "base/base.h"
#include "tracefmt/tracefmt.h"

typedef struct crn_dwarf crn_dwarf;

/* CAIRN_EUNSUPPORTED: this Cairn, or this machine, has no libdw. */
cairn_status crn_dwarf_load(void);

/*
 * Open the program or library at path, if it is the build that was recorded. search: directories,
 * separated by colons, where separate debug files are looked for, too; may be NULL.
 * CAIRN_ENOTFOUND; CAIRN_EMISMATCH: another build, or none can be told.
 */
cairn_status crn_dwarf_open(const char *path, const crn_module *module, const char *search,
                            crn_dwarf **ret);
void crn_dwarf_close(crn_dwarf *d);

/*
 * Put "exchange (halo.c:132)" for the call that returns to off, behind it " < " and the functions
 * that it was made part of by the compiler; the name alone without lines. False: nothing is known.
 */
bool crn_dwarf_put(crn_dwarf *d, uint64_t off, crn_buf *b);

#endif
