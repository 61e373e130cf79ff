/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading sequences, straight from their bytes. crn_seq_check is what stands between the iterator
 * and a hostile file.
 */
#include "tracefmt/tracefmt.h"

void crn_seq_done(crn_seq *s)
{
    free(s->at);
    memset(s, 0, sizeof *s);
}

cairn_status crn_seq_copy(const crn_seq *s, crn_seq *ret)
{
    crn_seq copy = {.base = s->base, .n = s->n};
    if (s->n > 0) {
        CRN_TRY(crn_alloc(&copy.at, s->n));
        memcpy(copy.at, s->at, s->n);
    }
    *ret = copy;
    return CAIRN_OK;
}

bool crn_seq_same_items(const crn_seq *a, const crn_seq *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

bool crn_seq_equal(const crn_seq *a, const crn_seq *b)
{
    return a->base == b->base && crn_seq_same_items(a, b);
}

/* The values of the next item; fails the cursor on what no writer makes. */
static uint64_t measure(crn_cursor *c, int depth)
{
    uint64_t key = crn_get_var(c), n = (key >> 1) + 1;
    crn_cursor_expect(c, n <= CRN_SEQ_MAX);
    if ((key & 1) == 0) {
        crn_get_svar(c);
        if (n > 1)
            crn_get_svar(c);
        return n;
    }
    uint64_t nitems = crn_get_var(c), values = 0;
    crn_cursor_expect(c, depth < CRN_SEQ_DEPTH && nitems > 0);
    for (uint64_t i = 0; i < nitems && !c->failed; i++) {
        values += measure(c, depth + 1);
        crn_cursor_expect(c, values <= CRN_SEQ_MAX);
    }
    crn_cursor_expect(c, !c->failed && values <= CRN_SEQ_MAX / n);
    return c->failed ? 0 : values * n;
}

static uint64_t measure_all(const crn_seq *s, bool *ret_ok)
{
    crn_cursor c = crn_cursor_of(s->at, s->n);
    uint64_t values = 0;
    while (c.n > 0 && !c.failed) {
        values += measure(&c, 0);
        crn_cursor_expect(&c, values <= CRN_SEQ_MAX);
    }
    *ret_ok = !c.failed;
    return values;
}

cairn_status crn_seq_check(const crn_seq *s)
{
    bool ok;
    measure_all(s, &ok);
    CRN_FAIL_IF(!ok, CAIRN_ECORRUPT, "a sequence of %zu bytes is damaged", s->n);
    return CAIRN_OK;
}

uint64_t crn_seq_count(const crn_seq *s)
{
    bool ok;
    return measure_all(s, &ok);
}

void crn_seq_iter_init(crn_seq_iter *it, const crn_seq *s)
{
    it->seq = s;
    it->c = crn_cursor_of(s->at, s->n);
    it->start = (uint64_t)s->base;
    it->value = it->start;
    it->stride = 0;
    it->left = 0;
    it->depth = 0;
}

static void enter_loop(crn_seq_iter *it, uint64_t turns)
{
    uint64_t nitems = crn_get_var(&it->c);
    it->loop[it->depth].turns = turns;
    it->loop[it->depth].nitems = nitems;
    it->loop[it->depth].item = 0;
    it->loop[it->depth].body = it->c;
    it->depth++;
}

static void enter_run(crn_seq_iter *it, uint64_t n)
{
    it->start += (uint64_t)crn_get_svar(&it->c);
    it->value = it->start;
    it->stride = n > 1 ? (uint64_t)crn_get_svar(&it->c) : 0;
    it->left = n;
}

/* Is there another item? Ends turns and loops that are through. */
static bool to_next_item(crn_seq_iter *it)
{
    while (it->depth > 0) {
        int top = it->depth - 1;
        if (it->loop[top].item < it->loop[top].nitems) {
            it->loop[top].item++;
            return true;
        }
        if (--it->loop[top].turns > 0) {
            it->loop[top].item = 0;
            it->c = it->loop[top].body;
        } else {
            it->depth--;
        }
    }
    return it->c.n > 0 && !it->c.failed;
}

static bool to_next_run(crn_seq_iter *it)
{
    while (it->left == 0) {
        if (!to_next_item(it))
            return false;
        uint64_t key = crn_get_var(&it->c), n = (key >> 1) + 1;
        if (key & 1)
            enter_loop(it, n);
        else
            enter_run(it, n);
    }
    return true;
}

bool crn_seq_next_run(crn_seq_iter *it, uint64_t max, int64_t *ret_v, int64_t *ret_stride,
                      uint64_t *ret_n)
{
    uint64_t n = max;
    if (it->seq->n > 0) {
        if (!to_next_run(it))
            return false;
        n = CRN_MIN(max, it->left);
        it->left -= n;
    }
    *ret_v = (int64_t)it->value;
    *ret_stride = (int64_t)it->stride;
    *ret_n = n;
    it->value += n * it->stride;
    return true;
}

bool crn_seq_next(crn_seq_iter *it, int64_t *ret)
{
    int64_t stride;
    uint64_t n;
    return crn_seq_next_run(it, 1, ret, &stride, &n);
}

/* Values that follow each other, when the run before them started at 0. */
typedef struct stretch {
    uint64_t n, sum;
    uint64_t shift; /* start of its last run */
} stretch;

/* n (n - 1) / 2, wrapping: the even factor is halved before it can wrap. */
static uint64_t pairs(uint64_t n)
{
    return n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1);
}

/* Append n times a stretch, each moved on by the shift of the one before. */
static void add_turns(stretch *s, const stretch *turn, uint64_t n)
{
    s->sum += n * turn->sum + turn->n * (n * s->shift + turn->shift * pairs(n));
    s->n += n * turn->n;
    s->shift += n * turn->shift;
}

static void add_items(crn_cursor *c, uint64_t nitems, uint64_t limit, stretch *s);

static void add_run(crn_cursor *c, uint64_t n, uint64_t limit, stretch *s)
{
    uint64_t start = s->shift + (uint64_t)crn_get_svar(c);
    uint64_t stride = n > 1 ? (uint64_t)crn_get_svar(c) : 0;
    uint64_t some = CRN_MIN(n, limit);
    s->sum += some * start + pairs(some) * stride;
    s->n += some;
    s->shift = start;
}

static void add_loop(crn_cursor *c, uint64_t turns, uint64_t limit, stretch *s)
{
    stretch turn = {0}, rest = {0};
    uint64_t nitems = crn_get_var(c);
    crn_cursor body = *c;
    add_items(c, nitems, UINT64_MAX, &turn);
    uint64_t whole = turn.n > 0 ? CRN_MIN(turns, limit / turn.n) : 0;
    add_turns(s, &turn, whole);
    if (whole < turns) {
        add_items(&body, nitems, limit - whole * turn.n, &rest);
        add_turns(s, &rest, 1);
    }
}

/* Append items, but at most limit values. */
static void add_items(crn_cursor *c, uint64_t nitems, uint64_t limit, stretch *s)
{
    for (uint64_t i = 0; i < nitems && c->n > 0 && !c->failed && s->n < limit; i++) {
        uint64_t key = crn_get_var(c), n = (key >> 1) + 1;
        if (key & 1)
            add_loop(c, n, limit - s->n, s);
        else
            add_run(c, n, limit - s->n, s);
    }
}

int64_t crn_seq_sum(const crn_seq *s, uint64_t n)
{
    stretch all = {.shift = (uint64_t)s->base}, first = all;
    crn_cursor c = crn_cursor_of(s->at, s->n), again = c;
    if (s->n == 0)
        return (int64_t)((uint64_t)s->base * n);
    add_items(&c, UINT64_MAX, UINT64_MAX, &all);
    if (all.n == 0) /* a damaged one, which repeats nothing */
        return 0;
    add_items(&again, UINT64_MAX, n % all.n, &first);
    return (int64_t)(n / all.n * all.sum + first.sum);
}

bool crn_seq_find(const crn_seq *s, int64_t v, uint64_t *ret)
{
    crn_seq_iter it;
    int64_t start, stride;
    uint64_t n, before = 0;
    crn_seq_iter_init(&it, s);
    while (crn_seq_next_run(&it, CRN_SEQ_MAX, &start, &stride, &n)) {
        int64_t off = v - start;
        bool hit = n == 1 || stride == 0 ? off == 0 : off % stride == 0 && off / stride >= 0;
        uint64_t index = n == 1 || stride == 0 ? 0 : (uint64_t)(off / stride);
        if (hit && index < n) {
            *ret = before + index;
            return true;
        }
        if (s->n == 0 || off < 0)
            return false;
        before += n;
    }
    return false;
}

int64_t crn_seq_at(const crn_seq *s, uint64_t index)
{
    uint64_t count = crn_seq_count(s);
    if (s->n == 0 || count == 0)
        return s->base;
    crn_seq_iter it;
    int64_t v = s->base, stride = 0;
    uint64_t n = 0;
    index %= count;
    crn_seq_iter_init(&it, s);
    while (crn_seq_next_run(&it, CRN_SEQ_MAX, &v, &stride, &n) && index >= n)
        index -= n;
    return (int64_t)((uint64_t)v + index * (uint64_t)stride);
}

bool crn_seq_is(const crn_seq *s, const int64_t *value, size_t n)
{
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t got;
    crn_seq_iter_init(&it, s);
    while (s->n > 0 && crn_seq_next_run(&it, CRN_SEQ_MAX, &v, &stride, &got)) {
        if (got > n)
            return false;
        for (n -= got; got > 0; got--, v = (int64_t)((uint64_t)v + (uint64_t)stride)) {
            if (v != *value++)
                return false;
        }
    }
    return n == 0;
}

uint64_t crn_values_hash(const int64_t *value, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++)
        h = crn_hash_mix(h, (uint64_t)value[i]);
    return h;
}
