/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event log of a run (docs/format/events.md): appended to line by line, read in one pass that
 * keeps no more than a line of it, as a long run's log may be larger than memory.
 */
#include "store/store_trail.h"

enum {
    WINDOW = 1 << 18, /* bytes that are read at once */
    LINE_BYTES =
        16 << 20 /* longer lines are not events: a command has at most a few MiB of words */
};

/* --- writing -------------------------------------------------------------------------------- */

/* Lines are appended in one write each; a last line without its end was cut by a crash, and the
 * next one begins behind it on a line of its own. */
static cairn_status open_events(crn_run *run)
{
    char last = '\n';
    CRN_TRY(crn_file_open(run->fd, "events", CRN_READ | CRN_WRITE | CRN_CREATE, &run->events));
    CRN_TRY(crn_file_nbytes(run->events, &run->events_end));
    if (run->events_end > 0)
        CRN_TRY(crn_file_read(run->events, &last, 1, run->events_end - 1));
    if (last != '\n')
        CRN_TRY(crn_file_write(run->events, "\n", 1, run->events_end++));
    return CAIRN_OK;
}

cairn_status crn_run_log(crn_run *run, const char *line)
{
    crn_buf b = {0};
    if (!run->events)
        CRN_TRY(open_events(run));
    crn_put_bytes(&b, line, strlen(line));
    crn_put_bytes(&b, "\n", 1);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(run->events, b.at, b.n, run->events_end);
    if (rc == CAIRN_OK)
        run->events_end += b.n;
    crn_buf_done(&b);
    return rc;
}

/* --- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    crn_file *file;
    uint64_t off, nbytes; /* read so far, and in all: what is appended meanwhile is not read */
    CRN_VEC(char) text;   /* read and not handed out: the beginning of a line */
    bool passing;         /* that line is too long, and is passed over up to its end */
    bool stopped;         /* whoever gets the lines wants no more */
} reader;

static cairn_status read_window(reader *r)
{
    const size_t n = (size_t)CRN_MIN((uint64_t)WINDOW, r->nbytes - r->off);
    CRN_TRY(crn_vec_reserve(&r->text, n));
    CRN_TRY(crn_file_read(r->file, r->text.at + r->text.n, n, r->off));
    r->text.n += n;
    r->off += n;
    return CAIRN_OK;
}

/* Only lines that have an end: the last one may be in the making, or cut. */
static void hand_out(reader *r, int (*fn)(void *arg, const char *line), void *arg)
{
    char *from = r->text.at, *stop = from + r->text.n;
    for (char *end; !r->stopped && (end = memchr(from, '\n', (size_t)(stop - from)));
         from = end + 1) {
        *end = 0;
        r->stopped = !r->passing && fn(arg, from) != 0;
        r->passing = false;
    }
    r->text.n = (size_t)(stop - from);
    memmove(r->text.at, from, r->text.n);
    r->passing |= r->text.n > LINE_BYTES;
    if (r->passing)
        r->text.n = 0;
}

cairn_status crn_run_events(crn_run *run, int (*fn)(void *arg, const char *line), void *arg)
{
    reader r = {0};
    cairn_status rc = crn_file_open(run->fd, "events", CRN_READ, &r.file);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    rc = crn_file_nbytes(r.file, &r.nbytes);
    while (rc == CAIRN_OK && r.off < r.nbytes && !r.stopped) {
        rc = read_window(&r);
        if (rc == CAIRN_OK)
            hand_out(&r, fn, arg);
    }
    crn_vec_done(&r.text);
    crn_file_close(r.file);
    return rc == CAIRN_OK && r.stopped ? CAIRN_NOTHING : rc;
}
