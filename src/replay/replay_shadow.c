/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shadows: each rank walks what every other rank does, as far as it sends messages to this one, and
 * posts the receives. See DESIGN in replay_play.h.
 */
#include "replay/replay_play.h"

typedef struct shadow {
    crn_walk *walk;
    crn_bind bind;
    uint64_t nevents; /* walked */
    uint64_t epoch;   /* collectives of all ranks that it has reached */
    bool over;
} shadow;

struct crn_shadows {
    MPI_Comm comm; /* of all ranks; messages of the replay alone */
    shadow *of;    /* by rank; the player's own is unused */
    int n;
    uint64_t nevents, epoch; /* of the player */
    crn_meaning meaning;
    CRN_VEC(MPI_Request) request; /* under way, both ways */
    CRN_VEC(void *) buf;          /* of receives */
};

enum { TAG = 1 };

bool crn_event_of_all(const crn_event *e, uint32_t nranks)
{
    int comm = crn_event_find(e, CRN_KIND_COMM, 0);
    return comm >= 0 && (e->value[comm] == CRN_COMM_WORLD || e->comm.size == (int64_t)nranks);
}

void crn_shadows_free(crn_shadows *s)
{
    if (!s)
        return;
    for (int i = 0; s->of && i < s->n; i++) {
        crn_walk_close(s->of[i].walk);
        crn_bind_done(&s->of[i].bind);
    }
    for (size_t i = 0; i < s->buf.n; i++)
        free(s->buf.at[i]);
    crn_vec_done(&s->request);
    crn_vec_done(&s->buf);
    crn_meaning_done(&s->meaning);
    free(s->of);
    if (s->comm != MPI_COMM_NULL)
        MPI_Comm_free(&s->comm);
    free(s);
}

static cairn_status open_shadows(crn_player *p, crn_shadows *s)
{
    CRN_TRY(crn_alloc(&s->of, (size_t)s->n));
    for (int i = 0; i < s->n; i++) {
        CRN_TRY(crn_bind_init(&s->of[i].bind, p->t, (uint32_t)i));
        if (i != p->rank)
            CRN_TRY(crn_walk_open(p->t, 0, (uint32_t)i, p->opt->seed, &s->of[i].walk));
    }
    CRN_TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &s->comm));
    return CAIRN_OK;
}

cairn_status crn_shadows_create(crn_player *p, crn_shadows **ret)
{
    crn_shadows *s;
    CRN_TRY(crn_alloc(&s, 1));
    s->comm = MPI_COMM_NULL;
    s->n = p->size;
    cairn_status rc = open_shadows(p, s);
    if (rc < 0) {
        crn_shadows_free(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

static bool fits(uint64_t nbytes)
{
    return nbytes <= INT32_MAX;
}

cairn_status crn_shadows_send(crn_player *p, const cairn_trace_message *m)
{
    crn_shadows *s = p->shadows;
    MPI_Request request;
    char *buf;
    if (!m->sent || m->peer < 0 || m->peer >= p->size || m->peer == p->rank || !fits(m->nbytes))
        return CAIRN_OK;
    CRN_TRY(crn_play_bytes(&p->payload, m->nbytes, p->opt->seed, &buf));
    CRN_TRY(crn_vec_reserve(&s->request, 1));
    CRN_TRY_MPI(MPI_Isend(buf, (int)m->nbytes, MPI_BYTE, (int)m->peer, TAG, s->comm, &request));
    s->request.at[s->request.n++] = request;
    p->result->sent_bytes += m->nbytes;
    return CAIRN_OK;
}

static cairn_status receive(crn_shadows *s, int from, const cairn_trace_message *m)
{
    char *buf;
    CRN_TRY(crn_vec_reserve(&s->request, 1));
    CRN_TRY(crn_vec_reserve(&s->buf, 1));
    CRN_TRY(crn_alloc(&buf, CRN_MAX(m->nbytes, 1)));
    s->buf.at[s->buf.n++] = buf;
    CRN_TRY_MPI(
        MPI_Irecv(buf, (int)m->nbytes, MPI_BYTE, from, TAG, s->comm, &s->request.at[s->request.n]));
    s->request.n++;
    return CAIRN_OK;
}

/* One event of another rank: what it sends here is received. */
static cairn_status step(crn_player *p, int from)
{
    crn_shadows *s = p->shadows;
    shadow *o = &s->of[from];
    crn_event e;
    if (!crn_walk_next(o->walk, &e)) {
        o->over = true;
        return CAIRN_OK;
    }
    o->nevents++;
    if (e.call->layer == CRN_LAYER_COLL && crn_event_of_all(&e, p->t->nranks))
        o->epoch++;
    if (e.call->layer == CRN_LAYER_P2P) {
        CRN_TRY(crn_meaning_of(&s->meaning, &o->bind, &e, &e.comm, NULL));
        const cairn_trace_message *m = s->meaning.many.n > 0 ? s->meaning.many.at : s->meaning.few;
        for (size_t i = 0; i < s->meaning.nmessages; i++)
            if (m[i].sent && m[i].peer == p->rank && fits(m[i].nbytes))
                CRN_TRY(receive(s, from, &m[i]));
    }
    return crn_bind_learn(&o->bind, &e);
}

/* Let all shadows come as far as the player, but not past a collective that it has not reached. */
cairn_status crn_shadows_follow(crn_player *p)
{
    crn_shadows *s = p->shadows;
    s->nevents++;
    for (int i = 0; i < s->n; i++) {
        shadow *o = &s->of[i];
        while (i != p->rank && !o->over && o->epoch <= s->epoch && o->nevents < s->nevents)
            CRN_TRY(step(p, i));
    }
    return CAIRN_OK;
}

cairn_status crn_shadows_settle(crn_player *p)
{
    crn_shadows *s = p->shadows;
    s->epoch++;
    for (int i = 0; i < s->n; i++)
        while (i != p->rank && !s->of[i].over && s->of[i].epoch < s->epoch)
            CRN_TRY(step(p, i));
    if (s->request.n > 0)
        CRN_TRY(crn_play_wait_all(s->request.at, s->request.n));
    for (size_t i = 0; i < s->buf.n; i++)
        free(s->buf.at[i]);
    s->request.n = s->buf.n = 0;
    return CAIRN_OK;
}
