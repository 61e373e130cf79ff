/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writers: what of their parts does not count, and how others make a writer drop what it has put.
 */
#include "state/state_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- what does not count ------------------------------------------------------------------ */

typedef CRN_VEC(crn_state_name) state_names;

/* Does the index list this state of a writer's part? */
static cairn_status is_listed(cairn_shelf *s, crn_state_name name, uint32_t series,
                              uint64_t wall_ns, bool *ret)
{
    state_entry e;
    const cairn_status rc = crn_state_index_find(s->index, name, &e);
    CRN_TRY(rc);
    *ret = rc == CAIRN_OK && e.series == series && e.wall_ns == wall_ns;
    return CAIRN_OK;
}

static cairn_status judge(cairn_shelf *s, const crn_part_info *info, crn_state_name name,
                          uint64_t wall_ns, bool *ret)
{
    CRN_TRY(crn_state_index_lock(s->index, name)); /* nobody is about to list it, or mends */
    const cairn_status rc = is_listed(s, name, info->id.series, wall_ns, ret);
    crn_state_index_unlock(s->index, name);
    return rc;
}

cairn_status crn_writer_reconcile(cairn_shelf *s, crn_part *part)
{
    crn_part_info info;
    state_names gone = {0};
    cairn_status rc = CAIRN_OK;
    crn_part_describe(part, &info);
    for (size_t i = 0; i < info.nmarks && rc == CAIRN_OK; i++) {
        uint64_t wall_ns;
        bool stays;
        const crn_state_name name = crn_part_state(part, i, &wall_ns);
        rc = judge(s, &info, name, wall_ns, &stays);
        if (rc == CAIRN_OK && !stays)
            rc = crn_vec_push(&gone, name);
    }
    if (rc == CAIRN_OK && gone.n > 0)
        rc = crn_part_drop(part, gone.at, gone.n);
    crn_vec_done(&gone);
    return rc;
}

/* --- drops by others ---------------------------------------------------------------------- */

/*
 * The file of drops has a line for each state that another process has taken out of the index while
 * the writer lives. It only says where to look: what counts is the index, and who opens the part
 * next looks through all of it anyway.
 */
char *crn_drop_line(const state_entry *e, char buf[STATE_DROP_LINE])
{
    snprintf(buf, STATE_DROP_LINE, "%s %" PRIu64 " %" PRIu64, e->key, e->version, e->wall_ns);
    return buf;
}

static cairn_status ask_to_drop(const cairn_shelf *s, const state_entry *e)
{
    char name[STATE_FILE_NAME], line[STATE_DROP_LINE];
    int dir;
    CRN_TRY(crn_writer_dir(s, e->series, false, &dir));
    const cairn_status rc =
        crn_append_line(dir, crn_writer_drops_name(e->series, name), crn_drop_line(e, line));
    close(dir);
    return rc;
}

/* Drop from a part of a writer what a text of drops says and the index agrees to. */
static cairn_status drop_listed(cairn_shelf *s, uint32_t series, crn_part *part, char *text)
{
    state_names gone = {0};
    cairn_status rc = CAIRN_OK;
    char *rest = text, *line;
    while (rc == CAIRN_OK && (line = strsep(&rest, "\n"))) {
        char *version = strchr(line, ' ');
        state_entry e;
        if (!version)
            continue;
        *version++ = 0;
        const crn_state_name name = {line, strtoull(version, NULL, 10)};
        if (!crn_key_is_valid(line))
            continue;
        rc = crn_state_index_find(s->index, name, &e);
        if (rc == CAIRN_NOTHING || (rc == CAIRN_OK && e.series != series))
            rc = crn_vec_push(&gone, name);
    }
    if (rc == CAIRN_OK && gone.n > 0)
        rc = crn_part_drop(part, gone.at, gone.n);
    crn_vec_done(&gone);
    return rc;
}

cairn_status crn_writer_drops(const cairn_shelf *s, uint32_t series, char **ret)
{
    char name[STATE_FILE_NAME];
    struct stat st;
    void *data;
    size_t n;
    int dir;
    *ret = NULL;
    CRN_TRY(crn_writer_dir(s, series, false, &dir));
    crn_writer_drops_name(series, name);
    cairn_status rc = CAIRN_OK;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0) {
        rc = crn_file_slurp(dir, name, 1u << 30, &data, &n);
        *ret = rc == CAIRN_OK ? data : NULL;
    }
    close(dir);
    return rc;
}

/* All have read nbytes of drops: cut them off, unless more have come. */
static cairn_status clear_drops(const cairn_shelf *s, uint32_t series, uint64_t nbytes)
{
    char name[STATE_FILE_NAME];
    crn_file *f;
    uint64_t now;
    int dir;
    CRN_TRY(crn_writer_dir(s, series, false, &dir));
    cairn_status rc =
        crn_file_open(dir, crn_writer_drops_name(series, name), CRN_READ | CRN_WRITE, &f);
    close(dir);
    CRN_TRY(rc);
    if (crn_file_lock_range(f, 0, 1) == CAIRN_OK && crn_file_nbytes(f, &now) == CAIRN_OK &&
        now == nbytes)
        rc = crn_file_truncate(f, 0);
    crn_file_close(f);
    return rc;
}

cairn_status crn_writer_heed(cairn_shelf *s)
{
    char *text = NULL;
    cairn_status rc = CAIRN_OK;
    uint64_t n = 0;
    if (crn_comm_rank(s->comm) == 0)
        rc = crn_writer_drops(s, s->series, &text);
    n = text ? strlen(text) : 0;
    CRN_TRY(crn_comm_agree(s->comm, rc));
    CRN_TRY(crn_comm_bcast(s->comm, &n, sizeof n, 0));
    if (n == 0) {
        free(text);
        return CAIRN_OK;
    }
    if (!text)
        rc = crn_alloc(&text, n + 1);
    rc = crn_comm_agree(s->comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_comm_bcast(s->comm, text, n, 0);
    if (rc == CAIRN_OK)
        rc = crn_comm_agree(s->comm, drop_listed(s, s->series, s->part, text));
    if (rc == CAIRN_OK && crn_comm_rank(s->comm) == 0)
        rc = clear_drops(s, s->series, n);
    free(text);
    return crn_comm_agree(s->comm, rc);
}

cairn_status crn_writer_heed_of(cairn_shelf *s, uint32_t series, crn_part **part, uint32_t nranks)
{
    char *text;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_writer_drops(s, series, &text));
    const size_t n = text ? strlen(text) : 0;
    for (uint32_t r = 0; n > 0 && r < nranks && rc == CAIRN_OK; r++) {
        char *copy;
        rc = crn_strdup(text, &copy);
        if (rc == CAIRN_OK) {
            rc = drop_listed(s, series, part[r], copy);
            free(copy);
        }
    }
    if (n > 0 && rc == CAIRN_OK)
        rc = clear_drops(s, series, n);
    free(text);
    return rc;
}

/* --- space of what was dropped ------------------------------------------------------------ */

/* The writer is gone: what it left that does not count is removed from all its parts. CAIRN_EBUSY
 * when it is not gone. */
static cairn_status clean_up(cairn_shelf *s, const state_entry *e)
{
    for (uint32_t r = 0; r < e->nranks; r++) {
        crn_part *part;
        CRN_TRY(crn_writer_part(s, e->series, r, e->nranks, true, &part));
        const cairn_status rc = crn_writer_reconcile(s, part);
        crn_part_close(part);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

cairn_status crn_writer_reclaim(cairn_shelf *s, const state_entry *e)
{
    const crn_state_name name = {e->key, e->version};
    cairn_status rc = CAIRN_EBUSY;
    if (e->series == s->series && e->nranks == 1)
        rc = crn_part_drop(s->part, &name, 1);
    else if (e->series != s->series)
        rc = clean_up(s, e);
    if (rc == CAIRN_EBUSY)
        rc = ask_to_drop(s, e);
    return rc == CAIRN_ENOSPC ? CAIRN_OK : rc; /* who meets the full disk next looks by itself */
}
