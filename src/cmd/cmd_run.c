/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn run: start a program in a trail, and when it dies start it again so that it resumes, as
 * long as that gets anywhere.
 */
#include "cmd/cmd_run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = "cairn run [OPTION ...] -- LAUNCHER [ARGUMENT ...]";

enum { PAUSE_MAX_S = 300, HANG_MIN_S = 2, LIMIT_MAX_S = 1000000000 };

typedef struct supervisor {
    /* as given */
    const char *trail, *drain_with, *ranks_by;
    bool drain, requeue;
    uint64_t tries, fruitless, min_ranks; /* min_ranks 0: always as many as given */
    double pause_s, hang_s, limit_s, grace_s;
    /* as it goes */
    run_place place;
    crn_launcher launcher;
    crn_signals signals;
    crn_offspring offspring;
    uint64_t full_ranks; /* as many as given */
    uint64_t until_ns;   /* by crn_now_ns; 0: there is no limit */
    uint64_t ntries;
    uint64_t nfailures; /* in a row without a new mark between them */
    run_state before;   /* at the last failure, or the start */
} supervisor;

typedef enum verdict { DONE, STOPPED, FAILED } verdict;

void cmd_run_say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cmd_vfail(fmt, ap);
    va_end(ap);
}

/* Of the supervision: its failure is reported. */
static int result(cairn_status rc)
{
    return rc == CAIRN_OK ? CMD_YES : cmd_fail("%s", crn_err_peek()->text);
}

static void say(const char *sentence)
{
    cmd_run_say("%s", sentence);
}

/* --- commands of our own ------------------------------------------------------------------ */

/* Start 'cairn drain' as configured, and wait for it. What it cannot bring the program may still
 * find. */
static void drain(supervisor *s)
{
    char self[PATH_MAX], *command, text[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (asprintf(&command, "%s '%s' drain \"$CAIRN_RUN_TRAIL/$CAIRN_RUN_NAME\"",
                 s->drain_with ? s->drain_with : "", self) < 0)
        return;
    (void)crn_shell_run(command, &s->offspring, &s->signals, false, text, sizeof text);
    free(command);
    if (text[0])
        cmd_run_say("drain: %s", text);
}

static int requeue(supervisor *s)
{
    char line[512];
    if (!s->requeue)
        return CMD_NO;
    cmd_run_say("requeueing the job, which goes on from there"); /* afterwards Slurm ends this */
    if (crn_shell_run("scontrol requeue \"$SLURM_JOB_ID\" 2>&1", &s->offspring, &s->signals, true,
                      line, sizeof line) != 0)
        return cmd_fail("cannot requeue the job: %s", line[0] ? line : "is 'scontrol' there?");
    return CMD_NO;
}

/* When there is no program that could be asked to leave. */
static int told_to_stop(supervisor *s)
{
    cmd_run_say("asked to stop; start this again to continue");
    return requeue(s);
}

/* --- ranks -------------------------------------------------------------------------------- */

/* How many there may be now: as a command says, or, after a start that came to nothing, fewer by
 * those of one node. */
static uint64_t ranks_now(supervisor *s, const run_state *now)
{
    char line[512];
    uint64_t n;
    if (s->ranks_by) {
        int status =
            crn_shell_run(s->ranks_by, &s->offspring, &s->signals, false, line, sizeof line);
        if (status == 0 && crn_parse_count(line, &n) == CAIRN_OK)
            return n;
        if (s->signals.nleave == 0)
            cmd_run_say("'%s' gives no number of ranks, but '%s'", s->ranks_by, line);
        return s->launcher.nranks;
    }
    const uint64_t nodes = now->nnodes > 1 ? (uint64_t)now->nnodes : s->full_ranks;
    const uint64_t step = (s->full_ranks + nodes - 1) / nodes;
    n = s->launcher.nranks;
    return s->nfailures > 1 ? n - CRN_MIN(step, n) : n;
}

/* Choose the number of ranks for the next leg. */
static int adapt(supervisor *s, const run_state *now)
{
    if (s->min_ranks == 0)
        return CMD_YES;
    uint64_t n = ranks_now(s, now);
    n = CRN_MAX(CRN_MIN(n, s->full_ranks), s->min_ranks);
    if (n == s->launcher.nranks)
        return CMD_YES;
    cmd_run_say("going on with %" PRIu64 " rank%s instead of %" PRIu64, n, n == 1 ? "" : "s",
                s->launcher.nranks);
    s->nfailures = 1; /* another attempt, not the same again */
    return result(crn_launcher_set_ranks(&s->launcher, n));
}

/* --- a leg -------------------------------------------------------------------------------- */

/* The signal by which the program knows that it is to leave: one that launchers hand on and that
 * does not end them. */
static int leave_signal(void)
{
    crn_config *cfg;
    if (crn_config_load(NULL, &cfg) < 0)
        return SIGUSR1;
    const bool usual = strstr(crn_config_text(cfg, CRN_OPT_STOP_SIGNALS), "USR1") != NULL;
    crn_config_free(cfg);
    return usual ? SIGUSR1 : SIGTERM;
}

static json_t *words_json(char **words)
{
    json_t *list = json_array();
    for (; *words; words++)
        cmd_json_append(&list, cmd_json_text(*words));
    return list;
}

static int note_launch(supervisor *s)
{
    return cmd_run_note(&s->place, &s->signals,
                        &(crn_event){.kind = CRN_EVENT_LAUNCH,
                                     .launch = {.command = words_json(s->launcher.words),
                                                .tries = s->ntries,
                                                .nranks = s->launcher.nranks}});
}

static int note_end(supervisor *s, crn_leg *leg)
{
    static const char *const why[] = {
        [CRN_LEG_EXIT] = "exit",   [CRN_LEG_SIGNAL] = "signal", [CRN_LEG_HANG] = "hang",
        [CRN_LEG_LIMIT] = "limit", [CRN_LEG_ASKED] = "told",    [CRN_LEG_UNSTARTED] = "unstarted"};
    return cmd_run_note(
        &s->place, &s->signals,
        &(crn_event){.kind = CRN_EVENT_ENDED,
                     .ended = {.why = why[leg->why],
                               .code = leg->code,
                               .signal = leg->signal > 0 ? leg->signal : -1,
                               .launched = (double)leg->launched_ns * 1e-9,
                               .until = (double)leg->worked_ns * 1e-9,
                               .command = words_json(s->launcher.words),
                               .nranks = s->launcher.nranks,
                               .output = cmd_json_text(crn_tail_text(&leg->tail))}});
}

/* Let the program know how much time is left. */
static int set_limit(const supervisor *s)
{
    char text[CRN_NUMBER_TEXT];
    if (s->until_ns == 0)
        return CMD_YES;
    const uint64_t now = crn_now_ns();
    snprintf(text, sizeof text, "%.3f",
             s->until_ns > now ? (double)(s->until_ns - now) * 1e-9 : 0.001);
    return setenv("CAIRN_STOP_LIMIT", text, 1) == 0 ? CMD_YES : cmd_fail("no memory");
}

static bool feel_pulse(void *arg, uint64_t *ret)
{
    const run_place *p = arg;
    return cairn_trail_pulse(p->trail, p->name, ret) == CAIRN_OK;
}

static int run_leg_once(supervisor *s, crn_leg *leg)
{
    *leg = (crn_leg){.offspring = &s->offspring,
                     .out = STDOUT_FILENO,
                     .err = STDERR_FILENO,
                     .pulse = feel_pulse,
                     .pulse_arg = &s->place,
                     .words = s->launcher.words,
                     .hang_s = s->hang_s,
                     .grace_s = s->grace_s,
                     .until_ns = s->until_ns,
                     .leave = leave_signal(),
                     .launcher = s->launcher.known};
    s->ntries++;
    if (set_limit(s) != CMD_YES)
        return CMD_UNKNOWN;
    if (note_launch(s) == CMD_NO)
        return CMD_UNKNOWN;
    const int code = result(crn_leg_run(leg, &s->signals));
    if (leg->code > 0)
        leg->signal = crn_launcher_signal(leg->code, crn_tail_text(&leg->tail));
    note_end(s, leg);
    return code;
}

/* A program that others asked to leave has also ended well; what the log has of a program
 * that did not may be about another one, which an earlier 'cairn run' had started. */
static verdict judge(const crn_leg *leg, const run_state *now)
{
    const bool well = leg->why == CRN_LEG_EXIT && leg->code == 0;
    if (now->finished)
        return DONE;
    if (leg->why != CRN_LEG_HANG && (leg->asked || (well && now->stopped)))
        return STOPPED;
    return well ? DONE : FAILED;
}

/* --- from leg to leg ---------------------------------------------------------------------- */

/* "exit code 3"; without a run in the trail only the launcher's status is known. */
static const char *end_words(const crn_leg *leg, const run_state *now, char *buf, size_t cap)
{
    if (now->exists)
        snprintf(buf, cap, "%s", now->end);
    else if (leg->why == CRN_LEG_HANG)
        snprintf(buf, cap, "hung");
    else if (leg->signal > 0)
        snprintf(buf, cap, "killed by signal %d", leg->signal);
    else
        snprintf(buf, cap, "exit code %d", leg->code);
    return buf;
}

static void tell_failure(const supervisor *s, const crn_leg *leg, const run_state *now)
{
    char end[64], lost[CRN_NUMBER_TEXT];
    end_words(leg, now, end, sizeof end);
    crn_format_seconds(now->lost_s, lost, sizeof lost);
    if (now->marked)
        cmd_run_say("try %" PRIu64 ": %s; the newest mark is %" PRIu64 ", %s of work lost",
                    s->ntries, end, now->newest, lost);
    else
        cmd_run_say("try %" PRIu64 ": %s; there is no mark", s->ntries, end);
}

static int give_up(const supervisor *s, const run_state *now)
{
    const char *trail = s->place.trail;
    if (cmd_run_disk_is_full(&s->place))
        return cmd_fail("given up: there is no room where trail '%s' is; make some and start this "
                        "again",
                        trail);
    if (s->ntries >= s->tries && s->nfailures < s->fruitless)
        return cmd_fail("given up after %" PRIu64 " %s; start this again to go on", s->ntries,
                        s->ntries == 1 ? "try" : "tries");
    if (!now->opened)
        return cmd_fail("given up: the program ended before it opened run '%s' in trail '%s'; is "
                        "the launcher's line right, and does the program call cairn_open?",
                        s->place.name, trail);
    return cmd_fail("given up: no mark was gained between %" PRIu64 " failures, so that this is a "
                    "bug, not a fault; 'cairn show %s/%s' has the last lines of output, and when "
                    "it is mended, starting this again goes on from there",
                    s->nfailures, trail, s->place.name);
}

/* Is what is left of the time enough to get anywhere? The program keeps a margin for leaving. */
static bool has_time(const supervisor *s, double pause)
{
    crn_config *cfg;
    if (s->until_ns == 0 || crn_config_load(NULL, &cfg) < 0)
        return true;
    const double margin = crn_config_seconds(cfg, CRN_OPT_STOP_MARGIN);
    crn_config_free(cfg);
    return (double)s->until_ns > (double)crn_now_ns() + (pause + margin) * 1e9;
}

/* A leg whose newest marks were lost with a node may fail before it reaches them again: then it
 * counts that it got further than where it came back to, unless the one before came back there,
 * too. */
static bool has_gained(const run_state *before, const run_state *now)
{
    if (!before->marked || !now->marked)
        return now->marked;
    const bool again = before->resumed && before->from == now->from;
    return now->newest > before->newest || (now->resumed && !again && now->newest > now->from);
}

/* A failure: count it, and get ready for the next try. CMD_YES: go on; else the exit code. */
static int recover(supervisor *s, const crn_leg *leg, const run_state *now)
{
    s->nfailures = has_gained(&s->before, now) ? 1 : s->nfailures + 1;
    tell_failure(s, leg, now);
    s->before = *now;
    const uint64_t doubled = CRN_MIN(s->nfailures - 1, 20);
    const double pause = CRN_MIN(s->pause_s * (double)(1u << doubled), (double)PAUSE_MAX_S);
    if (!has_time(s, pause)) {
        cmd_run_say("no time is left for another try");
        return requeue(s);
    }
    if (s->drain || s->drain_with)
        drain(s);
    if (s->signals.nleave == 0 && s->ntries < s->tries && adapt(s, now) != CMD_YES)
        return CMD_UNKNOWN;
    if (s->signals.nleave > 0)
        return told_to_stop(s);
    if (s->ntries >= s->tries || s->nfailures >= s->fruitless)
        return give_up(s, now);
    return crn_signals_pause(&s->signals, pause) ? CMD_YES : told_to_stop(s);
}

static int stopped(supervisor *s, const run_state *now)
{
    if (now->marked)
        cmd_run_say("stopped; run '%s' has mark %" PRIu64 ", start this again to go on",
                    s->place.name, now->newest);
    else
        cmd_run_say("stopped before there was a mark; start this again to begin anew");
    return requeue(s);
}

/* The program's own code counts, also when its run is finished; of one that a signal has ended
 * afterwards, what a shell would give. */
static int own_code(const crn_leg *leg)
{
    if (leg->why == CRN_LEG_EXIT)
        return leg->code;
    return leg->why == CRN_LEG_SIGNAL ? 128 + leg->signal : CMD_YES;
}

static int done(const supervisor *s, const crn_leg *leg, const run_state *now)
{
    if (now->exists && !now->finished)
        cmd_run_say("the program ended, but did not close run '%s': if it is started again, it "
                    "will go on there",
                    s->place.name);
    else if (leg->code != 0)
        cmd_run_say("run '%s' is finished, though the program ended with code %d afterwards",
                    s->place.name, own_code(leg));
    return own_code(leg);
}

static int supervise(supervisor *s)
{
    crn_leg leg;
    run_state now;
    const crn_variable ours[] = {{"CAIRN_RUN_TRAIL", s->place.trail},
                                 {"CAIRN_RUN_NAME", s->place.name}};
    crn_orphans_end(ours, 2, &s->signals, leave_signal(), say);
    if (s->signals.nleave > 0)
        return told_to_stop(s);
    if (cmd_run_state(&s->place, &s->before) != CMD_YES)
        return CMD_UNKNOWN;
    if (s->before.finished) {
        cmd_run_say("run '%s' is finished: nothing is left to do", s->place.name);
        return CMD_YES;
    }
    for (int code;;) {
        if (run_leg_once(s, &leg) != CMD_YES || cmd_run_state(&s->place, &now) != CMD_YES)
            return CMD_UNKNOWN;
        switch (judge(&leg, &now)) {
        case DONE:
            return done(s, &leg, &now);
        case STOPPED:
            return stopped(s, &now);
        case FAILED:
            if ((code = recover(s, &leg, &now)) != CMD_YES)
                return code;
        }
    }
}

/* --- options ------------------------------------------------------------------------------ */

static int parse_counts(supervisor *s, const char *tries, const char *fruitless,
                        const char *elastic)
{
    const struct {
        const char *name, *text;
        uint64_t *value, least;
    } row[] = {{"--tries", tries, &s->tries, 1},
               {"--fruitless", fruitless, &s->fruitless, 2},
               {"--elastic", elastic, &s->min_ranks, 1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (!row[i].text)
            continue;
        if (crn_parse_count(row[i].text, row[i].value) < 0)
            return cmd_misuse(usage, "%s: %s", row[i].name, crn_err_peek()->text);
        if (*row[i].value < row[i].least)
            return cmd_misuse(usage, "%s must be at least %" PRIu64, row[i].name, row[i].least);
    }
    return CMD_YES;
}

static int parse_times(supervisor *s, const char *pause, const char *hang, const char *limit,
                       const char *grace)
{
    const struct {
        const char *name, *text;
        double *value;
    } row[] = {{"--pause", pause, &s->pause_s},
               {"--hang", hang, &s->hang_s},
               {"--limit", limit, &s->limit_s},
               {"--grace", grace, &s->grace_s}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (row[i].text && crn_parse_seconds(row[i].text, row[i].value) < 0)
            return cmd_misuse(usage, "%s: %s", row[i].name, crn_err_peek()->text);
    if (limit && s->limit_s <= 0)
        return cmd_misuse(usage, "--limit must be more than 0 s");
    if (hang && s->hang_s < HANG_MIN_S)
        return cmd_misuse(usage, "--hang must be at least %d s: signs of life come once a second",
                          HANG_MIN_S);
    return CMD_YES;
}

/* What the options ask of the command line and of the machine. */
static int check(const supervisor *s)
{
    if (s->trail && !*s->trail)
        return cmd_misuse(usage, "--trail has no name");
    if (s->min_ranks > 0 && s->launcher.nranks == 0)
        return cmd_misuse(usage, "--elastic needs a line of mpirun, mpiexec or srun that says how "
                                 "many ranks to start, as -n 8");
    if (s->min_ranks > s->launcher.nranks)
        return cmd_misuse(usage,
                          "--elastic %" PRIu64 " is more than the %" PRIu64 " ranks of the "
                          "line",
                          s->min_ranks, s->launcher.nranks);
    if (s->ranks_by && s->min_ranks == 0)
        return cmd_misuse(usage, "--ranks needs --elastic");
    if (s->requeue && !getenv("SLURM_JOB_ID"))
        return cmd_misuse(usage, "--requeue is for jobs of Slurm, and SLURM_JOB_ID is not set");
    return CMD_YES;
}

static int prepare(supervisor *s, char **words, size_t nwords)
{
    if (result(crn_launcher_init(&s->launcher, words, nwords)) != CMD_YES || check(s) != CMD_YES ||
        cmd_run_place_find(&s->place, s->trail) != CMD_YES)
        return CMD_UNKNOWN;
    s->full_ranks = s->launcher.nranks;
    if (s->limit_s > 0)
        s->until_ns = crn_now_ns() + (uint64_t)(CRN_MIN(s->limit_s, LIMIT_MAX_S) * 1e9);
    if (set_limit(s) != CMD_YES || result(crn_orphans_sign()) != CMD_YES ||
        result(crn_launcher_hand_on(&s->launcher)) != CMD_YES)
        return CMD_UNKNOWN;
    crn_offspring_start(&s->offspring, say);
    return result(crn_signals_start(&s->signals));
}

int cmd_run(int argc, char **argv)
{
    supervisor s = {.tries = 100, .fruitless = 2, .pause_s = 1, .grace_s = 300};
    const char *config = NULL, *tries = NULL, *fruitless = NULL, *elastic = NULL, *pause = NULL;
    const char *hang = NULL, *limit = NULL, *grace = NULL;
    int code;
    const cmd_option options[] = {
        CMD_TEXT('t', "trail", "DIR", &s.trail, "the trail (as the configuration says)"),
        CMD_TEXT('c', "config", "FILE", &config, "the configuration of the program"),
        CMD_TEXT(0, "tries", "N", &tries, "start the program at most so often (100)"),
        CMD_TEXT(0, "fruitless", "N", &fruitless,
                 "give up when N failures come without a mark gained between them (2)"),
        CMD_TEXT(0, "pause", "TIME", &pause,
                 "before starting again, doubled while no mark is gained (1s)"),
        CMD_TEXT(0, "hang", "TIME", &hang, "without a sign of life for so long, it hangs (never)"),
        CMD_TEXT(0, "limit", "TIME", &limit, "leave a mark and stop after so long (never)"),
        CMD_TEXT(0, "grace", "TIME", &grace, "to leave in, once asked to (5min)"),
        CMD_TEXT(0, "elastic", "MIN", &elastic, "go on with fewer ranks, down to MIN, if need be"),
        CMD_TEXT(0, "ranks", "COMMAND", &s.ranks_by,
                 "with --elastic: what prints how many ranks there can be now"),
        CMD_FLAG(0, "drain", &s.drain, "bring local marks into the trail before starting again"),
        CMD_TEXT(0, "drain-with", "LAUNCHER", &s.drain_with,
                 "the same, by one process on each node, which this starts"),
        CMD_FLAG(0, "requeue", &s.requeue, "when stopped, requeue the Slurm job that this is in"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "what to start must be given");
    if (parse_counts(&s, tries, fruitless, elastic) != CMD_YES ||
        parse_times(&s, pause, hang, limit, grace) != CMD_YES)
        return CMD_UNKNOWN;
    if (config && setenv("CAIRN_CONFIG", config, 1) != 0)
        return cmd_fail("no memory");
    code = prepare(&s, argv, (size_t)argc);
    if (code == CMD_YES) {
        code = supervise(&s);
        crn_signals_end(&s.signals);
    }
    crn_offspring_done(&s.offspring);
    crn_launcher_done(&s.launcher);
    cmd_run_place_done(&s.place);
    return code;
}
