/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building sequences. Values extend the growing run; a value that does not, closes it. Closed runs
 * wait in a window in which repetition is looked for:
 *
 *     ... x y x y      the last p items equal the p before them: they become loop(2: x y)
 *     loop(n: x y) x y the last p items equal the body of the loop before them: one turn more
 *
 * As a loop is an item, loops of loops come by themselves. What leaves the window is encoded.
 *
 * A loop that goes on as it did needs no search: runs are compared with what its body has next, and
 * only those of a turn that is not completed are pushed after all.
 */
#include "tracefmt/tracefmt.h"

enum { WINDOW = 4 * CRN_SEQ_PERIOD };

struct crn_seq_item {
    uint64_t n;             /* values of a run, or turns of a loop */
    uint64_t delta, stride; /* of a run */
    crn_seq_item *body;     /* of a loop, owned; NULL for a run */
    uint32_t nbody, depth;
    uint64_t hash; /* equal items have equal hashes */
};

/* Returns how many bytes it held. */
static size_t item_done(crn_seq_item *item)
{
    size_t n = item->nbody * sizeof *item->body;
    for (uint32_t i = 0; i < item->nbody; i++)
        n += item_done(&item->body[i]);
    free(item->body);
    return n;
}

void crn_seq_build_done(crn_seq_build *b)
{
    for (size_t i = 0; i < b->nitems; i++)
        item_done(&b->item[i]);
    free(b->item);
    crn_buf_done(&b->old);
    memset(b, 0, sizeof *b);
}

static void item_hash(crn_seq_item *item)
{
    uint64_t h = crn_hash_mix(item->nbody, item->n);
    h = crn_hash_mix(crn_hash_mix(h, item->delta), item->stride);
    for (uint32_t i = 0; i < item->nbody; i++)
        h = crn_hash_mix(h, item->body[i].hash);
    item->hash = h;
}

static bool items_equal(const crn_seq_item *a, const crn_seq_item *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i].hash != b[i].hash || a[i].n != b[i].n || a[i].delta != b[i].delta ||
            a[i].stride != b[i].stride || a[i].nbody != b[i].nbody ||
            !items_equal(a[i].body, b[i].body, a[i].nbody))
            return false;
    }
    return true;
}

static void drop_tail(crn_seq_build *b, size_t n)
{
    for (; n > 0; n--)
        b->loops -= item_done(&b->item[--b->nitems]);
}

/* loop(n: p items), then the same p items: one more turn. */
static bool extend_loop(crn_seq_build *b, size_t p)
{
    crn_seq_item *end = b->item + b->nitems, *loop = end - p - 1;
    if (b->nitems <= p || loop->nbody != p || !items_equal(loop->body, end - p, p))
        return false;
    loop->n++;
    item_hash(loop);
    drop_tail(b, p);
    return true;
}

/* p items twice: a loop of two turns. */
static bool form_loop(crn_seq_build *b, size_t p)
{
    crn_seq_item *end = b->item + b->nitems, *first = end - 2 * p;
    if (b->nitems < 2 * p || !items_equal(first, end - p, p))
        return false;
    crn_seq_item loop = {.n = 2, .nbody = (uint32_t)p};
    for (size_t i = 0; i < p; i++)
        loop.depth = CRN_MAX(loop.depth, first[i].depth + 1);
    if (loop.depth > CRN_SEQ_DEPTH || crn_alloc(&loop.body, p) < 0)
        return false;
    memcpy(loop.body, first, p * sizeof *first);
    b->loops += p * sizeof *first;
    item_hash(&loop);
    drop_tail(b, p);
    b->nitems -= p;
    b->item[b->nitems++] = loop;
    return true;
}

static bool fold_tail(crn_seq_build *b)
{
    for (size_t p = 1; p <= CRN_SEQ_PERIOD && p < b->nitems; p++) {
        if (extend_loop(b, p) || form_loop(b, p))
            return true;
    }
    return false;
}

static void fold(crn_seq_build *b)
{
    while (fold_tail(b))
        ;
}

static void put_item(crn_buf *buf, const crn_seq_item *item)
{
    crn_put_var(buf, (item->n - 1) << 1 | (item->nbody > 0));
    if (item->nbody == 0) {
        crn_put_svar(buf, (int64_t)item->delta);
        if (item->n > 1)
            crn_put_svar(buf, (int64_t)item->stride);
        return;
    }
    crn_put_var(buf, item->nbody);
    for (uint32_t i = 0; i < item->nbody; i++)
        put_item(buf, &item->body[i]);
}

/* Encode the older half of a full window: it is too far back to be repeated by what comes. */
static void make_room(crn_seq_build *b)
{
    size_t half = b->nitems / 2;
    for (size_t i = 0; i < half; i++) {
        put_item(&b->old, &b->item[i]);
        b->loops -= item_done(&b->item[i]);
    }
    b->nitems -= half;
    memmove(b->item, b->item + half, b->nitems * sizeof *b->item);
}

static void append(crn_seq_build *b, crn_seq_item item)
{
    if (b->nitems == WINDOW)
        make_room(b);
    if (crn_vec_grow((void **)&b->item, &b->cap, b->nitems, 1, sizeof *b->item) < 0) {
        b->failed = true;
        return;
    }
    item_hash(&item);
    b->item[b->nitems++] = item;
    fold(b);
}

/*
 * May the loop at the end be followed without a search? Its third turn has passed the search run by
 * run, so its body is not found to be something else on the way; unless the loop as it is now came
 * before, and a larger one is about to be found that begins with what was around it.
 */
static bool can_follow(const crn_seq_build *b)
{
    if (b->nitems == 0)
        return false;
    const crn_seq_item *loop = &b->item[b->nitems - 1];
    if (loop->nbody == 0 || loop->n < 3)
        return false;
    for (size_t i = 0; i + 1 < b->nitems && i < 2 * CRN_SEQ_PERIOD; i++) {
        const crn_seq_item *before = loop - 1 - i;
        if (before->hash == loop->hash || (before->nbody > i && before->body[i].hash == loop->hash))
            return false;
    }
    return true;
}

/* Is a run what the loop at the end has next? */
static bool comes_again(crn_seq_build *b, const crn_seq_item *run)
{
    if (b->again == 0 && !can_follow(b))
        return false;
    crn_seq_item *loop = b->item + b->nitems - 1;
    const crn_seq_item *next = &loop->body[b->again];
    if (next->n != run->n || next->delta != run->delta || next->stride != run->stride ||
        next->nbody > 0)
        return false;
    if (++b->again == loop->nbody) {
        b->again = 0;
        loop->n++;
        if (b->nitems > 1) {
            item_hash(loop);
            fold(b);
        }
    }
    return true;
}

/* The loop at the end is not followed any more: its begun turn becomes items of their own. */
static void unfollow(crn_seq_build *b)
{
    crn_seq_item begun[CRN_SEQ_PERIOD];
    uint32_t n = b->again;
    if (b->nitems == 0)
        return;
    crn_seq_item *loop = &b->item[b->nitems - 1];
    if (n > 0)
        memcpy(begun, loop->body, n * sizeof *begun);
    if (b->nitems == 1)
        item_hash(loop); /* while it was alone, nobody looked at it */
    b->again = 0;
    for (uint32_t i = 0; i < n; i++)
        append(b, begun[i]);
}

static void push_item(crn_seq_build *b, crn_seq_item run)
{
    if (!comes_again(b, &run)) {
        unfollow(b);
        append(b, run);
    }
}

static crn_seq_item growing_run(const crn_seq_build *b)
{
    return (crn_seq_item){
        .n = b->n, .delta = b->start - b->before, .stride = b->n > 1 ? b->stride : 0};
}

static void start_run(crn_seq_build *b, uint64_t v)
{
    if (b->n == 0) {
        b->base = (int64_t)v;
        b->before = v;
    } else {
        push_item(b, growing_run(b));
        b->before = b->start;
    }
    b->start = b->next = v;
    b->stride = 0;
    b->n = 1;
}

void crn_seq_add_slow(crn_seq_build *b, int64_t v)
{
    b->count++;
    if (b->n == 1) {
        b->stride = (uint64_t)v - b->start;
        b->next = (uint64_t)v + b->stride;
        b->n = 2;
    } else {
        start_run(b, (uint64_t)v);
    }
}

void crn_seq_add_run(crn_seq_build *b, int64_t v, int64_t stride, uint64_t n)
{
    /* Two values settle the step of a new run, or continue the old one with the same step. */
    for (unsigned i = 0; i < 3 && n > 0; i++, n--) {
        crn_seq_add(b, v);
        v = (int64_t)((uint64_t)v + (uint64_t)stride);
    }
    if (n > 0 && b->n > 1 && b->stride == (uint64_t)stride && (uint64_t)v == b->next) {
        b->count += n;
        b->n += n;
        b->next += n * (uint64_t)stride;
        n = 0;
    }
    for (; n > 0; n--) {
        crn_seq_add(b, v);
        v = (int64_t)((uint64_t)v + (uint64_t)stride);
    }
}

/* Is it one value, however often? */
static bool is_constant(const crn_seq_build *b)
{
    return b->n == b->count && (b->n < 2 || b->stride == 0);
}

size_t crn_seq_build_irregular(const crn_seq_build *b)
{
    return b->old.cap + b->cap * sizeof *b->item;
}

size_t crn_seq_build_nbytes(const crn_seq_build *b)
{
    return crn_seq_build_irregular(b) + b->loops;
}

/* The growing run, and the one that follows it if *more does not continue it. */
static void put_growing(crn_buf *buf, const crn_seq_build *b, const int64_t *more)
{
    crn_seq_build end = {.base = b->base,
                         .start = b->start,
                         .stride = b->stride,
                         .n = b->n,
                         .next = b->next,
                         .before = b->before};
    if (more)
        crn_seq_add(&end, *more);
    for (size_t i = 0; i < end.nitems; i++)
        put_item(buf, &end.item[i]);
    crn_seq_item last = growing_run(&end);
    if (end.n > 0)
        put_item(buf, &last);
    if (end.failed)
        buf->failed = true;
    crn_seq_build_done(&end);
}

cairn_status crn_seq_encode(crn_seq_build *b, const int64_t *more, bool fold, crn_seq *ret)
{
    crn_buf buf = {0};
    int64_t base = b->count > 0 || !more ? b->base : *more;
    if (!fold || !is_constant(b) || (more && *more != base)) {
        unfollow(b);
        crn_put_bytes(&buf, b->old.at, b->old.n);
        for (size_t i = 0; i < b->nitems; i++)
            put_item(&buf, &b->item[i]);
        put_growing(&buf, b, more);
    }
    if (buf.failed || b->failed || b->old.failed) {
        crn_buf_done(&buf);
        return crn_fail(CAIRN_ENOMEM, "cannot allocate a sequence of %zu bytes", b->old.n);
    }
    if (buf.n > 0) /* most are short, and stay; where it fails, they stay as large as they are */
        (void)crn_realloc(&buf.at, buf.n);
    *ret = (crn_seq){.base = base, .at = buf.at, .n = buf.n};
    return CAIRN_OK;
}

cairn_status crn_seq_of(const int64_t *value, size_t n, crn_seq *ret)
{
    crn_seq_build b = {0};
    for (size_t i = 0; i < n; i++)
        crn_seq_add(&b, value[i]);
    cairn_status rc = crn_seq_encode(&b, NULL, false, ret);
    crn_seq_build_done(&b);
    return rc;
}

/* Add the first n values of s to b. */
static void add_seq(crn_seq_build *b, const crn_seq *s, uint64_t n)
{
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t got;
    crn_seq_iter_init(&it, s);
    for (; n > 0 && crn_seq_next_run(&it, n, &v, &stride, &got); n -= got)
        crn_seq_add_run(b, v, stride, got);
}

cairn_status crn_seq_concat(const crn_seq *a, uint64_t na, const crn_seq *b, uint64_t nb, bool fold,
                            crn_seq *ret)
{
    crn_seq_build build = {0};
    add_seq(&build, a, na);
    add_seq(&build, b, nb);
    cairn_status rc = crn_seq_encode(&build, NULL, fold, ret);
    crn_seq_build_done(&build);
    return rc;
}
