/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One side of a comparison: which marks a run has, in trees and in part files, and what one rank
 * has of them.
 */
#include "diff/diff.h"

#include <inttypes.h>

static const crn_part_options reading = {.backend = CRN_IO_AUTO, .depth = 32, .direct = true};

/* --- opening -------------------------------------------------------------------------------- */

/* A trail that has one run only may stand for it. */
static cairn_status only_run(diff_side *s)
{
    char **names;
    size_t n;
    CRN_TRY(crn_trail_runs(s->trail, &names, &n));
    cairn_status rc =
        n == 1 ? crn_run_open(s->trail, names[0], false, &s->run)
               : crn_fail(CAIRN_EINVAL, "trail '%s' has %zu runs: say which, as '%s/RUN'", s->name,
                          n, s->name);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return rc;
}

static cairn_status find_run(diff_side *s)
{
    char *path;
    if (crn_trail_open(s->name, false, &s->trail) == CAIRN_OK)
        return only_run(s);
    CRN_TRY(crn_strdup(s->name, &path));
    char *slash = strrchr(path, '/');
    while (slash && slash[1] == 0) { /* a slash at the end, as shells complete */
        *slash = 0;
        slash = strrchr(path, '/');
    }
    cairn_status rc = CAIRN_ENOTFOUND;
    if (slash) {
        *slash = 0;
        rc = crn_trail_open(path, false, &s->trail);
        if (rc == CAIRN_OK)
            rc = crn_run_open(s->trail, slash + 1, false, &s->run);
    } else {
        rc = crn_fail(CAIRN_ENOTFOUND, "'%s' is not a run: name it as TRAIL/RUN", s->name);
    }
    free(path);
    return rc;
}

static int by_version(const void *a, const void *b)
{
    const diff_mark *x = a, *y = b;
    return (x->version > y->version) - (x->version < y->version);
}

/* Marks of the manifest, as far as their data is in the trail. */
static cairn_status list_trail(diff_side *s)
{
    const crn_manifest *m = crn_run_manifest(s->run);
    for (size_t i = 0; i < m->mark.n; i++) {
        const crn_manifest_mark *k = &m->mark.at[i];
        if (k->levels & CRN_IN_TRAIL)
            CRN_TRY(crn_vec_push(&s->mark, (diff_mark){.version = k->version,
                                                       .wall_ns = k->wall_ns,
                                                       .series = k->series,
                                                       .nranks = k->nranks,
                                                       .in_trail = true,
                                                       .nbytes = k->nbytes}));
    }
    return CAIRN_OK;
}

static uint64_t bytes_of(const crn_trees_mark *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->nvars; i++)
        n += m->var[i].var.spec.nbytes;
    return n;
}

/* Where a mark of the same version is in the trail, trees of another time are not its own. Both
 * lists ascend, and a run may have 100,000 marks: they are gone through side by side. */
cairn_status crn_diff_list_trees(diff_side *s)
{
    crn_trees *t = crn_diff_trees(s, 0);
    const size_t nlisted = s->mark.n;
    size_t k = 0;
    if (nlisted > 0)
        qsort(s->mark.at, nlisted, sizeof *s->mark.at, by_version);
    for (size_t i = 0; t && i < crn_trees_nmarks(t); i++) {
        const crn_trees_mark *m = crn_trees_at(t, i);
        while (k < nlisted && s->mark.at[k].version < m->version)
            k++;
        if (k < nlisted && s->mark.at[k].version == m->version) {
            diff_mark *old = &s->mark.at[k];
            old->in_trees = old->wall_ns == m->wall_ns && old->series == m->series;
            continue;
        }
        CRN_TRY(crn_vec_push(&s->mark, (diff_mark){.version = m->version,
                                                   .wall_ns = m->wall_ns,
                                                   .series = m->series,
                                                   .nranks = m->nranks,
                                                   .in_trees = true,
                                                   .nbytes = bytes_of(m) * m->nranks}));
    }
    return CAIRN_OK;
}

static crn_trees_mark *find_trees(crn_trees *t, const diff_mark *m)
{
    crn_trees_mark *k = t ? crn_trees_of_version(t, m->version) : NULL;
    return k && k->wall_ns == m->wall_ns && k->series == m->series ? k : NULL;
}

cairn_status crn_diff_check_whole(diff_side *s, crn_comm *comm)
{
    uint64_t *whole;
    const uint32_t step = (uint32_t)crn_comm_size(comm);
    cairn_status rc = crn_comm_agree(comm, crn_alloc(&whole, s->mark.n + 1));
    CRN_TRY(rc);
    for (size_t i = 0; i < s->mark.n; i++) {
        const diff_mark *m = &s->mark.at[i];
        whole[i] = m->in_trees;
        for (uint32_t r = (uint32_t)crn_comm_rank(comm); whole[i] && r < m->nranks; r += step)
            whole[i] = find_trees(crn_diff_trees(s, r), m) != NULL;
    }
    rc = crn_comm_allreduce_u64(comm, CRN_REDUCE_MIN, whole, s->mark.n);
    size_t n = 0;
    for (size_t i = 0; rc == CAIRN_OK && i < s->mark.n; i++) {
        s->mark.at[i].in_trees = whole[i];
        if (whole[i] || s->mark.at[i].in_trail) /* else: a mark that was never finished */
            s->mark.at[n++] = s->mark.at[i];
    }
    s->mark.n = n;
    free(whole);
    return rc;
}

/* More ranks than ever had files cost a forger nothing, and whoever looks for each of them much.
 * Some files of a large run may be lost. */
static cairn_status check_ranks(const diff_side *s)
{
    enum { FEW = 4096 };
    uint32_t counted = 0;
    size_t found = 0;
    for (size_t i = 0; i < s->mark.n; i++) {
        const diff_mark *m = &s->mark.at[i];
        if (m->nranks <= FEW)
            continue;
        if (m->series != counted)
            CRN_TRY(crn_run_count_ranks(s->run, m->series, &found));
        counted = m->series;
        CRN_FAIL_IF(m->nranks / 2 > found, CAIRN_ECORRUPT,
                    "'%s': mark %" PRIu64 " is said to have %u ranks, and there are files of %zu: "
                    "its manifest or its trees are forged, or most of its files are lost",
                    s->name, m->version, m->nranks, found);
    }
    return CAIRN_OK;
}

static cairn_status open_alone(diff_side *s, const char *name)
{
    pthread_mutex_init(&s->mutex, NULL);
    CRN_TRY(crn_strdup(name, &s->name));
    CRN_TRY(find_run(s));
    CRN_TRY(list_trail(s));
    s->nranks = 1;
    CRN_TRY(crn_alloc(&s->trees, 1));
    CRN_TRY(crn_alloc(&s->tried, 1));
    CRN_TRY(crn_diff_list_trees(s));
    if (s->mark.n > 0)
        qsort(s->mark.at, s->mark.n, sizeof *s->mark.at, by_version);
    return check_ranks(s);
}

/* Let all processes go by the first one's list: a run that is being written has more marks from one
 * moment to the next. */
static cairn_status share_list(diff_side *s, crn_comm *comm)
{
    uint64_t n = s->mark.n;
    CRN_TRY(crn_comm_bcast(comm, &n, sizeof n, 0));
    if (crn_comm_rank(comm) > 0)
        s->mark.n = 0;
    CRN_TRY(crn_comm_agree(comm, crn_vec_reserve(&s->mark, n - s->mark.n)));
    s->mark.n = n;
    return crn_comm_bcast(comm, s->mark.at, n * sizeof *s->mark.at, 0);
}

/* Room for the trees of all ranks that marks have. */
static cairn_status make_room(diff_side *s)
{
    uint32_t nranks = 1;
    for (size_t i = 0; i < s->mark.n; i++)
        nranks = CRN_MAX(nranks, s->mark.at[i].nranks);
    CRN_TRY(crn_realloc(&s->trees, nranks));
    CRN_TRY(crn_realloc(&s->tried, nranks));
    for (uint32_t r = 1; r < nranks; r++) {
        s->trees[r] = NULL;
        s->tried[r] = false;
    }
    s->nranks = nranks;
    return CAIRN_OK;
}

cairn_status crn_diff_open_run(diff_side *s, const char *name, crn_comm *comm)
{
    CRN_TRY(crn_comm_agree(comm, open_alone(s, name)));
    CRN_TRY(share_list(s, comm));
    CRN_TRY(crn_comm_agree(comm, make_room(s)));
    return crn_diff_check_whole(s, comm);
}

cairn_status crn_diff_open_source(diff_side *s, const crn_diff_source *source)
{
    pthread_mutex_init(&s->mutex, NULL);
    CRN_TRY(crn_strdup(source->name, &s->name));
    s->source = source;
    for (size_t i = 0; i < source->n; i++)
        CRN_TRY(crn_vec_push(&s->mark, source->mark[i]));
    s->nranks = 1;
    CRN_TRY(crn_alloc(&s->trees, 1));
    CRN_TRY(crn_alloc(&s->tried, 1));
    return make_room(s);
}

const diff_mark *crn_diff_find_mark(const diff_side *s, uint64_t version)
{
    const diff_mark key = {.version = version};
    return s->mark.n > 0 ? bsearch(&key, s->mark.at, s->mark.n, sizeof key, by_version) : NULL;
}

void crn_diff_close(diff_side *s)
{
    if (!s->name)
        return;
    for (size_t i = 0; i < s->spare.n; i++)
        crn_part_close(s->spare.at[i].part);
    for (uint32_t r = 0; s->trees && r < s->nranks; r++)
        crn_trees_close(s->trees[r]);
    for (uint32_t r = 0; s->sketches && r < s->nranks; r++)
        free(s->sketches[r].start);
    free(s->sketches);
    free(s->trees);
    free(s->tried);
    free(s->golden);
    crn_vec_done(&s->mark);
    crn_run_close(s->run);
    crn_trail_close(s->trail);
    pthread_mutex_destroy(&s->mutex);
    free(s->name);
}

/* Trees that cannot be read are as good as none: the data may do. */
crn_trees *crn_diff_trees(diff_side *s, uint32_t rank)
{
    if (rank >= s->nranks)
        return NULL;
    pthread_mutex_lock(&s->mutex);
    if (!s->tried[rank] && s->run && crn_run_trees(s->run, rank, false, &s->trees[rank]) < 0)
        s->trees[rank] = NULL;
    s->tried[rank] = true;
    crn_trees *t = s->trees[rank];
    pthread_mutex_unlock(&s->mutex);
    return t;
}

bool crn_diff_has_dropped(const diff_side *s, const diff_mark *m)
{
    const crn_manifest_mark mark = {.version = m->version, .series = m->series};
    if (s->source)
        return s->source->has_dropped(s->source->arg, (size_t)(m - s->mark.at));
    return s->run && m->in_trail && !crn_run_is_current(s->run) &&
           crn_trail_dropped(s->trail, crn_run_name(s->run), &mark);
}

/* --- parts ---------------------------------------------------------------------------------- */

static size_t marks_of(const crn_part *part)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    return info.nmarks;
}

static crn_part *pick_spare(diff_spares *s, size_t i)
{
    crn_part *part = s->at[i].part;
    s->nmarks -= marks_of(part);
    s->n--;
    memmove(&s->at[i], &s->at[i + 1], (s->n - i) * sizeof *s->at);
    return part;
}

/* A part that was read before; NULL: none. */
static crn_part *take_spare(diff_share *s)
{
    diff_spares *spare = &s->side->spare;
    crn_part *part = NULL;
    pthread_mutex_lock(&s->side->mutex);
    for (size_t i = spare->n; i-- > 0 && !part;)
        if (spare->at[i].series == s->mark->series && spare->at[i].rank == s->rank)
            part = pick_spare(spare, i);
    pthread_mutex_unlock(&s->side->mutex);
    return part;
}

/* Keep a part; those that were not used for longest make room for it. */
static void give_spare(const diff_share *s)
{
    diff_spares *spare = &s->side->spare;
    const size_t n = marks_of(s->part);
    pthread_mutex_lock(&s->side->mutex);
    while (spare->n == DIFF_SPARES || (spare->n > 0 && spare->nmarks + n > DIFF_SPARE_MARKS))
        crn_part_close(pick_spare(spare, 0));
    spare->at[spare->n++] = (diff_spare){s->mark->series, s->rank, s->part};
    spare->nmarks += n;
    pthread_mutex_unlock(&s->side->mutex);
}

/* A mark that the part does not have when it is opened will not come: the manifest was read before,
 * and lists what all parts had. */
static cairn_status find_part(diff_share *s)
{
    s->part = take_spare(s);
    if (!s->part) {
        CRN_TRY(crn_run_part(s->side->run, s->mark->series, s->rank, s->mark->nranks, false,
                             &reading, &s->part));
        crn_part_distrust(s->part);
    }
    return crn_part_load(s->part, s->mark->version, &s->data);
}

/* --- shares --------------------------------------------------------------------------------- */

static cairn_status load_data(diff_share *s)
{
    const diff_side *side = s->side;
    if (side->source)
        return side->source->open(side->source->arg, (size_t)(s->mark - side->mark.at), s->rank,
                                  &s->part, &s->data);
    CRN_FAIL_IF(side->golden, CAIRN_ENOTFOUND, "golden file '%s' has no values to look at",
                side->name);
    CRN_FAIL_IF(!s->mark->in_trail, CAIRN_ENOTFOUND,
                "the data of mark %" PRIu64 " of '%s' is not in the trail", s->mark->version,
                side->name);
    return find_part(s);
}

/* Open the part, once; the failure is remembered. */
static cairn_status open_data(diff_share *s)
{
    if (s->data)
        return CAIRN_OK;
    if (s->err.code < 0)
        return crn_err_give(&s->err);
    const cairn_status rc = load_data(s);
    if (rc < 0)
        s->err = *crn_err_peek();
    return rc;
}

cairn_status crn_diff_share_open(diff_side *s, const diff_mark *m, uint32_t rank, diff_share *ret)
{
    *ret = (diff_share){.side = s, .mark = m, .rank = rank};
    if (m->in_trees) {
        ret->trees = crn_diff_trees(s, rank);
        ret->described = find_trees(ret->trees, m);
    }
    return ret->described ? CAIRN_OK : open_data(ret);
}

void crn_diff_share_close(diff_share *s)
{
    crn_mark_free(s->data);
    if (s->part && s->side->run)
        give_spare(s);
    else
        crn_part_close(s->part);
    s->data = NULL;
    s->part = NULL;
}

size_t crn_diff_share_nvars(const diff_share *s)
{
    return s->described ? s->described->nvars : s->data->nvars;
}

diff_var crn_diff_share_var(const diff_share *s, size_t i)
{
    if (s->described)
        return (diff_var){&s->described->var[i].var, &s->described->var[i]};
    return (diff_var){&s->data->var[i], NULL};
}

bool crn_diff_share_find(const diff_share *s, const char *name, diff_var *ret)
{
    crn_trees_var *t = s->described ? crn_trees_find(s->described, name) : NULL;
    const crn_var *v = t ? &t->var : s->described ? NULL : crn_mark_find(s->data, name);
    *ret = (diff_var){v, t};
    return v != NULL;
}

cairn_status crn_diff_share_data(diff_share *s, const char *name, crn_var **ret)
{
    CRN_TRY(open_data(s));
    crn_var *v = crn_mark_find(s->data, name);
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "mark %" PRIu64 " of '%s' has no variable '%s' on rank %u",
                s->mark->version, s->side->name, name, s->rank);
    *ret = v;
    return CAIRN_OK;
}
