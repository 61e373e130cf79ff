/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Versions. Three are kept apart: of the library (semantic), of the files that hold state, and of
 * trace files. A reader states the range of formats that it accepts (docs/format.md,
 * docs/format/trace.md).
 *
 * Structures that a program hands to calls begin with struct_bytes, which the program sets to the
 * size of the structure. They grow at their end from version to version, and a program works with a
 * library that is newer or older: what its structure does not have counts as 0 and is not told,
 * what the library does not know is left alone. A size that is not set is CAIRN_EINVAL. In what
 * callbacks get, the library sets it. A structure that is a member of another one does not grow.
 */
#ifndef CAIRN_VERSION_H
#define CAIRN_VERSION_H

#define CAIRN_VERSION_MAJOR 0
#define CAIRN_VERSION_MINOR 1
#define CAIRN_VERSION_PATCH 0

#define CAIRN_FORMAT       2 /* part files; it reads those of format 1, too */
#define CAIRN_TRACE_FORMAT 4 /* traces; it reads those of formats 1 to 3, too */

#if defined(__GNUC__)
#define CAIRN_API       __attribute__((visibility("default")))
#define CAIRN_CHECK     __attribute__((warn_unused_result))
#define CAIRN_PRINTF(f) __attribute__((format(printf, f, f + 1)))
#else
#define CAIRN_API
#define CAIRN_CHECK
#define CAIRN_PRINTF(f)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is linked, such as "0.1.0". Not collective. Never fails. */
CAIRN_API const char *cairn_version(void);

#ifdef __cplusplus
}
#endif
#endif
