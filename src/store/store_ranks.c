/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which ranks have a file. How many a manifest claims costs nothing to write; what there is, the
 * directories tell, once for all.
 */
#include "store/store_trail.h"

#include <unistd.h>

/* The rank whose file is called so in a directory of a fan; false: no such name. */
static bool parse_rank(const char *name, const char *prefix, uint32_t fan, uint32_t *ret)
{
    const size_t n = strlen(prefix);
    char again[PATH_TEXT];
    uint64_t rank;
    if (strncmp(name, prefix, n) != 0 || crn_parse_count(name + n, &rank) < 0 ||
        rank >= CRN_RANKS_MAX || rank / PARTS_PER_DIR != fan)
        return false;
    snprintf(again, sizeof again, "%s%06u", prefix, (unsigned)rank);
    *ret = (uint32_t)rank;
    return strcmp(name, again) == 0;
}

/* Add the ranks of one directory of the fan; who removes it meanwhile leaves none. */
static cairn_status add_fan(int up, const char *fan, const char *prefix, crn_ranks *ranks)
{
    char **names, again[PATH_TEXT];
    size_t n;
    uint64_t k;
    uint32_t rank;
    int fd;
    if (crn_parse_count(fan, &k) < 0 || k > CRN_RANKS_MAX / PARTS_PER_DIR)
        return CAIRN_OK;
    crn_fan_name((uint32_t)k * PARTS_PER_DIR, again);
    if (strcmp(fan, again) != 0)
        return CAIRN_OK;
    cairn_status rc = crn_dir_open(up, fan, false, &fd);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    rc = crn_dir_list(fd, &names, &n);
    close(fd);
    CRN_TRY(rc);
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && parse_rank(names[i], prefix, (uint32_t)k, &rank))
            rc = crn_vec_push(ranks, rank);
        free(names[i]);
    }
    free(names);
    return rc;
}

static int compare_ranks(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

cairn_status crn_run_ranks(const crn_run *run, const char *dir, const char *prefix, crn_ranks *ret)
{
    char **fans = NULL;
    size_t n = 0;
    int fd;
    crn_ranks ranks = {0};
    cairn_status rc = crn_dir_open(run->fd, dir, false, &fd);
    *ret = ranks;
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    rc = crn_dir_list(fd, &fans, &n);
    for (size_t i = 0; rc == CAIRN_OK && i < n; i++)
        rc = add_fan(fd, fans[i], prefix, &ranks);
    for (size_t i = 0; i < n; i++)
        free(fans[i]);
    free(fans);
    close(fd);
    if (ranks.n > 1)
        qsort(ranks.at, ranks.n, sizeof *ranks.at, compare_ranks);
    *ret = ranks;
    return rc;
}

static cairn_status count(const crn_run *run, const char *dir, const char *prefix, size_t *ret)
{
    crn_ranks ranks;
    cairn_status rc = crn_run_ranks(run, dir, prefix, &ranks);
    if (rc == CAIRN_OK)
        *ret = CRN_MAX(*ret, ranks.n);
    crn_vec_done(&ranks);
    return rc;
}

cairn_status crn_run_count_ranks(const crn_run *run, uint32_t series, size_t *ret)
{
    char name[PATH_TEXT];
    size_t n = 0;
    crn_series_name(series, name);
    CRN_TRY(count(run, name, "part-", &n));
    CRN_TRY(count(run, "trees", "trees-", &n));
    *ret = n;
    return CAIRN_OK;
}
