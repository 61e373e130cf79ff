/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens to a shelf, for the log of whoever owns it: a program that takes the events itself,
 * or else the file 'events' of the shelf (docs/format/events.md). A log that cannot be written
 * keeps nothing from happening.
 */
#include "state/state_log.h"

#include <inttypes.h>

struct state_log {
    pthread_mutex_t mutex; /* the program's thread and the engine's tell of events one at a time */
    cairn_shelf_event_fn *fn;
    void *arg;
};

cairn_status crn_state_log_create(state_log **ret)
{
    CRN_TRY(crn_alloc(ret, 1));
    pthread_mutex_init(&(*ret)->mutex, NULL);
    return CAIRN_OK;
}

void crn_state_log_free(state_log *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

void cairn_shelf_listen(cairn_shelf *s, cairn_shelf_event_fn *fn, void *arg)
{
    if (!s || !s->log)
        return;
    pthread_mutex_lock(&s->log->mutex);
    s->log->fn = fn;
    s->log->arg = arg;
    pthread_mutex_unlock(&s->log->mutex);
}

cairn_status crn_append_line(int dirfd, const char *name, const char *line)
{
    crn_buf b = {0};
    crn_file *f;
    uint64_t end;
    cairn_status rc;
    CRN_TRY(crn_file_open(dirfd, name, CRN_READ | CRN_WRITE | CRN_CREATE, &f));
    crn_put_bytes(&b, line, strlen(line));
    crn_put_bytes(&b, "\n", 1);
    CRN_TRY_OUT(rc, crn_buf_status(&b));
    rc = crn_file_lock_range(f, 0, 1);
    CRN_TRY_OUT(rc, rc == CAIRN_EUNSUPPORTED ? CAIRN_OK : rc);
    CRN_TRY_OUT(rc, crn_file_nbytes(f, &end));
    rc = crn_file_write(f, b.at, b.n, end);
out:
    crn_buf_done(&b);
    crn_file_close(f);
    return rc;
}

/* Is it to be told? Whoever reads a shelf of others may have no configuration. */
static bool wants(const cairn_shelf *s, bool notable)
{
    enum { NONE, NOTABLE, ALL };
    if (!s->log || !s->cfg)
        return false;
    const int word = (int)crn_config_word(s->cfg, CRN_OPT_STATE_EVENTS);
    return word == ALL || (word == NOTABLE && notable);
}

static void write_event(cairn_shelf *s, crn_event *e)
{
    const crn_err before = *crn_err_peek();
    e->time = (double)crn_wall_ns() * 1e-9;
    char *line = crn_event_encode(e);
    pthread_mutex_lock(&s->log->mutex);
    if (line && s->log->fn)
        s->log->fn(s->log->arg, line);
    else if (line)
        (void)crn_append_line(s->fd, "events", line);
    pthread_mutex_unlock(&s->log->mutex);
    free(line);
    (void)crn_err_give(&before); /* what happened counts, not that it was written down */
}

void crn_log_state(cairn_shelf *s, const state_entry *e, const char *what, double seconds,
                   cairn_status rc)
{
    const bool failed = rc < 0;
    if (!wants(s, failed || strcmp(what, "mended") == 0))
        return;
    crn_event event = {.kind = CRN_EVENT_STATE,
                       .state = {.what = what,
                                 .key = e->key,
                                 .version = e->version,
                                 .nbytes = e->nbytes,
                                 .writer = e->series,
                                 .processes = e->nranks,
                                 .seconds = seconds,
                                 .text = failed ? crn_err_peek()->text : NULL}};
    write_event(s, &event);
}

void crn_log_shelf(cairn_shelf *s, const char *what, uint32_t writer, uint64_t nstates)
{
    if (!wants(s, true))
        return;
    crn_event event = {.kind = CRN_EVENT_SHELF,
                       .shelf = {.what = what, .writer = writer, .states = nstates}};
    write_event(s, &event);
}
