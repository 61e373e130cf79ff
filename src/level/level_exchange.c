/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fetching blocks from part files on any node.
 *
 * A rank that can read the file itself does so. For the rest it sends each holder one list of what
 * it wants; then blocks flow back in pieces, each followed by a bit for every block that the holder
 * could not read whole. Pairs of ranks take turns by their distance: in a turn a rank serves at
 * most one other and is served by at most one, so that four pieces are all the memory it takes,
 * however many want something from the same node. Turns have one order for all, hence they cannot
 * deadlock, for the reason that flows do not.
 */
#include "level/level_fetch.h"

#include <assert.h>

/* Requests by the turn in which they are served: turn t pairs rank r, which wants, with r + t. */
typedef CRN_VEC(crn_want *) requests;

/* --- the pieces of a list of requests ------------------------------------------------------- */

/* The course of a flow over requests, piece by piece. */
typedef struct course {
    crn_want *const *list;
    size_t n, at;        /* the request, */
    uint64_t done;       /* the blocks of it that lie behind, */
    uint64_t count;      /* and those of the piece that was found */
    size_t data, nbytes; /* its bytes of blocks, and with the bits behind them */
} course;

static uint64_t blocks_per_piece(const crn_want *f)
{
    return CRN_MAX((uint64_t)CRN_PIECE_BYTES / f->block, 1);
}

static size_t bytes_of_blocks(const crn_want *f, uint64_t first, uint64_t n)
{
    uint64_t from = first * f->block, to = CRN_MIN((first + n) * f->block, f->nbytes);
    return (size_t)(to - from);
}

/* Go behind the piece found last and find the next: of c->list[c->at], from its block c->done. */
static bool course_step(course *c)
{
    c->done += c->count;
    c->count = 0;
    while (c->at < c->n && c->done == c->list[c->at]->n) {
        c->at++;
        c->done = 0;
    }
    if (c->at == c->n)
        return false;
    const crn_want *f = c->list[c->at];
    c->count = CRN_MIN(blocks_per_piece(f), f->n - c->done);
    c->data = bytes_of_blocks(f, f->first + c->done, c->count);
    c->nbytes = c->data + (size_t)(c->count + 7) / 8;
    return true;
}

static size_t largest_piece(const requests *r)
{
    size_t cap = 1;
    for (size_t i = 0; i < r->n; i++) {
        size_t n = (size_t)blocks_per_piece(r->at[i]);
        cap = CRN_MAX(cap, n * r->at[i]->block + (n + 7) / 8);
    }
    return cap;
}

/* --- both ends of a flow -------------------------------------------------------------------- */

typedef struct stream {
    course ahead, now;  /* whose lengths are asked for; whose pieces move */
    crn_reader *reader; /* the end that serves has one */
    crn_bad_blocks bad;
} stream;

static size_t stream_next(void *arg)
{
    stream *s = arg;
    return course_step(&s->ahead) ? s->ahead.nbytes : 0;
}

/* As they are stored, each at its place. */
static cairn_status read_moved(crn_reader *r, crn_var *var, uint64_t first, uint64_t n,
                               unsigned char *dst, crn_bad_blocks *bad)
{
    CRN_TRY(crn_mark_table(r->part, r->mark, var));
    for (uint64_t i = first; i < first + n; i++) {
        unsigned char *to = dst + (i - first) * var->spec.block;
        const bool moves = crn_block_moves(var, i);
        memset(to, 0, crn_var_block_bytes(var, i));
        if (!moves || crn_mark_read_moved(r->part, r->mark, var, i, 1, to) < 0)
            CRN_TRY(crn_vec_push(bad, i));
    }
    return CAIRN_OK;
}

/* Read blocks of f into dst; *bad gets those that are damaged. */
static cairn_status read_blocks(crn_reader *r, const crn_want *f, uint64_t first, uint64_t n,
                                unsigned char *dst, crn_bad_blocks *bad)
{
    CRN_TRY(crn_reader_turn(r, &f->id, f->version));
    crn_var *var = crn_mark_find(r->mark, f->name);
    CRN_FAIL_IF(!var || var->spec.block != f->block || var->spec.nbytes != f->nbytes,
                CAIRN_EMISMATCH, "variable '%s' is another one in this copy", f->name);
    if (f->moved)
        return read_moved(r, var, first, n, dst, bad);
    return crn_mark_read(r->part, r->mark, var, first, n, dst, bad);
}

/* Is it the block that is wanted, going by the digest that it came with? */
static bool is_wanted(const crn_want *f, uint64_t i, const crn_digest *d, const crn_digest *stored)
{
    if (!f->table)
        return true;
    if (f->moved)
        return crn_digest_equal(stored, &f->table[i].stored);
    return crn_digest_equal(d, &f->table[i].digest);
}

/* Serve: blocks, then a bit for each that is not whole. When reading fails altogether none is. */
static void stream_fill(void *arg, unsigned char *piece, size_t nbytes)
{
    stream *s = arg;
    (void)course_step(&s->now);
    const course *c = &s->now;
    const crn_want *f = c->list[c->at];
    uint64_t first = f->first + c->done;
    unsigned char *bits = piece + c->data;
    memset(bits, 0, nbytes - c->data);
    s->bad.n = 0;
    if (read_blocks(s->reader, f, first, c->count, piece, &s->bad) < 0) {
        memset(bits, 0xff, nbytes - c->data);
        memset(piece, 0, c->data);
        return;
    }
    for (size_t i = 0; i < s->bad.n; i++)
        crn_bit_set(bits, s->bad.at[i] - first);
}

/* Room was made beforehand: nothing can fail while pieces flow. */
static void note_missing(crn_want *f, uint64_t block)
{
    assert(f->missing.n < f->missing.cap);
    f->missing.at[f->missing.n++] = block;
}

static void stream_take(void *arg, unsigned char *piece, size_t nbytes)
{
    stream *s = arg;
    (void)nbytes, (void)course_step(&s->now);
    const course *c = &s->now;
    crn_want *f = c->list[c->at];
    for (uint64_t k = 0; k < c->count; k++) {
        uint64_t i = f->first + c->done + k;
        unsigned char *to = f->dst + (i - f->first) * f->block;
        const size_t takes = f->moved ? f->table[i].nbytes : bytes_of_blocks(f, i, 1);
        const crn_digest d = crn_digest_copy(to, piece + k * f->block, takes);
        if (crn_bit(piece + c->data, k) || !is_wanted(f, i, &d, &d))
            note_missing(f, i);
    }
}

static int compare_blocks(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void crn_bad_blocks_sort(crn_bad_blocks *bad)
{
    if (bad->n > 0)
        qsort(bad->at, bad->n, sizeof *bad->at, compare_blocks);
}

/*
 * What this process reads itself, straight into place. The file's own digests were verified on the
 * way, so that comparing them with the expected ones is enough.
 */
static void fetch_here(crn_reader *r, crn_want *f)
{
    crn_bad_blocks bad = {0};
    bool none = read_blocks(r, f, f->first, f->n, f->dst, &bad) < 0;
    const crn_var *var = none ? NULL : crn_mark_find(r->mark, f->name);
    size_t at = 0;
    crn_bad_blocks_sort(&bad); /* reads end in any order */
    for (uint64_t i = f->first; i < f->first + f->n; i++) {
        bool damaged = none;
        if (at < bad.n && bad.at[at] == i) {
            damaged = true;
            at++;
        }
        if (damaged || !is_wanted(f, i, &var->table[i].digest, &var->table[i].stored))
            note_missing(f, i);
    }
    crn_vec_done(&bad);
}

/* --- requests on the wire ------------------------------------------------------------------- */

static void put_request(crn_buf *buf, const crn_want *f)
{
    crn_request_put_id(buf, &f->id, f->version);
    crn_put_str(buf, f->name);
    crn_put_u32(buf, f->block);
    crn_put_u64(buf, f->nbytes);
    crn_put_u64(buf, f->first);
    crn_put_u64(buf, f->n);
    crn_put_u8(buf, f->moved);
}

/* Both ends derive lengths from a request, so one that makes no sense is refused. */
static cairn_status get_request(crn_cursor *c, crn_want *f)
{
    char var[CRN_VAR_NAME + 1] = "";
    crn_request_get_id(c, &f->id, &f->version);
    crn_get_str(c, var, CRN_VAR_NAME);
    f->block = crn_get_u32(c);
    f->nbytes = crn_get_u64(c);
    f->first = crn_get_u64(c);
    f->n = crn_get_u64(c);
    f->moved = crn_get_u8(c) != 0;
    crn_cursor_expect(c, f->block >= CRN_BLOCK_MIN && f->block <= CRN_BLOCK_MAX);
    if (!c->failed) {
        uint64_t nblocks = f->nbytes / f->block + (f->nbytes % f->block != 0);
        crn_cursor_expect(c, f->first <= nblocks && f->n <= nblocks - f->first);
    }
    CRN_TRY(crn_cursor_status(c, "request"));
    char *copy;
    CRN_TRY(crn_strdup(var, &copy));
    f->name = copy;
    return CAIRN_OK;
}

/* --- the exchange --------------------------------------------------------------------------- */

typedef struct exchange {
    crn_vault *vault;
    crn_reader reader;
    crn_wants served;           /* decoded; holder is the rank that wants them */
    requests in, out;           /* to be received and sent, sorted by turn */
    crn_flow flow_in, flow_out; /* used anew in each turn */
    stream stream_in, stream_out;
} exchange;

static void exchange_done(exchange *x)
{
    for (size_t i = 0; i < x->served.n; i++)
        free((char *)x->served.at[i].name);
    crn_vec_done(&x->served);
    crn_vec_done(&x->in);
    crn_vec_done(&x->out);
    crn_vec_done(&x->stream_out.bad);
    crn_flows_done(&x->flow_in, 1);
    crn_flows_done(&x->flow_out, 1);
    crn_reader_done(&x->reader);
}

static cairn_status push_request(const crn_vault *v, requests *to, int wants, int serves,
                                 crn_want *f)
{
    f->turn = (serves - wants + v->nranks) % v->nranks;
    return crn_vec_push(to, f);
}

/* Within a turn in the order in which they stand in memory, which is the order of the wire. */
static int compare_requests(const void *a, const void *b)
{
    const crn_want *x = *(crn_want *const *)a, *y = *(crn_want *const *)b;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void sort_requests(requests *r)
{
    if (r->n > 0)
        qsort(r->at, r->n, sizeof *r->at, compare_requests);
}

/* Read what is here, ask others for the rest. What nobody has is bad at once. */
static cairn_status ask(exchange *x, crn_want *fetch, size_t n, crn_outbox *ret)
{
    const int rank = x->vault->rank;
    for (size_t i = 0; i < n; i++) {
        crn_want *f = &fetch[i];
        crn_buf *buf;
        f->missing.n = 0;
        CRN_TRY(crn_vec_reserve(&f->missing, f->n));
        for (uint64_t k = 0; f->holder < 0 && k < f->n; k++)
            note_missing(f, f->first + k);
        if (f->holder < 0 || f->holder == rank)
            continue;
        CRN_TRY(crn_outbox_for(ret, f->holder, &buf));
        put_request(buf, f);
        CRN_TRY(push_request(x->vault, &x->in, rank, f->holder, f));
    }
    sort_requests(&x->in);
    return CAIRN_OK;
}

static cairn_status take_requests(exchange *x, const crn_parcels *asked)
{
    for (size_t i = 0; i < asked->in.n; i++) {
        crn_cursor c = crn_cursor_of(asked->in.at[i].data, asked->in.at[i].n);
        while (c.n > 0) {
            crn_want f = {.holder = asked->in.at[i].peer};
            CRN_TRY(crn_vec_reserve(&x->served, 1));
            CRN_TRY(get_request(&c, &f));
            x->served.at[x->served.n++] = f;
        }
    }
    for (size_t i = 0; i < x->served.n; i++) {
        crn_want *f = &x->served.at[i];
        CRN_TRY(push_request(x->vault, &x->out, f->holder, x->vault->rank, f));
    }
    sort_requests(&x->out);
    return CAIRN_OK;
}

static cairn_status prepare_flows(exchange *x)
{
    x->reader.vault = x->vault;
    x->stream_out.reader = &x->reader;
    x->flow_in = (crn_flow){.cap = largest_piece(&x->in),
                            .next = stream_next,
                            .move = stream_take,
                            .arg = &x->stream_in};
    x->flow_out = (crn_flow){.cap = largest_piece(&x->out),
                             .next = stream_next,
                             .move = stream_fill,
                             .arg = &x->stream_out};
    if (x->in.n > 0)
        CRN_TRY(crn_flows_prepare(&x->flow_in, 1));
    return x->out.n > 0 ? crn_flows_prepare(&x->flow_out, 1) : CAIRN_OK;
}

/* Set up a flow for the requests of a turn, which start at *at; false when there are none. */
static bool begin_turn(const requests *r, size_t *at, int turn, crn_flow *flow)
{
    stream *s = flow->arg;
    size_t first = *at;
    while (*at < r->n && r->at[*at]->turn == turn)
        ++*at;
    if (*at == first)
        return false;
    s->ahead = s->now = (course){.list = r->at + first, .n = *at - first};
    flow->peer = r->at[first]->holder;
    flow->ended = false;
    return true;
}

static cairn_status take_turns(exchange *x)
{
    size_t in = 0, out = 0;
    while (in < x->in.n || out < x->out.n) {
        int turn = in < x->in.n ? x->in.at[in]->turn : x->out.at[out]->turn;
        if (out < x->out.n)
            turn = CRN_MIN(turn, x->out.at[out]->turn);
        size_t nin = begin_turn(&x->in, &in, turn, &x->flow_in);
        size_t nout = begin_turn(&x->out, &out, turn, &x->flow_out);
        CRN_TRY(crn_flows_run(x->vault->comm, &x->flow_out, nout, &x->flow_in, nin));
    }
    return CAIRN_OK;
}

cairn_status crn_fetch_blocks(crn_vault *v, crn_want *fetch, size_t n)
{
    exchange x = {.vault = v};
    crn_outbox box = {0};
    crn_parcels asked = {0};
    cairn_status rc = ask(&x, fetch, n, &box);
    CRN_TRY_OUT(rc, crn_outbox_swap(&box, v->comm, rc, &asked));
    rc = take_requests(&x, &asked);
    if (rc == CAIRN_OK)
        rc = prepare_flows(&x);
    CRN_TRY_OUT(rc, crn_comm_agree(v->comm, rc));
    CRN_TRY_OUT(rc, take_turns(&x));
    for (size_t i = 0; i < n; i++)
        if (fetch[i].holder == v->rank)
            fetch_here(&x.reader, &fetch[i]);
out:
    exchange_done(&x);
    crn_outbox_done(&box);
    crn_parcels_done(&asked);
    return rc;
}
