/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What codecs made of a mark's variables: counted while it is written, added up over the ranks, and
 * told in the run's log (docs/format/events.md, "codecs").
 */
#include "ckpt/ckpt_session.h"

enum {
    CODED_TOLD = 32,           /* the largest ones: the log must stay small */
    NSUMS = 4 + CRN_NFALLBACKS /* blocks, aside, bytes, stored, and each reason */
};

void crn_coded_reset(cairn *c)
{
    for (size_t i = 0; i < c->coded.n; i++)
        free(c->coded.at[i]);
    crn_vec_done(&c->coded);
    c->small_coded = NULL;
}

/* NULL: no memory, so nothing is counted. */
static ckpt_coded *new_coded(cairn *c, const char *name, const crn_codec_setting *s)
{
    ckpt_coded *one;
    if (crn_vec_reserve(&c->coded, 1) < 0 || crn_alloc(&one, 1) < 0)
        return NULL;
    snprintf(one->name, sizeof one->name, "%s", name);
    one->setting = *s;
    c->coded.at[c->coded.n++] = one;
    return one;
}

/* What is tried beside the setting, and counted apart. */
static void try_beside(cairn *c, ckpt_coded *one, crn_choice *choice, size_t number)
{
    crn_beside beside[CRN_CHOICES];
    one->choice = choice;
    one->ntrials = crn_choice_trials(choice, one->trial);
    for (size_t i = 0; i < one->ntrials; i++)
        beside[i] = (crn_beside){choice->way[one->trial[i]].setting, &one->tried[i]};
    crn_draft_encode_beside(c->leg.job.draft, number, beside, one->ntrials);
}

void crn_coded_put(cairn *c, const char *name, bool small, size_t number)
{
    crn_codec_setting s = crn_ckpt_codec(c->held.cfg, name);
    const bool measured = s.family == CRN_FAMILY_AUTO && !crn_codec_is_lossy(&s) && !small;
    crn_choice *choice = measured ? crn_choice_of(c, name, number, &s) : NULL;
    if (choice)
        s = choice->way[choice->now].setting;
    crn_draft_encode(c->leg.job.draft, number, &s);
    if (s.family == CRN_FAMILY_NONE && !choice)
        return;
    ckpt_coded *one =
        small && c->small_coded ? c->small_coded : new_coded(c, small ? CRN_SMALL_NAME : name, &s);
    if (small)
        c->small_coded = one;
    if (one && choice)
        try_beside(c, one, choice, number);
    if (one)
        crn_draft_count(c->leg.job.draft, number, &one->counts);
}

/* --- over the ranks ----------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(ckpt_coded *const *)a)->name, (*(ckpt_coded *const *)b)->name);
}

/* By name, and once each: a mark that was diverted has put some twice. */
static void tidy(cairn *c)
{
    size_t n = 0;
    if (c->coded.n > 0)
        qsort(c->coded.at, c->coded.n, sizeof(ckpt_coded *), by_name);
    for (size_t i = 0; i < c->coded.n; i++) {
        ckpt_coded *one = c->coded.at[i];
        if (n > 0 && strcmp(c->coded.at[n - 1]->name, one->name) == 0) {
            crn_codec_add_counts(&c->coded.at[n - 1]->counts, &one->counts);
            for (size_t k = 0; k < one->ntrials; k++)
                crn_codec_add_counts(&c->coded.at[n - 1]->tried[k], &one->tried[k]);
            free(one);
        } else {
            c->coded.at[n++] = one;
        }
    }
    c->coded.n = n;
}

cairn_status crn_coded_agree(cairn *c, crn_comm *comm, bool *ret_same, bool *ret_any)
{
    crn_buf b = {0};
    for (size_t i = 0; i < c->coded.n; i++)
        crn_put_str(&b, c->coded.at[i]->name);
    const crn_digest d = crn_digest_of(b.at, b.n);
    uint64_t max[3];
    memcpy(max, d.b, sizeof *max);
    max[1] = ~max[0];
    max[2] = c->coded.n;
    crn_buf_done(&b);
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, max, 3));
    *ret_same = max[0] == ~max[1];
    *ret_any = max[2] > 0;
    return CAIRN_OK;
}

static void pack(const crn_codec_counts *n, uint64_t *sum, double *error)
{
    sum[0] += n->nblocks;
    sum[1] += n->naside;
    sum[2] += n->nbytes;
    sum[3] += n->stored;
    for (int f = 0; f < CRN_NFALLBACKS; f++)
        sum[4 + f] += n->fallback[f];
    *error = CRN_MAX(*error, n->error);
}

static void unpack(const uint64_t *sum, double error, crn_codec_counts *n)
{
    n->nblocks = sum[0];
    n->naside = sum[1];
    n->nbytes = sum[2];
    n->stored = sum[3];
    for (int f = 0; f < CRN_NFALLBACKS; f++)
        n->fallback[f] = sum[4 + f];
    n->error = error;
}

/* Into nrows rows: one for each variable, or one for all. */
static cairn_status add_up(cairn *c, crn_comm *comm, size_t nrows, uint64_t *sum, double *error)
{
    for (size_t i = 0; i < c->coded.n; i++) {
        const size_t row = nrows == 1 ? 0 : i;
        pack(&c->coded.at[i]->counts, sum + NSUMS * row, error + row);
    }
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, NSUMS * nrows));
    return crn_comm_allreduce_f64(comm, CRN_REDUCE_MAX, error, nrows);
}

/* --- telling ------------------------------------------------------------------------------ */

static json_t *json_of(const char *name, const ckpt_coded *of, const crn_codec_counts *n)
{
    char codec[CRN_CODEC_TEXT] = "", loss[CRN_CODEC_TEXT] = "";
    if (of) {
        crn_codec_print(&of->setting, codec);
        if (of->setting.bounded)
            crn_loss_print(&of->setting.loss, loss);
    }
    return crn_event_coded_encode(&(crn_event_coded){.name = name,
                                                     .codec = codec,
                                                     .loss = loss[0] ? loss : NULL,
                                                     .blocks = n->nblocks,
                                                     .nbytes = n->nbytes,
                                                     .stored = n->stored,
                                                     .stricter = n->fallback[CRN_FALLBACK_STRICTER],
                                                     .bound = n->fallback[CRN_FALLBACK_BOUND],
                                                     .special = n->fallback[CRN_FALLBACK_SPECIAL],
                                                     .size = n->fallback[CRN_FALLBACK_SIZE],
                                                     .aside = n->naside,
                                                     .error = n->error,
                                                     .seconds = (double)n->took_ns * 1e-9});
}

/* The bytes of the smallest row that is told. */
static uint64_t least_told(const uint64_t *sum, size_t nrows)
{
    uint64_t most[CODED_TOLD] = {0};
    for (size_t i = 0; i < nrows; i++) {
        size_t k = CODED_TOLD;
        for (; k > 0 && most[k - 1] < sum[NSUMS * i + 2]; k--)
            if (k < CODED_TOLD)
                most[k] = most[k - 1];
        if (k < CODED_TOLD)
            most[k] = sum[NSUMS * i + 2];
    }
    return CRN_MAX(most[CODED_TOLD - 1], 1);
}

static void tell(cairn *c, const uint64_t *sum, const double *error, size_t nrows, bool same)
{
    const uint64_t least = least_told(sum, nrows);
    json_t *list = json_array();
    for (size_t i = 0; i < nrows && json_array_size(list) < CODED_TOLD; i++) {
        const ckpt_coded *of = i < c->coded.n ? c->coded.at[i] : NULL;
        crn_codec_counts n = {.took_ns = of ? of->counts.took_ns : 0};
        unpack(sum + NSUMS * i, error[i], &n);
        if (n.nbytes >= least)
            json_array_append_new(list, json_of(same ? of->name : NULL, of, &n));
    }
    if (json_array_size(list) == 0) {
        json_decref(list);
        return;
    }
    crn_holding_event(&c->held,
                      &(crn_event){.kind = CRN_EVENT_CODECS,
                                   .codecs = {.version = c->leg.job.version, .variables = list}});
}

void crn_coded_tell(cairn *c, crn_comm *comm)
{
    bool same, any;
    uint64_t *sum = NULL;
    double *error = NULL;
    tidy(c);
    if (crn_coded_agree(c, comm, &same, &any) < 0 || !any)
        return;
    const size_t nrows = same ? c->coded.n : 1;
    cairn_status rc = crn_alloc(&sum, NSUMS * nrows);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&error, nrows);
    if (crn_comm_agree(comm, rc) == CAIRN_OK && add_up(c, comm, nrows, sum, error) == CAIRN_OK &&
        crn_comm_rank(comm) == 0)
        tell(c, sum, error, nrows, same);
    free(sum);
    free(error);
}
