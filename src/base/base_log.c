/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log: a level test, a scope test, one line.
 */
#include "base/base.h"

#include <stdarg.h>

enum { LINE_MAX_BYTES = 1024 };

static const char *const level_names[] = {
    [CRN_LOG_OFF] = "off",   [CRN_LOG_ERROR] = "error", [CRN_LOG_WARN] = "warn",
    [CRN_LOG_INFO] = "info", [CRN_LOG_STAT] = "stat",   [CRN_LOG_DEBUG] = "debug",
};

cairn_status crn_log_init(crn_log *log, int rank)
{
    const char *word = getenv("CAIRN_LOG");
    *log = (crn_log){.level = CRN_LOG_OFF, .rank = rank};
    if (!word || !*word)
        return CAIRN_OK;
    for (int i = 0; i <= CRN_LOG_DEBUG; i++) {
        if (strcmp(word, level_names[i]) == 0) {
            log->level = (crn_log_level)i;
            return CAIRN_OK;
        }
    }
    return crn_fail(CAIRN_EINVAL,
                    "environment variable 'CAIRN_LOG': no level '%s'; use off, error, warn, info, "
                    "stat or debug",
                    word);
}

void crn_log_write(const crn_log *log, crn_log_level level, crn_log_scope scope, const char *fmt,
                   ...)
{
    if (level > log->level || (scope == CRN_LOG_ROOT && log->rank > 0))
        return;
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    crn_text_clean(line);
    if (log->sink)
        log->sink(log->arg, level, log->rank, line);
    else /* one call, so that lines of several threads and ranks do not mix */
        fprintf(stderr, "cairn: rank %d: %s: %s\n", log->rank, level_names[level], line);
}
