/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Golden files: the trees of all ranks of a run and sketches of their values in one file, small
 * enough to be kept beside a program's sources. docs/format/golden.md has the bytes.
 */
#include "diff/diff.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

static const char magic[8] = {'C', 'A', 'I', 'R', 'N', 'G', 'D', '\n'};

/* Without sketches a file is of format 1, which earlier versions read, too. */
enum { FORMAT_TREES = 1, FORMAT_SKETCHES = 2, GOLDEN_MAX = 1 << 30 };

/* --- making one ------------------------------------------------------------------------------ */

/* A golden file in the making. */
typedef struct blessing {
    diff_side side;
    crn_sketch_kind kind;
    uint64_t *nmissing; /* by mark: variables without a sketch that should have one */
    diff_lossy lossy;
    cairn_bless_result result;
} blessing;

/* A section begins: room for its length, where *ret is. */
static void begin_section(crn_buf *buf, size_t *ret)
{
    *ret = buf->n;
    crn_put_u64(buf, 0);
}

/* It has come to its end: put the length. There is no copy of what may be most of the memory. */
static cairn_status end_section(crn_buf *buf, size_t start, uint64_t *ret_nbytes)
{
    crn_buf length = {0};
    CRN_TRY(crn_buf_status(buf));
    *ret_nbytes = buf->n - start - sizeof(uint64_t);
    crn_put_u64(&length, *ret_nbytes);
    cairn_status rc = crn_buf_status(&length);
    if (rc == CAIRN_OK)
        memcpy(buf->at + start, length.at, length.n);
    crn_buf_done(&length);
    CRN_TRY(rc);
    CRN_FAIL_IF(buf->n > GOLDEN_MAX - sizeof(crn_digest), CAIRN_EINVAL,
                "the golden file would be larger than 1 GiB: take fewer marks, or a smaller sketch "
                "(bytes, or none)");
    return CAIRN_OK;
}

static cairn_status put_rank(blessing *b, uint32_t rank, crn_buf *buf)
{
    size_t start;
    uint64_t nbytes;
    crn_trees *t = crn_diff_trees(&b->side, rank);
    CRN_FAIL_IF(!t, CAIRN_ENOTFOUND, "'%s' has no trees of rank %u that can be read", b->side.name,
                rank);
    begin_section(buf, &start);
    CRN_TRY(crn_trees_put(t, buf));
    CRN_TRY(end_section(buf, start, &nbytes));
    if (b->kind == CRN_SKETCH_NONE)
        return CAIRN_OK;
    begin_section(buf, &start);
    CRN_TRY(crn_diff_sketches_put(&b->side, rank, t, b->kind, b->nmissing, &b->lossy, buf));
    CRN_TRY(end_section(buf, start, &nbytes));
    b->result.sketch_bytes += nbytes;
    return CAIRN_OK;
}

static cairn_status put_golden(blessing *b, crn_buf *buf)
{
    crn_put_bytes(buf, magic, sizeof magic);
    crn_put_u32(buf, b->kind == CRN_SKETCH_NONE ? FORMAT_TREES : FORMAT_SKETCHES);
    crn_put_u32(buf, b->side.nranks);
    for (uint32_t r = 0; r < b->side.nranks; r++)
        CRN_TRY(put_rank(b, r, buf));
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

static void sum_up(blessing *b, size_t file_bytes)
{
    const diff_side *s = &b->side;
    b->result.file_bytes = file_bytes;
    b->result.nmarks = s->mark.n;
    b->result.nlossy = b->lossy.n;
    b->result.nloose = b->lossy.nloose;
    for (size_t i = 0; i < s->mark.n; i++) {
        b->result.nbytes += s->mark.at[i].nbytes;
        b->result.nsketched += b->kind != CRN_SKETCH_NONE && b->nmissing[i] == 0;
    }
}

static cairn_status bless(blessing *b, const char *run, crn_comm *comm, const char *golden)
{
    crn_buf buf = {0};
    CRN_TRY(crn_diff_open_run(&b->side, run, comm));
    CRN_TRY(check_marks(&b->side));
    CRN_TRY(crn_alloc(&b->nmissing, b->side.mark.n));
    cairn_status rc = put_golden(b, &buf);
    if (rc == CAIRN_OK)
        rc = crn_file_replace(AT_FDCWD, golden, buf.at, buf.n);
    sum_up(b, buf.n);
    crn_buf_done(&buf);
    return rc;
}

static cairn_status kind_of(cairn_sketch sketch, crn_sketch_kind *ret)
{
    static const crn_sketch_kind kind[] = {[CAIRN_SKETCH_BYTES] = CRN_SKETCH_BYTES,
                                           [CAIRN_SKETCH_BITS] = CRN_SKETCH_BITS,
                                           [CAIRN_SKETCH_NONE] = CRN_SKETCH_NONE};
    CRN_FAIL_IF((unsigned)sketch >= sizeof kind / sizeof *kind, CAIRN_EINVAL,
                "cairn_bless_as: there is no sketch %d", (int)sketch);
    *ret = kind[sketch];
    return CAIRN_OK;
}

int cairn_bless_as(const char *run, const char *golden, const cairn_bless_options *how,
                   cairn_bless_result *ret)
{
    cairn_bless_options options = {.sketch = CAIRN_SKETCH_BYTES};
    blessing b = {.kind = CRN_SKETCH_NONE};
    crn_comm *comm;
    CRN_FAIL_IF(!run || !golden, CAIRN_EINVAL, "cairn_bless: an argument is NULL");
    if (how)
        CRN_TRY(crn_struct_in(how, &options));
    if (ret)
        CRN_TRY(crn_struct_check(ret));
    CRN_TRY(kind_of(options.sketch, &b.kind));
    CRN_TRY(crn_comm_create_self(&comm));
    cairn_status rc = bless(&b, run, comm, golden);
    if (rc == CAIRN_OK && ret)
        rc = crn_struct_out(&b.result, ret);
    const crn_err why = *crn_err_peek();
    crn_diff_close(&b.side);
    crn_comm_free(comm);
    free(b.nmissing);
    return rc < 0 ? crn_err_give(&why) : CAIRN_OK;
}

int cairn_bless(const char *run, const char *golden)
{
    return cairn_bless_as(run, golden, NULL, NULL);
}

/* --- opening one ----------------------------------------------------------------------------- */

/* The bytes of a section; its length comes first. */
static cairn_status get_section(const diff_side *s, crn_cursor *c, const void **ret, size_t *ret_n)
{
    const uint64_t n = crn_get_u64(c);
    crn_cursor_expect(c, n <= c->n);
    *ret = crn_get_view(c, c->failed ? 0 : n);
    *ret_n = n;
    return crn_cursor_status(c, s->name);
}

static cairn_status get_rank(diff_side *s, crn_cursor *c, uint32_t rank)
{
    const void *data;
    size_t n;
    CRN_TRY(get_section(s, c, &data, &n));
    s->nranks = rank + 1;
    s->tried[rank] = true;
    CRN_TRY(crn_trees_of(s->name, data, n, &s->trees[rank]));
    CRN_FAIL_IF(crn_trees_rank(s->trees[rank]) != rank, CAIRN_ECORRUPT,
                "golden file '%s' has trees of rank %u in the place of rank %u", s->name,
                crn_trees_rank(s->trees[rank]), rank);
    if (!s->sketches)
        return CAIRN_OK;
    CRN_TRY(get_section(s, c, &data, &n));
    return crn_diff_sketches_open(s, rank, data, n);
}

/* Check the whole, and find where each rank's trees and sketches lie. */
static cairn_status parse(diff_side *s, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(s->golden, nbytes);
    unsigned char head[sizeof magic];
    crn_get_bytes(&c, head, sizeof head);
    const uint32_t format = crn_get_u32(&c), nranks = crn_get_u32(&c);
    CRN_FAIL_IF(c.failed || memcmp(head, magic, sizeof head) != 0, CAIRN_ECORRUPT,
                "'%s' is not a golden file", s->name);
    CRN_FAIL_IF(format != FORMAT_TREES && format != FORMAT_SKETCHES, CAIRN_EUNSUPPORTED,
                "'%s' is a golden file of format %u; this version reads formats %d and %d", s->name,
                format, FORMAT_TREES, FORMAT_SKETCHES);
    const crn_digest d = crn_digest_of(s->golden, nbytes - CRN_MIN(nbytes, sizeof d));
    crn_cursor_expect(&c, c.n >= sizeof d && nranks > 0 && nranks <= c.n / sizeof(uint64_t));
    CRN_FAIL_IF(c.failed || memcmp(c.at + c.n - sizeof d, d.b, sizeof d) != 0, CAIRN_ECORRUPT,
                "golden file '%s' is damaged or cut short", s->name);
    CRN_TRY(crn_alloc(&s->trees, nranks));
    CRN_TRY(crn_alloc(&s->tried, nranks));
    if (format == FORMAT_SKETCHES)
        CRN_TRY(crn_alloc(&s->sketches, nranks));
    for (uint32_t r = 0; r < nranks; r++)
        CRN_TRY(get_rank(s, &c, r));
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

cairn_status crn_diff_open(diff_side *s, const char *name, crn_comm *comm)
{
    struct stat st;
    uint8_t is_file = stat(name, &st) == 0 && S_ISREG(st.st_mode);
    CRN_TRY(crn_comm_bcast(comm, &is_file, sizeof is_file, 0));
    return is_file ? crn_diff_open_golden(s, name, comm) : crn_diff_open_run(s, name, comm);
}
