/* SPDX-License-Identifier: BSD-3-Clause */
#include "state/state_index.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const uint32_t magic = 0x31585343;     /* "CSX1" */
static const uint32_t map_magic = 0x314d5343; /* "CSM1" */

enum {
    BUCKETS = 4096, /* a power of two */
    COPY = 4096,    /* bytes of one copy of a page */
    PAIR = STATE_PAGE_BYTES,
    HEAD = 32,
    SUM_AT = COPY - 16,
    ENTRY_FIXED = 62, /* bytes of an entry but for its key */
    PAGES_MAX = 1 << 24,
    PAGES_AT_ONCE = 32,
    MAP_PAGE = BUCKETS, /* its second half has a byte for each bucket: 1, it was written */
    MAP_AT = MAP_PAGE * PAIR + COPY
};

/* The bytes that are locked to make the file longer, and to look at a limit. */
#define GROW_LOCK  ((uint64_t)1 << 40)
#define LIMIT_LOCK (GROW_LOCK + 1)

struct state_index {
    crn_file *file;
    bool write;
    bool mapped;   /* it has the map, and both copies of every page that was written */
    uint64_t held; /* the bucket that is locked, plus one, or 0 */
    bool mending;  /* do not begin again: what is whole of a page has to do */
    state_mend_fn *mend;
    void *arg;
};

typedef struct page {
    uint64_t number, seq, next; /* next: the page that goes on, or 0 */
    bool damaged;               /* one copy is: the other may be older than what was committed */
    size_t room;                /* bytes left */
    CRN_VEC(state_entry) entry;
} page;

/* --- bytes -------------------------------------------------------------------------------- */

static void put_entry(crn_buf *b, const state_entry *e)
{
    crn_put_str(b, e->key);
    crn_put_u64(b, e->version);
    crn_put_bytes(b, e->digest.b, sizeof e->digest.b);
    crn_put_u64(b, e->nbytes);
    crn_put_u64(b, e->wall_ns);
    crn_put_u32(b, e->series);
    crn_put_u32(b, e->nranks);
    crn_put_u32(b, e->pins);
    crn_put_u64(b, 0); /* reserved */
}

static void get_entry(crn_cursor *c, state_entry *e)
{
    crn_get_str(c, e->key, CRN_KEY_MAX);
    e->version = crn_get_u64(c);
    crn_get_bytes(c, e->digest.b, sizeof e->digest.b);
    e->nbytes = crn_get_u64(c);
    e->wall_ns = crn_get_u64(c);
    e->series = crn_get_u32(c);
    e->nranks = crn_get_u32(c);
    e->pins = crn_get_u32(c);
    (void)crn_get_u64(c);
    crn_cursor_expect(c, crn_key_is_valid(e->key) && e->nranks > 0);
}

static size_t entry_bytes(const state_entry *e)
{
    return ENTRY_FIXED + strlen(e->key);
}

/* What a copy says its sequence number is; 0 for one that was never written. */
static uint64_t said_seq(const unsigned char *copy)
{
    crn_cursor c = crn_cursor_of(copy, HEAD);
    const bool written = crn_get_u32(&c) == magic;
    (void)crn_get_u32(&c);
    return written ? crn_get_u64(&c) : 0;
}

static bool is_blank(const unsigned char *copy)
{
    static const unsigned char zeros[HEAD];
    return memcmp(copy, zeros, HEAD) == 0;
}

/* Is a copy what was written, or was it never? */
static bool is_whole(const unsigned char *copy, uint64_t number)
{
    crn_cursor c = crn_cursor_of(copy, HEAD);
    if (is_blank(copy))
        return true;
    const bool known = crn_get_u32(&c) == magic;
    (void)crn_get_u32(&c);
    (void)crn_get_u64(&c);
    if (!known || crn_get_u64(&c) != number)
        return false;
    const crn_digest sum = crn_digest_of(copy, SUM_AT);
    return memcmp(copy + SUM_AT, sum.b, sizeof sum.b) == 0;
}

/* The entries go behind those that p has. */
static cairn_status decode(const unsigned char *copy, page *p)
{
    crn_cursor c = crn_cursor_of(copy, SUM_AT);
    (void)crn_get_u32(&c);
    const uint32_t n = crn_get_u32(&c);
    p->seq = crn_get_u64(&c);
    (void)crn_get_u64(&c);
    p->next = crn_get_u64(&c);
    crn_cursor_expect(&c, n <= SUM_AT / ENTRY_FIXED && p->next < PAGES_MAX);
    CRN_TRY(crn_cursor_status(&c, "index page"));
    CRN_TRY(crn_vec_reserve(&p->entry, n));
    for (uint32_t i = 0; i < n; i++)
        get_entry(&c, &p->entry.at[p->entry.n + i]);
    p->room = c.n;
    CRN_TRY(crn_cursor_status(&c, "index page"));
    p->entry.n += n;
    return CAIRN_OK;
}

/*
 * Take the newer of the two copies, and the other one only where that is damaged. *ret is NULL for
 * a page that was never written. Of one that was, paired, both copies have been: one that is blank
 * may have been the newer one.
 */
static cairn_status choose_copy(const unsigned char *pair, bool paired, page *p,
                                const unsigned char **ret)
{
    const uint64_t seq[2] = {said_seq(pair), said_seq(pair + COPY)};
    int newest = seq[1] > seq[0];
    p->damaged = !is_whole(pair + newest * COPY, p->number) ||
                 (paired && is_blank(pair) != is_blank(pair + COPY));
    if (p->damaged && !is_whole(pair + newest * COPY, p->number)) {
        newest = !newest;
        CRN_FAIL_IF(!is_whole(pair + newest * COPY, p->number), CAIRN_ECORRUPT,
                    "page %" PRIu64 " of the shelf's index is damaged: open the shelf to write, "
                    "and it is made anew from the parts",
                    p->number);
    }
    *ret = seq[newest] > 0 ? pair + newest * COPY : NULL;
    return CAIRN_OK;
}

/* --- pages -------------------------------------------------------------------------------- */

/* Can what a damaged page has lost be found out? Else what is whole of it is what there is. */
static bool can_mend(const state_index *x)
{
    return x->mend && x->write && !x->mending;
}

/* A page without anything: was there something once? */
static cairn_status check_blank(const state_index *x, const page *p)
{
    unsigned char written = p->number >= BUCKETS;
    if (p->number < BUCKETS && x->mapped)
        CRN_TRY(crn_file_read(x->file, &written, 1, MAP_AT + p->number));
    CRN_FAIL_IF(written && !x->mending, CAIRN_ECORRUPT,
                "page %" PRIu64 " of the shelf's index is lost: open the shelf to write, and it is "
                "made anew from the parts",
                p->number);
    return CAIRN_OK;
}

/* What to do with a page, as far as one look at it tells. */
static cairn_status judge_pair(const state_index *x, const unsigned char *pair, page *p,
                               const unsigned char **ret)
{
    CRN_TRY(choose_copy(pair, x->mapped, p, ret));
    CRN_FAIL_IF(p->damaged && can_mend(x), CAIRN_ECORRUPT,
                "page %" PRIu64 " of the shelf's index is damaged", p->number);
    return *ret ? CAIRN_OK : check_blank(x, p);
}

/*
 * Read a page, and find the copy of it that counts. One that looks damaged may be being written:
 * then what was read of the other one may be outdated, too. Damage is what is still the same at a
 * second look.
 */
static cairn_status read_copy(state_index *x, uint64_t number, page *p, unsigned char pair[PAIR],
                              const unsigned char **ret)
{
    enum { LOOKS = 1000 };
    unsigned char before[PAIR];
    p->number = number;
    for (int i = 0;; i++) {
        CRN_TRY(crn_file_read(x->file, pair, PAIR, number * PAIR));
        const cairn_status rc = judge_pair(x, pair, p, ret);
        if ((rc == CAIRN_OK && !p->damaged) || i == LOOKS ||
            (i > 0 && memcmp(pair, before, PAIR) == 0))
            return rc;
        memcpy(before, pair, PAIR);
    }
}

static void forget_page(page *p)
{
    p->seq = p->next = 0;
    p->room = SUM_AT - HEAD;
}

/* Its entries go behind those that p has. */
static cairn_status add_page(state_index *x, uint64_t number, page *p)
{
    unsigned char pair[PAIR];
    const unsigned char *copy;
    forget_page(p);
    CRN_TRY(read_copy(x, number, p, pair, &copy));
    return copy ? decode(copy, p) : CAIRN_OK;
}

static cairn_status read_page(state_index *x, uint64_t number, page *p)
{
    p->entry.n = 0;
    return add_page(x, number, p);
}

static cairn_status write_copy(state_index *x, const page *p, uint64_t seq)
{
    crn_buf b = {0};
    crn_put_u32(&b, magic);
    crn_put_u32(&b, (uint32_t)p->entry.n);
    crn_put_u64(&b, seq);
    crn_put_u64(&b, p->number);
    crn_put_u64(&b, p->next);
    for (size_t i = 0; i < p->entry.n; i++)
        put_entry(&b, &p->entry.at[i]);
    crn_put_zeros(&b, SUM_AT - CRN_MIN(b.n, (size_t)SUM_AT));
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK) {
        const crn_digest sum = crn_digest_of(b.at, SUM_AT);
        crn_put_bytes(&b, sum.b, sizeof sum.b);
        rc = crn_buf_status(&b);
    }
    if (rc == CAIRN_OK)
        rc = crn_file_write(x->file, b.at, COPY, p->number * PAIR + seq % 2 * COPY);
    crn_buf_done(&b);
    return rc;
}

/* Write the next copy of a page, durably. The first time, both: so that none of the two that is
 * lost looks as if it had never been, and so that to change it takes no room on a full disk. */
static cairn_status write_page(state_index *x, page *p)
{
    if (p->seq == 0 && x->mapped) {
        if (p->number < BUCKETS)
            CRN_TRY(crn_file_write(x->file, &(unsigned char){1}, 1, MAP_AT + p->number));
        CRN_TRY(write_copy(x, p, ++p->seq));
    }
    cairn_status rc = write_copy(x, p, p->seq + 1);
    if (rc == CAIRN_OK)
        rc = crn_file_sync(x->file);
    p->seq += rc == CAIRN_OK;
    return rc;
}

uint64_t crn_state_index_bucket(crn_state_name name)
{
    char text[CRN_KEY_MAX + 24];
    snprintf(text, sizeof text, "%s %" PRIu64, name.key, name.version);
    const crn_digest d = crn_digest_of(text, strlen(text));
    return ((uint64_t)d.b[0] << 8 | d.b[1]) % BUCKETS;
}

static state_entry *find_in(page *p, crn_state_name name)
{
    for (size_t i = 0; i < p->entry.n; i++)
        if (p->entry.at[i].version == name.version && strcmp(p->entry.at[i].key, name.key) == 0)
            return &p->entry.at[i];
    return NULL;
}

/* Walk the pages of name's bucket to the one that has it; *ret is NULL when none has, and *p is the
 * first with room for it, or the last. */
static cairn_status walk(state_index *x, crn_state_name name, page *p, state_entry **ret)
{
    uint64_t at = crn_state_index_bucket(name), roomy = UINT64_MAX;
    *ret = NULL;
    for (int n = 0; n < PAGES_MAX; n++) {
        CRN_TRY(read_page(x, at, p));
        *ret = find_in(p, name);
        if (*ret)
            return CAIRN_OK;
        if (roomy == UINT64_MAX && p->room >= ENTRY_FIXED + strlen(name.key))
            roomy = at;
        if (p->next == 0)
            return roomy == UINT64_MAX || roomy == at ? CAIRN_OK : read_page(x, roomy, p);
        at = p->next;
    }
    return crn_fail(CAIRN_ECORRUPT, "the shelf's index leads in a circle");
}

/* --- the file ----------------------------------------------------------------------------- */

static cairn_status open_index(int dirfd, const char *name, int flags, state_index **ret)
{
    state_index *x;
    CRN_TRY(crn_alloc(&x, 1));
    cairn_status rc = crn_file_open(dirfd, name, flags, &x->file);
    if (rc < 0) {
        free(x);
        return rc;
    }
    *ret = x;
    return CAIRN_OK;
}

static cairn_status write_map(state_index *x)
{
    crn_buf b = {0};
    crn_put_u32(&b, map_magic);
    crn_put_zeros(&b, PAIR - sizeof map_magic);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_write(x->file, b.at, PAIR, (uint64_t)MAP_PAGE * PAIR);
    crn_buf_done(&b);
    x->mapped = x->write = rc == CAIRN_OK;
    return rc;
}

/* An index of an earlier version has a bucket's second page where the map is, or nothing. */
static cairn_status find_map(state_index *x, uint64_t nbytes)
{
    unsigned char head[sizeof magic];
    if (nbytes < (uint64_t)(MAP_PAGE + 1) * PAIR)
        return CAIRN_OK;
    CRN_TRY(crn_file_read(x->file, head, sizeof head, (uint64_t)MAP_PAGE * PAIR));
    crn_cursor c = crn_cursor_of(head, sizeof head);
    x->mapped = crn_get_u32(&c) != magic;
    return CAIRN_OK;
}

cairn_status crn_state_index_create(int dirfd, state_index **ret)
{
    state_index *x;
    CRN_TRY(open_index(dirfd, ".index.tmp", CRN_READ | CRN_WRITE | CRN_CREATE, &x));
    cairn_status rc = crn_file_truncate(x->file, 0);
    if (rc == CAIRN_OK)
        rc = crn_file_truncate(x->file, (uint64_t)(MAP_PAGE + 1) * PAIR);
    if (rc == CAIRN_OK) /* also what is to be in its place: to write there takes no room then */
        rc = write_map(x);
    if (rc == CAIRN_OK)
        rc = crn_file_sync(x->file);
    if (rc < 0) {
        crn_state_index_close(x);
        return rc;
    }
    *ret = x;
    return CAIRN_OK;
}

cairn_status crn_state_index_publish(int dirfd)
{
    CRN_TRY(crn_rename(dirfd, ".index.tmp", "index"));
    return crn_dir_sync(dirfd);
}

cairn_status crn_state_index_open(int dirfd, bool write, state_index **ret)
{
    state_index *x;
    uint64_t nbytes;
    CRN_TRY(open_index(dirfd, "index", write ? CRN_READ | CRN_WRITE : CRN_READ, &x));
    cairn_status rc = crn_file_nbytes(x->file, &nbytes);
    if (rc == CAIRN_OK && nbytes < (uint64_t)BUCKETS * PAIR)
        rc =
            crn_fail(CAIRN_ECORRUPT, "the shelf's index is cut short: remove the file 'index', and "
                                     "it is made anew from the parts");
    if (rc == CAIRN_OK)
        rc = find_map(x, nbytes);
    if (rc < 0) {
        crn_state_index_close(x);
        return rc;
    }
    x->write = write;
    *ret = x;
    return CAIRN_OK;
}

void crn_state_index_set_mender(state_index *x, state_mend_fn *fn, void *arg)
{
    x->mend = fn;
    x->arg = arg;
}

/* What is read from a file that was removed, or written to it, concerns nobody any more. */
static cairn_status check_there(const state_index *x)
{
    struct stat st;
    CRN_FAIL_IF(fstat(crn_file_fd(x->file), &st) < 0 || st.st_nlink == 0, CAIRN_ENOTFOUND,
                "the shelf, or its index, was removed");
    return CAIRN_OK;
}

void crn_state_index_close(state_index *x)
{
    if (!x)
        return;
    crn_file_close(x->file);
    free(x);
}

static cairn_status lock_bucket(state_index *x, uint64_t bucket)
{
    const cairn_status rc = crn_file_lock_range(x->file, bucket, 1);
    return rc == CAIRN_EUNSUPPORTED ? CAIRN_OK : rc;
}

/* --- mending ------------------------------------------------------------------------------ */

/* All entries of a bucket. */
static cairn_status read_bucket(state_index *x, uint64_t bucket, page *p)
{
    CRN_TRY(read_page(x, bucket, p));
    for (int n = 0; p->next > 0; n++) {
        CRN_FAIL_IF(n == PAGES_MAX, CAIRN_ECORRUPT, "the shelf's index leads in a circle");
        CRN_TRY(add_page(x, p->next, p));
    }
    return CAIRN_OK;
}

/* As many of entries from at on as fit into a page, as its only ones. */
static cairn_status take_entries(page *p, const state_entries *all, size_t *at)
{
    p->entry.n = 0;
    p->room = SUM_AT - HEAD;
    while (*at < all->n && entry_bytes(&all->at[*at]) <= p->room) {
        CRN_TRY(crn_vec_push(&p->entry, all->at[*at]));
        p->room -= entry_bytes(&all->at[(*at)++]);
    }
    return CAIRN_OK;
}

/* Write a bucket anew. What it goes on with is there before its first page, which is written twice:
 * then both copies are whole. */
static cairn_status write_bucket(state_index *x, uint64_t bucket, const state_entries *all)
{
    page first = {0}, rest = {0};
    size_t at = 0;
    uint64_t nbytes;
    cairn_status rc;
    (void)read_page(x, bucket, &first); /* its number and sequence, as far as there is one */
    first.next = 0;
    CRN_TRY_OUT(rc, take_entries(&first, all, &at));
    while (at < all->n) {
        CRN_TRY_OUT(rc, take_entries(&rest, all, &at));
        CRN_TRY_OUT(rc, crn_file_nbytes(x->file, &nbytes));
        rest.next = first.next;
        rest.seq = 0;
        first.next = rest.number = (nbytes + PAIR - 1) / PAIR;
        CRN_TRY_OUT(rc, crn_file_truncate(x->file, (rest.number + 1) * PAIR));
        CRN_TRY_OUT(rc, write_page(x, &rest));
    }
    CRN_TRY_OUT(rc, write_page(x, &first));
    rc = write_page(x, &first);
out:
    crn_vec_done(&first.entry);
    crn_vec_done(&rest.entry);
    return rc;
}

/* With the lock of the bucket, and that of the file's end: ask what the bucket has to have, and
 * write that. */
static cairn_status write_mended(state_index *x, uint64_t bucket)
{
    page known = {0};
    state_entries all = {0};
    x->mending = true;
    (void)read_bucket(x, bucket, &known); /* what is still to be read of it */
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < known.entry.n && rc == CAIRN_OK; i++)
        rc = crn_vec_push(&all, known.entry.at[i]);
    if (rc == CAIRN_OK)
        rc = x->mend(x->arg, bucket, &all);
    if (rc == CAIRN_OK)
        rc = write_bucket(x, bucket, &all);
    x->mending = false;
    crn_vec_done(&known.entry);
    crn_vec_done(&all);
    return rc;
}

/* With the lock of the bucket: mend it if it is damaged. */
static cairn_status mend_held(state_index *x, uint64_t bucket)
{
    page p = {0};
    cairn_status rc = read_bucket(x, bucket, &p);
    crn_vec_done(&p.entry);
    if (rc != CAIRN_ECORRUPT || !can_mend(x))
        return rc;
    const cairn_status lock = crn_file_lock_range(x->file, GROW_LOCK, 1);
    if (lock < 0 && lock != CAIRN_EUNSUPPORTED)
        return lock;
    rc = write_mended(x, bucket);
    if (lock == CAIRN_OK)
        crn_file_unlock_range(x->file, GROW_LOCK, 1);
    return rc;
}

/*
 * Something of a bucket could not be read: mend that, and say whether to try again. Where it cannot
 * be mended, on a full disk for instance, x->mending makes what is whole of it do.
 */
static bool mend_bucket(state_index *x, uint64_t bucket)
{
    if (!can_mend(x))
        return false;
    const crn_err why = *crn_err_peek();
    const bool held = x->held == bucket + 1;
    cairn_status rc = held ? CAIRN_OK : lock_bucket(x, bucket);
    if (rc == CAIRN_OK) {
        rc = mend_held(x, bucket);
        if (!held)
            crn_file_unlock_range(x->file, bucket, 1);
    }
    x->mending = rc < 0;
    (void)crn_err_give(&why);
    return true;
}

cairn_status crn_state_index_lock(state_index *x, crn_state_name name)
{
    const uint64_t bucket = crn_state_index_bucket(name);
    CRN_TRY(check_there(x));
    CRN_TRY(lock_bucket(x, bucket));
    x->held = bucket + 1;
    const cairn_status rc = mend_held(x, bucket); /* before anything is built upon it */
    if (rc < 0)
        crn_state_index_unlock(x, name);
    return rc;
}

void crn_state_index_unlock(state_index *x, crn_state_name name)
{
    x->held = 0;
    crn_file_unlock_range(x->file, crn_state_index_bucket(name), 1);
}

cairn_status crn_state_index_hold(state_index *x)
{
    const cairn_status rc = crn_file_lock_range(x->file, LIMIT_LOCK, 1);
    return rc == CAIRN_EUNSUPPORTED ? CAIRN_OK : rc;
}

void crn_state_index_release(state_index *x)
{
    crn_file_unlock_range(x->file, LIMIT_LOCK, 1);
}

/* --- states ------------------------------------------------------------------------------- */

/* Look for a state in a copy of a page, without decoding the others; and where the bucket goes on.
 */
static cairn_status look_in(const unsigned char *copy, crn_state_name name, state_entry *ret,
                            bool *ret_found, uint64_t *ret_next)
{
    const size_t nkey = strlen(name.key);
    crn_cursor c = crn_cursor_of(copy, SUM_AT);
    (void)crn_get_u32(&c);
    const uint32_t n = crn_get_u32(&c);
    (void)crn_get_u64(&c);
    (void)crn_get_u64(&c);
    *ret_next = crn_get_u64(&c);
    crn_cursor_expect(&c, *ret_next < PAGES_MAX);
    for (uint32_t i = 0; i < n && !*ret_found && !c.failed; i++) {
        crn_cursor entry = c;
        const size_t length = crn_get_u16(&c);
        const void *key = crn_get_view(&c, length);
        const uint64_t version = crn_get_u64(&c);
        (void)crn_get_view(&c, ENTRY_FIXED - sizeof(uint16_t) - sizeof version);
        *ret_found =
            key && version == name.version && length == nkey && memcmp(key, name.key, nkey) == 0;
        if (*ret_found)
            get_entry(&entry, ret);
        c.failed |= entry.failed;
    }
    return crn_cursor_status(&c, "index page");
}

static cairn_status find(state_index *x, crn_state_name name, state_entry *ret)
{
    uint64_t at = crn_state_index_bucket(name);
    state_entry e;
    bool found = false;
    for (int n = 0; n < PAGES_MAX; n++) {
        page p = {0};
        unsigned char pair[PAIR];
        const unsigned char *copy;
        uint64_t next = 0;
        CRN_TRY(read_copy(x, at, &p, pair, &copy));
        if (copy)
            CRN_TRY(look_in(copy, name, &e, &found, &next));
        if (found && ret)
            *ret = e;
        if (found || next == 0)
            return found ? CAIRN_OK : CAIRN_NOTHING;
        at = next;
    }
    return crn_fail(CAIRN_ECORRUPT, "the shelf's index leads in a circle");
}

cairn_status crn_state_index_find(state_index *x, crn_state_name name, state_entry *ret)
{
    CRN_TRY(check_there(x));
    cairn_status rc = find(x, name, ret);
    if (rc == CAIRN_ECORRUPT && mend_bucket(x, crn_state_index_bucket(name))) {
        rc = find(x, name, ret);
        x->mending = false;
    }
    return rc;
}

/* A new page at the end of the file with one entry, to which last leads from then on. */
static cairn_status append_page(state_index *x, page *last, const state_entry *e)
{
    page fresh = {0};
    uint64_t nbytes;
    cairn_status lock = crn_file_lock_range(x->file, GROW_LOCK, 1), rc;
    if (lock < 0 && lock != CAIRN_EUNSUPPORTED)
        return lock;
    CRN_TRY_OUT(rc, crn_file_nbytes(x->file, &nbytes));
    fresh.number = (nbytes + PAIR - 1) / PAIR;
    CRN_TRY_OUT(rc, crn_file_truncate(x->file, (fresh.number + 1) * PAIR));
    CRN_TRY_OUT(rc, crn_vec_push(&fresh.entry, *e));
    CRN_TRY_OUT(rc, write_page(x, &fresh));
    last->next = fresh.number;
    rc = write_page(x, last);
out:
    if (lock == CAIRN_OK)
        crn_file_unlock_range(x->file, GROW_LOCK, 1);
    crn_vec_done(&fresh.entry);
    return rc;
}

cairn_status crn_state_index_put(state_index *x, const state_entry *e)
{
    page p = {0};
    state_entry *old;
    cairn_status rc;
    CRN_TRY_OUT(rc, walk(x, (crn_state_name){e->key, e->version}, &p, &old));
    if (!old && p.room < entry_bytes(e)) {
        rc = append_page(x, &p, e);
        goto out;
    }
    if (old)
        *old = *e;
    else
        CRN_TRY_OUT(rc, crn_vec_push(&p.entry, *e));
    rc = write_page(x, &p);
out:
    crn_vec_done(&p.entry);
    return rc;
}

cairn_status crn_state_index_remove(state_index *x, crn_state_name name)
{
    page p = {0};
    state_entry *e;
    cairn_status rc = walk(x, name, &p, &e);
    if (rc == CAIRN_OK && e) {
        *e = p.entry.at[--p.entry.n];
        rc = write_page(x, &p);
    }
    crn_vec_done(&p.entry);
    return rc;
}

/* --- all of them -------------------------------------------------------------------------- */

static int tell(const page *p, state_entry_fn *fn, void *arg)
{
    int stop = 0;
    for (size_t i = 0; i < p->entry.n && !stop; i++)
        stop = fn(arg, &p->entry.at[i]);
    return stop;
}

/* The entries of a bucket, of which data is what was read of its first page. */
static cairn_status take_bucket(state_index *x, const unsigned char *data, uint64_t bucket, page *p)
{
    const unsigned char *copy;
    p->number = bucket;
    p->entry.n = 0;
    forget_page(p);
    if (judge_pair(x, data, p, &copy) == CAIRN_OK && !p->damaged &&
        (!copy || (decode(copy, p) == CAIRN_OK && p->next == 0)))
        return CAIRN_OK;
    cairn_status rc = read_bucket(x, bucket, p); /* it goes on, or was being written */
    if (rc == CAIRN_ECORRUPT && mend_bucket(x, bucket)) {
        rc = read_bucket(x, bucket, p);
        x->mending = false;
    }
    return rc;
}

cairn_status crn_state_index_scan(state_index *x, state_entry_fn *fn, void *arg)
{
    page p = {0};
    unsigned char *data;
    int stop = 0;
    CRN_TRY(check_there(x));
    CRN_TRY(crn_alloc(&data, PAGES_AT_ONCE * PAIR));
    cairn_status rc = CAIRN_OK;
    for (uint64_t i = 0; i < BUCKETS && !stop && rc == CAIRN_OK; i += PAGES_AT_ONCE) {
        rc = crn_file_read(x->file, data, PAGES_AT_ONCE * PAIR, i * PAIR);
        for (uint64_t k = 0; k < PAGES_AT_ONCE && !stop && rc == CAIRN_OK; k++) {
            rc = take_bucket(x, data + k * PAIR, i + k, &p);
            if (rc == CAIRN_OK)
                stop = tell(&p, fn, arg);
        }
    }
    free(data);
    crn_vec_done(&p.entry);
    CRN_TRY(rc);
    return stop ? CAIRN_NOTHING : CAIRN_OK;
}

cairn_status crn_state_page_find(const unsigned char bytes[STATE_PAGE_BYTES], crn_state_name name,
                                 state_entry *ret)
{
    page p = {0};
    const unsigned char *copy;
    bool found = false;
    uint64_t next;
    CRN_TRY(choose_copy(bytes, false, &p, &copy));
    if (copy)
        CRN_TRY(look_in(copy, name, ret, &found, &next));
    return found ? CAIRN_OK : CAIRN_NOTHING;
}

cairn_status crn_state_page_scan(const unsigned char bytes[STATE_PAGE_BYTES], state_entry_fn *fn,
                                 void *arg)
{
    page p = {0};
    const unsigned char *copy;
    cairn_status rc = choose_copy(bytes, false, &p, &copy);
    if (rc == CAIRN_OK && copy)
        rc = decode(copy, &p);
    if (rc == CAIRN_OK && tell(&p, fn, arg) != 0)
        rc = CAIRN_NOTHING;
    crn_vec_done(&p.entry);
    return rc;
}
