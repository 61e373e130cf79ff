/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a run left that did not come to its end: beside the trace that was never written stand the
 * files of single ranks, PATH.0, PATH.1 ... Those that can be read become one incomplete trace.
 */
#include "tracefmt/tracefmt.h"

#include <dirent.h>
#include <errno.h>

typedef struct left {
    CRN_VEC(uint32_t) rank; /* of the files there are */
} left;

/* The rank of a file of this trace; false if it is none. */
static bool is_rank_file(const char *name, const char *base, uint32_t *ret)
{
    size_t n = strlen(base);
    char *end;
    if (strncmp(name, base, n) != 0 || name[n] != '.' || !strchr("0123456789", name[n + 1]) ||
        !name[n + 1])
        return false;
    unsigned long rank = strtoul(name + n + 1, &end, 10);
    *ret = (uint32_t)rank;
    return *end == 0 && rank < UINT32_MAX;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static cairn_status find_files(const char *path, left *l)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *dir;
    struct dirent *entry;
    uint32_t rank;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_strndup(path, slash ? (size_t)(slash - path) + 1 : 0, &dir));
    DIR *d = opendir(*dir ? dir : ".");
    free(dir);
    if (!d)
        return crn_fail_sys(errno, "cannot look for the files of '%s'", path);
    while (rc == CAIRN_OK && (entry = readdir(d))) {
        if (is_rank_file(entry->d_name, base, &rank))
            rc = crn_vec_push(&l->rank, rank);
    }
    closedir(d);
    if (l->rank.n > 0)
        qsort(l->rank.at, l->rank.n, sizeof *l->rank.at, ascending);
    return rc;
}

static cairn_status load_rank(const char *path, uint32_t rank, crn_trace **ret)
{
    char *name;
    size_t cap = strlen(path) + 16;
    CRN_TRY(crn_alloc(&name, cap));
    snprintf(name, cap, "%s.%u", path, rank);
    cairn_status rc = crn_trace_load(name, ret);
    free(name);
    return rc;
}

/* Merge all that can be read; a damaged file is a missing rank. */
static cairn_status merge_files(const char *path, const left *l, bool *there, crn_trace **ret)
{
    crn_trace *all = NULL;
    for (size_t i = 0; i < l->rank.n; i++) {
        crn_trace *one;
        if (load_rank(path, l->rank.at[i], &one) < 0)
            continue;
        there[i] = true;
        if (!all) {
            all = one;
            continue;
        }
        cairn_status rc = crn_trace_merge(all, one);
        if (rc < 0) {
            crn_trace_free(all);
            return rc;
        }
    }
    CRN_FAIL_IF(!all, CAIRN_ENOTFOUND, "no rank left anything of '%s' that can be read", path);
    *ret = all;
    return CAIRN_OK;
}

static cairn_status note_missing(crn_trace *t, const left *l, const bool *there)
{
    crn_seq_build b = {0};
    size_t i = 0;
    for (uint32_t rank = 0; rank < t->nranks; rank++) {
        while (i < l->rank.n && l->rank.at[i] < rank)
            i++;
        if (i == l->rank.n || l->rank.at[i] != rank || !there[i])
            crn_seq_add(&b, rank);
    }
    crn_seq_done(&t->missing);
    cairn_status rc = crn_seq_encode(&b, NULL, false, &t->missing);
    crn_seq_build_done(&b);
    return rc;
}

cairn_status crn_trace_salvage(const char *path, crn_trace **ret)
{
    left l = {0};
    bool *there = NULL;
    crn_trace *t = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, find_files(path, &l));
    CRN_TRY_OUT(rc, crn_alloc(&there, l.rank.n));
    CRN_TRY_OUT(rc, merge_files(path, &l, there, &t));
    rc = note_missing(t, &l, there);
    if (rc == CAIRN_OK)
        rc = crn_trace_finish(t);
    if (rc == CAIRN_OK)
        *ret = t;
    else
        crn_trace_free(t);
out:
    crn_vec_done(&l.rank);
    free(there);
    return rc;
}
