/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exchange that turns the units of a set into parity. The seat of a stripe's first parity unit
 * is its head: it gets the data units, computes all parity of the stripe at once, and sends the
 * others' parity on; so ndata + nparity - 1 units travel for a stripe, not ndata * nparity.
 *
 * All seats know which stripes are needed, so nobody asks for anything: all walk the needed stripes
 * in the same order, by rounds of a few stripes for each head. In a round a seat sends one message
 * to each head and gets one from each seat with data for the stripes that it heads. While a round
 * is encoded the next ones are on their way, so that ranks that share a core need not take turns
 * for every message; these rounds are all that is in memory.
 *
 * Why it never deadlocks: what a rank waits for in a round is sent by others in that round or an
 * earlier one, before they wait for anything of a later one; and a rank starts a round as soon as
 * it is done with the one NROUNDS before.
 */
#include "level/level_encoded.h"

enum { TAG_DATA = 111, TAG_PARITY, NROUNDS = 3 };

/* The stripes of one head in a round, ascending. */
typedef struct head {
    unsigned n;
    uint64_t *stripe;
} head;

/* Messages under way, in the order of starting. */
typedef struct messages {
    crn_msg *at;
    size_t n, nwaited;
} messages;

typedef struct round {
    head *head;            /* of each seat */
    uint64_t *stripe;      /* depth of them for each head */
    unsigned char *out;    /* depth data units for each head, by the role that they have there */
    unsigned char *in;     /* depth data units of each data block, of the stripes headed here */
    unsigned char *parity; /* depth units of each parity block, of the stripes headed here */
    unsigned char *taken;  /* depth units of each parity block, of stripes headed elsewhere */
    messages send, data, made; /* what leaves; what comes: data, parity that other heads made */
} round;

struct crn_encoder {
    crn_parity_job e;
    crn_comm *comm;
    int ndata, nparity;
    unsigned depth;
    crn_erasure *code;
    uint64_t next; /* the stripe from which the next round is filled */
    round round[NROUNDS];
    uint64_t moved;
    crn_err failure; /* of the first callback that failed */
};

/* --- memory ------------------------------------------------------------------------------- */

static cairn_status round_init(const crn_encoder *enc, round *r)
{
    size_t n = enc->e.stripes.nseats, each = (size_t)enc->depth * CRN_UNIT;
    CRN_TRY(crn_alloc(&r->head, n));
    CRN_TRY(crn_alloc(&r->stripe, n * enc->depth));
    for (size_t i = 0; i < n; i++)
        r->head[i].stripe = r->stripe + i * enc->depth;
    CRN_TRY(crn_alloc_aligned(&r->out, (size_t)enc->ndata * each, 4096));
    CRN_TRY(crn_alloc_aligned(&r->in, (size_t)enc->ndata * each, 4096));
    CRN_TRY(crn_alloc_aligned(&r->parity, (size_t)enc->nparity * each, 4096));
    CRN_TRY(crn_alloc_aligned(&r->taken, (size_t)(enc->nparity - 1) * each, 4096));
    CRN_TRY(crn_alloc(&r->send.at, 2 * n));
    CRN_TRY(crn_alloc(&r->data.at, n));
    return crn_alloc(&r->made.at, n);
}

static void round_done(round *r)
{
    free(r->head);
    free(r->stripe);
    free(r->out);
    free(r->in);
    free(r->parity);
    free(r->taken);
    free(r->send.at);
    free(r->data.at);
    free(r->made.at);
}

cairn_status crn_encoder_create(const crn_parity_job *e, crn_encoder **ret)
{
    crn_encoder *enc;
    cairn_status rc;
    CRN_TRY(crn_alloc(&enc, 1));
    enc->e = *e;
    enc->nparity = (int)e->stripes.nparity;
    enc->ndata = (int)e->stripes.nseats - enc->nparity;
    enc->depth = crn_stripes_depth(e->stripes.nseats);
    CRN_TRY_OUT(rc, crn_erasure_create(enc->ndata, enc->nparity, &enc->code));
    for (int i = 0; i < NROUNDS; i++)
        CRN_TRY_OUT(rc, round_init(enc, &enc->round[i]));
    *ret = enc;
    return CAIRN_OK;
out:
    crn_encoder_free(enc);
    return rc;
}

void crn_encoder_free(crn_encoder *enc)
{
    if (!enc)
        return;
    for (int i = 0; i < NROUNDS; i++)
        round_done(&enc->round[i]);
    crn_erasure_free(enc->code);
    free(enc);
}

/* --- messages ----------------------------------------------------------------------------- */

static unsigned char *units_at(const crn_encoder *enc, unsigned char *area, size_t nth)
{
    return area + nth * enc->depth * CRN_UNIT;
}

static void note(crn_encoder *enc, cairn_status rc)
{
    if (rc < 0 && enc->failure.code == CAIRN_OK)
        crn_err_take(&enc->failure);
}

static cairn_status send_units(crn_encoder *enc, round *r, uint32_t seat, int tag,
                               const unsigned char *data, unsigned n)
{
    size_t nbytes = (size_t)n * CRN_UNIT;
    if (n == 0)
        return CAIRN_OK;
    CRN_TRY(
        crn_comm_isend(enc->comm, data, nbytes, enc->e.rank[seat], tag, &r->send.at[r->send.n]));
    r->send.n++;
    enc->moved += nbytes;
    return CAIRN_OK;
}

static cairn_status recv_units(crn_encoder *enc, messages *list, uint32_t seat, int tag,
                               unsigned char *data, unsigned n)
{
    if (n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_comm_irecv(enc->comm, data, (size_t)n * CRN_UNIT, enc->e.rank[seat], tag,
                           &list->at[list->n]));
    list->n++;
    return CAIRN_OK;
}

static cairn_status wait_all(crn_encoder *enc, messages *list)
{
    while (list->nwaited < list->n)
        CRN_TRY(crn_comm_wait(enc->comm, &list->at[list->nwaited++]));
    list->n = list->nwaited = 0;
    return CAIRN_OK;
}

static void give_up(crn_encoder *enc, messages *list)
{
    for (; list->nwaited < list->n; list->nwaited++) {
        crn_msg *msg = &list->at[list->nwaited];
        if (msg->is_send)
            (void)crn_comm_wait(enc->comm, msg);
        else
            crn_comm_cancel(enc->comm, msg);
    }
}

/* After the transport failed: nothing of ours may stay in its hands. */
static cairn_status abandon(crn_encoder *enc)
{
    crn_err why = *crn_err_peek();
    for (int i = 0; i < NROUNDS; i++) {
        give_up(enc, &enc->round[i].send);
        give_up(enc, &enc->round[i].data);
        give_up(enc, &enc->round[i].made);
    }
    return crn_err_give(&why);
}

/* --- a round ------------------------------------------------------------------------------ */

/* Fill the lists of stripes; false when no stripe is left. The same on all seats. */
static bool fill(crn_encoder *enc, round *r)
{
    const crn_parity_job *e = &enc->e;
    unsigned n = 0;
    for (uint32_t seat = 0; seat < e->stripes.nseats; seat++)
        r->head[seat].n = 0;
    for (; enc->next < e->nstripes; enc->next++) {
        if (!crn_bit(e->needed, enc->next))
            continue;
        head *h = &r->head[crn_stripe_seat(&e->stripes, enc->next, enc->ndata)];
        if (h->n == enc->depth)
            break;
        h->stripe[h->n++] = enc->next;
        n++;
    }
    return n > 0;
}

/* The role of this seat in a head's stripes; negative: there are none. */
static int role_in(const crn_encoder *enc, const head *h)
{
    return h->n > 0 ? crn_stripe_role(&enc->e.stripes, h->stripe[0], enc->e.seat) : -1;
}

/* How many of a head's stripes have data of a seat: the first ones, since units ascend. */
static unsigned nunits_for(const crn_encoder *enc, const head *h, uint32_t seat)
{
    unsigned n = 0;
    while (n < h->n && crn_stripe_unit(&enc->e.stripes, h->stripe[n], seat) < enc->e.nunits[seat])
        n++;
    return n;
}

/* Start to receive all that a round brings here. */
static cairn_status post(crn_encoder *enc, round *r)
{
    const crn_parity_job *e = &enc->e;
    const head *own = &r->head[e->seat];
    for (int i = 0; own->n > 0 && i < enc->ndata; i++) {
        uint32_t from = crn_stripe_seat(&e->stripes, own->stripe[0], i);
        unsigned n = nunits_for(enc, own, from);
        unsigned char *to = units_at(enc, r->in, (size_t)i);
        memset(to + (size_t)n * CRN_UNIT, 0, (size_t)(own->n - n) * CRN_UNIT);
        CRN_TRY(recv_units(enc, &r->data, from, TAG_DATA, to, n));
    }
    for (uint32_t seat = 0; seat < e->stripes.nseats; seat++) {
        const head *h = &r->head[seat];
        int parity = role_in(enc, h) - enc->ndata;
        if (parity > 0)
            CRN_TRY(recv_units(enc, &r->made, seat, TAG_PARITY,
                               units_at(enc, r->taken, (size_t)parity - 1), h->n));
    }
    return CAIRN_OK;
}

/* Read the units for a head, by runs. */
static void read_for(crn_encoder *enc, const head *h, unsigned n, unsigned char *dst)
{
    const crn_parity_job *e = &enc->e;
    for (unsigned i = 0, len; i < n; i += len) {
        uint64_t first = crn_stripe_unit(&e->stripes, h->stripe[i], e->seat);
        len = 1;
        while (i + len < n &&
               crn_stripe_unit(&e->stripes, h->stripe[i + len], e->seat) == first + len)
            len++;
        if (enc->failure.code == CAIRN_OK)
            note(enc, e->read(e->arg, first, len, dst + (size_t)i * CRN_UNIT));
    }
}

/* Send this seat's data to all heads, starting behind itself so that not all go to the same. */
static cairn_status feed(crn_encoder *enc, round *r)
{
    const crn_parity_job *e = &enc->e;
    uint32_t nseats = e->stripes.nseats;
    for (uint32_t i = 1; i < nseats; i++) {
        uint32_t seat = (e->seat + i) % nseats;
        const head *h = &r->head[seat];
        int role = role_in(enc, h);
        if (role < 0 || role >= enc->ndata)
            continue;
        unsigned n = nunits_for(enc, h, e->seat);
        unsigned char *from = units_at(enc, r->out, (size_t)role);
        read_for(enc, h, n, from);
        CRN_TRY(send_units(enc, r, seat, TAG_DATA, from, n));
    }
    return CAIRN_OK;
}

static void put_units(crn_encoder *enc, const head *h, const unsigned char *data)
{
    const crn_parity_job *e = &enc->e;
    for (unsigned i = 0; i < h->n && enc->failure.code == CAIRN_OK; i++)
        note(enc, e->put(e->arg, crn_stripe_unit(&e->stripes, h->stripe[i], e->seat),
                         data + (size_t)i * CRN_UNIT));
}

/* Encode the stripes headed here as soon as their data is there. */
static cairn_status encode(crn_encoder *enc, round *r)
{
    const head *own = &r->head[enc->e.seat];
    unsigned char *data[CRN_ERASURE_MAX], *parity[CRN_ERASURE_MAX];
    if (own->n == 0)
        return CAIRN_OK;
    CRN_TRY(wait_all(enc, &r->data));
    for (int i = 0; i < enc->ndata; i++)
        data[i] = units_at(enc, r->in, (size_t)i);
    for (int i = 0; i < enc->nparity; i++)
        parity[i] = units_at(enc, r->parity, (size_t)i);
    crn_erasure_encode(enc->code, (size_t)own->n * CRN_UNIT, data, parity);
    for (int i = 1; i < enc->nparity; i++)
        CRN_TRY(send_units(enc, r, crn_stripe_seat(&enc->e.stripes, own->stripe[0], enc->ndata + i),
                           TAG_PARITY, parity[i], own->n));
    put_units(enc, own, parity[0]);
    return CAIRN_OK;
}

/* Take the parity that other heads have made for this seat. */
static cairn_status take(crn_encoder *enc, round *r)
{
    const crn_parity_job *e = &enc->e;
    CRN_TRY(wait_all(enc, &r->made));
    for (uint32_t seat = 0; seat < e->stripes.nseats; seat++) {
        const head *h = &r->head[seat];
        int parity = role_in(enc, h) - enc->ndata;
        if (parity > 0)
            put_units(enc, h, units_at(enc, r->taken, (size_t)parity - 1));
    }
    return wait_all(enc, &r->send);
}

static cairn_status start(crn_encoder *enc, round *r, bool *ret_started)
{
    *ret_started = fill(enc, r);
    CRN_TRY(post(enc, r));
    return feed(enc, r);
}

static cairn_status run(crn_encoder *enc)
{
    uint64_t started = 0, encoded = 0, taken = 0;
    bool more = true;
    do {
        while (more && started < taken + NROUNDS) {
            CRN_TRY(start(enc, &enc->round[started % NROUNDS], &more));
            started += more;
        }
        if (encoded < started)
            CRN_TRY(encode(enc, &enc->round[encoded++ % NROUNDS]));
        /* parity is on its way for one round longer than data */
        if (taken < encoded && (encoded > taken + 1 || encoded == started))
            CRN_TRY(take(enc, &enc->round[taken++ % NROUNDS]));
    } while (taken < started);
    return CAIRN_OK;
}

cairn_status crn_encoder_run(crn_encoder *enc, crn_comm *comm, uint64_t *moved)
{
    enc->comm = comm;
    cairn_status rc = run(enc);
    *moved += enc->moved;
    if (rc < 0)
        return abandon(enc);
    return enc->failure.code < 0 ? crn_err_give(&enc->failure) : CAIRN_OK;
}
