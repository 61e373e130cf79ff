/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_ranks.h"

#include "ensemble/ensemble_server.h"

enum {
    MEET_S = 60,
    BEAT_NS = 1000000000,
    WINDOW = 1 << 28 /* bytes of a slice that travel at once */
};

bool crn_ranks_has_home(const crn_server_ranks *r, uint32_t member)
{
    return member % r->size == r->rank;
}

void crn_ranks_done(crn_server_ranks *r)
{
    free(r->first);
    free(r->sent);
    free(r->heard);
    free(r->addresses);
    if (r->broken)
        crn_comm_abandon(r->comm);
    else
        crn_comm_free(r->comm);
}

/* Another server is to go on. */
static cairn_status broken(crn_server *s, const char *why, uint32_t rank)
{
    s->ranks.broken = true;
    return crn_fail(CAIRN_EPEER, "rank %u of the server: %s", rank, why);
}

cairn_status crn_ranks_slice(crn_server *s)
{
    crn_server_ranks *r = &s->ranks;
    CRN_TRY(crn_alloc(&r->first, (size_t)r->size + 1));
    for (uint32_t k = 0; k < r->size; k++) {
        crn_layout_slice(&s->layout, k, r->size);
        r->first[k] = s->layout.first;
        r->nothers += k > 0 && crn_slice_nbytes(&s->layout) > 0;
    }
    r->first[r->size] = s->layout.nbytes;
    crn_layout_slice(&s->layout, r->rank, r->size);
    return CAIRN_OK;
}

/* --- orders and reports --------------------------------------------------------------------- */

static void rank_name(const crn_server *s, uint32_t rank, char name[CRN_PEER_NAME + 1])
{
    snprintf(name, CRN_PEER_NAME + 1, "s%u.%u", s->incarnation, rank);
}

cairn_status crn_ranks_order(crn_server *s, uint32_t rank, const crn_wire *w, const void *data,
                             size_t nbytes)
{
    char name[CRN_PEER_NAME + 1];
    crn_wire numbered = *w;
    numbered.rank = ++s->ranks.sent[rank];
    rank_name(s, rank, name);
    cairn_status rc = crn_link_send(s->hub, name, &numbered, data, nbytes);
    return rc == CAIRN_OK ? CAIRN_OK : broken(s, "it cannot be reached", rank);
}

cairn_status crn_ranks_order_all(crn_server *s, crn_rank_share what, const crn_runner_row *r,
                                 uint32_t member)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = what;
    w.runner = r ? r->number : 0;
    w.member = member;
    for (uint32_t k = 1; k < s->ranks.size; k++)
        CRN_TRY(crn_ranks_order(s, k, &w, NULL, 0));
    return CAIRN_OK;
}

cairn_status crn_ranks_order_home(crn_server *s, uint32_t member)
{
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_FAILED;
    w.member = member;
    return crn_ranks_order(s, member % s->ranks.size, &w, NULL, 0);
}

void crn_ranks_over(crn_server *s, uint32_t rank)
{
    char name[CRN_PEER_NAME + 1];
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_OVER;
    w.rank = ++s->ranks.sent[rank];
    rank_name(s, rank, name);
    (void)crn_link_send(s->hub, name, &w, NULL, 0);
}

cairn_status crn_ranks_report(crn_server *s, crn_wire *w)
{
    w->rank = ++s->ranks.sent[0];
    w->more = s->ranks.rank;
    cairn_status rc = crn_link_send(s->head, NULL, w, NULL, 0);
    return rc == CAIRN_OK ? CAIRN_OK : broken(s, "it cannot be reached", 0);
}

cairn_status crn_ranks_heard(crn_server *s, uint32_t rank, const crn_wire *w)
{
    const bool next = w->rank == ++s->ranks.heard[rank];
    return next ? CAIRN_OK : broken(s, "a message of it was lost", rank);
}

/* What is lost with a connection is noticed by the next share, which this makes sure there is. */
cairn_status crn_ranks_beat(crn_server *s)
{
    crn_server_ranks *r = &s->ranks;
    if (r->size == 1 || crn_now_ns() < r->beat_ns + BEAT_NS)
        return CAIRN_OK;
    r->beat_ns = crn_now_ns();
    if (r->rank == 0)
        return crn_ranks_order_all(s, CRN_SHARE_BEAT, NULL, 0);
    crn_wire w = crn_server_wire(s, CRN_WIRE_SHARE);
    w.number = CRN_SHARE_BEAT;
    return crn_ranks_report(s, &w);
}

/* --- meeting -------------------------------------------------------------------------------- */

/* Rank 0 can send to a rank once that has spoken. */
static cairn_status hear_all(crn_server *s)
{
    const uint64_t until = crn_now_ns() + (uint64_t)MEET_S * 1000000000;
    for (uint32_t n = 1; n < s->ranks.size;) {
        crn_letter m = {0};
        CRN_FAIL_IF(crn_now_ns() > until, CAIRN_EPEER,
                    "%u of %u ranks of the server do not reach rank 0 at '%s'", s->ranks.size - n,
                    s->ranks.size, crn_link_address(s->hub));
        crn_link_wait(&s->hub, 1, -1, 100);
        while (crn_link_take(s->hub, &m, &s->nbad) == CAIRN_OK) {
            if (m.wire.kind == CRN_WIRE_SHARE && m.wire.study == s->study->id &&
                m.wire.more < s->ranks.size) {
                CRN_TRY(crn_ranks_heard(s, (uint32_t)m.wire.more, &m.wire));
                n += m.wire.rank == 1;
            }
            crn_letter_done(&m);
        }
    }
    return CAIRN_OK;
}

static cairn_status greet(crn_server *s, const char *head)
{
    char name[CRN_PEER_NAME + 1];
    rank_name(s, s->ranks.rank, name);
    return crn_link_connect(&s->study->keys, head, name, &s->head);
}

static cairn_status list_addresses(crn_server_ranks *r, const char *all)
{
    crn_buf b = {0};
    for (uint32_t k = 0; k < r->size; k++)
        crn_put_text(&b, "%s%s", k ? "\n" : "", all + (size_t)k * CRN_ADDRESS_TEXT);
    const char *text = crn_buf_text(&b);
    cairn_status rc = text ? crn_strdup(text, &r->addresses) : crn_buf_status(&b);
    crn_buf_done(&b);
    return rc;
}

cairn_status crn_ranks_meet(crn_server *s)
{
    crn_server_ranks *r = &s->ranks;
    char own[CRN_ADDRESS_TEXT], *all = NULL;
    snprintf(own, sizeof own, "%s", crn_link_address(s->hub));
    cairn_status rc = crn_alloc(&all, (size_t)r->size * CRN_ADDRESS_TEXT);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&r->sent, r->size);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&r->heard, r->size);
    rc = crn_comm_agree(r->comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_comm_gather(r->comm, own, sizeof own, CRN_COMM_ALL, all);
    if (rc == CAIRN_OK)
        rc = list_addresses(r, all);
    if (rc == CAIRN_OK && r->rank > 0)
        rc = greet(s, all);
    free(all);
    CRN_TRY(crn_comm_agree(r->comm, rc));
    if (r->rank == 0)
        return hear_all(s);
    return crn_ranks_beat(s);
}

/* --- collectives ---------------------------------------------------------------------------- */

cairn_status crn_ranks_share(crn_server *s, cairn_status local, void *data, size_t nbytes)
{
    if (s->ranks.size == 1)
        return local;
    CRN_TRY(crn_comm_agree(s->ranks.comm, local));
    return crn_comm_bcast(s->ranks.comm, data, nbytes, 0);
}

cairn_status crn_ranks_collect(crn_server *s, const unsigned char *slice, int root,
                               crn_gathered *ret)
{
    return crn_comm_gatherv(s->ranks.comm, slice, crn_slice_nbytes(&s->layout), root, ret);
}

/* One window of the slices of as many members as there are ranks, the first of which is at home on
 * rank 0. */
typedef struct round {
    const uint8_t *wanted;
    uint32_t base;
    uint64_t from; /* of each slice */
    bool home;     /* to their homes */
    unsigned char *const *slice, *const *whole;
} round;

/* Where rank k's window of a whole state begins, and how long it is. */
static uint64_t window_of(const crn_server *s, const round *d, uint32_t k, uint64_t *ret_n)
{
    const uint64_t first = s->ranks.first[k], n = s->ranks.first[k + 1] - first;
    *ret_n = d->from < n ? CRN_MIN(n - d->from, (uint64_t)WINDOW) : 0;
    return first + d->from;
}

static bool is_wanted(const crn_server *s, const round *d, uint32_t k)
{
    return d->base + k < s->nmembers && d->wanted[d->base + k];
}

static cairn_status swap(crn_server *s, const round *d, crn_parcel *out)
{
    const crn_server_ranks *r = &s->ranks;
    const uint32_t mine = d->base + r->rank;
    size_t nout = 0;
    uint64_t n, at;
    for (uint32_t k = 0; k < r->size; k++) {
        at = window_of(s, d, d->home ? r->rank : k, &n);
        if (n > 0 && is_wanted(s, d, d->home ? k : r->rank))
            out[nout++] = (crn_parcel){
                (int)k, d->home ? d->slice[d->base + k] + d->from : d->whole[mine] + at, n};
    }
    crn_parcels in = {0};
    CRN_TRY(crn_parcels_swap(r->comm, CAIRN_OK, out, nout, &in));
    for (size_t i = 0; i < in.in.n; i++) {
        const crn_parcel *p = &in.in.at[i];
        at = window_of(s, d, d->home ? (uint32_t)p->peer : r->rank, &n);
        memcpy(d->home ? d->whole[mine] + at : d->slice[d->base + (uint32_t)p->peer] + d->from,
               p->data, CRN_MIN(n, p->n));
    }
    crn_parcels_done(&in);
    return CAIRN_OK;
}

static cairn_status exchange(crn_server *s, round d)
{
    const crn_server_ranks *r = &s->ranks;
    uint64_t longest = 0;
    crn_parcel *out = NULL;
    for (uint32_t k = 0; k < r->size; k++)
        longest = CRN_MAX(longest, r->first[k + 1] - r->first[k]);
    cairn_status rc = crn_comm_agree(r->comm, crn_alloc(&out, r->size));
    for (d.base = 0; rc == CAIRN_OK && d.base < s->nmembers; d.base += r->size)
        for (d.from = 0; rc == CAIRN_OK && d.from < longest; d.from += WINDOW)
            rc = swap(s, &d, out);
    free(out);
    return rc;
}

cairn_status crn_ranks_gather(crn_server *s, const uint8_t *wanted, unsigned char *const *slice,
                              unsigned char *const *whole)
{
    return exchange(s, (round){.wanted = wanted, .home = true, .slice = slice, .whole = whole});
}

cairn_status crn_ranks_scatter(crn_server *s, const uint8_t *wanted, unsigned char *const *whole,
                               unsigned char *const *slice)
{
    return exchange(s, (round){.wanted = wanted, .slice = slice, .whole = whole});
}
