/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that people ask a tool for by name: reports, traces. What a run is resumed from never
 * passes here but through io, which knows of directories, locks and injected faults.
 */
#ifndef CAIRN_BASE_OUTPUT_H
#define CAIRN_BASE_OUTPUT_H

#include <stddef.h>

#include "base/base_err.h"

/*
 * Make data the content of the file at path: written to "<path>.new", which only the owner may
 * read, synced and renamed, so that a reader sees the old file or the new one. What is there and no
 * regular file, as a pipe or /dev/stdout, is written to and stays. As crn_fail_sys.
 */
cairn_status crn_output_write(const char *path, const void *data, size_t nbytes);

#endif
