/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing into the event log of a run from outside, while no program has it.
 */
#include <cairn/keep.h>

#include "base/base.h"
#include "store/store.h"

/* The event as a line of the log: on one line, with the times that belong to it. */
static cairn_status log_event(crn_run *run, json_t *event)
{
    json_object_set_new(event, "seen", json_real((double)crn_run_seen(run) * 1e-9));
    json_object_set_new(event, "time", json_real((double)crn_wall_ns() * 1e-9));
    char *line = json_dumps(event, JSON_COMPACT);
    CRN_FAIL_IF(!line, CAIRN_ENOMEM, "no memory for an event");
    cairn_status rc = crn_run_log(run, line);
    free(line);
    return rc;
}

static cairn_status append(const char *path, const char *name, json_t *event)
{
    crn_trail *trail;
    crn_run *run;
    CRN_TRY(crn_trail_open(path, false, &trail));
    cairn_status rc = crn_run_open(trail, name, true, &run);
    if (rc == CAIRN_OK) {
        rc = log_event(run, event);
        crn_run_close(run);
    }
    crn_trail_close(trail);
    return rc;
}

int cairn_note(const char *trail, const char *run, const char *event)
{
    CRN_FAIL_IF(!trail || !run || !event, CAIRN_EINVAL, "cairn_note: an argument is NULL");
    CRN_TRY(crn_json_present("the event log"));
    json_t *object = json_loads(event, 0, NULL);
    cairn_status rc;
    if (json_is_string(json_object_get(object, "event")))
        rc = append(trail, run, object);
    else
        rc = crn_fail(CAIRN_EINVAL, "an event is a JSON object that names its kind, not '%s'",
                      event);
    json_decref(object);
    return rc;
}
