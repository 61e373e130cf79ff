/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A disk that forgets. While a test runs, every operation that changes files below a root is
 * written down. Afterwards the list is played up to any point, where the machine stops: what syncs
 * have made durable is there, and of the rest whatever a disk may or may not have done by then. A
 * write is durable after a sync of its file, a name after a sync of its directory.
 *
 *     disk_log        operations, in order
 *     disk            what is durable after some of them, and what is not yet
 *     disk_choice     one fate for all that is not
 */
#ifndef CAIRN_TESTS_DISK_H
#define CAIRN_TESTS_DISK_H

#include <limits.h>

#include "harness/harness.h"
#include "hash/hash.h"
#include "io/io_fault.h"

enum {
    DISK_SECTOR = 512,
    DISK_LOST = 100 /* a kind of operation: a sync has failed, and what it was to make durable may
                       never be, whatever later syncs say */
};

typedef struct disk_op {
    int kind;        /* of a crn_fault_event, or DISK_LOST */
    char *path, *to; /* below the root */
    uint64_t off;
    size_t nbytes;
    unsigned char *data;
} disk_op;

typedef struct disk_log {
    char root[PATH_MAX];
    CRN_VEC(disk_op) op;
} disk_log;

/* --- writing down ------------------------------------------------------------------------- */

/* Where a descriptor leads, and name below it, without the root. */
static inline char *disk_path(const disk_log *log, int fd, const char *name)
{
    char link[64], path[PATH_MAX + NAME_MAX + 2];
    ssize_t n = 0;
    size_t nroot = strlen(log->root);
    if (!name || name[0] != '/') {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(fd == AT_FDCWD ? "/proc/self/cwd" : link, path, PATH_MAX);
        assert_true(n > 0);
    }
    snprintf(path + n, sizeof path - (size_t)n, "%s%s", n > 0 && name ? "/" : "", name ? name : "");
    assert_memory_equal(path, log->root, nroot);
    char *copy = strdup(path + nroot + (path[nroot] == '/'));
    assert_non_null(copy);
    return copy;
}

static inline void disk_note(void *arg, const crn_fault_event *e)
{
    disk_log *log = arg;
    disk_op op = {.kind = e->kind, .off = e->off};
    op.path =
        e->file ? disk_path(log, crn_file_fd(e->file), NULL) : disk_path(log, e->dirfd, e->name);
    if (e->kind == CRN_SEEN_RENAME)
        op.to = disk_path(log, e->dirfd, e->to);
    if (e->kind == CRN_SEEN_WRITE) {
        op.data = malloc(e->nbytes + 1);
        assert_non_null(op.data);
        for (int i = 0; i < e->niov; op.nbytes += e->iov[i++].iov_len)
            memcpy(op.data + op.nbytes, e->iov[i].iov_base, e->iov[i].iov_len);
    }
    assert_ok(crn_vec_push(&log->op, op));
}

static inline void disk_record(disk_log *log, const char *root)
{
    assert_non_null(realpath(root, log->root));
    crn_fault_watch(disk_note, log);
}

static inline void disk_note_lost(disk_log *log)
{
    assert_ok(crn_vec_push(&log->op, (disk_op){.kind = DISK_LOST}));
}

static inline void disk_log_done(disk_log *log)
{
    for (size_t i = 0; i < log->op.n; i++) {
        free(log->op.at[i].path);
        free(log->op.at[i].to);
        free(log->op.at[i].data);
    }
    crn_vec_done(&log->op);
}

/* The first n operations of a log, to be gone on with below another root. */
static inline void disk_log_copy(const disk_log *from, size_t n, disk_log *ret)
{
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < n; i++) {
        disk_op op = from->op.at[i];
        op.path = op.path ? strdup(op.path) : NULL;
        op.to = op.to ? strdup(op.to) : NULL;
        if (op.data) {
            op.data = malloc(op.nbytes + 1);
            assert_non_null(op.data);
            memcpy(op.data, from->op.at[i].data, op.nbytes);
        }
        assert_ok(crn_vec_push(&ret->op, op));
    }
}

/* --- playing back ------------------------------------------------------------------------- */

typedef struct disk_name {
    const char *path; /* the log's */
    size_t inode;
} disk_name;

typedef CRN_VEC(disk_name) disk_names;

typedef struct disk_inode {
    bool is_dir;
    unsigned char *data; /* durable */
    size_t nbytes;
    CRN_VEC(const disk_op *) pending; /* submitted after the last sync */
} disk_inode;

typedef struct disk_change { /* an entry of a directory */
    const char *from, *to;   /* NULL: it is new; it is removed */
    size_t inode;
} disk_change;

typedef struct disk {
    CRN_VEC(disk_inode) inode;
    disk_names now, kept; /* as the program sees them; as they are durable */
    CRN_VEC(disk_change) pending;
} disk;

static inline disk_name *disk_find(const disk_names *names, const char *path)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->at[i].path, path) == 0)
            return &names->at[i];
    return NULL;
}

static inline void disk_change_names(disk_names *names, const disk_change *c)
{
    disk_name *old = c->from ? disk_find(names, c->from) : NULL;
    if (old)
        *old = names->at[--names->n];
    old = c->to ? disk_find(names, c->to) : NULL;
    if (old)
        old->inode = c->inode;
    else if (c->to)
        assert_ok(crn_vec_push(names, (disk_name){c->to, c->inode}));
}

static inline void disk_change_now(disk *d, disk_change c)
{
    disk_change_names(&d->now, &c);
    assert_ok(crn_vec_push(&d->pending, c));
}

static inline void disk_make(disk *d, const char *path, bool is_dir)
{
    if (disk_find(&d->now, path))
        return;
    assert_ok(crn_vec_push(&d->inode, (disk_inode){.is_dir = is_dir}));
    disk_change_now(d, (disk_change){NULL, path, d->inode.n - 1});
}

static inline void disk_resize(disk_inode *f, size_t nbytes)
{
    f->data = realloc(f->data, nbytes + 1);
    assert_non_null(f->data);
    if (nbytes > f->nbytes)
        memset(f->data + f->nbytes, 0, nbytes - f->nbytes);
    f->nbytes = nbytes;
}

/* Do a write to the durable bytes; with rng, each of its sectors only with an even chance. */
static inline void disk_apply(disk_inode *f, const disk_op *op, crn_rng *rng)
{
    if (op->kind == CRN_SEEN_TRUNCATE) {
        disk_resize(f, op->off);
        return;
    }
    for (size_t at = 0, len; at < op->nbytes; at += len) {
        len = CRN_MIN(DISK_SECTOR - (op->off + at) % DISK_SECTOR, op->nbytes - at);
        if (rng && crn_rng_u64(rng) & 1)
            continue;
        if (op->off + at + len > f->nbytes)
            disk_resize(f, op->off + at + len);
        memcpy(f->data + op->off + at, op->data + at, len);
    }
}

static inline bool disk_is_in(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    return strlen(dir) == n && memcmp(path, dir, n) == 0;
}

static inline void disk_sync_dir(disk *d, const char *dir)
{
    size_t left = 0;
    for (size_t i = 0; i < d->pending.n; i++) {
        const disk_change *c = &d->pending.at[i];
        if (disk_is_in(c->to ? c->to : c->from, dir))
            disk_change_names(&d->kept, c);
        else
            d->pending.at[left++] = *c;
    }
    d->pending.n = left;
}

/* What a failed sync was to cover is written or not, in part or whole, and never asked again. */
static inline void disk_lose(disk *d, crn_rng *rng)
{
    for (size_t i = 0; i < d->inode.n; i++) {
        disk_inode *f = &d->inode.at[i];
        for (size_t j = 0; j < f->pending.n; j++) {
            uint64_t dice = crn_rng_below(rng, 3);
            if (dice > 0)
                disk_apply(f, f->pending.at[j], dice == 1 ? rng : NULL);
        }
        f->pending.n = 0;
    }
}

/* One operation happens. rng decides what becomes of lost writes. */
static inline void disk_step(disk *d, const disk_op *op, crn_rng *rng)
{
    const disk_name *name = op->path ? disk_find(&d->now, op->path) : NULL;
    disk_inode *f = name ? &d->inode.at[name->inode] : NULL;
    switch (op->kind) {
    case CRN_SEEN_OPEN:
    case CRN_SEEN_MKDIR:
        disk_make(d, op->path, op->kind == CRN_SEEN_MKDIR);
        break;
    case CRN_SEEN_WRITE:
    case CRN_SEEN_TRUNCATE:
        assert_non_null(f);
        assert_ok(crn_vec_push(&f->pending, op));
        break;
    case CRN_SEEN_SYNC:
        assert_non_null(f);
        for (size_t i = 0; i < f->pending.n; i++)
            disk_apply(f, f->pending.at[i], NULL);
        f->pending.n = 0;
        break;
    case CRN_SEEN_RENAME:
        assert_non_null(name);
        disk_change_now(d, (disk_change){op->path, op->to, name->inode});
        break;
    case CRN_SEEN_UNLINK:
        if (name)
            disk_change_now(d, (disk_change){op->path, NULL, 0});
        break;
    case CRN_SEEN_DIRSYNC:
        disk_sync_dir(d, op->path);
        break;
    case DISK_LOST:
        disk_lose(d, rng);
        break;
    default:
        fail_msg("a kind of operation that no disk knows: %d", op->kind);
    }
}

static inline void disk_play(disk *d, const disk_log *log, size_t n, uint64_t seed)
{
    crn_rng rng = crn_rng_of(seed, 2);
    memset(d, 0, sizeof *d);
    for (size_t i = 0; i < n; i++)
        disk_step(d, &log->op.at[i], &rng);
}

static inline void disk_done(disk *d)
{
    for (size_t i = 0; i < d->inode.n; i++) {
        free(d->inode.at[i].data);
        crn_vec_done(&d->inode.at[i].pending);
    }
    crn_vec_done(&d->inode);
    crn_vec_done(&d->now);
    crn_vec_done(&d->kept);
    crn_vec_done(&d->pending);
}

/* --- what a crash leaves ------------------------------------------------------------------ */

typedef struct disk_choice {
    enum {
        DISK_NONE,     /* nothing that is not durable happened */
        DISK_ALL,      /* all of it did */
        DISK_NAMES,    /* only names */
        DISK_WRITES,   /* only writes */
        DISK_BUT_ONE,  /* all but one write */
        DISK_ONLY_ONE, /* all names, and one write */
        DISK_LATE,     /* all names, and the writes from one on, without those before */
        DISK_TORN_ONE, /* all, with one write torn at sectors */
        DISK_RANDOM    /* every write and name has a fate of its own; writes in reverse order */
    } kind;
    size_t one;
    uint64_t seed;
} disk_choice;

typedef CRN_VEC(disk_choice) disk_choices;

static inline size_t disk_npending(const disk *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->inode.n; i++)
        n += d->inode.at[i].pending.n;
    return n;
}

/* All choices that are worth a look at; of many pending writes, max take their turn alone. */
static inline void disk_choose(const disk *d, uint64_t seed, size_t max, disk_choices *ret)
{
    size_t n = disk_npending(d), step = n / (max + 1) + 1;
    ret->n = 0;
    assert_ok(crn_vec_push(ret, (disk_choice){.kind = DISK_ALL}));
    if (n == 0 && d->pending.n == 0)
        return;
    for (int kind = DISK_NONE; kind <= DISK_WRITES; kind++)
        if (kind != DISK_ALL)
            assert_ok(crn_vec_push(ret, (disk_choice){.kind = kind}));
    for (size_t one = 0; one < n; one += step)
        for (int kind = DISK_BUT_ONE; kind <= DISK_TORN_ONE; kind++)
            assert_ok(crn_vec_push(ret, (disk_choice){.kind = kind, .one = one, .seed = seed}));
    for (uint64_t i = 0; i < max; i++)
        assert_ok(crn_vec_push(ret, (disk_choice){.kind = DISK_RANDOM, .seed = seed + i}));
}

/* 0: it did not happen; 1: it did; 2: in part. */
static inline int disk_fate(const disk_choice *c, size_t i, crn_rng *rng)
{
    switch (c->kind) {
    case DISK_NONE:
    case DISK_NAMES:
        return 0;
    case DISK_ALL:
    case DISK_WRITES:
        return 1;
    case DISK_BUT_ONE:
        return i != c->one;
    case DISK_ONLY_ONE:
        return i == c->one;
    case DISK_LATE:
        return i >= c->one;
    case DISK_TORN_ONE:
        return i == c->one ? 2 : 1;
    case DISK_RANDOM:
        break;
    }
    return (int)crn_rng_below(rng, 3);
}

/* Let what was pending happen, or not. Nothing is pending afterwards. */
static inline void disk_crash(disk *d, const disk_choice *c)
{
    crn_rng rng = crn_rng_of(c->seed, 3);
    size_t ordinal = 0;
    for (size_t i = 0; i < d->inode.n; i++) {
        disk_inode *f = &d->inode.at[i];
        for (size_t j = 0; j < f->pending.n; j++) {
            size_t at = c->kind == DISK_RANDOM ? f->pending.n - 1 - j : j;
            int fate = disk_fate(c, ordinal++, &rng);
            if (fate > 0)
                disk_apply(f, f->pending.at[at], fate == 2 ? &rng : NULL);
        }
        f->pending.n = 0;
    }
    for (size_t i = 0; i < d->pending.n; i++)
        if (c->kind == DISK_RANDOM ? crn_rng_u64(&rng) & 1
                                   : c->kind != DISK_NONE && c->kind != DISK_WRITES)
            disk_change_names(&d->kept, &d->pending.at[i]);
    d->pending.n = 0;
}

static inline int disk_by_path(const void *a, const void *b)
{
    return strcmp(((const disk_name *)a)->path, ((const disk_name *)b)->path);
}

static inline void disk_sort(disk *d)
{
    if (d->kept.n > 0) /* an empty disk has no array */
        qsort(d->kept.at, d->kept.n, sizeof *d->kept.at, disk_by_path);
}

/* Tells one image from another. */
static inline crn_digest disk_digest(disk *d)
{
    crn_buf all = {0};
    disk_sort(d);
    for (size_t i = 0; i < d->kept.n; i++) {
        const disk_inode *f = &d->inode.at[d->kept.at[i].inode];
        crn_digest content = crn_digest_of(f->data, f->nbytes);
        crn_put_str(&all, d->kept.at[i].path);
        crn_put_bytes(&all, content.b, sizeof content.b);
    }
    assert_ok(crn_buf_status(&all));
    crn_digest sum = crn_digest_of(all.at, all.n);
    crn_buf_done(&all);
    return sum;
}

/* Write the durable files into an empty directory. What lies in a lost directory is lost. */
static inline void disk_write_out(disk *d, const char *dir)
{
    disk_sort(d); /* directories come first */
    for (size_t i = 0; i < d->kept.n; i++) {
        const disk_inode *f = &d->inode.at[d->kept.at[i].inode];
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", dir, d->kept.at[i].path);
        if (f->is_dir) {
            (void)!mkdir(path, 0700);
            continue;
        }
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0)
            continue;
        assert_true(write(fd, f->data, f->nbytes) == (ssize_t)f->nbytes);
        close(fd);
    }
}

/* A scratch directory in memory where there is such a place: thousands of images pass through. */
static inline char *disk_scratch(char buf[64], const char *name)
{
    snprintf(buf, 64, "/dev/shm/cairn-%s-XXXXXX", name);
    return mkdtemp(buf) ? buf : make_scratch(buf, 64, name);
}

#endif
