/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees of marks, for comparing runs. Their leaves have a size of their own, so that runs whose
 * blocks differ can be compared. Where leaves are blocks, exact digests are those of the part.
 * Leaves that are smaller, and the digests for bounds, are made when the blocks are on their way to
 * storage, on the engine's thread in the background. A leaf of several blocks, of which only some
 * are stored, is whole in the program's memory alone, and is digested while that waits. Leaves that
 * did not change take their digests from the trees before.
 *
 * A mark for comparing only is made here from beginning to end. It leaves the part and the kernel's
 * tracking alone: a draft that is dropped would make both forget what the next mark must write.
 *
 * Trees tell about marks, and must not fail them: what goes wrong here costs the trees of one mark,
 * and is logged.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

/* What is known of a variable of the mark under way. */
typedef struct tree_var {
    crn_bound bound[CRN_BOUNDS_MAX];
    size_t nbounds;
    char *members;        /* bounds of members instead; NULL: none has its own */
    uint32_t block, leaf; /* bytes */
    uint64_t nbytes, nleaves;
    crn_digester *digester;               /* NULL: the part has all that is wanted */
    crn_digest *exact;                    /* nleaves; NULL: those of the part's blocks will do */
    crn_digest *tolerant[CRN_BOUNDS_MAX]; /* nleaves each */
    unsigned char *nan;                   /* a bit for each leaf */
    unsigned char *seen;                  /* likewise: digested while the program waited; or NULL */
    const unsigned char *copy; /* of a mark that is all trees: values yet to be digested, or NULL */
} tree_var;

/* Used by whoever has the job. */
struct ckpt_trees {
    crn_trees *file;            /* NULL until the first mark */
    crn_trees_mark *made;       /* the newest that was appended in this session; NULL: none */
    const crn_trees_mark *last; /* that, or the last one of the file; NULL: none */
    crn_trees_mark *kept; /* the one before, while made is all trees and that is not; or NULL */
    const crn_trees_mark
        *stored;           /* of made, kept and the file's, the newest that a part may have */
    CRN_VEC(tree_var) var; /* of the mark under way, in the draft's order */
    crn_err err;           /* why the mark under way has none; code 0: nothing is wrong */
    bool failing;          /* and it has been said */
    crn_trees_mark *alone; /* a mark that is all trees, in the making; NULL: none is */
    unsigned char *room;   /* for copies of such a mark's values; kept, since new memory is slow */
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
        crn_digester_free(v->digester);
        for (size_t k = 0; k < v->nbounds; k++)
            free(v->tolerant[k]);
        free(v->members);
        free(v->exact);
        free(v->nan);
        free(v->seen);
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
    crn_trees_mark_free(t->kept);
    crn_trees_close(t->file);
    free(t->room);
    free(t);
}

static uint64_t leaf_bytes(const tree_var *v, uint64_t i)
{
    return CRN_MIN((uint64_t)v->leaf, v->nbytes - i * v->leaf);
}

static void set_bit(unsigned char *bits, uint64_t i)
{
    bits[i / 8] |= (unsigned char)(1u << i % 8);
}

static bool has_bit(const unsigned char *bits, uint64_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

static void digest_leaf(tree_var *v, uint64_t i, const void *data)
{
    const uint64_t nbytes = leaf_bytes(v, i);
    crn_digest d[CRN_BOUNDS_MAX], *exact = v->exact ? &v->exact[i] : NULL;
    const bool nan = crn_digester_leaf(v->digester, i * v->leaf, data, (uint32_t)nbytes, exact, d);
    if (nan)
        set_bit(v->nan, i);
    for (size_t k = 0; k < v->nbounds; k++)
        v->tolerant[k][i] = d[k];
}

/* A block is stored; leaves that are no larger are in it. */
static void on_block(void *arg, size_t number, uint64_t i, const void *data, uint32_t nbytes)
{
    ckpt_trees *t = arg;
    tree_var *v = number < t->var.n ? &t->var.at[number] : NULL;
    if (!v || !v->digester || v->block < v->leaf)
        return;
    const unsigned char *at = data;
    const uint64_t first = i * v->block / v->leaf;
    for (uint64_t done = 0, k = first; done < nbytes; done += v->leaf, k++)
        digest_leaf(v, k, at + done);
}

void crn_ckpt_trees_begin(cairn *c)
{
    ckpt_trees *t = c->leg.trees;
    if (!t)
        return;
    forget_vars(t);
    t->err.code = CAIRN_OK;
    crn_draft_watch(c->leg.job.draft, on_block, t);
}

/* Exact trees will have to do. */
static cairn_status give_up_bounds(tree_var *tv, const ckpt_var *v, bool own)
{
    while (tv->nbounds > 0)
        free(tv->tolerant[--tv->nbounds]);
    free(tv->members);
    tv->members = NULL;
    return own ? crn_digester_create(v->type, v->item, tv->leaf, NULL, 0, NULL, &tv->digester)
               : CAIRN_OK;
}

/* What the digests of a variable's leaves need. own: the part has none that would do. */
static cairn_status add_digests(tree_var *tv, const ckpt_var *v, bool own)
{
    const bool tolerant =
        strcmp(v->type, "bytes") != 0 && !crn_ckpt_is_companion(v) && v->nbounds > 0;
    if (own)
        CRN_TRY(crn_alloc(&tv->exact, tv->nleaves));
    if ((own || tolerant) && tv->block < tv->leaf)
        CRN_TRY(crn_alloc(&tv->seen, tv->nleaves / 8 + 1));
    if (tolerant)
        CRN_TRY(crn_alloc(&tv->nan, tv->nleaves / 8 + 1));
    if (tolerant && v->members)
        CRN_TRY(crn_strdup(v->members, &tv->members));
    for (; tolerant && tv->nbounds < v->nbounds; tv->nbounds++) {
        tv->bound[tv->nbounds] = v->bound[tv->nbounds];
        CRN_TRY(crn_alloc(&tv->tolerant[tv->nbounds], tv->nleaves));
    }
    if (!own && !tolerant)
        return CAIRN_OK;
    cairn_status rc = crn_digester_create(v->type, v->item, tv->leaf, tv->bound, tv->nbounds,
                                          tv->members, &tv->digester);
    return rc == CAIRN_EUNSUPPORTED ? give_up_bounds(tv, v, own) : rc;
}

/* The leaf size of a variable: that of the reference, if there is one, so that trees can be
 * compared. */
static uint32_t leaf_of(cairn *c, const ckpt_var *v)
{
    const uint32_t theirs = crn_reference_leaf(c, v->name);
    return theirs ? theirs : (uint32_t)crn_config_nbytes(c->held.cfg, CRN_OPT_COMPARE_LEAF);
}

static cairn_status add_var(cairn *c, const ckpt_var *v, bool alone)
{
    ckpt_trees *t = c->leg.trees;
    CRN_TRY(crn_vec_reserve(&t->var, 1));
    tree_var *tv = &t->var.at[t->var.n++];
    *tv = (tree_var){.block = v->block, .leaf = leaf_of(c, v), .nbytes = v->nbytes};
    tv->nleaves = v->nbytes / tv->leaf + (v->nbytes % tv->leaf != 0);
    if (v->nbytes <= CRN_MIN(tv->leaf, tv->block))
        tv->block = tv->leaf; /* one block, or none, is as many leaves */
    return add_digests(tv, v, alone || tv->leaf != tv->block);
}

void crn_ckpt_trees_add(cairn *c, const ckpt_var *v)
{
    ckpt_trees *t = c->leg.trees;
    if (t && t->err.code == 0)
        note(t, add_var(c, v, false));
}

/* --- leaves of several blocks ----------------------------------------------------------------- */

/* Which of the draft's variables is looked at. */
typedef struct tree_look {
    const crn_draft *draft;
    size_t number;
    tree_var *v;
    const crn_trees_var *old; /* NULL: there is none */
} tree_look;

/* Is all of a leaf as in the mark that the draft inherits from? */
static bool is_inherited(const tree_look *l, uint64_t leaf)
{
    const tree_var *v = l->v;
    const uint64_t last = (leaf * v->leaf + leaf_bytes(v, leaf) - 1) / v->block;
    for (uint64_t i = leaf * v->leaf / v->block; i <= last; i++)
        if (!crn_draft_inherited(l->draft, l->number, i))
            return false;
    return true;
}

static cairn_status look_at_leaf(void *arg, uint64_t i, const unsigned char *data, size_t nbytes)
{
    const tree_look *l = arg;
    (void)nbytes;
    if (!is_inherited(l, i)) {
        digest_leaf(l->v, i, data);
        set_bit(l->v->seen, i);
    }
    return CAIRN_OK;
}

void crn_ckpt_trees_put(cairn *c, const ckpt_var *v, size_t number)
{
    ckpt_trees *t = c->leg.trees;
    if (!t || t->err.code < 0 || !t->var.at[number].seen)
        return;
    tree_look l = {c->leg.job.draft, number, &t->var.at[number], NULL};
    note(t, crn_ckpt_each_stretch(v, l.v->leaf, look_at_leaf, &l));
}

/* --- before the commit: blocks that are not written ------------------------------------------ */

/* Have trees these bounds of members? */
static bool has_members(const crn_trees_var *v, const char *members)
{
    const char *line = crn_var_attribute(&v->var.spec, CRN_TREES_BOUNDS);
    if (!line || !members)
        return !line && !members;
    const size_t n = strlen(members);
    return strncmp(line, members, n) == 0 && (line[n] == '\n' || line[n] == 0);
}

/* The variable in trees, if its digests are for the same bounds and leaves. */
static const crn_trees_var *find_alike(const crn_trees_mark *m, const crn_var_spec *spec,
                                       const tree_var *tv)
{
    const crn_trees_var *old = m ? crn_trees_find(m, spec->name) : NULL;
    if (!old || !old->loaded || old->nbounds != tv->nbounds || old->var.spec.block != tv->leaf ||
        strcmp(old->var.spec.type, spec->type) != 0 || !has_members(old, tv->members))
        return NULL;
    return memcmp(old->bound, tv->bound, tv->nbounds * sizeof *tv->bound) == 0 ? old : NULL;
}

static void take_over(const crn_trees_var *old, tree_var *tv, uint64_t i)
{
    if (tv->exact)
        tv->exact[i] = old->exact.node[i];
    for (size_t k = 0; k < tv->nbounds; k++)
        tv->tolerant[k][i] = old->tolerant[k].node[i];
    if (crn_trees_has_nan(old, i))
        set_bit(tv->nan, i);
}

/* Does the old variable have a leaf with this digest in the same place? */
static bool has_leaf(const crn_trees_var *old, uint64_t i, const crn_digest *exact)
{
    return old && i < old->var.nblocks && crn_digest_equal(&old->exact.node[i], exact);
}

/* The trees of the mark that the draft inherits from; NULL: they are not in memory. */
static const crn_trees_mark *base_of(const cairn *c)
{
    const crn_trees_mark *m = c->leg.trees->stored;
    uint64_t wall_ns = 0;
    const uint64_t version = crn_draft_base(c->leg.job.draft, &wall_ns);
    return m && m->version == version && m->wall_ns == wall_ns ? m : NULL;
}

/* The blocks that hold a leaf are read into data. */
static cairn_status read_leaf(cairn *c, const tree_look *l, uint64_t leaf, unsigned char *data)
{
    const tree_var *tv = l->v;
    const crn_mark *m = crn_draft_mark(c->leg.job.draft);
    crn_part *part;
    const uint64_t off = leaf * tv->leaf, first = off / tv->block;
    const uint64_t last = (off + leaf_bytes(tv, leaf) - 1) / tv->block;
    CRN_TRY(crn_vault_own(c->held.vault, &part));
    for (uint64_t i = first; i <= last; i++)
        CRN_FAIL_IF(!crn_digest_equal(&m->var[l->number].table[i].digest,
                                      &m->var[l->number].table[i].origin),
                    CAIRN_EUNSUPPORTED,
                    "what the program had in block %" PRIu64
                    " of variable '%s' is stored with loss",
                    i, m->var[l->number].spec.name);
    CRN_TRY(crn_mark_read(part, m, &m->var[l->number], first, last - first + 1, data, NULL));
    digest_leaf(l->v, leaf, data + off % tv->block);
    return CAIRN_OK;
}

/* Digests of the leaves that a variable has from the mark before; what the trees before do not tell
 * is read. */
static cairn_status inherit(cairn *c, size_t number, tree_var *tv)
{
    const tree_look l = {c->leg.job.draft, number, tv, NULL};
    const crn_var_spec *spec = &crn_draft_mark(c->leg.job.draft)->var[number].spec;
    const crn_trees_var *base = find_alike(base_of(c), spec, tv);
    const crn_trees_var *last = tv->exact ? NULL : find_alike(c->leg.trees->last, spec, tv);
    unsigned char *data = NULL;
    cairn_status rc = CAIRN_OK;
    for (uint64_t i = 0; i < tv->nleaves && rc == CAIRN_OK; i++) {
        if ((tv->seen && has_bit(tv->seen, i)) || !is_inherited(&l, i))
            continue;
        if (base && i < base->var.nblocks &&
            crn_var_block_bytes(&base->var, i) == leaf_bytes(tv, i))
            take_over(base, tv, i);
        else if (last && has_leaf(last, i, crn_draft_inherited(c->leg.job.draft, number, i)))
            take_over(last, tv, i);
        else if (data || (rc = crn_io_memory(CRN_MAX(tv->leaf, tv->block), &data)) == CAIRN_OK)
            rc = read_leaf(c, &l, i, data);
    }
    free(data);
    return rc;
}

static cairn_status open_file(cairn *c)
{
    ckpt_trees *t = c->leg.trees;
    if (t->file)
        return CAIRN_OK;
    CRN_TRY(crn_run_trees(c->held.run, (uint32_t)crn_comm_rank(c->held.comm), true, &t->file));
    const size_t n = crn_trees_nmarks(t->file);
    if (n == 0)
        return CAIRN_OK;
    crn_trees_mark *last = crn_trees_at(t->file, n - 1);
    for (size_t i = 0; i < last->nvars; i++)
        (void)crn_trees_load(t->file, last, &last->var[i]); /* what is damaged is made anew */
    t->last = t->stored = last;
    return CAIRN_OK;
}

/* The exact tree over digests of blocks. */
static cairn_status tree_of_table(const crn_var *v, crn_tree *ret)
{
    crn_digest *leaf;
    CRN_TRY(crn_alloc(&leaf, v->nblocks));
    for (uint64_t b = 0; b < v->nblocks; b++)
        leaf[b] = v->table[b].origin;
    cairn_status rc = crn_tree_build(leaf, v->nblocks, ret);
    free(leaf);
    return rc;
}

/* The declaration of a variable for trees: its blocks are leaves. */
static cairn_status declare(crn_trees_var *v, const crn_var_spec *spec, const tree_var *tv)
{
    crn_var_spec leaves = *spec;
    leaves.block = tv->leaf;
    return crn_trees_declare(v, &leaves, tv->members);
}

/* Declarations, and exact leaves where they are the part's: both are lost with the draft. */
static cairn_status outline(cairn *c, crn_trees_mark **ret)
{
    const crn_mark *m = crn_draft_mark(c->leg.job.draft);
    crn_trees_mark *made;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trees_mark_create(m->nvars, &made));
    made->version = c->leg.job.version;
    made->wall_ns = c->leg.job.wall_ns;
    made->series = c->held.series;
    made->nranks = (uint32_t)crn_comm_size(c->held.comm);
    for (size_t i = 0; i < m->nvars; i++) {
        const tree_var *tv = &c->leg.trees->var.at[i];
        CRN_TRY_OUT(rc, declare(&made->var[i], &m->var[i].spec, tv));
        if (!tv->exact)
            CRN_TRY_OUT(rc, tree_of_table(&m->var[i], &made->var[i].exact));
    }
    CRN_TRY_OUT(rc, crn_trees_index(made));
    *ret = made;
    return CAIRN_OK;
out:
    crn_trees_mark_free(made);
    return rc;
}

static cairn_status prepare(cairn *c, crn_trees_mark **ret)
{
    ckpt_trees *t = c->leg.trees;
    CRN_TRY(open_file(c));
    for (size_t i = 0; i < t->var.n; i++)
        if (t->var.at[i].digester)
            CRN_TRY(inherit(c, i, &t->var.at[i]));
    return outline(c, ret);
}

crn_trees_mark *crn_ckpt_trees_prepare(cairn *c)
{
    crn_trees_mark *made = NULL;
    if (c->leg.trees && c->leg.trees->err.code == 0)
        note(c->leg.trees, prepare(c, &made));
    return made;
}

/* --- after it: the file ---------------------------------------------------------------------- */

static uint64_t count_bits(const unsigned char *bits, uint64_t n)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++)
        count += has_bit(bits, i);
    return count;
}

/* All digests are there now: make the trees. */
static cairn_status complete(ckpt_trees *t, crn_trees_mark *made)
{
    for (size_t i = 0; i < made->nvars; i++) {
        crn_trees_var *v = &made->var[i];
        tree_var *tv = &t->var.at[i];
        if (tv->exact)
            CRN_TRY(crn_tree_build(tv->exact, tv->nleaves, &v->exact));
        v->var.root = crn_tree_root(&v->exact);
        CRN_TRY(crn_trees_make_room(v, tv->nbounds));
        for (; v->nbounds < tv->nbounds; v->nbounds++) {
            const size_t k = v->nbounds;
            v->bound[k] = tv->bound[k];
            CRN_TRY(crn_tree_build(tv->tolerant[k], v->var.nblocks, &v->tolerant[k]));
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
    if (c->leg.trees->failing)
        return;
    c->leg.trees->failing = true;
    crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_EACH, "mark %" PRIu64 " has no trees: %s",
                  c->leg.job.version, c->leg.trees->err.text);
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_FAILED,
                                             .failed = {.version = c->leg.job.version,
                                                        .level = "trees",
                                                        .text = c->leg.trees->err.text}});
}

void crn_ckpt_trees_finish(cairn *c, crn_trees_mark *made, bool stored)
{
    ckpt_trees *t = c->leg.trees;
    if (!t)
        return;
    if (stored && t->err.code == 0)
        note(t, complete(t, made));
    if (t->err.code < 0) {
        say_failure(c);
        crn_trees_mark_free(made);
    } else if (stored) {
        t->failing = false;
        crn_trees_mark_free(t->kept);
        crn_trees_mark_free(t->made);
        t->kept = NULL;
        t->last = t->stored = t->made = made;
    } else {
        crn_trees_mark_free(made);
    }
    forget_vars(t);
}

/* --- marks that are all trees ----------------------------------------------------------------- */

/* Digest a leaf; for bounds only what the trees before do not tell. */
static void digest_alone(tree_var *tv, const crn_trees_var *old, uint64_t i,
                         const unsigned char *data)
{
    tv->exact[i] = crn_digest_of(data, leaf_bytes(tv, i));
    if (has_leaf(old, i, &tv->exact[i]))
        take_over(old, tv, i);
    else if (tv->nbounds > 0)
        digest_leaf(tv, i, data);
}

static cairn_status digest_stretch(void *arg, uint64_t i, const unsigned char *data, size_t nbytes)
{
    const tree_look *l = arg;
    (void)nbytes;
    digest_alone(l->v, l->old, i, data);
    return CAIRN_OK;
}

/* Digest the copy of variable i. */
static void digest_copy(ckpt_trees *t, size_t i)
{
    tree_var *tv = &t->var.at[i];
    const crn_trees_var *old = find_alike(t->last, &t->alone->var[i].var.spec, tv);
    for (uint64_t k = 0; k < tv->nleaves; k++)
        digest_alone(tv, old, k, tv->copy + k * tv->leaf);
}

/* Values that there is no room for are digested while the program waits. */
static cairn_status digest_now(ckpt_trees *t, size_t i, const ckpt_var *v)
{
    tree_look l = {.v = &t->var.at[i]};
    l.old = find_alike(t->last, &t->alone->var[i].var.spec, l.v);
    return crn_ckpt_each_stretch(v, l.v->leaf, digest_stretch, &l);
}

/* Room for the values of all variables, as far as the configuration allows it and there is memory;
 * none is needed when the program waits anyhow. */
static void make_room(cairn *c)
{
    ckpt_trees *t = c->leg.trees;
    uint64_t wanted = 0;
    for (size_t i = 0; i < c->var.n; i++)
        wanted += c->var.at[i].nbytes;
    wanted = CRN_MIN(wanted, crn_config_nbytes(c->held.cfg, CRN_OPT_MARK_STAGING));
    if (!c->engine.running || wanted <= t->room_bytes)
        return;
    free(t->room);
    t->room = NULL;
    t->room_bytes = crn_io_memory(wanted, &t->room) == CAIRN_OK ? wanted : 0;
}

static cairn_status capture_var(cairn *c, size_t i, size_t *used)
{
    ckpt_trees *t = c->leg.trees;
    const ckpt_var *v = &c->var.at[i];
    const crn_var_spec spec = crn_ckpt_spec(v);
    CRN_TRY(add_var(c, v, true));
    CRN_TRY(declare(&t->alone->var[i], &spec, &t->var.at[i]));
    c->leg.job.nbytes += v->nbytes;
    if (!c->engine.running || v->nbytes > t->room_bytes - *used)
        return digest_now(t, i, v);
    if (v->nbytes == 0)
        return CAIRN_OK;
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
    ckpt_trees *t = c->leg.trees;
    size_t used = 0;
    forget_vars(t);
    make_room(c);
    CRN_TRY(crn_trees_mark_create(c->var.n, &t->alone));
    t->alone->version = c->leg.job.version;
    t->alone->wall_ns = c->leg.job.wall_ns;
    t->alone->series = c->held.series;
    t->alone->nranks = (uint32_t)crn_comm_size(c->held.comm);
    for (size_t i = 0; i < c->var.n; i++)
        CRN_TRY(capture_var(c, i, &used));
    return crn_trees_index(t->alone);
}

static cairn_status store_alone(cairn *c)
{
    ckpt_trees *t = c->leg.trees;
    CRN_TRY(open_file(c));
    for (size_t i = 0; i < t->var.n; i++)
        if (t->var.at[i].copy)
            digest_copy(t, i);
    CRN_TRY(complete(t, t->alone));
    if (t->stored && t->stored == t->made)
        t->kept = t->made; /* what was kept before went when that was made */
    else
        crn_trees_mark_free(t->made);
    t->last = t->made = t->alone;
    t->alone = NULL;
    return CAIRN_OK;
}

cairn_status crn_ckpt_trees_store(cairn *c)
{
    cairn_status rc = store_alone(c);
    forget_vars(c->leg.trees);
    return rc;
}

uint64_t crn_ckpt_trees_version(const cairn *c)
{
    return c->leg.trees && c->leg.trees->made ? c->leg.trees->made->version : CRN_NO_VERSION;
}

crn_trees_mark *crn_ckpt_trees_made(cairn *c)
{
    crn_trees_mark *made = c->leg.trees ? c->leg.trees->made : NULL;
    return made && made->version == c->leg.job.version && made->wall_ns == c->leg.job.wall_ns
               ? made
               : NULL;
}

cairn_status crn_ckpt_trees_create(const crn_config *cfg, ckpt_trees **ret)
{
    *ret = NULL;
    return crn_config_bool(cfg, CRN_OPT_COMPARE_TREES) ? crn_alloc(ret, 1) : CAIRN_OK;
}
