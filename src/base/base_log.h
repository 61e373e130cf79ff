/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log. Silent unless asked: CAIRN_LOG=error|warn|info|stat|debug, or a sink given by the
 * program. A crn_log belongs to a context; there is no process-wide one.
 *
 *   error  never in a clean run
 *   warn   something was lost, slow or ignored, and the run goes on
 *   info   a few lines per public call at most
 *   stat   numbers for machines
 *   debug  what a developer wants to see
 *
 * Code below row 4 never logs above debug: it returns an error instead.
 */
#ifndef CAIRN_BASE_LOG_H
#define CAIRN_BASE_LOG_H

#include <stdbool.h>

#include "base/base_err.h"

typedef enum crn_log_level {
    CRN_LOG_OFF,
    CRN_LOG_ERROR,
    CRN_LOG_WARN,
    CRN_LOG_INFO,
    CRN_LOG_STAT,
    CRN_LOG_DEBUG
} crn_log_level;

typedef enum crn_log_scope {
    CRN_LOG_ROOT, /* rank 0 speaks for all */
    CRN_LOG_EACH  /* every rank speaks */
} crn_log_scope;

/* Receives one finished line without its end; may be called by the engine thread as well. */
typedef void crn_log_sink(void *arg, crn_log_level level, int rank, const char *line);

typedef struct crn_log {
    crn_log_level level; /* written before threads start, read by all */
    int rank;
    crn_log_sink *sink; /* NULL: standard error */
    void *arg;
} crn_log;

/* Level from CAIRN_LOG (an unknown word is CAIRN_EINVAL), sink standard error. */
cairn_status crn_log_init(crn_log *log, int rank);

void crn_log_write(const crn_log *log, crn_log_level level, crn_log_scope scope, const char *fmt,
                   ...) CAIRN_PRINTF(4);

#endif
