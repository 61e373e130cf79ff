/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees of marks, for comparing runs. While a mark is captured, this only notes which variables it
 * has; the digests for bounds are made when the blocks are on their way to storage, on the engine's
 * thread in the background, and the exact ones are those of the part. Blocks that did not change
 * take their digests from the trees before.
 *
 * A mark for comparing only is made here from beginning to end. It leaves the part and the kernel's
 * tracking alone: a draft that is dropped would make both forget what the next mark must write.
 *
 * Trees tell about marks, and must not fail them: what goes wrong here costs the trees of one mark,
 * and is logged.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>
#include <jansson.h>

/* What is known of a variable of the mark under way. */
typedef struct tree_var {
    crn_bound bound[CRN_BOUNDS_MAX];
    size_t nbounds;
    size_t item;
    uint32_t block;
    uint64_t nblocks;
    crn_tolerant *digester;           /* of floating-point values; NULL without bounds */
    crn_structured *structured;       /* of other types, likewise */
    crn_digest *leaf[CRN_BOUNDS_MAX]; /* nblocks each */
    unsigned char *nan;               /* a bit for each block */
    const unsigned char *copy; /* of a mark that is all trees: values yet to be digested, or NULL */
} tree_var;

/* Used by whoever has the job. */
struct ckpt_trees {
    crn_trees *file;            /* NULL until the first mark */
    crn_trees_mark *made;       /* the newest that was appended in this session; NULL: none */
    const crn_trees_mark *last; /* that, or the last one of the file; NULL: none */
    CRN_VEC(tree_var) var;      /* of the mark under way, in the draft's order */
    crn_err err;                /* why the mark under way has none; code 0: nothing is wrong */
    bool failing;               /* and it has been said */
    crn_trees_mark *alone;      /* a mark that is all trees, in the making; NULL: none is */
    unsigned char *room; /* for copies of such a mark's values; kept, since new memory is slow */
    size_t room_bytes;
};

/* Note that the mark under way will have no trees; the first reason is kept. */
static void note(ckpt_trees *t, cairn_status rc)
{
    if (rc < 0 && t->err.code == 0)
        t->err = *crn_err_peek();
}

/* --- the mark under way --------------------------------------------------------------------- */

static void forget_vars(ckpt_trees *t)
{
    for (size_t i = 0; i < t->var.n; i++) {
        tree_var *v = &t->var.at[i];
        crn_tolerant_free(v->digester);
        crn_structured_free(v->structured);
        for (size_t k = 0; k < v->nbounds; k++)
            free(v->leaf[k]);
        free(v->nan);
    }
    t->var.n = 0;
    crn_trees_mark_free(t->alone);
    t->alone = NULL;
}

void crn_ckpt_trees_free(ckpt_trees *t)
{
    if (!t)
        return;
    forget_vars(t);
    crn_vec_done(&t->var);
    crn_trees_mark_free(t->made);
    crn_trees_close(t->file);
    free(t->room);
    free(t);
}

static bool has_digester(const tree_var *v)
{
    return v->digester || v->structured;
}

static void digest_block(tree_var *v, uint64_t i, const void *data, uint32_t nbytes)
{
    crn_digest d[CRN_BOUNDS_MAX];
    if (v->digester ? crn_tolerant_digest(v->digester, data, nbytes, NULL, d)
                    : crn_structured_digest(v->structured, i * v->block, data, nbytes, d))
        v->nan[i / 8] |= (unsigned char)(1u << i % 8);
    for (size_t k = 0; k < v->nbounds; k++)
        v->leaf[k][i] = d[k];
}

static void on_block(void *arg, size_t number, uint64_t i, const void *data, uint32_t nbytes)
{
    ckpt_trees *t = arg;
    if (number < t->var.n && has_digester(&t->var.at[number]))
        digest_block(&t->var.at[number], i, data, nbytes);
}

void crn_ckpt_trees_begin(cairn *c)
{
    ckpt_trees *t = c->trees;
    if (!t)
        return;
    forget_vars(t);
    t->err.code = CAIRN_OK;
    crn_draft_watch(c->job.draft, on_block, t);
}

static cairn_status add_var(ckpt_trees *t, const ckpt_var *v)
{
    CRN_TRY(crn_vec_reserve(&t->var, 1));
    tree_var *tv = &t->var.at[t->var.n++];
    *tv = (tree_var){.item = v->item, .block = v->block};
    if (strcmp(v->type, "bytes") == 0 || v->layout == CKPT_INDEX || v->nbounds == 0)
        return CAIRN_OK;
    tv->nblocks = v->nbytes / v->block + (v->nbytes % v->block != 0);
    CRN_TRY(crn_alloc(&tv->nan, tv->nblocks / 8 + 1));
    for (; tv->nbounds < v->nbounds; tv->nbounds++) {
        tv->bound[tv->nbounds] = v->bound[tv->nbounds];
        CRN_TRY(crn_alloc(&tv->leaf[tv->nbounds], tv->nblocks));
    }
    if (crn_value_is_float(v->type))
        return crn_tolerant_create(v->item, v->bound, v->nbounds, &tv->digester);
    cairn_status rc =
        crn_structured_create(v->type, v->item, v->block, v->bound, v->nbounds, &tv->structured);
    if (rc != CAIRN_EUNSUPPORTED)
        return rc;
    while (tv->nbounds > 0) /* exact trees will have to do */
        free(tv->leaf[--tv->nbounds]);
    return CAIRN_OK;
}

void crn_ckpt_trees_add(cairn *c, const ckpt_var *v)
{
    ckpt_trees *t = c->trees;
    if (t && t->err.code == 0)
        note(t, add_var(t, v));
}

/* --- before the commit: blocks that are not written ------------------------------------------ */

/* The variable in the trees before, if its digests are for the same bounds and blocks. */
static const crn_trees_var *find_old(const ckpt_trees *t, const crn_var *v, const tree_var *tv)
{
    const crn_trees_var *old = t->last ? crn_trees_find(t->last, v->spec.name) : NULL;
    if (!old || !old->loaded || old->nbounds != tv->nbounds ||
        old->var.spec.block != v->spec.block || strcmp(old->var.spec.type, v->spec.type) != 0)
        return NULL;
    return memcmp(old->bound, tv->bound, tv->nbounds * sizeof *tv->bound) == 0 ? old : NULL;
}

static bool take_over(const crn_trees_var *old, const crn_digest *exact, tree_var *tv, uint64_t i)
{
    if (!old || i >= old->var.nblocks || !crn_digest_equal(&old->exact.node[i], exact))
        return false;
    for (size_t k = 0; k < tv->nbounds; k++)
        tv->leaf[k][i] = old->tolerant[k].node[i];
    if (crn_trees_has_nan(old, i))
        tv->nan[i / 8] |= (unsigned char)(1u << i % 8);
    return true;
}

/* Digests of the blocks that a variable has from the mark before; what the trees before do not tell
 * is read. */
static cairn_status inherit(cairn *c, size_t number, tree_var *tv)
{
    crn_part *part;
    const crn_mark *m = crn_draft_mark(c->job.draft);
    crn_var *v = &m->var[number];
    const crn_trees_var *old = find_old(c->trees, v, tv);
    unsigned char *block = NULL;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_vault_own(c->vault, &part));
    for (uint64_t i = 0; i < v->nblocks; i++) {
        const crn_digest *exact = crn_draft_inherited(c->job.draft, number, i);
        if (!exact || take_over(old, exact, tv, i))
            continue;
        if (!block)
            CRN_TRY_OUT(rc, crn_io_memory(v->spec.block, &block));
        CRN_TRY_OUT(rc, crn_mark_read(part, m, v, i, 1, block, NULL));
        digest_block(tv, i, block, crn_var_block_bytes(v, i));
    }
out:
    free(block);
    return rc;
}

static cairn_status open_file(cairn *c)
{
    ckpt_trees *t = c->trees;
    if (t->file)
        return CAIRN_OK;
    CRN_TRY(crn_run_trees(c->run, (uint32_t)crn_comm_rank(c->comm), true, &t->file));
    const size_t n = crn_trees_nmarks(t->file);
    if (n == 0)
        return CAIRN_OK;
    crn_trees_mark *last = crn_trees_at(t->file, n - 1);
    for (size_t i = 0; i < last->nvars; i++)
        (void)crn_trees_load(t->file, last, &last->var[i]); /* what is damaged is made anew */
    t->last = last;
    return CAIRN_OK;
}

/* Declarations and exact leaves, which are lost with the draft. */
static cairn_status outline(cairn *c, crn_trees_mark **ret)
{
    const crn_mark *m = crn_draft_mark(c->job.draft);
    crn_trees_mark *made;
    crn_digest *leaf = NULL;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trees_mark_create(m->nvars, &made));
    made->version = c->job.version;
    made->wall_ns = c->job.wall_ns;
    made->series = c->series;
    made->nranks = (uint32_t)crn_comm_size(c->comm);
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var *v = &m->var[i];
        crn_trees_var *tv = &made->var[i];
        CRN_TRY_OUT(rc, crn_trees_declare(tv, &v->spec));
        CRN_TRY_OUT(rc, crn_alloc(&leaf, v->nblocks));
        for (uint64_t b = 0; b < v->nblocks; b++)
            leaf[b] = v->table[b].digest;
        CRN_TRY_OUT(rc, crn_tree_build(leaf, v->nblocks, &tv->exact));
        tv->var.root = crn_tree_root(&tv->exact);
        free(leaf);
        leaf = NULL;
    }
    CRN_TRY_OUT(rc, crn_trees_index(made));
    *ret = made;
    return CAIRN_OK;
out:
    free(leaf);
    crn_trees_mark_free(made);
    return rc;
}

static cairn_status prepare(cairn *c, crn_trees_mark **ret)
{
    ckpt_trees *t = c->trees;
    CRN_TRY(open_file(c));
    for (size_t i = 0; i < t->var.n; i++)
        if (has_digester(&t->var.at[i]))
            CRN_TRY(inherit(c, i, &t->var.at[i]));
    return outline(c, ret);
}

crn_trees_mark *crn_ckpt_trees_prepare(cairn *c)
{
    crn_trees_mark *made = NULL;
    if (c->trees && c->trees->err.code == 0)
        note(c->trees, prepare(c, &made));
    return made;
}

/* --- after it: the file ---------------------------------------------------------------------- */

static uint64_t count_bits(const unsigned char *bits, uint64_t n)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += bits[i / 8] >> i % 8 & 1;
    return count;
}

/* All digests are there now: make the trees for the bounds. */
static cairn_status complete(ckpt_trees *t, crn_trees_mark *made)
{
    for (size_t i = 0; i < made->nvars; i++) {
        crn_trees_var *v = &made->var[i];
        tree_var *tv = &t->var.at[i];
        for (; v->nbounds < tv->nbounds; v->nbounds++) {
            const size_t k = v->nbounds;
            v->bound[k] = tv->bound[k];
            CRN_TRY(crn_tree_build(tv->leaf[k], v->var.nblocks, &v->tolerant[k]));
            v->root[k] = crn_tree_root(&v->tolerant[k]);
        }
        v->nnan = tv->nan ? count_bits(tv->nan, v->var.nblocks) : 0;
        if (v->nnan > 0) {
            v->nan = tv->nan;
            tv->nan = NULL;
        }
        v->loaded = true;
    }
    return crn_trees_append(t->file, made, t->last);
}

static void say_failure(cairn *c)
{
    if (c->trees->failing)
        return;
    c->trees->failing = true;
    crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_EACH, "mark %" PRIu64 " has no trees: %s",
                  c->job.version, c->trees->err.text);
    crn_ckpt_event(c, "{s:s, s:I, s:s, s:s}", "event", "failed", "version",
                   (json_int_t)c->job.version, "level", "trees", "text", c->trees->err.text);
}

void crn_ckpt_trees_finish(cairn *c, crn_trees_mark *made, bool stored)
{
    ckpt_trees *t = c->trees;
    if (!t)
        return;
    if (stored && t->err.code == 0)
        note(t, complete(t, made));
    if (t->err.code < 0) {
        say_failure(c);
        crn_trees_mark_free(made);
    } else if (stored) {
        t->failing = false;
        crn_trees_mark_free(t->made);
        t->last = t->made = made;
    } else {
        crn_trees_mark_free(made);
    }
    forget_vars(t);
}

/* --- marks that are all trees ----------------------------------------------------------------- */

/* Digest the values of variable i. */
static cairn_status digest_var(ckpt_trees *t, size_t i, const unsigned char *data)
{
    crn_trees_var *v = &t->alone->var[i];
    tree_var *tv = &t->var.at[i];
    const crn_trees_var *old = find_old(t, &v->var, tv);
    crn_digest *exact;
    CRN_TRY(crn_alloc(&exact, v->var.nblocks));
    for (uint64_t b = 0; b < v->var.nblocks; b++, data += v->var.spec.block) {
        const uint32_t nbytes = crn_var_block_bytes(&v->var, b);
        exact[b] = crn_digest_of(data, nbytes);
        if (has_digester(tv) && !take_over(old, &exact[b], tv, b))
            digest_block(tv, b, data, nbytes);
    }
    cairn_status rc = crn_tree_build(exact, v->var.nblocks, &v->exact);
    v->var.root = crn_tree_root(&v->exact);
    free(exact);
    return rc;
}

/* Values that there is no room for are digested while the program waits. */
static cairn_status digest_now(ckpt_trees *t, size_t i, const ckpt_var *v)
{
    unsigned char *packed;
    if (!v->padded)
        return digest_var(t, i, v->data);
    CRN_TRY(crn_alloc(&packed, v->nbytes));
    crn_ckpt_copy_padded(v, packed);
    cairn_status rc = digest_var(t, i, packed);
    free(packed);
    return rc;
}

/* Room for the values of all variables, as far as the configuration allows it and there is memory;
 * none is needed when the program waits anyhow. */
static void make_room(cairn *c)
{
    ckpt_trees *t = c->trees;
    uint64_t wanted = 0;
    for (size_t i = 0; i < c->var.n; i++)
        wanted += c->var.at[i].nbytes;
    wanted = CRN_MIN(wanted, crn_config_nbytes(c->cfg, CRN_OPT_MARK_STAGING));
    if (!c->engine.running || wanted <= t->room_bytes)
        return;
    free(t->room);
    t->room = NULL;
    t->room_bytes = crn_io_memory(wanted, &t->room) == CAIRN_OK ? wanted : 0;
}

static cairn_status capture_var(cairn *c, size_t i, size_t *used)
{
    ckpt_trees *t = c->trees;
    const ckpt_var *v = &c->var.at[i];
    const crn_var_spec spec = crn_ckpt_spec(v);
    CRN_TRY(add_var(t, v));
    CRN_TRY(crn_trees_declare(&t->alone->var[i], &spec));
    c->job.nbytes += v->nbytes;
    if (!c->engine.running || v->nbytes > t->room_bytes - *used)
        return digest_now(t, i, v);
    if (v->nbytes == 0)
        return digest_var(t, i, NULL);
    unsigned char *to = t->room + *used;
    if (v->padded)
        crn_ckpt_copy_padded(v, to);
    else
        memcpy(to, v->data, v->nbytes);
    t->var.at[i].copy = to;
    *used += v->nbytes;
    return CAIRN_OK;
}

cairn_status crn_ckpt_trees_capture(cairn *c)
{
    ckpt_trees *t = c->trees;
    size_t used = 0;
    forget_vars(t);
    make_room(c);
    CRN_TRY(crn_trees_mark_create(c->var.n, &t->alone));
    t->alone->version = c->job.version;
    t->alone->wall_ns = c->job.wall_ns;
    t->alone->series = c->series;
    t->alone->nranks = (uint32_t)crn_comm_size(c->comm);
    for (size_t i = 0; i < c->var.n; i++)
        CRN_TRY(capture_var(c, i, &used));
    return crn_trees_index(t->alone);
}

static cairn_status store_alone(cairn *c)
{
    ckpt_trees *t = c->trees;
    CRN_TRY(open_file(c));
    for (size_t i = 0; i < t->var.n; i++)
        if (t->var.at[i].copy)
            CRN_TRY(digest_var(t, i, t->var.at[i].copy));
    CRN_TRY(complete(t, t->alone));
    crn_trees_mark_free(t->made);
    t->last = t->made = t->alone;
    t->alone = NULL;
    return CAIRN_OK;
}

cairn_status crn_ckpt_trees_store(cairn *c)
{
    cairn_status rc = store_alone(c);
    forget_vars(c->trees);
    return rc;
}

uint64_t crn_ckpt_trees_version(const cairn *c)
{
    return c->trees && c->trees->made ? c->trees->made->version : CRN_NO_VERSION;
}

crn_trees_mark *crn_ckpt_trees_made(cairn *c)
{
    crn_trees_mark *made = c->trees ? c->trees->made : NULL;
    return made && made->version == c->job.version && made->wall_ns == c->job.wall_ns ? made : NULL;
}

cairn_status crn_ckpt_trees_create(const crn_config *cfg, ckpt_trees **ret)
{
    *ret = NULL;
    return crn_config_bool(cfg, CRN_OPT_COMPARE_TREES) ? crn_alloc(ret, 1) : CAIRN_OK;
}
