/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the nodes' storage holds of a run. The processes of a node share the look at its files by
 * the ranks in their names; all get to know.
 *
 * A file that cannot be read counts as absent. A file on a node that this job does not have is not
 * there, either: with virtual nodes a job therefore looks only into the directories of its own
 * ones; but a lone process (a command after the job has died) looks into all.
 */
#include "level/level_ops.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* --- one process looks -------------------------------------------------------------------- */

bool crn_vault_looks_at(const crn_vault *v, uint32_t rank)
{
    return rank % (uint32_t)v->nodes.nlocal == (uint32_t)v->nodes.local;
}

typedef struct scan {
    crn_vault *vault;
    crn_buf found; /* sightings as they travel */
    uint64_t ndamaged;
} scan;

enum { SIGHTING_BYTES = 4 * 4 + 2 * 8 + 2 * 4 };

static void put_sighting(crn_buf *buf, const crn_sighting *s)
{
    crn_put_u32(buf, s->role);
    crn_put_u32(buf, s->series);
    crn_put_u32(buf, s->rank);
    crn_put_u32(buf, s->nranks);
    crn_put_u64(buf, s->version);
    crn_put_u64(buf, s->wall_ns);
    crn_put_u32(buf, s->node);
    crn_put_u32(buf, s->dir);
}

static crn_sighting get_sighting(crn_cursor *c)
{
    crn_sighting s;
    s.role = crn_get_u32(c);
    s.series = crn_get_u32(c);
    s.rank = crn_get_u32(c);
    s.nranks = crn_get_u32(c);
    s.version = crn_get_u64(c);
    s.wall_ns = crn_get_u64(c);
    s.node = crn_get_u32(c);
    s.dir = crn_get_u32(c);
    return s;
}

static void note_marks(scan *s, crn_part *part, crn_sighting *seen)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    seen->nranks = info.id.nranks;
    for (size_t i = 0; i < info.nmarks; i++) {
        crn_mark *mark;
        seen->version = crn_part_version(part, i);
        if (crn_part_load(part, seen->version, &mark) < 0) {
            s->ndamaged++;
            continue;
        }
        seen->wall_ns = mark->wall_ns;
        crn_mark_free(mark);
        put_sighting(&s->found, seen);
    }
}

/* A file in a wrong place, by its name or by its head, is nobody's. */
static void scan_file(scan *s, int dirfd, const char *name, crn_sighting *seen)
{
    crn_part *part;
    if (!crn_vault_parse_name(name, &seen->role, &seen->rank) ||
        !crn_vault_looks_at(s->vault, seen->rank))
        return;
    if (crn_part_open(dirfd, name, NULL, false, &s->vault->opt.part, &part) < 0) {
        s->ndamaged++;
        return;
    }
    crn_part_info info;
    crn_part_describe(part, &info);
    crn_part_id id = crn_vault_id(s->vault, seen->role, seen->series, seen->rank, info.id.nranks);
    if (memcmp(id.run, info.id.run, sizeof id.run) == 0 && id.series == info.id.series &&
        id.rank == info.id.rank && id.role == info.id.role)
        note_marks(s, part, seen);
    else
        s->ndamaged++;
    crn_part_close(part);
}

/* Call visit with each name in a directory, which is closed. */
static cairn_status each_name(int fd, scan *s, crn_sighting *seen,
                              cairn_status (*visit)(scan *s, int fd, const char *name,
                                                    crn_sighting *seen))
{
    char **names;
    size_t n;
    cairn_status rc = crn_dir_list(fd, &names, &n);
    if (rc == CAIRN_OK) {
        for (size_t i = 0; i < n; i++) {
            if (rc == CAIRN_OK)
                rc = visit(s, fd, names[i], seen);
            free(names[i]);
        }
        free(names);
    }
    close(fd);
    return rc;
}

static cairn_status visit_file(scan *s, int fd, const char *name, crn_sighting *seen)
{
    scan_file(s, fd, name, seen);
    return crn_buf_status(&s->found);
}

/* "<prefix><number>", as directories are called. */
static bool parse_numbered(const char *name, const char *prefix, uint32_t *ret)
{
    size_t n = strlen(prefix);
    uint64_t number;
    if (strncmp(name, prefix, n) != 0 || crn_parse_count(name + n, &number) < 0 ||
        number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

static cairn_status visit_series(scan *s, int fd, const char *name, crn_sighting *seen)
{
    int dir;
    if (!parse_numbered(name, "series-", &seen->series) || crn_dir_open(fd, name, false, &dir) < 0)
        return CAIRN_OK;
    return each_name(dir, s, seen, visit_file);
}

/* One node's directory of the run; where there is none, nothing is held. */
static cairn_status scan_dir(scan *s, uint32_t dir)
{
    crn_sighting seen = {.node = (uint32_t)s->vault->nodes.node, .dir = dir};
    int fd;
    if (crn_vault_dir(s->vault, dir, false, &fd) < 0)
        return CAIRN_OK;
    return each_name(fd, s, &seen, visit_series);
}

static cairn_status visit_node(scan *s, int fd, const char *name, crn_sighting *seen)
{
    uint32_t dir;
    (void)fd, (void)seen;
    return parse_numbered(name, "node-", &dir) ? scan_dir(s, dir) : CAIRN_OK;
}

static cairn_status look(scan *s)
{
    const crn_vault *v = s->vault;
    int fd;
    if (!v->local)
        return CAIRN_OK;
    if (v->opt.node_size == 0 || v->nranks > 1)
        return scan_dir(s, v->home);
    if (crn_dir_open(AT_FDCWD, v->local, false, &fd) < 0)
        return CAIRN_OK;
    return each_name(fd, s, NULL, visit_node);
}

/* --- all get to know ---------------------------------------------------------------------- */

#define BY(a, b, field)                                                                            \
    if ((a)->field != (b)->field)                                                                  \
    return (a)->field < (b)->field ? -1 : 1

static int compare_files(const crn_sighting *a, const crn_sighting *b)
{
    BY(a, b, role);
    BY(a, b, series);
    BY(a, b, rank);
    BY(a, b, nranks);
    BY(a, b, version);
    return 0;
}

static int compare_sightings(const void *x, const void *y)
{
    const crn_sighting *a = x, *b = y;
    int order = compare_files(a, b);
    if (order != 0)
        return order;
    BY(b, a, wall_ns); /* the latest first */
    BY(a, b, node);
    BY(a, b, dir);
    return 0;
}

static bool is_known(const crn_sighting *s, const crn_manifest_mark *known, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (known[i].series == s->series && known[i].version == s->version &&
            known[i].wall_ns == s->wall_ns)
            return true;
    return known == NULL;
}

static cairn_status take_all(crn_vault *v, const crn_gathered *all, const crn_manifest_mark *known,
                             size_t n)
{
    size_t nbytes = all->off[v->nranks];
    crn_cursor c = crn_cursor_of(all->data, nbytes);
    v->seen.n = 0;
    CRN_TRY(crn_vec_reserve(&v->seen, nbytes / SIGHTING_BYTES));
    while (c.n > 0 && !c.failed) {
        crn_sighting s = get_sighting(&c);
        if (is_known(&s, known, n))
            v->seen.at[v->seen.n++] = s;
    }
    CRN_TRY(crn_cursor_status(&c, "survey"));
    if (v->seen.n > 0)
        qsort(v->seen.at, v->seen.n, sizeof *v->seen.at, compare_sightings);
    return CAIRN_OK;
}

cairn_status crn_vault_survey(crn_vault *v, const crn_manifest_mark *known, size_t n)
{
    scan s = {.vault = v};
    crn_gathered all = {0};
    cairn_status rc = look(&s);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    CRN_TRY_OUT(rc, crn_comm_gatherv(v->comm, s.found.at, s.found.n, CRN_COMM_ALL, &all));
    rc = take_all(v, &all, known, n);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    v->ndamaged = s.ndamaged;
    CRN_TRY_OUT(rc, crn_comm_allreduce_u64(v->comm, CRN_REDUCE_SUM, &v->ndamaged, 1));
    for (int level = 0; level < CRN_NLEVELS; level++)
        if (crn_level_table[level]->survey)
            CRN_TRY_OUT(rc, crn_level_table[level]->survey(v));
out:
    crn_gathered_done(&all);
    crn_buf_done(&s.found);
    return rc;
}

/* --- questions ---------------------------------------------------------------------------- */

/* The first sighting that is not before key, in the order of files. */
static size_t lower_bound(const crn_vault *v, const crn_sighting *key)
{
    size_t lo = 0, hi = v->seen.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_files(&v->seen.at[mid], key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static crn_sighting key_of(const crn_part_id *id, uint64_t version)
{
    return (crn_sighting){.role = id->role,
                          .series = id->series,
                          .rank = id->rank,
                          .nranks = id->nranks,
                          .version = version};
}

int crn_vault_holder(const crn_vault *v, const crn_part_id *id, uint64_t version, int nth)
{
    crn_sighting key = key_of(id, version);
    size_t i = lower_bound(v, &key) + (size_t)nth;
    if (id->role == CRN_ROLE_TRAIL)
        return nth == 0 ? v->rank : -1;
    if (i >= v->seen.n || compare_files(&v->seen.at[i], &key) != 0)
        return -1;
    int node = (int)v->seen.at[i].node;
    return node == v->nodes.node ? v->rank : crn_vault_rank_at(v, node, (int)id->rank);
}

uint32_t crn_vault_dir_of(const crn_vault *v, const crn_part_id *id)
{
    crn_sighting key = key_of(id, 0);
    uint32_t dir = v->home;
    for (size_t i = lower_bound(v, &key); i < v->seen.n; i++) {
        crn_sighting *s = &v->seen.at[i];
        key.version = s->version;
        if (compare_files(s, &key) != 0)
            break;
        if ((int)s->node == v->nodes.node)
            dir = s->dir; /* of several, the newest: the rank has moved there */
    }
    return dir;
}

int crn_vault_ncopies(const crn_vault *v, uint32_t role, const crn_manifest_mark *mark)
{
    int most = 0, run = 0;
    if (role == CRN_ROLE_TRAIL)
        return (mark->levels & CRN_IN_TRAIL) != 0;
    for (size_t i = 0; i < v->seen.n; i++) {
        const crn_sighting *s = &v->seen.at[i];
        if (s->role != role || s->series != mark->series || s->version != mark->version)
            continue;
        run = run > 0 && compare_files(s, s - 1) == 0 ? run + 1 : 1;
        most = CRN_MAX(most, run);
    }
    return most;
}

/* Note a mark that was seen, if it is not the same as or older than one that was noted before. */
static cairn_status note_mark(crn_marks *marks, const crn_sighting *s)
{
    for (size_t i = 0; i < marks->n; i++) {
        crn_manifest_mark *m = &marks->at[i];
        if (m->series != s->series || m->version != s->version || m->nranks != s->nranks)
            continue;
        m->wall_ns = CRN_MAX(m->wall_ns, s->wall_ns);
        return CAIRN_OK;
    }
    return crn_vec_push(marks, (crn_manifest_mark){.version = s->version,
                                                   .wall_ns = s->wall_ns,
                                                   .series = s->series,
                                                   .nranks = s->nranks});
}

/* The levels at which no rank's share is missing. */
static uint32_t whole_at(const crn_vault *v, const crn_manifest_mark *mark)
{
    uint32_t levels = 0;
    for (int level = 0; level < CRN_NLEVELS; level++) {
        uint32_t rank = 0;
        while (rank < mark->nranks && crn_level_holds(v, level, mark, rank))
            rank++;
        levels |= (uint32_t)(rank == mark->nranks) << level;
    }
    return levels;
}

static int by_time(const void *a, const void *b)
{
    const crn_manifest_mark *x = a, *y = b;
    return (x->wall_ns > y->wall_ns) - (x->wall_ns < y->wall_ns);
}

cairn_status crn_vault_sighted(crn_vault *v, crn_marks *ret)
{
    for (size_t i = 0; i < v->seen.n; i++)
        if (v->seen.at[i].role != CRN_ROLE_PARITY)
            CRN_TRY(note_mark(ret, &v->seen.at[i]));
    for (size_t i = 0; i < ret->n; i++)
        ret->at[i].levels = whole_at(v, &ret->at[i]);
    if (ret->n > 0)
        qsort(ret->at, ret->n, sizeof *ret->at, by_time);
    return CAIRN_OK;
}

cairn_status crn_vault_can_load(crn_vault *v, const crn_manifest_mark *mark)
{
    for (uint32_t rank = 0; rank < mark->nranks; rank++) {
        bool held = false;
        for (int level = 0; level < CRN_NLEVELS && !held; level++)
            held = crn_level_holds(v, level, mark, rank);
        CRN_FAIL_IF(!held, CAIRN_ENOTFOUND,
                    "mark %" PRIu64 " is not whole: the share of rank %" PRIu32
                    " is neither in its own part nor in a partner's copy on the %d nodes here, "
                    "cannot be rebuilt from parity, and is not in the trail%s",
                    mark->version, rank, v->nodes.nnodes,
                    v->ndamaged > 0 ? "; some files are damaged" : "");
    }
    return CAIRN_OK;
}
