/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a study needs of the machine that it is checked on: memory of the server, room for the
 * states that are kept, files, jobs, time; and what its observations cover.
 */
#include "ensemble/ensemble_server.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { SPARE_FILES = 64 }; /* of a process that also has shelves, logs and libraries open */

static uint64_t available_memory(void)
{
    unsigned long long kib = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return (uint64_t)kib << 10;
}

static void memory(crn_server *s)
{
    const crn_study *t = s->study;
    const uint64_t states = 2 * (uint64_t)t->members + t->runners, rows = s->layout.nrows * 8;
    const double need =
        (double)states * (double)s->layout.nbytes + (double)t->members * (double)rows;
    const double have = (double)available_memory();
    char a[CRN_NUMBER_TEXT], b[CRN_NUMBER_TEXT];
    crn_check_say(s, "memory", have == 0 ? -1 : need <= have,
                  "the server needs %s for %" PRIu64 " states; %s are available here",
                  crn_format_nbytes((uint64_t)need, a, sizeof a), states,
                  crn_format_nbytes((uint64_t)have, b, sizeof b));
}

/* States on the shelf at once: of an analysis the new and the last; of backgrounds those of the
 * last cycle, until its analysis is safe, and those that come. */
static uint64_t kept_states(const crn_study *t)
{
    const unsigned sets = t->keep == CRN_KEEP_BOTH ? 4 : t->keep == CRN_KEEP_NONE ? 0 : 2;
    return (uint64_t)sets * t->members;
}

static void room(crn_server *s)
{
    struct statvfs v;
    char a[CRN_NUMBER_TEXT], b[CRN_NUMBER_TEXT];
    const double need = (double)kept_states(s->study) * (double)s->layout.nbytes;
    if (statvfs(s->study->dir, &v) != 0)
        return;
    const double have = (double)v.f_bavail * (double)v.f_frsize;
    crn_check_say(s, "room", need <= have,
                  "at most %" PRIu64 " states are kept, %s; '%s' has room for %s",
                  kept_states(s->study), crn_format_nbytes((uint64_t)need, a, sizeof a),
                  s->study->dir, crn_format_nbytes((uint64_t)have, b, sizeof b));
}

static void files(crn_server *s, uint32_t nranks)
{
    struct rlimit limit;
    const uint64_t sockets = (uint64_t)s->study->runners * nranks + 1, need = sockets + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    crn_check_say(s, "files", need <= limit.rlim_cur,
                  "the server has up to %" PRIu64 " connections and files open; %" PRIu64
                  " are allowed here (ulimit -n)",
                  need, (uint64_t)limit.rlim_cur);
}

static void jobs(crn_server *s, uint32_t nranks, double task_s)
{
    const crn_study *t = s->study;
    char a[CRN_NUMBER_TEXT], b[CRN_NUMBER_TEXT];
    const uint64_t waves = (t->members + (uint64_t)t->runners - 1) / t->runners;
    crn_check_say(s, "jobs", 1, "%u runners of %u ranks and a server: %" PRIu64 " processes",
                  t->runners, nranks, (uint64_t)t->runners * nranks + 1);
    crn_format_seconds(task_s, a, sizeof a);
    crn_format_seconds(task_s * (double)waves * t->cycles, b, sizeof b);
    crn_check_say(s, "time", 1, "a member takes %s, so %u cycles at least %s, without the updates",
                  a, t->cycles, b);
    if (t->members % t->runners != 0 && t->members / t->runners < 5)
        crn_check_say(s, "share", 1,
                      "%u members on %u runners keep them busy for %.0f%% of a cycle", t->members,
                      t->runners, 100.0 * t->members / ((double)waves * t->runners));
}

static void observations(crn_server *s)
{
    uint64_t ncycles = 0, late = 0;
    if (!s->study->observations[0]) {
        crn_check_say(s, "observations", -1, "none: the members run free");
        return;
    }
    crn_obs_cover(s->obs, s->study->cycles, &ncycles, &late);
    crn_check_say(s, "observations", ncycles > 0,
                  "%" PRIu64 ", all of fields of the model; %" PRIu64
                  " of %u cycles have some, %" PRIu64 " are of no cycle",
                  crn_obs_count(s->obs), ncycles, s->study->cycles, late);
}

void crn_needs_report(crn_server *s, uint32_t nranks, double task_s)
{
    observations(s);
    memory(s);
    room(s);
    files(s, nranks);
    jobs(s, nranks, task_s);
}
