/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble: run a study, make a twin of it, look at it, and give it orders.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "cmd/cmd_ensemble.h"

static const char usage[] = "cairn ensemble new FILE\n"
                            "cairn ensemble check FILE [json]\n"
                            "cairn ensemble twin FILE\n"
                            "cairn ensemble run FILE\n"
                            "cairn ensemble validate FILE\n"
                            "cairn ensemble bound [SEEDS [CYCLES]]\n"
                            "cairn ensemble status FILE [json]\n"
                            "cairn ensemble try FILE MEMBER\n"
                            "cairn ensemble stop FILE\n"
                            "cairn ensemble scale FILE NUMBER\n"
                            "cairn ensemble kill FILE JOB|MEMBER\n"
                            "cairn ensemble log FILE\n"
                            "cairn ensemble report FILE\n"
                            "cairn ensemble filters [FILE.so]\n"
                            "cairn ensemble help";

static int fail_here(void)
{
    return cmd_fail("%s", crn_err_peek()->text);
}

/* --- running -------------------------------------------------------------------------------- */

/* Progress stays on one line of a terminal, and is nothing for a file. */
static void say(const char *sentence, bool progress)
{
    const bool terminal = isatty(STDERR_FILENO);
    if (progress && terminal)
        fprintf(stderr, "\r\033[K%s", sentence);
    else if (!progress) {
        fprintf(stderr, "%s", terminal ? "\r\033[K" : "");
        cmd_fail("%s", sentence);
    }
}

int cmd_ensemble_launch(crn_study *study, crn_study_mode mode)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) {
        cmd_fail("cannot find this program: %s", strerror(errno));
        return CAIRN_EIO;
    }
    self[n] = 0;
    cairn_status rc = crn_launcher_run(study, mode, self, say);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    if (rc < 0)
        fail_here();
    return rc;
}

static int run(crn_study *study, bool twin)
{
    int rc = cmd_ensemble_launch(study, twin ? CRN_MODE_TWIN : CRN_MODE_RUN);
    if (rc < 0)
        return CMD_UNKNOWN;
    if (rc == CAIRN_NOTHING)
        cmd_line("stopped; run it again to go on");
    else if (twin)
        cmd_line("observations of %u cycles in '%s'", study->cycles, study->observations);
    else
        cmd_line("%u cycles are done; states in '%s/shelf'", study->cycles, study->dir);
    return rc == CAIRN_NOTHING ? CMD_NO : CMD_YES;
}

static int verb_run(crn_study *study, char **words)
{
    (void)words;
    return run(study, false);
}

static int verb_twin(crn_study *study, char **words)
{
    (void)words;
    return run(study, true);
}

static int verb_serve(crn_study *study, char **words)
{
    const crn_study_mode mode = crn_mode_of(words[0]);
    if ((mode == CRN_MODE_PLAIN || mode == CRN_MODE_NOISE) &&
        crn_side_open(study, mode == CRN_MODE_NOISE) < 0)
        return fail_here();
    return crn_serve(study, mode) < 0 ? fail_here() : CMD_YES;
}

static int verb_advance(crn_study *study, char **words)
{
    const bool other = words[0] && strcmp(words[0], "other") == 0;
    return crn_command_run(study, other) < 0 ? fail_here() : CMD_YES;
}

/* --- orders --------------------------------------------------------------------------------- */

static int order(crn_study *study, const char *text)
{
    char answer[512];
    cairn_status rc = crn_launcher_order(study, text, answer, sizeof answer);
    if (rc < 0)
        return fail_here();
    if (rc == CAIRN_NOTHING)
        return cmd_fail("nobody runs '%s' now", study->file);
    cmd_line("%s", answer);
    return strncmp(answer, "cannot", 6) == 0 ? CMD_NO : CMD_YES;
}

static int verb_stop(crn_study *study, char **words)
{
    (void)words;
    return order(study, "stop");
}

static int order_with(crn_study *study, const char *verb, const char *word)
{
    char text[128];
    if (!word)
        return cmd_misuse(usage, "%s needs another word", verb);
    snprintf(text, sizeof text, "%s %s", verb, word);
    return order(study, text);
}

static int verb_scale(crn_study *study, char **words)
{
    return order_with(study, "scale", words[0]);
}

static int verb_kill(crn_study *study, char **words)
{
    return order_with(study, "kill", words[0]);
}

/* --- the configuration ---------------------------------------------------------------------- */

static void print_filters(FILE *to, const char *before)
{
    for (size_t i = 0; crn_filter_at(i); i++)
        fprintf(to, "%s%-8s %s\n", before, crn_filter_name(crn_filter_at(i)),
                crn_filter_summary(crn_filter_at(i)));
    fprintf(to, "%s%-8s %s\n", before, "particle",
            "bootstrap particle filter: states stay in caches");
}

static void print_table(FILE *to)
{
    const char *section = "";
    for (size_t i = 0; i < CRN_STUDY_COUNT_OF; i++) {
        const crn_opt *row = &crn_study_table[i];
        if (strcmp(section, row->section) != 0)
            fprintf(to, "%s[%s]\n", section[0] ? "\n" : "", row->section);
        section = row->section;
        fprintf(to, "# %s%s%s%s\n# %s = %s\n", row->help, row->range[0] ? " (" : "", row->range,
                row->range[0] ? ")" : "", row->key, row->def);
    }
    fprintf(to, "\n# filters:\n");
    print_filters(to, "#   ");
}

static int make_new(const char *file)
{
    FILE *f = fopen(file, "wxe");
    if (!f)
        return cmd_fail("cannot make '%s': %s", file, strerror(errno));
    fprintf(f, "# A study for 'cairn ensemble run'. Lines that begin with '#' show the defaults;\n"
               "# runner.command is needed.\n\n");
    print_table(f);
    if (fclose(f) != 0)
        return cmd_fail("cannot write '%s': %s", file, strerror(errno));
    cmd_line("'%s' is made: give it a runner.command, and run it", file);
    return CMD_YES;
}

static int verb_report(crn_study *study, char **words)
{
    (void)words;
    if (crn_study_report(study, stdout) < 0)
        return fail_here();
    return CMD_YES;
}

static void print_finding(void *arg, const char *test, const char *why)
{
    (void)arg;
    cmd_line("%-6s %s%s%s", why[0] ? "FAILED" : "ok", test, why[0] ? ": " : "", why);
}

/* The filters that there are, or the tests that one of a shared object must pass. */
static int filters(const char *file)
{
    const crn_filter_ops *filter;
    if (!file) {
        print_filters(stdout, "");
        return CMD_YES;
    }
    if (crn_filter_of_file(file, &filter) < 0)
        return fail_here();
    cmd_line("%s: %s", crn_filter_name(filter), crn_filter_summary(filter));
    cairn_status rc = crn_filter_conform(filter, print_finding, NULL);
    if (rc < 0)
        return fail_here();
    return rc == CAIRN_OK ? CMD_YES : CMD_NO;
}

/* --- the subcommand ------------------------------------------------------------------------- */

typedef int verb_function(crn_study *study, char **words);

static const struct {
    const char *name;
    verb_function *run;
    int nwords; /* after the file */
} verbs[] = {
    {"run", verb_run, 0},
    {"twin", verb_twin, 0},
    {"check", cmd_ensemble_check, 1},
    {"try", cmd_ensemble_try, 1},
    {"validate", cmd_ensemble_validate, 0},
    {"validator", cmd_ensemble_validator, 1},
    {"serve", verb_serve, 1},
    {"advance", verb_advance, 1},
    {"stop", verb_stop, 0},
    {"scale", verb_scale, 1},
    {"kill", verb_kill, 1},
    {"log", cmd_ensemble_log, 0},
    {"report", verb_report, 0},
    {"status", cmd_ensemble_status, 1},
};

static int carry_out(verb_function *verb, const char *file, char **words)
{
    crn_study *study;
    if (crn_study_open(file, &study) < 0)
        return fail_here();
    int code = verb(study, words);
    crn_study_free(study);
    return code;
}

int cmd_ensemble(int argc, char **argv)
{
    int code;
    const cmd_option options[] = {CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc == 1 && strcmp(argv[0], "help") == 0) {
        print_table(stdout);
        return CMD_YES;
    }
    if (argc >= 1 && argc <= 2 && strcmp(argv[0], "filters") == 0)
        return filters(argc > 1 ? argv[1] : NULL);
    if (argc >= 1 && argc <= 3 && strcmp(argv[0], "bound") == 0)
        return cmd_ensemble_bound(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    if (argc < 2)
        return cmd_misuse(usage, "a verb and the file of a study are needed");
    if (argc == 2 && strcmp(argv[0], "new") == 0)
        return make_new(argv[1]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[0], verbs[i].name) == 0 && argc - 2 <= verbs[i].nwords)
            return carry_out(verbs[i].run, argv[1], argv + 2);
    return cmd_misuse(usage, "'%s' is no verb of ensemble, or has too many words", argv[0]);
}
