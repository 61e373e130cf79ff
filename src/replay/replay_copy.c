/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI_Comm_idup made again. Open MPI's has collectives of its own on the parent, and takes them for
 * others that ranks have started there while it is under way: these fail, or destroy memory. It is
 * also no remedy to wait, since the program may not have waited. So copies are made ahead, with the
 * parent, where all its members block in any case; MPI_Comm_idup takes the next of them, and a
 * barrier on it completes, like its request, when all members have come.
 *
 * Of a communicator that is copied often, as many are made as may be in use at a time; they are
 * taken in turn, so that all members take the same one.
 */
#include "replay/replay.h"

enum { AT_ONCE = 32, NUMBERS_MAX = 1 << 20 };

struct crn_play_copies {
    MPI_Comm at[AT_ONCE];
    uint64_t n, ntaken;
    uint64_t nusers; /* the parent, and copies that have not been freed */
};

static bool is_copying(uint32_t call)
{
    return call != CRN_CALL_NONE && crn_play_rows[call].play == crn_play_idup;
}

/* Count n copies of the communicator of this number. */
static cairn_status count_copies(crn_player *p, int64_t parent, uint64_t n)
{
    if (parent < 0 || parent >= NUMBERS_MAX)
        return CAIRN_OK;
    while (p->ncopies.n <= (size_t)parent)
        CRN_TRY(crn_vec_push(&p->ncopies, 0));
    p->ncopies.at[parent] += n;
    return CAIRN_OK;
}

/* Equal events may name one parent or, with a step, one after the other. */
static int look_at_copies(void *arg, const crn_view *v)
{
    crn_player *p = arg;
    const int at = crn_event_find(v->e, CRN_KIND_COMM, 0);
    cairn_status rc = CAIRN_OK;
    if (!is_copying(v->e->place->call) || v->lane != &p->t->lane[0] || at < 0)
        return 0;
    const int64_t step = v->step ? v->step[at] : 0;
    if (step == 0)
        return count_copies(p, v->e->value[at], v->event->repeat) < 0;
    for (uint64_t i = 0; i < CRN_MIN(v->event->repeat, NUMBERS_MAX) && rc == CAIRN_OK; i++)
        rc = count_copies(p, v->e->value[at] + (int64_t)i * step, 1);
    return rc < 0;
}

cairn_status crn_play_copies_count(crn_player *p)
{
    const crn_lane *l = &p->t->lane[0];
    for (size_t k = 0; k < l->nsymbols; k++)
        p->copies |= is_copying(l->symbol[k].call);
    if (!p->copies)
        return CAIRN_OK;
    cairn_status rc = crn_visit_rank(p->t, (uint32_t)p->rank, look_at_copies, p);
    return rc == CAIRN_NOTHING ? CAIRN_ENOMEM : rc; /* only memory stops it */
}

/* As many as the member that makes most: numbers may stand for other communicators elsewhere. */
static cairn_status agree_on_number(const crn_player *p, int64_t number, MPI_Comm comm,
                                    uint64_t *ret)
{
    *ret = (uint64_t)number < p->ncopies.n ? CRN_MIN(p->ncopies.at[number], AT_ONCE) : 0;
    CRN_TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, ret, 1, MPI_UINT64_T, MPI_MAX, comm));
    return CAIRN_OK;
}

static void free_copies(crn_play_copies *c)
{
    for (uint64_t i = 0; i < c->n; i++)
        MPI_Comm_free(&c->at[i]);
    free(c);
}

cairn_status crn_play_copies_make(const crn_player *p, int64_t number, MPI_Comm comm,
                                  crn_play_copies **ret)
{
    uint64_t n;
    crn_play_copies *c;
    *ret = NULL;
    if (!p->copies || comm == MPI_COMM_NULL || crn_play_is_between(comm))
        return CAIRN_OK;
    CRN_TRY(agree_on_number(p, number, comm, &n));
    if (n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&c, 1));
    c->nusers = 1;
    int rc = MPI_SUCCESS;
    for (; c->n < n && rc == MPI_SUCCESS; c->n += rc == MPI_SUCCESS)
        rc = MPI_Comm_dup(comm, &c->at[c->n]);
    if (rc != MPI_SUCCESS)
        free_copies(c);
    else
        *ret = c;
    return crn_play_mpi(rc, "MPI_Comm_dup");
}

MPI_Comm crn_play_copies_take(crn_play_copies *c)
{
    c->nusers++;
    return c->at[c->ntaken++ % c->n];
}

void crn_play_copies_leave(crn_play_copies *c)
{
    if (c && --c->nusers == 0)
        free_copies(c);
}
