/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing into the event log of a run from outside, while no program has it.
 */
#include <cairn/keep.h>
#include <jansson.h>

#include "base/base.h"
#include "store/store.h"

/* The event as a line of the log: on one line, with its time. */
static cairn_status line_of(const char *event, char **ret)
{
    json_t *object = json_loads(event, 0, NULL);
    cairn_status rc = CAIRN_OK;
    char *line = NULL;
    if (!json_is_string(json_object_get(object, "event")))
        rc = crn_fail(CAIRN_EINVAL, "an event is a JSON object that names its kind, not '%s'",
                      event);
    else if (json_object_set_new(object, "time", json_real((double)crn_wall_ns() * 1e-9)) != 0 ||
             !(line = json_dumps(object, JSON_COMPACT)))
        rc = crn_fail(CAIRN_ENOMEM, "no memory for an event");
    json_decref(object);
    if (rc == CAIRN_OK)
        *ret = line;
    return rc;
}

static cairn_status append(const char *path, const char *name, const char *line)
{
    crn_trail *trail;
    crn_run *run;
    CRN_TRY(crn_trail_open(path, false, &trail));
    cairn_status rc = crn_run_open(trail, name, true, &run);
    if (rc == CAIRN_OK) {
        rc = crn_run_log(run, line);
        crn_run_close(run);
    }
    crn_trail_close(trail);
    return rc;
}

int cairn_note(const char *trail, const char *run, const char *event)
{
    char *line = NULL;
    CRN_FAIL_IF(!trail || !run || !event, CAIRN_EINVAL, "cairn_note: an argument is NULL");
    CRN_TRY(line_of(event, &line));
    cairn_status rc = append(trail, run, line);
    free(line);
    return rc;
}
