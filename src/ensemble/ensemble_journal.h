/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal of a particle filter's server: lines of text, each with a digest of its own. A line
 * is written before what it says counts for others, and synced later, with others; the whole is
 * replaced at each resampling. docs/format/ensemble.md describes the lines.
 */
#ifndef CAIRN_ENSEMBLE_JOURNAL_H
#define CAIRN_ENSEMBLE_JOURNAL_H

#include "ensemble/ensemble_study.h"

typedef struct crn_journal {
    const crn_study *study;
    char *path;
    int fd;
    uint64_t nunsynced, written_ns; /* lines, and since when */
    uint64_t nlines, die_at;        /* of this process; for tests: it ends at this one, */
    bool dies_after;                /* before or after it is written */
} crn_journal;

/* Called for each line, without its digest. A failure ends the reading. */
typedef cairn_status crn_journal_fn(void *arg, const char *line);

/*
 * Open the study's journal, and read what it has. A last line that was cut is removed;
 * CAIRN_ECORRUPT: another one is damaged, or none is whole. CAIRN_NOTHING: there was none, or it is
 * empty. Close it in any case.
 */
cairn_status crn_journal_open(crn_journal *j, const crn_study *study, crn_journal_fn *fn,
                              void *arg);
void crn_journal_close(crn_journal *j);

/* The same from a file that is open already. */
cairn_status crn_journal_read(const crn_journal *j, FILE *f, crn_journal_fn *fn, void *arg);

/* Add a line. CAIRN_EIO, CAIRN_ENOSPC. */
cairn_status crn_journal_add(crn_journal *j, const char *fmt, ...) CAIRN_PRINTF(2);

/* Make durable what was written; cheap if nothing was. due: only if it is time to. */
cairn_status crn_journal_sync(crn_journal *j, bool due);

/* A line for crn_journal_replace: text with its digest. */
void crn_journal_line(crn_buf *b, const char *fmt, ...) CAIRN_PRINTF(2);

/* Replace all that the journal has by these lines, durably, at once or not at all. */
cairn_status crn_journal_replace(crn_journal *j, crn_buf *lines);

#endif
