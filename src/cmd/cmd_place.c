/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What subcommands that look into trails share: finding TRAIL/RUN, and words for facts.
 */
#include "cmd/cmd.h"

/* A copy of name without slashes at its end, cut in two at the last one that is left. */
static char *split(const char *name, const char **ret_parent, const char **ret_last)
{
    char *copy;
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    if (crn_strndup(name, n, &copy) < 0)
        return NULL;
    char *slash = strrchr(copy, '/');
    *ret_parent = !slash ? "." : slash == copy ? "/" : copy;
    *ret_last = slash ? slash + 1 : copy;
    if (slash)
        *slash = 0;
    return copy;
}

/* Open name as a run of the trail that it lies in; why explains that it is not a trail itself. */
static int open_run(const char *name, const char *why, cmd_place *ret)
{
    const char *parent, *last;
    char *copy = split(name, &parent, &last);
    cmd_place place = {0};
    int code = CMD_YES;
    if (!copy)
        return cmd_fail("no memory");
    int rc = cairn_trail_open(parent, &place.trail);
    if (rc < 0)
        code = cmd_fail("%s", rc == CAIRN_ENOTFOUND ? why : cairn_error_text());
    else if (cairn_trail_find_run(place.trail, last, &place.first) < 0)
        code = cmd_fail("%s", cairn_error_text());
    free(copy);
    if (code != CMD_YES) {
        cairn_trail_close(place.trail);
        return code;
    }
    place.end = place.first + 1;
    *ret = place;
    return CMD_YES;
}

static bool is_trail(const char *path)
{
    cairn_trail *trail;
    if (cairn_trail_open(path, &trail) < 0)
        return false;
    cairn_trail_close(trail);
    return true;
}

/*
 * The name that is meant, to be freed: "." stands for the trail that a program would use here, as
 * the configuration says or else 'cairn.trail', unless this directory is one. NULL after saying
 * why.
 */
static char *meant(const char *name)
{
    crn_config *cfg;
    char *copy = NULL;
    if (strcmp(name, ".") != 0) {
        if (crn_strdup(name, &copy) < 0)
            cmd_fail("no memory");
        return copy;
    }
    if (crn_config_load(NULL, &cfg) < 0) {
        cmd_fail("%s", crn_err_peek()->text);
        return NULL;
    }
    const char *configured = crn_config_text(cfg, CRN_OPT_RUN_TRAIL);
    const bool given = crn_config_is_given(cfg, CRN_OPT_RUN_TRAIL);
    const bool here = !given && (is_trail(".") || !is_trail(configured));
    if (crn_strdup(here ? "." : configured, &copy) < 0)
        cmd_fail("no memory");
    crn_config_free(cfg);
    return copy;
}

static int open_named(const char *name, cmd_place *ret)
{
    char why[CRN_ERR_TEXT];
    cmd_place place = {0};
    int rc = cairn_trail_open(name, &place.trail);
    if (rc < 0) {
        snprintf(why, sizeof why, "%s", cairn_error_text());
        return rc == CAIRN_ENOTFOUND ? open_run(name, why, ret) : cmd_fail("%s", why);
    }
    place.end = cairn_trail_nruns(place.trail);
    *ret = place;
    return CMD_YES;
}

int cmd_place_open(const char *name, cmd_place *ret)
{
    char *place = meant(name);
    int code = place ? open_named(place, ret) : CMD_UNKNOWN;
    free(place);
    return code;
}

static int find_names(const char *name, char **ret_trail, char **ret_run)
{
    const char *parent, *last;
    char *copy = split(name, &parent, &last);
    if (!copy)
        return cmd_fail("no memory");
    const bool run = !is_trail(name) && is_trail(parent);
    *ret_trail = *ret_run = NULL;
    cairn_status rc = crn_strdup(run ? parent : name, ret_trail);
    if (rc == CAIRN_OK && run)
        rc = crn_strdup(last, ret_run);
    if (rc < 0) {
        free(*ret_trail);
        *ret_trail = NULL;
    }
    free(copy);
    return rc < 0 ? cmd_fail("no memory") : CMD_YES;
}

int cmd_place_names(const char *name, char **ret_trail, char **ret_run)
{
    char *place = meant(name);
    int code = place ? find_names(place, ret_trail, ret_run) : CMD_UNKNOWN;
    free(place);
    return code;
}

int cmd_place_configure(const char *name)
{
    char *trail, *run;
    cmd_place place;
    if (cmd_place_open(name, &place) != CMD_YES)
        return CMD_UNKNOWN;
    cmd_place_close(&place);
    if (cmd_place_names(name, &trail, &run) != CMD_YES)
        return CMD_UNKNOWN;
    int failed = setenv("CAIRN_RUN_TRAIL", trail, 1);
    if (run)
        failed |= setenv("CAIRN_RUN_NAME", run, 1);
    free(trail);
    free(run);
    return failed ? cmd_fail("no memory") : CMD_YES;
}

void cmd_place_close(cmd_place *place)
{
    cairn_trail_close(place->trail);
    place->trail = NULL;
}

char *cmd_date(uint64_t wall_ns, char *buf)
{
    return crn_format_date(wall_ns, buf, CMD_WORDS);
}

char *cmd_levels(uint32_t levels, char *buf)
{
    size_t n = 0;
    buf[0] = 0;
    for (crn_level l = 0; l < CRN_NLEVELS; l++)
        if (levels & 1u << l)
            n += (size_t)snprintf(buf + n, CMD_WORDS - n, "%s%s", n ? "," : "", crn_level_name(l));
    return buf;
}

char *cmd_share(uint64_t part, uint64_t whole, char *buf)
{
    snprintf(buf, CMD_WORDS, "%.1f%%", whole ? 100 * (double)part / (double)whole : 0.0);
    return buf;
}

json_t *cmd_json_run(const cairn_run_info *run)
{
    char date[CMD_WORDS];
    return json_pack("{s:s, s:s, s:s, s:b, s:b}", "run", run->name, "id", run->id, "created",
                     cmd_date(run->created_ns, date), "finished", run->finished, "rebuilt",
                     run->rebuilt);
}

static json_t *level_list(uint32_t levels)
{
    char words[CMD_WORDS];
    char *rest = cmd_levels(levels, words), *word;
    json_t *list = json_array();
    while ((word = strsep(&rest, ",")) && *word)
        cmd_json_append(&list, json_string(word));
    return list;
}

json_t *cmd_json_mark(const cairn_mark_info *mark)
{
    char date[CMD_WORDS];
    return json_pack("{s:I, s:s, s:i, s:I, s:o}", "version", (json_int_t)mark->version, "time",
                     cmd_date(mark->wall_ns, date), "ranks", (int)mark->nranks, "nbytes",
                     (json_int_t)mark->nbytes, "levels", level_list(mark->levels));
}
