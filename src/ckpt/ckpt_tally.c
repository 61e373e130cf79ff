/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a mark did with each variable: kept while it is under way, added up over the ranks, told in
 * the run's log (docs/format/events.md, "changes").
 */
#include "ckpt/ckpt_session.h"

#include <math.h>

enum {
    VARS_TOLD = 32,  /* the largest ones: the log must stay small */
    BINS_MAX = 256,  /* of ranks that are told together */
    NCOUNTS = 5,     /* nbytes, written, hashed, changed, stored */
    WORTH = 16 << 20 /* bytes: the time to store less says little about bandwidth */
};

void crn_tally_reset(cairn *c)
{
    for (size_t i = 0; i < c->tally.n; i++)
        free(c->tally.at[i].name);
    crn_vec_done(&c->tally);
}

/* How fast storage is, one learns from marks that write nearly everything. */
void crn_tally_stored(cairn *c, uint64_t took_ns)
{
    uint64_t nbytes = 0, stored = 0;
    for (size_t i = 0; i < c->tally.n; i++) {
        nbytes += c->tally.at[i].nbytes;
        stored += c->tally.at[i].stored;
    }
    for (size_t i = 0; nbytes > 0 && i < c->tally.n; i++) {
        ckpt_tally *t = &c->tally.at[i];
        const double share =
            stored > 0 ? (double)t->stored / (double)stored : (double)t->nbytes / (double)nbytes;
        t->store_ns = (uint64_t)((double)took_ns * share);
    }
    if (stored < WORTH || 2 * stored < nbytes)
        return;
    const double now = (double)took_ns * 1e-9 / (double)stored;
    c->rates.store = c->rates.store > 0 ? 0.5 * (c->rates.store + now) : now;
}

/* Time beyond that of a full mark, by that; the program's faults are part of it. */
static double measured(const cairn *c, const ckpt_tally *t)
{
    const double full = (c->rates.copy + c->rates.store) * (double)t->nbytes;
    const double took = (double)(t->capture_ns + t->fault_ns + t->store_ns) * 1e-9;
    if (t->nbytes < CRN_TALLY_WORTH || c->rates.copy == 0 || c->rates.store == 0)
        return NAN;
    return took / full - 1;
}

/* --- over the ranks ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ckpt_tally *)a)->name, ((const ckpt_tally *)b)->name);
}

/* Do all ranks have variables of the same names? Then they can be added up one by one. */
static cairn_status agree_on_names(cairn *c, crn_comm *comm, bool *ret)
{
    crn_buf b = {0};
    for (size_t i = 0; i < c->tally.n; i++)
        crn_put_str(&b, c->tally.at[i].name);
    const crn_digest d = crn_digest_of(b.at, b.n);
    uint64_t min[2];
    memcpy(min, d.b, sizeof *min);
    min[1] = ~min[0];
    crn_buf_done(&b);
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MIN, min, 2));
    *ret = min[0] == ~min[1];
    return CAIRN_OK;
}

static size_t nbins_of(const crn_comm *comm)
{
    return CRN_MIN((size_t)crn_comm_size(comm), (size_t)BINS_MAX);
}

/* The counts of each variable, then changed and all bytes of each bin of ranks. */
static cairn_status add_up(cairn *c, crn_comm *comm, size_t nvars, uint64_t *sum)
{
    const size_t nbins = nbins_of(comm);
    const size_t bin = (size_t)crn_comm_rank(comm) * nbins / (size_t)crn_comm_size(comm);
    uint64_t *mine = sum + NCOUNTS * nvars + 2 * bin;
    for (size_t i = 0; i < c->tally.n; i++) {
        const ckpt_tally *t = &c->tally.at[i];
        const uint64_t counts[NCOUNTS] = {t->nbytes, t->written, t->hashed, t->changed, t->stored};
        if (i < nvars)
            memcpy(sum + NCOUNTS * i, counts, sizeof counts);
        mine[0] += t->changed;
        mine[1] += t->nbytes;
    }
    return crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, NCOUNTS * nvars + 2 * nbins);
}

/* --- telling ------------------------------------------------------------------------------ */

/* One character for each bin of ranks: 0 for nothing changed, then 1 to 9 and a to z for all. */
static void format_ranks(const uint64_t *bin, size_t nbins, char text[BINS_MAX + 1])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < nbins; i++) {
        const double share = bin[2 * i + 1] > 0 ? (double)bin[2 * i] / (double)bin[2 * i + 1] : 0;
        text[i] = digits[(size_t)ceil(share * 35)];
    }
    text[nbins] = 0;
}

static double round_gain(double gain)
{
    return round(gain * 1000) / 1000;
}

static json_t *json_of_variable(const cairn *c, const ckpt_tally *t, const uint64_t *sum)
{
    static const char *const way[] = {"compare", "copy", "full"};
    return crn_event_variable_encode(&(crn_event_variable){.name = t->name,
                                                           .way = way[t->way],
                                                           .tracked = t->tracked,
                                                           .nbytes = sum[0],
                                                           .written = sum[1],
                                                           .hashed = sum[2],
                                                           .changed = sum[3],
                                                           .stored = sum[4],
                                                           .predicted = round_gain(t->predicted),
                                                           .measured = round_gain(measured(c, t))});
}

/* The largest variables, by their places: bytes descending, then as they stand. */
typedef struct told {
    size_t var[VARS_TOLD];
    size_t n;
} told;

static void find_told(const uint64_t *sum, size_t nvars, told *t)
{
    t->n = 0;
    for (size_t i = 0; i < nvars; i++) {
        size_t k = t->n;
        while (k > 0 && sum[NCOUNTS * t->var[k - 1]] < sum[NCOUNTS * i])
            k--;
        if (k == VARS_TOLD)
            continue;
        t->n += t->n < VARS_TOLD;
        memmove(t->var + k + 1, t->var + k, (t->n - k - 1) * sizeof *t->var);
        t->var[k] = i;
    }
}

static int by_place(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* What a mark changed, as members of its event. */
static json_t *changes_of(cairn *c, crn_comm *comm, const uint64_t *sum, size_t nvars)
{
    json_t *list = json_array();
    char ranks[BINS_MAX + 1];
    told t;
    find_told(sum, nvars, &t);
    qsort(t.var, t.n, sizeof *t.var, by_place);
    for (size_t k = 0; k < t.n; k++)
        json_array_append_new(
            list, json_of_variable(c, &c->tally.at[t.var[k]], sum + NCOUNTS * t.var[k]));
    format_ranks(sum + NCOUNTS * nvars, nbins_of(comm), ranks);
    return json_pack("{s:s, s:o}", "ranks", ranks, "variables", list);
}

/* Most marks of a program change the same: that is told once, and referred to. */
static void tell(cairn *c, crn_comm *comm, const uint64_t *sum, size_t nvars)
{
    ckpt_leg *leg = &c->leg;
    if (crn_comm_rank(comm) != 0)
        return;
    crn_event e = {.kind = CRN_EVENT_CHANGES,
                   .changes = {.version = leg->job.version, .as = CRN_EVENT_NO_VERSION}};
    json_t *now = changes_of(c, comm, sum, nvars);
    if (leg->told_changes && json_equal(now, leg->told_changes)) {
        e.changes.as = leg->told_version;
        crn_holding_event(&c->held, &e);
        json_decref(now);
        return;
    }
    e.changes.ranks = json_string_value(json_object_get(now, "ranks"));
    e.changes.variables = json_incref(json_object_get(now, "variables"));
    json_decref(leg->told_changes);
    leg->told_changes = now;
    leg->told_version = leg->job.version;
    if (!crn_holding_event(&c->held, &e)) {
        json_decref(now);
        leg->told_changes = NULL;
    }
}

void crn_tally_tell(cairn *c, crn_comm *comm)
{
    bool same;
    uint64_t *sum = NULL;
    if (c->tally.n > 0)
        qsort(c->tally.at, c->tally.n, sizeof *c->tally.at, by_name);
    if (agree_on_names(c, comm, &same) < 0)
        return;
    const size_t nvars = same ? c->tally.n : 0;
    if (crn_comm_agree(comm, crn_alloc(&sum, NCOUNTS * nvars + 2 * nbins_of(comm))) == CAIRN_OK &&
        add_up(c, comm, nvars, sum) == CAIRN_OK)
        tell(c, comm, sum, nvars);
    free(sum);
}
