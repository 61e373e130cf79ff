/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose run is it? The log of a run keeps the name of the program that began it and what that has
 * said of its experiment (cairn_identify). Who comes with another experiment is refused; another
 * name alone is a remark, since programs are renamed.
 */
#include "ckpt/ckpt_session.h"

#include <limits.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, SHOWN = 100 };

/* The last event of its kind counts. */
static int take(void *arg, const char *line)
{
    static const crn_event_filter wanted = {.kinds = CRN_EVENT_BIT(IDENTITY)};
    crn_event *past = arg, e;
    if (crn_event_decode(line, &wanted, &e)) {
        crn_event_done(past);
        *past = e;
    }
    return 0;
}

/* The name of this program's file. */
static const char *program_name(char path[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static cairn_status refuse(const cairn *c, const char *was)
{
    return crn_fail(CAIRN_EMISMATCH,
                    "run '%s' is another experiment's: it says '%.*s', this program '%.*s'; set "
                    "CAIRN_RUN_NAME to another name for a run of its own, or "
                    "CAIRN_RESUME_IDENTITY=any to go on with this one all the same",
                    crn_run_name(c->held.run), (int)SHOWN, was, (int)SHOWN, c->identity);
}

/* Let the log say whose run it is from now on. */
static void tell(cairn *c, const char *program, const char *text)
{
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_IDENTITY,
                                             .identity = {.program = program, .text = text}});
}

/* On rank 0. */
static cairn_status compare(cairn *c, const crn_event_identity *past)
{
    char path[PATH_MAX];
    const char *program = program_name(path), *by = past->program, *was = past->text;
    const bool other = was && c->identity && strcmp(was, c->identity) != 0;
    if (other && c->held.mark.n > 0 && crn_config_word(c->held.cfg, CRN_OPT_RESUME_IDENTITY) == 0)
        return refuse(c, was);
    if (by && strcmp(by, program) != 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                      "run '%s' was written by '%s', and this program is '%s'",
                      crn_run_name(c->held.run), by, program);
    if (was && !c->identity)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                      "run '%s' says '%.*s', and this program nothing: cairn_identify",
                      crn_run_name(c->held.run), (int)SHOWN, was);
    if (!by || strcmp(by, program) != 0 || other || (c->identity && !was))
        tell(c, program, c->identity ? c->identity : was);
    return CAIRN_OK;
}

cairn_status crn_ckpt_check_identity(cairn *c)
{
    crn_event past = {0}; /* none: all is 0 */
    cairn_status rc = CAIRN_OK;
    if (c->identified)
        return CAIRN_OK;
    if (crn_comm_rank(c->held.comm) == 0) {
        if (crn_run_events(c->held.run, take, &past) < 0) /* marks matter more than their log */
            crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                          "whose run it is, is not known: %s", crn_err_peek()->text);
        rc = compare(c, &past.identity);
        crn_event_done(&past);
    }
    rc = crn_comm_agree(c->held.comm, rc);
    c->identified = rc == CAIRN_OK;
    return rc;
}

static cairn_status identify(cairn *c, const char *text)
{
    char *copy;
    CRN_FAIL_IF(c->identified, CAIRN_EINVAL,
                "cairn_identify comes before the run is resumed, probed or marked");
    json_t *kept = strlen(text) <= TEXT_MAX ? json_string(text) : NULL;
    CRN_FAIL_IF(!kept, CAIRN_EINVAL, "what identifies a run is UTF-8 text of at most %d bytes",
                (int)TEXT_MAX);
    json_decref(kept);
    CRN_TRY(crn_strdup(text, &copy));
    free(c->identity);
    c->identity = copy;
    return CAIRN_OK;
}

int cairn_identify(cairn *c, const char *text)
{
    CKPT_NEEDS_ALSO(c, text);
    return crn_ckpt_result(c, identify(c, text));
}
