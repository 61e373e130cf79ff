/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A model of a part in plain memory: variables that grow, shrink, appear, vanish and change, and a
 * copy of every mark. Random steps are applied to both, and whatever the part gives back must be
 * what the model has.
 */
#ifndef CAIRN_TESTS_MODEL_H
#define CAIRN_TESTS_MODEL_H

#include <inttypes.h>

#include "harness/encode.h"
#include "harness/harness.h"
#include "store/store.h"

enum { MODEL_VARS = 6, MODEL_MARKS = 64 };

typedef struct model_var {
    bool exists;
    const char *codec; /* as in a configuration */
    uint32_t block, item;
    uint64_t nbytes;
    unsigned char *data;
} model_var;

typedef struct model_state {
    uint64_t version;
    model_var var[MODEL_VARS];
} model_state;

typedef struct model {
    crn_rng rng;
    uint64_t max_bytes;    /* of a variable */
    uint64_t nblock_sizes; /* that it may have: 1 KiB, 2 KiB, ... */
    uint64_t version;
    model_state now;
    model_state past[MODEL_MARKS]; /* by version % MODEL_MARKS */
} model;

static inline void model_name(int i, char name[16])
{
    snprintf(name, 16, "variable %d", i);
}

/* Some of it is such that codecs make it smaller. */
static inline void model_fill(model *m, unsigned char *at, uint64_t n)
{
    const bool plain = crn_rng_below(&m->rng, 2);
    for (uint64_t i = 0; i < n; i += 8) {
        uint64_t random = plain ? 0 : crn_rng_u64(&m->rng);
        memcpy(at + i, &random, CRN_MIN(n - i, sizeof random));
    }
}

/* What codecs of values take is among them. */
static inline const char *model_type(const model_var *v)
{
    return v->item == 8 ? "float64" : v->item == 4 ? "float32" : "bytes";
}

static inline const char *model_codec(model *m)
{
    static const char *const codec[] = {"none",           "lz4",         "zstd", "zfp", "fpzip",
                                        "zstd:5,shuffle", "lz4:shuffle", "auto"};
    return codec[crn_rng_below(&m->rng, sizeof codec / sizeof *codec)];
}

static inline void model_resize(model *m, model_var *v, uint64_t nbytes)
{
    unsigned char *data = realloc(v->data, nbytes + 1);
    assert_non_null(data);
    if (nbytes > v->nbytes)
        model_fill(m, data + v->nbytes, nbytes - v->nbytes);
    v->data = data;
    v->nbytes = nbytes;
}

static inline void model_create(model *m, model_var *v)
{
    v->exists = true;
    v->item = 1u << crn_rng_below(&m->rng, 4);
    v->block = 1024u << crn_rng_below(&m->rng, m->nblock_sizes);
    v->codec = model_codec(m);
    v->nbytes = 0;
    /* of less than a sector, too, since blocks of that share sectors */
    const uint64_t most = crn_rng_below(&m->rng, 4) == 0 ? 600 : m->max_bytes;
    model_resize(m, v, crn_rng_below(&m->rng, most) / v->item * v->item);
}

static inline void model_vanish(model_var *v)
{
    free(v->data);
    memset(v, 0, sizeof *v);
}

/* Change a few bytes, a run, or nothing. */
static inline void model_touch(model *m, model_var *v)
{
    uint64_t n = crn_rng_below(&m->rng, 4);
    for (uint64_t k = 0; v->nbytes > 0 && k < n; k++) {
        uint64_t at = crn_rng_below(&m->rng, v->nbytes);
        uint64_t len = 1 + crn_rng_below(&m->rng, CRN_MIN(v->nbytes - at, 3000));
        model_fill(m, v->data + at, len);
    }
}

/* One random step of the program between two marks. */
static inline void model_step(model *m)
{
    for (int i = 0; i < MODEL_VARS; i++) {
        model_var *v = &m->now.var[i];
        uint64_t dice = crn_rng_below(&m->rng, 12);
        if (!v->exists) {
            if (dice < 4)
                model_create(m, v);
        } else if (dice == 0) {
            model_vanish(v);
        } else if (dice == 1) {
            model_resize(m, v, crn_rng_below(&m->rng, m->max_bytes) / v->item * v->item);
        } else if (dice == 2) {
            v->block = 1024u << crn_rng_below(&m->rng, m->nblock_sizes);
        } else if (dice == 3) {
            v->codec = model_codec(m);
        } else {
            model_touch(m, v);
        }
    }
}

static inline void model_state_done(model_state *s)
{
    for (int i = 0; i < MODEL_VARS; i++)
        model_vanish(&s->var[i]);
    memset(s, 0, sizeof *s);
}

static inline void model_init(model *m, uint64_t seed, uint64_t max_bytes)
{
    memset(m, 0, sizeof *m);
    m->rng = crn_rng_of(seed, 0);
    m->max_bytes = max_bytes;
    m->nblock_sizes = 4;
}

static inline void model_done(model *m)
{
    model_state_done(&m->now);
    for (int i = 0; i < MODEL_MARKS; i++)
        model_state_done(&m->past[i]);
}

/* Remember the present as the mark of a version. */
static inline void model_remember(model *m, uint64_t version)
{
    model_state *s = &m->past[version % MODEL_MARKS];
    model_state_done(s);
    *s = m->now;
    s->version = version;
    for (int i = 0; i < MODEL_VARS; i++) {
        model_var *v = &s->var[i];
        if (!v->exists)
            continue;
        v->data = malloc(v->nbytes + 1);
        assert_non_null(v->data);
        memcpy(v->data, m->now.var[i].data, v->nbytes);
    }
}

/* Take a mark of the present. The model remembers it before the commit, which may end the process.
 */
static inline cairn_status model_mark(model *m, crn_part *part, uint64_t version, uint64_t keep,
                                      crn_draft_stats *stats)
{
    crn_draft *d;
    cairn_status rc = CAIRN_OK;
    model_remember(m, version);
    CRN_TRY(crn_draft_begin(part, version, &d));
    for (int i = 0; i < MODEL_VARS && rc == CAIRN_OK; i++) {
        const model_var *v = &m->now.var[i];
        char name[16];
        size_t number;
        if (!v->exists)
            continue;
        model_name(i, name);
        crn_var_spec spec = {.name = name,
                             .type = model_type(v),
                             .item = v->item,
                             .block = v->block,
                             .nbytes = v->nbytes};
        rc = crn_draft_add(d, &spec, &number);
        if (rc == CAIRN_OK)
            test_encode(d, number, v->codec, "");
        crn_put how = {.way =
                           version % 2 ? CRN_PUT_COMPARE : CRN_PUT_COPY}; /* the same, but faster */
        if (rc == CAIRN_OK)
            rc = crn_draft_put_changed(d, number, v->data, &how);
    }
    if (rc < 0) {
        crn_draft_drop(d);
        return rc;
    }
    return crn_draft_commit(d, keep, stats);
}

/* Read a mark and say whether it is, bit for bit, what the model remembers. */
static inline cairn_status model_check(model *m, crn_part *part, uint64_t version)
{
    const model_state *s = &m->past[version % MODEL_MARKS];
    crn_mark *mark;
    size_t nvars = 0;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_part_load(part, version, &mark));
    for (int i = 0; i < MODEL_VARS && rc == CAIRN_OK; i++) {
        const model_var *v = &s->var[i];
        char name[16];
        if (!v->exists)
            continue;
        nvars++;
        model_name(i, name);
        crn_var *var = crn_mark_find(mark, name);
        if (!var || var->spec.nbytes != v->nbytes || var->spec.item != v->item) {
            rc = crn_fail(CAIRN_EMISMATCH, "mark %" PRIu64 ": '%s' is another one", version, name);
            break;
        }
        unsigned char *data = malloc(v->nbytes + 1);
        rc = crn_mark_read(part, mark, var, 0, var->nblocks, data, NULL);
        if (rc == CAIRN_OK && memcmp(data, v->data, v->nbytes) != 0)
            rc = crn_fail(CAIRN_EMISMATCH, "mark %" PRIu64 ": '%s' reads wrong", version, name);
        free(data);
    }
    if (rc == CAIRN_OK && nvars != mark->nvars)
        rc = crn_fail(CAIRN_EMISMATCH, "mark %" PRIu64 ": too many variables", version);
    crn_mark_free(mark);
    return rc;
}

static const crn_part_options model_options = {CRN_IO_AUTO, 8, true};
static const crn_part_id model_id = {"0123456789abcde", 1, 3, 8, CRN_ROLE_OWN};

#endif
