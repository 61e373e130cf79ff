/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Golden files: the trees of all ranks of a run in one file, small enough to be kept beside a
 * program's sources; and checking a run against one. docs/format/golden.md has the bytes.
 */
#include "diff/diff.h"

#include <fcntl.h>
#include <inttypes.h>

static const char magic[8] = {'C', 'A', 'I', 'R', 'N', 'G', 'D', '\n'};

enum { FORMAT = 1, HEAD_BYTES = 16, GOLDEN_MAX = 1 << 30 };

/* --- making one ------------------------------------------------------------------------------ */

static cairn_status put_rank(diff_side *s, uint32_t rank, crn_buf *buf)
{
    crn_buf one = {0};
    crn_trees *t = crn_diff_trees(s, rank);
    CRN_FAIL_IF(!t, CAIRN_ENOTFOUND, "'%s' has no trees of rank %u that can be read", s->name,
                rank);
    cairn_status rc = crn_trees_put(t, &one);
    crn_put_u64(buf, one.n);
    crn_put_bytes(buf, one.at, one.n);
    crn_buf_done(&one);
    return rc;
}

static cairn_status put_golden(diff_side *s, crn_buf *buf)
{
    crn_put_bytes(buf, magic, sizeof magic);
    crn_put_u32(buf, FORMAT);
    crn_put_u32(buf, s->nranks);
    for (uint32_t r = 0; r < s->nranks; r++)
        CRN_TRY(put_rank(s, r, buf));
    CRN_TRY(crn_buf_status(buf));
    const crn_digest d = crn_digest_of(buf->at, buf->n);
    crn_put_bytes(buf, d.b, sizeof d.b);
    return crn_buf_status(buf);
}

/* A golden file without some of the run's marks would fail every run that has them. */
static cairn_status check_marks(const diff_side *s)
{
    const diff_mark *without = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->mark.n; i++) {
        n += s->mark.at[i].in_trees;
        if (!s->mark.at[i].in_trees && !without)
            without = &s->mark.at[i];
    }
    CRN_FAIL_IF(n == 0, CAIRN_ENOTFOUND, "'%s' has no mark with trees: nothing to bless", s->name);
    CRN_FAIL_IF(without, CAIRN_ENOTFOUND,
                "mark %" PRIu64 " of '%s' has no trees, or they are damaged: bless another run",
                without->version, s->name);
    return CAIRN_OK;
}

static cairn_status bless(diff_side *s, const char *run, crn_comm *comm, const char *golden)
{
    crn_buf buf = {0};
    CRN_TRY(crn_diff_open_run(s, run, comm));
    CRN_TRY(check_marks(s));
    cairn_status rc = put_golden(s, &buf);
    if (rc == CAIRN_OK)
        rc = crn_file_replace(AT_FDCWD, golden, buf.at, buf.n);
    crn_buf_done(&buf);
    return rc;
}

int cairn_bless(const char *run, const char *golden)
{
    diff_side s = {0};
    crn_comm *comm;
    CRN_FAIL_IF(!run || !golden, CAIRN_EINVAL, "cairn_bless: an argument is NULL");
    CRN_TRY(crn_comm_create_self(&comm));
    cairn_status rc = bless(&s, run, comm, golden);
    const crn_err why = *crn_err_peek();
    crn_diff_close(&s);
    crn_comm_free(comm);
    return rc < 0 ? crn_err_give(&why) : CAIRN_OK;
}

/* --- opening one ----------------------------------------------------------------------------- */

/* Check the whole, and find where each rank's trees lie. */
static cairn_status parse(diff_side *s, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(s->golden, nbytes);
    unsigned char head[sizeof magic];
    crn_get_bytes(&c, head, sizeof head);
    const uint32_t format = crn_get_u32(&c), nranks = crn_get_u32(&c);
    CRN_FAIL_IF(c.failed || memcmp(head, magic, sizeof head) != 0, CAIRN_ECORRUPT,
                "'%s' is not a golden file", s->name);
    CRN_FAIL_IF(format != FORMAT, CAIRN_EUNSUPPORTED,
                "'%s' is a golden file of format %u; this version reads format %d", s->name, format,
                FORMAT);
    const crn_digest d = crn_digest_of(s->golden, nbytes - CRN_MIN(nbytes, sizeof d));
    crn_cursor_expect(&c, c.n >= sizeof d && nranks > 0 && nranks <= c.n / sizeof(uint64_t));
    CRN_FAIL_IF(c.failed || memcmp(c.at + c.n - sizeof d, d.b, sizeof d) != 0, CAIRN_ECORRUPT,
                "golden file '%s' is damaged or cut short", s->name);
    CRN_TRY(crn_alloc(&s->trees, nranks));
    CRN_TRY(crn_alloc(&s->tried, nranks));
    for (uint32_t r = 0; r < nranks; r++) {
        const uint64_t n = crn_get_u64(&c);
        crn_cursor_expect(&c, n <= c.n);
        const void *data = crn_get_view(&c, c.failed ? 0 : n);
        CRN_TRY(crn_cursor_status(&c, s->name));
        s->nranks = r + 1;
        s->tried[r] = true;
        CRN_TRY(crn_trees_of(s->name, data, n, &s->trees[r]));
        CRN_FAIL_IF(crn_trees_rank(s->trees[r]) != r, CAIRN_ECORRUPT,
                    "golden file '%s' has trees of rank %u in the place of rank %u", s->name,
                    crn_trees_rank(s->trees[r]), r);
    }
    return CAIRN_OK;
}

cairn_status crn_diff_golden_of(diff_side *s, const char *name, void *data, size_t nbytes)
{
    cairn_status rc = crn_strdup(name, &s->name);
    if (rc < 0) {
        free(data);
        return rc;
    }
    pthread_mutex_init(&s->mutex, NULL);
    s->golden = data;
    CRN_TRY(parse(s, nbytes));
    return crn_diff_list_trees(s);
}

static cairn_status open_alone(diff_side *s, const char *name)
{
    void *data;
    size_t nbytes;
    CRN_TRY(crn_file_slurp(AT_FDCWD, name, GOLDEN_MAX, &data, &nbytes));
    return crn_diff_golden_of(s, name, data, nbytes);
}

cairn_status crn_diff_open_golden(diff_side *s, const char *name, crn_comm *comm)
{
    CRN_TRY(crn_comm_agree(comm, open_alone(s, name)));
    return crn_diff_check_whole(s, comm);
}
