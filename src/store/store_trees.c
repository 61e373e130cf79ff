/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trees file of a rank: found, read record by record, appended to. Readers believe no length
 * before they have seen that the file is long enough, and no record whose digest is wrong.
 */
#include "store/store_trail.h"
#include "store/store_trees_format.h"

#include <fcntl.h>
#include <unistd.h>

struct crn_trees {
    char *name;
    crn_file *file;            /* NULL: in memory */
    const unsigned char *data; /* of a file in memory */
    uint64_t nbytes;
    uint64_t end; /* behind the last whole record */
    unsigned char run[16];
    uint32_t rank;
    CRN_VEC(crn_trees_mark *) mark;
    size_t ndamaged;
};

/* --- reading -------------------------------------------------------------------------------- */

static cairn_status read_at(crn_trees *t, void *dst, uint64_t nbytes, uint64_t off)
{
    if (t->file)
        return crn_file_read(t->file, dst, nbytes, off);
    memcpy(dst, t->data + off, nbytes);
    return CAIRN_OK;
}

static cairn_status get_header(crn_trees *t)
{
    unsigned char raw[TREES_UNIT];
    CRN_FAIL_IF(t->nbytes < sizeof raw, CAIRN_ECORRUPT, "'%s' has %llu bytes: too few for trees",
                t->name, (unsigned long long)t->nbytes);
    CRN_TRY(read_at(t, raw, sizeof raw, 0));
    return crn_trees_get_header(raw, t->name, t->run, &t->rank);
}

/* The frame at off; CAIRN_ECORRUPT when there is none, or the record would not fit the file. */
static cairn_status get_frame(crn_trees *t, uint64_t off, crn_trees_frame *ret)
{
    unsigned char raw[TREES_UNIT];
    CRN_TRY(read_at(t, raw, sizeof raw, off));
    if (crn_trees_get_frame(raw, ret) &&
        crn_trees_fits(off, crn_trees_record_bytes(ret), t->nbytes))
        return CAIRN_OK;
    return CAIRN_ECORRUPT;
}

/* The record that f stands before; CAIRN_ECORRUPT when it is damaged. */
static cairn_status get_record(crn_trees *t, uint64_t off, const crn_trees_frame *f,
                               crn_trees_mark **ret)
{
    unsigned char *head;
    CRN_TRY(crn_alloc(&head, f->head_bytes));
    cairn_status rc = read_at(t, head, f->head_bytes, off + TREES_UNIT);
    const crn_digest d = crn_digest_of(head, f->head_bytes);
    if (rc == CAIRN_OK && !crn_digest_equal(&d, &f->head))
        rc = CAIRN_ECORRUPT;
    if (rc == CAIRN_OK)
        rc = crn_trees_get_head(head, f->head_bytes, t->rank, t->nbytes, ret);
    free(head);
    return rc;
}

/* Take a mark to the list: those that it replaces go. */
static cairn_status take_mark(crn_trees *t, crn_trees_mark *m)
{
    while (t->mark.n > 0 && t->mark.at[t->mark.n - 1]->version >= m->version)
        crn_trees_mark_free(t->mark.at[--t->mark.n]);
    cairn_status rc = crn_vec_push(&t->mark, m);
    if (rc < 0)
        crn_trees_mark_free(m);
    return rc;
}

/*
 * Find all records. One that is damaged is passed over, in steps of a unit until a frame is whole
 * again; what is broken behind the last whole record is what a crash leaves, not damage.
 */
static cairn_status scan(crn_trees *t)
{
    uint64_t off = TREES_UNIT;
    bool broken = false;
    t->end = TREES_UNIT;
    while (crn_trees_fits(off, TREES_UNIT, t->nbytes)) {
        crn_trees_frame f;
        crn_trees_mark *m = NULL;
        cairn_status rc = get_frame(t, off, &f);
        if (rc == CAIRN_OK)
            rc = get_record(t, off, &f, &m);
        if (rc == CAIRN_ENOMEM || rc == CAIRN_EIO)
            return rc; /* nothing is known of what could not be read: it must not be cut off */
        if (rc < 0) {
            broken = true;
            off += TREES_UNIT;
            continue;
        }
        t->ndamaged += broken;
        broken = false;
        CRN_TRY(take_mark(t, m));
        off += crn_trees_record_bytes(&f);
        t->end = off;
    }
    return CAIRN_OK;
}

cairn_status crn_trees_load(crn_trees *t, const crn_trees_mark *m, crn_trees_var *v)
{
    unsigned char *raw;
    if (v->loaded)
        return CAIRN_OK;
    const size_t nbytes = crn_trees_body_bytes(v);
    CRN_TRY(crn_alloc(&raw, nbytes));
    cairn_status rc = read_at(t, raw, nbytes, v->body_off);
    const crn_digest d = crn_digest_of(raw, nbytes);
    if (rc == CAIRN_OK && !crn_digest_equal(&d, &v->body_digest))
        rc = CAIRN_ECORRUPT;
    if (rc == CAIRN_OK)
        rc = crn_trees_get_body(raw, nbytes, v);
    free(raw);
    v->loaded = rc == CAIRN_OK;
    if (rc < 0)
        crn_trees_unload(v);
    CRN_FAIL_IF(rc == CAIRN_ECORRUPT, CAIRN_ECORRUPT,
                "'%s': mark %llu, the trees of variable '%s' are damaged", t->name,
                (unsigned long long)m->version, v->var.spec.name);
    return rc;
}

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status open_dir(crn_run *run, uint32_t rank, bool create, int *ret_fd)
{
    char name[PATH_TEXT];
    int up;
    CRN_TRY(crn_dir_open_within(run->fd, "trees", create, &up));
    cairn_status rc = create ? crn_dir_sync(run->fd) : CAIRN_OK;
    crn_fan_name(rank, name);
    if (rc == CAIRN_OK)
        rc = crn_dir_open_within(up, name, create, ret_fd);
    if (rc == CAIRN_OK && create && (rc = crn_dir_sync(up)) < 0)
        close(*ret_fd);
    close(up);
    return rc;
}

/* The beginning of a new file, or of one whose beginning a crash has cut. */
static cairn_status begin_file(crn_trees *t, crn_run *run, uint32_t rank, int dir)
{
    crn_buf b = {0};
    crn_trees_put_header(&b, run->manifest.run, rank);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(t->file, b.at, b.n, 0);
    crn_buf_done(&b);
    t->nbytes = TREES_UNIT;
    return rc < 0 ? rc : crn_dir_sync(dir);
}

static cairn_status open_file(crn_trees *t, crn_run *run, uint32_t rank, bool write, int dir)
{
    char name[PATH_TEXT];
    snprintf(name, sizeof name, "trees-%06u", rank);
    CRN_TRY(crn_strdup(name, &t->name));
    CRN_TRY(crn_file_open(dir, name, CRN_READ | (write ? CRN_WRITE | CRN_CREATE : 0), &t->file));
    CRN_TRY(crn_file_nbytes(t->file, &t->nbytes));
    CRN_FAIL_IF(!write && t->nbytes < TREES_UNIT, CAIRN_ENOTFOUND,
                "'%s' has %" PRIu64 " bytes: whoever made it came no further", name, t->nbytes);
    if (t->nbytes < TREES_UNIT)
        CRN_TRY(begin_file(t, run, rank, dir));
    CRN_TRY(get_header(t));
    CRN_FAIL_IF(memcmp(t->run, run->manifest.run, sizeof t->run) != 0 || t->rank != rank,
                CAIRN_EMISMATCH, "'%s' belongs to rank %u of another run or place", name, t->rank);
    CRN_TRY(scan(t));
    return write && t->end < t->nbytes ? crn_file_truncate(t->file, t->end) : CAIRN_OK;
}

cairn_status crn_run_trees(crn_run *run, uint32_t rank, bool write, crn_trees **ret)
{
    crn_trees *t;
    int dir;
    CRN_TRY(open_dir(run, rank, write, &dir));
    cairn_status rc = crn_alloc(&t, 1);
    if (rc == CAIRN_OK && (rc = open_file(t, run, rank, write, dir)) < 0)
        crn_trees_close(t);
    close(dir);
    if (rc < 0)
        crn_err_prefix("run '%s', trees: ", run->name);
    else
        *ret = t;
    return rc;
}

cairn_status crn_trees_of(const char *name, const void *data, size_t nbytes, crn_trees **ret)
{
    crn_trees *t;
    cairn_status rc;
    CRN_TRY(crn_alloc(&t, 1));
    t->data = data;
    t->nbytes = nbytes;
    CRN_TRY_OUT(rc, crn_strdup(name, &t->name));
    CRN_TRY_OUT(rc, get_header(t));
    CRN_TRY_OUT(rc, scan(t));
    *ret = t;
    return CAIRN_OK;
out:
    crn_trees_close(t);
    return rc;
}

void crn_trees_close(crn_trees *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->mark.n; i++)
        crn_trees_mark_free(t->mark.at[i]);
    crn_vec_done(&t->mark);
    crn_file_close(t->file);
    free(t->name);
    free(t);
}

uint32_t crn_trees_rank(const crn_trees *t)
{
    return t->rank;
}

size_t crn_trees_nmarks(const crn_trees *t)
{
    return t->mark.n;
}

crn_trees_mark *crn_trees_at(const crn_trees *t, size_t i)
{
    return t->mark.at[i];
}

crn_trees_mark *crn_trees_of_version(const crn_trees *t, uint64_t version)
{
    size_t low = 0, high = t->mark.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->mark.at[middle]->version < version)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->mark.n && t->mark.at[low]->version == version ? t->mark.at[low] : NULL;
}

size_t crn_trees_ndamaged(const crn_trees *t)
{
    return t->ndamaged;
}

cairn_status crn_trees_append(crn_trees *t, crn_trees_mark *m, const crn_trees_mark *last)
{
    crn_buf b = {0};
    crn_trees_put_record(m, last, t->end, &b);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(t->file, b.at, b.n, t->end);
    if (rc == CAIRN_OK)
        rc = crn_file_sync(t->file);
    if (rc == CAIRN_OK)
        t->end += b.n;
    crn_buf_done(&b);
    return rc;
}

cairn_status crn_trees_put(crn_trees *t, crn_buf *buf)
{
    const size_t start = buf->n;
    crn_trees_put_header(buf, t->run, t->rank);
    for (size_t i = 0; i < t->mark.n; i++) {
        crn_trees_mark *m = t->mark.at[i];
        for (size_t k = 0; k < m->nvars; k++)
            CRN_TRY(crn_trees_load(t, m, &m->var[k]));
        /* places change: from here on m can no longer be loaded from t; heads are all there is */
        crn_trees_put_record(m, i > 0 ? t->mark.at[i - 1] : NULL, buf->n - start, buf);
        for (size_t k = 0; k < m->nvars; k++)
            crn_trees_unload(&m->var[k]);
    }
    return crn_buf_status(buf);
}
