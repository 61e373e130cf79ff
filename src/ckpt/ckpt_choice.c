/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs by measurement: what marks teach about those of variables whose codec is 'auto'. Sums over
 * the ranks are what is learned from, so that all of them choose the same, and rank 0 says so once.
 * Where ranks have different variables, each learns for itself.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

enum { NOF = 3 * CRN_CHOICES, NDEVICE = 4 }; /* numbers of a variable; of the mark */

void crn_choices_done(cairn *c)
{
    for (size_t i = 0; i < c->choice.n; i++) {
        free(c->choice.at[i]->name);
        free(c->choice.at[i]);
    }
    crn_vec_done(&c->choice);
    crn_index_done(&c->choice_name);
}

static ckpt_choice *add_choice(cairn *c, const char *name)
{
    ckpt_choice *one;
    if (crn_vec_reserve(&c->choice, 1) < 0 || crn_alloc(&one, 1) < 0)
        return NULL;
    if (crn_strdup(name, &one->name) < 0 ||
        crn_index_add(&c->choice_name, crn_hash_text(name), c->choice.n) < 0) {
        free(one->name);
        free(one);
        return NULL;
    }
    c->choice.at[c->choice.n++] = one;
    return one;
}

crn_choice *crn_choice_of(cairn *c, const char *name, size_t number, const crn_codec_setting *s)
{
    const char *type = crn_draft_mark(c->leg.job.draft)->var[number].spec.type;
    size_t probe = 0;
    uint32_t at;
    while (crn_index_next(&c->choice_name, crn_hash_text(name), &probe, &at))
        if (strcmp(c->choice.at[at]->name, name) == 0)
            return &c->choice.at[at]->is;
    ckpt_choice *one = add_choice(c, name);
    if (!one)
        return NULL;
    crn_choice_init(&one->is, crn_ckpt_elem(type), s);
    return &one->is;
}

/* --- learning ----------------------------------------------------------------------------- */

static void pack(uint64_t *sum, size_t way, const crn_codec_counts *n)
{
    sum[3 * way] += n->nbytes;
    sum[3 * way + 1] += n->stored;
    sum[3 * way + 2] += n->took_ns;
}

/* What this rank measured; *ret_encode is the time that all of its encoding took. */
static void pack_all(const cairn *c, uint64_t *sum)
{
    const ckpt_job *j = &c->leg.job;
    uint64_t *device = sum + NOF * c->coded.n, last = j->store_ns, took = 0;
    for (size_t i = 0; i < c->coded.n; i++) {
        const ckpt_coded *one = c->coded.at[i];
        took += one->counts.took_ns;
        if (!one->choice)
            continue;
        pack(sum + NOF * i, one->choice->now, &one->counts);
        for (size_t k = 0; k < one->ntrials; k++) {
            pack(sum + NOF * i, one->trial[k], &one->tried[k]);
            took += one->tried[k].took_ns;
        }
    }
    for (int l = 0; l < CRN_NLEVELS; l++)
        last = CRN_MAX(last, j->level_ns[l]);
    took /= crn_config_count(c->held.cfg, CRN_OPT_CODEC_THREADS);
    device[0] = j->storing_ns > took ? j->storing_ns - took : 0;
    device[0] += last - j->store_ns;
    device[1] = j->stats.data_bytes;
    device[2] = j->held_ns;
    device[3] = crn_comm_rank(c->held.comm) == 0 ? j->nbytes : 0; /* of all ranks, by now */
}

static void tell(cairn *c, const ckpt_coded *one, size_t was)
{
    char codec[CRN_CODEC_TEXT], before[CRN_CODEC_TEXT];
    const crn_choice *is = one->choice;
    const crn_way *w = &is->way[is->now];
    crn_codec_print(&w->setting, codec);
    crn_codec_print(&is->way[was].setting, before);
    crn_log_write(&c->held.log, CRN_LOG_INFO, CRN_LOG_ROOT,
                  "mark %" PRIu64 ": variable '%s' goes to codec %s instead of %s",
                  c->leg.job.version, one->name, codec, before);
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_CODEC,
                                             .codec = {.version = c->leg.job.version,
                                                       .name = one->name,
                                                       .codec = codec,
                                                       .was = before,
                                                       .encode = w->encode,
                                                       .rate = w->rate,
                                                       .device = is->device,
                                                       .copy = is->copy}});
}

static void learn(cairn *c, const uint64_t *sum, bool same)
{
    enum { WORTH = 64 << 10 }; /* of less storage says nothing but how long it takes to begin */
    const double threads = (double)crn_config_count(c->held.cfg, CRN_OPT_CODEC_THREADS);
    const uint64_t *device = sum + NOF * c->coded.n;
    for (size_t i = 0; i < c->coded.n; i++) {
        const ckpt_coded *one = c->coded.at[i];
        const uint64_t *of = sum + NOF * i;
        uint64_t any = 0;
        if (!one->choice)
            continue;
        const size_t was = one->choice->now;
        for (size_t w = 0; w < one->choice->n; w++) {
            any += of[3 * w];
            crn_choice_saw(one->choice, w, of[3 * w], of[3 * w + 1],
                           (double)of[3 * w + 2] * 1e-9 / threads);
        }
        if (device[1] >= WORTH)
            crn_choice_saw_device(one->choice, (double)device[0] * 1e-9, device[1]);
        crn_choice_saw_copy(one->choice, (double)device[2] * 1e-9, device[3]);
        if ((any > 0 || was == 0) && crn_choice_decide(one->choice) && same)
            tell(c, one, was);
    }
}

void crn_choices_learn(cairn *c, crn_comm *comm)
{
    bool same, any;
    uint64_t *sum = NULL;
    const size_t n = NOF * c->coded.n + NDEVICE;
    uint64_t choices = c->choice.n;
    if (crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &choices, 1) < 0 || choices == 0)
        return;
    if (crn_coded_agree(c, comm, &same, &any) < 0 || !any)
        return;
    if (crn_comm_agree(comm, crn_alloc(&sum, n)) == CAIRN_OK) {
        pack_all(c, sum);
        if (!same || crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, sum, n) == CAIRN_OK)
            learn(c, sum, same);
    }
    free(sum);
}
