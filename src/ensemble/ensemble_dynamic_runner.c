/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic mode on the model's side: codecs are tried on what each rank has of a field, and all
 * ranks choose alike.
 */
#include "ensemble/ensemble_dynamic.h"

#include <math.h>

/* A state on its way to the shelf. */
typedef struct coder {
    const char *dir;
    crn_comm *comm;
    cairn_shelf *shelf;
    uint32_t member;
    const crn_orders *o;
    crn_buf note; /* of rank 0: what was tried and used */
} coder;

/* What a codec made of a field, on all ranks together. */
typedef struct made {
    double rate, error, seconds;
    bool holds;
} made;

/* --- orders --------------------------------------------------------------------------------- */

static cairn_status read_orders(const char *dir, crn_comm *comm, uint32_t cycle, crn_orders *ret)
{
    char name[48], *text = NULL;
    uint64_t n = 0;
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(comm) == 0)
        rc = crn_study_read(dir, crn_side_name(cycle, "codecs", name), &text);
    rc = crn_comm_agree(comm, rc);
    n = text ? strlen(text) + 1 : 0;
    if (rc == CAIRN_OK)
        rc = crn_comm_bcast(comm, &n, sizeof n, 0);
    if (rc == CAIRN_OK && !text)
        rc = crn_alloc(&text, n);
    rc = crn_comm_agree(comm, rc);
    if (rc == CAIRN_OK)
        rc = crn_comm_bcast(comm, text, n, 0);
    if (rc == CAIRN_OK)
        rc = crn_orders_get(text, ret);
    free(text);
    return rc;
}

/* --- trying --------------------------------------------------------------------------------- */

static size_t nbytes_of(const cairn_field *f)
{
    size_t n = cairn_type_bytes(f->type);
    for (int d = 0; d < CRN_MAX(f->ndims, 1); d++)
        n *= f->count[d];
    return n;
}

/* Collective. */
static cairn_status try_codec(const coder *c, const cairn_field *f, const crn_ladder *l,
                              const char *codec, void *reads, made *ret)
{
    cairn_coded mine = {.struct_bytes = sizeof mine};
    int rc = cairn_field_code(c->shelf, f, codec, reads, &mine);
    CRN_TRY(crn_comm_agree(c->comm, rc < 0 ? crn_fail((cairn_status)rc, "%s", cairn_error_text())
                                           : CAIRN_OK));
    double most[2] = {mine.error, mine.seconds},
           sum[2] = {(double)mine.nbytes, (double)mine.stored};
    CRN_TRY(crn_comm_allreduce_f64(c->comm, CRN_REDUCE_MAX, most, 2));
    CRN_TRY(crn_comm_allreduce_f64(c->comm, CRN_REDUCE_SUM, sum, 2));
    *ret = (made){.rate = sum[1] > 0 ? sum[0] / sum[1] : 1,
                  .error = most[0],
                  .seconds = most[1],
                  .holds = !c->o->check || most[0] <= l->sigma};
    return CAIRN_OK;
}

static void note(coder *c, const char *what, const char *field, const char *codec, const made *m)
{
    if (crn_comm_rank(c->comm) == 0)
        crn_put_text(&c->note, "%s %s %s %.17g %.17g %d %.9f\n", what, field, codec, m->rate,
                     m->error, m->holds, m->seconds);
}

/* All codecs in a trial; else until one holds. best: what readers get by the chosen one, in *ret;
 * other is for the next. *ret_codec NULL: none holds. */
static cairn_status try_all(coder *c, const cairn_field *f, const crn_ladder *l, void *best,
                            void *other, void **ret, const char **ret_codec, made *ret_made)
{
    *ret_codec = NULL;
    *ret_made = (made){.rate = 1, .holds = true};
    for (size_t i = 0; i < l->coding.n && (c->o->trial || !*ret_codec); i++) {
        const char *codec = l->coding.at[i].name;
        made m;
        CRN_TRY(try_codec(c, f, l, codec, other, &m));
        note(c, "tried", f->name, codec, &m);
        if (!m.holds || (*ret_codec && !(m.rate > ret_made->rate)))
            continue;
        void *was = best;
        best = other;
        other = was;
        *ret = best;
        *ret_codec = codec;
        *ret_made = m;
    }
    return CAIRN_OK;
}

static bool is_control(const coder *c)
{
    return c->o->control > 0 && c->member % c->o->control == 0;
}

static cairn_status choose_field(coder *c, const cairn_field *f, const crn_ladder *l, void **ret)
{
    unsigned char *memory;
    void *found = NULL;
    const char *codec;
    made m;
    const size_t n = nbytes_of(f);
    CRN_TRY(crn_comm_agree(c->comm, crn_alloc(&memory, 2 * n)));
    cairn_status rc = try_all(c, f, l, memory, memory + n, &found, &codec, &m);
    if (rc == CAIRN_OK && codec && !is_control(c)) {
        note(c, "used", f->name, codec, &m);
        rc = (cairn_status)cairn_shelf_set_codec(c->shelf, f->name, codec);
        memmove(memory, found, n);
        *ret = memory;
        return rc;
    }
    note(c, "used", f->name, "none", &(made){.rate = 1, .holds = true});
    free(memory);
    return rc;
}

static const crn_ladder *ladder_of(const crn_orders *o, const char *field)
{
    for (size_t i = 0; i < o->ladder.n; i++)
        if (strcmp(o->ladder.at[i].field, field) == 0)
            return &o->ladder.at[i];
    return NULL;
}

static cairn_status write_note(coder *c)
{
    char name[48], what[24];
    const crn_study study = {.dir = (char *)c->dir};
    snprintf(what, sizeof what, "coded%u", c->member);
    return crn_study_write_buf(&study, crn_side_name(c->o->cycle, what, name), &c->note);
}

static cairn_status choose_all(coder *c, crn_chosen *ret)
{
    for (size_t i = 0; i < ret->n; i++) {
        const crn_ladder *l = ladder_of(c->o, ret->field[i].name);
        CRN_TRY((cairn_status)cairn_shelf_set_codec(c->shelf, ret->field[i].name, NULL));
        if (l)
            CRN_TRY(choose_field(c, &ret->field[i], l, &ret->reads[i]));
    }
    return crn_comm_agree(c->comm, crn_comm_rank(c->comm) == 0 ? write_note(c) : CAIRN_OK);
}

/* Nothing is coded. */
static void forget(cairn_shelf *shelf, crn_chosen *c)
{
    for (size_t i = 0; i < c->n; i++) {
        (void)!cairn_shelf_set_codec(shelf, c->field[i].name, NULL);
        free(c->reads ? c->reads[i] : NULL);
    }
    free(c->reads);
    *c = (crn_chosen){0};
}

cairn_status crn_dynamic_choose(const char *dir, crn_comm *comm, cairn_shelf *shelf, uint32_t cycle,
                                uint32_t member, const cairn_field *field, size_t n,
                                crn_chosen *ret)
{
    crn_orders o = {0};
    coder c = {.dir = dir, .comm = comm, .shelf = shelf, .member = member, .o = &o};
    *ret = (crn_chosen){.n = n, .field = field};
    CRN_TRY(crn_comm_agree(comm, read_orders(dir, comm, cycle, &o)));
    cairn_status rc = crn_comm_agree(comm, crn_alloc(&ret->reads, n));
    if (rc == CAIRN_OK)
        rc = choose_all(&c, ret);
    if (rc < 0)
        forget(shelf, ret);
    crn_buf_done(&c.note);
    crn_orders_done(&o);
    return rc;
}

void crn_dynamic_settle(crn_chosen *c)
{
    for (size_t i = 0; i < c->n && c->reads; i++) {
        if (c->reads[i])
            memcpy(c->field[i].data, c->reads[i], nbytes_of(&c->field[i]));
        free(c->reads[i]);
    }
    free(c->reads);
    *c = (crn_chosen){0};
}
