/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names inside a trail, shared by the files of this module:
 *
 *     TRAIL/trail                              says that this is one, and its format
 *     TRAIL/RUN/manifest                       the marks that count
 *     TRAIL/RUN/events                         what happened: a line of JSON each
 *     TRAIL/RUN/lock                           held while a program writes the run
 *     TRAIL/RUN/series-<s>/<rank / 1000>/part-<rank>
 *     TRAIL/RUN/series-<s>/mark-<version>.h5             of marks that other tools can read
 *     TRAIL/RUN/series-<s>/mark-<version>.xmf            what of it can be shown
 *     TRAIL/RUN/series-<s>/mark-<version>/rank-<rank>.h5
 *     TRAIL/RUN/trees/<rank / 1000>/trees-<rank>
 */
#ifndef CAIRN_STORE_TRAIL_H
#define CAIRN_STORE_TRAIL_H

#include <sys/stat.h>

#include "store/store_part.h"

enum { PARTS_PER_DIR = 1000, PATH_TEXT = 64, MANIFEST_BYTES_MAX = 1 << 30 };

struct crn_trail {
    int fd;
    char *path;
    crn_share share; /* of what is written to it */
};

struct crn_run {
    int fd;
    crn_file *lock;   /* NULL: opened to read */
    uint64_t seen_ns; /* what crn_run_seen tells */
    struct stat was;  /* of the manifest, before it was read; all 0: there was none */
    char *name;
    bool hidden;      /* its directory has another name: that of crn_hidden_name */
    crn_file *events; /* NULL until something is logged */
    uint64_t events_end;
    crn_manifest manifest;
    bool rebuilt;
};

static inline void crn_series_name(uint32_t series, char buf[PATH_TEXT])
{
    snprintf(buf, PATH_TEXT, "series-%u", series);
}

static inline void crn_fan_name(uint32_t rank, char buf[PATH_TEXT])
{
    snprintf(buf, PATH_TEXT, "%03u", rank / PARTS_PER_DIR);
}

static inline void crn_part_name(uint32_t rank, char buf[PATH_TEXT])
{
    snprintf(buf, PATH_TEXT, "part-%06u", rank);
}

/* The directory of a run that is not to be seen yet. Returns buf. */
static inline char *crn_hidden_name(const unsigned char run[16], char buf[PATH_TEXT])
{
    char id[CRN_RUN_ID_TEXT];
    snprintf(buf, PATH_TEXT, ".%s.tmp", crn_run_id_format(run, id));
    return buf;
}

/* The name that a run is to have: name, which no other may have, or if that is NULL the first free
 * "run-N", in chosen. */
cairn_status crn_trail_choose_name(const crn_trail *t, const char *name, char chosen[PATH_TEXT],
                                   const char **ret);

/* Make the directory of a run, take its lock, and write a manifest without marks. */
cairn_status crn_run_begin(crn_trail *t, const char *name, bool hidden, crn_run **ret);

/* Remove what is in a directory, so many levels deep, and the directory itself; or what is none. */
cairn_status crn_tree_remove(int up, const char *name, int depth, uint64_t *nfiles);

/* Is name that of a series, written as we write it? Then *ret is its number. */
bool crn_series_parse(const char *name, uint32_t *ret);

/*
 * The ranks that have a file called prefix and their number in the fan below dir, ascending; none
 * where there is no dir. Free *ret, also after a failure.
 */
typedef CRN_VEC(uint32_t) crn_ranks;
cairn_status crn_run_ranks(const crn_run *run, const char *dir, const char *prefix, crn_ranks *ret);

/* Open the directory of a rank's part; create makes it, durably. */
cairn_status crn_run_part_dir(crn_run *run, uint32_t series, uint32_t rank, bool create,
                              int *ret_fd);

/*
 * Derive a run's manifest from its part files: a mark counts when every rank of its series has it.
 * The log of a run without any tells who it is. CAIRN_ENOTFOUND when it was never begun,
 * CAIRN_ECORRUPT when its identity is lost.
 */
cairn_status crn_run_rebuild(crn_run *run);

#endif
