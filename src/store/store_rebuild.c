/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A manifest from what else there is of a run. Each part knows its run, series and rank, and lists
 * its marks; a mark that all ranks of a series have committed counts, because that is what the
 * manifest records. The log knows the run, too, and whether it came to its end.
 */
#include "store/store_trail.h"

#include <unistd.h>

#include "event/event.h"

static const crn_part_options plain = {.backend = CRN_IO_THREADS, .depth = 1, .direct = false};

/* State that a part holds for a mark, in bytes. */
static uint64_t mark_bytes(crn_part *part, uint64_t version)
{
    crn_mark *m;
    uint64_t nbytes = 0;
    if (crn_part_load(part, version, &m) < 0)
        return 0;
    for (size_t i = 0; i < m->nvars; i++)
        nbytes += m->var[i].spec.nbytes;
    crn_mark_free(m);
    return nbytes;
}

static cairn_status first_rank(crn_manifest *out, crn_part *part)
{
    for (size_t i = 0; i < part->cat.n; i++) {
        const part_entry *e = &part->cat.at[i];
        CRN_TRY(crn_vec_push(&out->mark, (crn_manifest_mark){.version = e->version,
                                                             .wall_ns = e->wall_ns,
                                                             .nbytes = mark_bytes(part, e->version),
                                                             .series = part->super.id.series,
                                                             .nranks = part->super.id.nranks,
                                                             .levels = CRN_IN_TRAIL}));
    }
    return CAIRN_OK;
}

/* Keep of the marks from start on those that this rank has, too. */
static void next_rank(crn_manifest *out, size_t start, crn_part *part)
{
    size_t kept = start;
    for (size_t i = start; i < out->mark.n; i++) {
        crn_manifest_mark *k = &out->mark.at[i];
        if (!crn_part_has(part, k->version))
            continue;
        k->nbytes += mark_bytes(part, k->version);
        out->mark.at[kept++] = *k;
    }
    out->mark.n = kept;
}

static cairn_status open_any(crn_run *run, uint32_t series, uint32_t rank, crn_part **ret)
{
    char name[PATH_TEXT];
    int dir;
    CRN_TRY(crn_run_part_dir(run, series, rank, false, &dir));
    crn_part_name(rank, name);
    cairn_status rc = crn_part_open(dir, name, NULL, false, &plain, ret);
    close(dir);
    return rc;
}

/* Add the marks of one series. Its first part tells the run and the rank count. */
static cairn_status rebuild_series(crn_run *run, uint32_t series, crn_manifest *out)
{
    size_t start = out->mark.n;
    uint32_t nranks = 1;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        crn_part *part;
        if (open_any(run, series, rank, &part) < 0) {
            out->mark.n = start; /* without one rank no mark is whole */
            return CAIRN_OK;
        }
        cairn_status rc = CAIRN_OK;
        if (rank == 0) {
            memcpy(out->run, part->super.id.run, sizeof out->run);
            nranks = part->super.id.nranks;
            rc = first_rank(out, part);
        } else {
            next_rank(out, start, part);
        }
        crn_part_close(part);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

/* --- the log -------------------------------------------------------------------------------- */

char *crn_run_id_format(const unsigned char run[16], char buf[CRN_RUN_ID_TEXT])
{
    for (size_t i = 0; i < 16; i++)
        snprintf(buf + 2 * i, 3, "%02x", run[i]);
    return buf;
}

static bool parse_id(const char *text, unsigned char run[16])
{
    static const char digits[] = "0123456789abcdef";
    if (!text || strlen(text) != CRN_RUN_ID_TEXT - 1 || strspn(text, digits) != CRN_RUN_ID_TEXT - 1)
        return false;
    for (size_t i = 0; i < 16; i++)
        run[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
                                 (strchr(digits, text[2 * i + 1]) - digits));
    return true;
}

/* What the log tells. */
typedef struct told {
    bool any, known, finished; /* there is one; it names the run; that has come to its end */
    unsigned char run[16];
    uint64_t since_ns;
} told;

static int on_event(void *arg, const char *line)
{
    static const crn_event_filter ends = {.kinds = CRN_EVENT_BIT(OPEN) | CRN_EVENT_BIT(CLOSE)};
    told *t = arg;
    crn_event e;
    const bool first = !t->any;
    t->any = true;
    if (!crn_event_decode(line, first ? NULL : &ends, &e))
        return 0;
    if (first)
        t->since_ns = (uint64_t)(CRN_MAX(e.time, 0.0) * 1e9);
    if (e.kind == CRN_EVENT_OPEN) {
        t->known |= parse_id(e.open.id, t->run);
        t->finished = false;
    } else if (e.kind == CRN_EVENT_CLOSE) {
        t->finished = e.close.finished;
    }
    crn_event_done(&e);
    return 0;
}

/* Complete a manifest that was made of parts, as far as there were whole ones. */
static cairn_status ask_log(crn_run *run, bool parts, crn_manifest *m)
{
    static const unsigned char nobody[sizeof m->run];
    told t = {0};
    cairn_status rc = crn_run_events(run, on_event, &t);
    if (rc == CAIRN_ENOMEM)
        return rc;
    CRN_FAIL_IF(!parts && !t.any, CAIRN_ENOTFOUND, "run '%s' was never begun", run->name);
    m->finished = t.finished;
    m->created_ns = t.since_ns;
    if (memcmp(m->run, nobody, sizeof nobody) != 0)
        return CAIRN_OK;
    CRN_FAIL_IF(!t.known, CAIRN_ECORRUPT,
                "run '%s' has lost its manifest, and neither a part file nor its log tells which "
                "files on the nodes are its own: remove the directory of the run to begin anew",
                run->name);
    memcpy(m->run, t.run, sizeof m->run);
    return CAIRN_OK;
}

/* --- the manifest --------------------------------------------------------------------------- */

int crn_manifest_order(const void *a, const void *b)
{
    const crn_manifest_mark *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    return (x->version > y->version) - (x->version < y->version);
}

bool crn_series_parse(const char *name, uint32_t *ret)
{
    static const char prefix[] = "series-";
    uint64_t n;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 ||
        crn_parse_count(name + sizeof prefix - 1, &n) < 0 || n > UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

cairn_status crn_run_rebuild(crn_run *run)
{
    char **names;
    size_t n;
    crn_manifest m = {0};
    cairn_status rc = CAIRN_OK;
    bool found = false;
    CRN_TRY(crn_dir_list(run->fd, &names, &n));
    for (size_t i = 0; i < n; i++) {
        uint32_t series;
        if (rc == CAIRN_OK && crn_series_parse(names[i], &series)) {
            rc = rebuild_series(run, series, &m);
            found = true;
        }
        free(names[i]);
    }
    free(names);
    if (rc == CAIRN_OK)
        rc = ask_log(run, found, &m);
    if (rc < 0) {
        crn_manifest_done(&m);
        return rc;
    }
    if (m.mark.n > 0) {
        qsort(m.mark.at, m.mark.n, sizeof *m.mark.at, crn_manifest_order);
        m.created_ns =
            m.created_ns > 0 ? CRN_MIN(m.created_ns, m.mark.at[0].wall_ns) : m.mark.at[0].wall_ns;
    }
    crn_manifest_done(&run->manifest);
    run->manifest = m;
    run->rebuilt = true;
    return CAIRN_OK;
}
