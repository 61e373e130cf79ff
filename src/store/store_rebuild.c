/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A manifest from part files. Each part knows its run, series and rank, and lists its marks; a mark
 * that all ranks of a series have committed counts, because that is what the manifest records.
 */
#include "store/store_trail.h"

#include <unistd.h>

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
        bool has = false;
        for (size_t j = 0; j < part->cat.n && !has; j++)
            has = part->cat.at[j].version == k->version;
        if (!has)
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

static int by_time(const void *a, const void *b)
{
    const crn_manifest_mark *x = a, *y = b;
    return (x->wall_ns > y->wall_ns) - (x->wall_ns < y->wall_ns);
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
    if (rc == CAIRN_OK && !found)
        rc = crn_fail(CAIRN_ENOTFOUND, "run '%s' has no part files", run->name);
    if (rc < 0) {
        crn_manifest_done(&m);
        return rc;
    }
    if (m.mark.n > 0) {
        qsort(m.mark.at, m.mark.n, sizeof *m.mark.at, by_time);
        m.created_ns = m.mark.at[0].wall_ns;
    }
    crn_manifest_done(&run->manifest);
    run->manifest = m;
    run->rebuilt = true;
    return CAIRN_OK;
}
