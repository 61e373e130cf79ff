/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What states digest to: by it equal ones are recognised, on any shelf (docs/format/shelf.md).
 */
#include "state/state_shelf.h"

typedef struct by_name {
    const crn_var_spec *spec;
    const crn_digest *root;
} by_name;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const by_name *)a)->spec->name, ((const by_name *)b)->spec->name);
}

static void put_field(crn_buf *b, const by_name *f)
{
    const crn_var_spec *s = f->spec;
    crn_put_str(b, s->name);
    crn_put_str(b, s->type);
    crn_put_u32(b, s->block);
    crn_put_u64(b, s->nbytes);
    crn_put_u32(b, s->ndims);
    for (uint32_t d = 0; d < s->ndims; d++) {
        crn_put_u64(b, s->global[d]);
        crn_put_u64(b, s->offset[d]);
        crn_put_u64(b, s->count[d]);
    }
    const char *word = crn_layout_word(crn_layout_of(s));
    if (word) {
        crn_put_str(b, word);
        crn_put_u64(b, crn_layout_ncells(s));
    }
    crn_put_bytes(b, f->root->b, sizeof f->root->b);
}

/* The order in which a program names its fields does not matter. */
cairn_status crn_share_digest(const crn_var_spec *spec, const crn_digest *root, size_t n,
                              crn_digest *ret)
{
    by_name *f;
    crn_buf b = {0};
    CRN_TRY(crn_alloc(&f, n));
    for (size_t i = 0; i < n; i++)
        f[i] = (by_name){&spec[i], &root[i]};
    if (n > 0)
        qsort(f, n, sizeof *f, compare_names);
    for (size_t i = 0; i < n; i++)
        put_field(&b, &f[i]);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        *ret = crn_digest_of(b.at, b.n);
    crn_buf_done(&b);
    free(f);
    return rc;
}

crn_digest crn_shares_digest(const crn_digest *share, size_t n)
{
    return crn_digest_of(share, n * sizeof *share);
}

static cairn_status digest_of_roots(const crn_mark *m, bool drafted, crn_var_spec *spec,
                                    crn_digest *root, crn_digest *ret, uint64_t *ret_nbytes)
{
    *ret_nbytes = 0;
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var *v = &m->var[i];
        spec[i] = v->spec;
        if (crn_layout_of(&v->spec) != CRN_LAYOUT_INDEX) /* which is not the program's */
            *ret_nbytes += v->spec.nbytes;
        if (drafted)
            CRN_TRY(crn_var_root(v, &root[i]));
        else
            root[i] = v->root;
    }
    return crn_share_digest(spec, root, m->nvars, ret);
}

cairn_status crn_mark_digest(const crn_mark *m, bool drafted, crn_digest *ret, uint64_t *ret_nbytes)
{
    crn_var_spec *spec;
    crn_digest *root;
    CRN_TRY(crn_alloc(&spec, m->nvars));
    cairn_status rc = crn_alloc(&root, m->nvars);
    if (rc == CAIRN_OK) {
        rc = digest_of_roots(m, drafted, spec, root, ret, ret_nbytes);
        free(root);
    }
    free(spec);
    return rc;
}

static cairn_status root_of(const crn_var_spec *s, const unsigned char *data, crn_digest *ret)
{
    const uint64_t n = s->nbytes / s->block + (s->nbytes % s->block != 0);
    crn_digest *leaf;
    crn_tree tree;
    CRN_TRY(crn_alloc(&leaf, n));
    for (uint64_t i = 0; i < n; i++)
        leaf[i] = crn_digest_of(data + i * s->block,
                                CRN_MIN((uint64_t)s->block, s->nbytes - i * s->block));
    cairn_status rc = crn_tree_build(leaf, n, &tree);
    free(leaf);
    CRN_TRY(rc);
    *ret = crn_tree_root(&tree);
    crn_tree_done(&tree);
    return CAIRN_OK;
}

static cairn_status memory_digest(const state_vars *v, crn_var_spec *spec, crn_digest *root,
                                  crn_digest *ret)
{
    for (size_t i = 0; i < v->n; i++) {
        spec[i] = v->at[i].spec;
        CRN_TRY(root_of(&spec[i], v->at[i].data, &root[i]));
    }
    return crn_share_digest(spec, root, v->n, ret);
}

cairn_status crn_memory_digest(const state_vars *v, crn_digest *ret)
{
    crn_digest *root;
    crn_var_spec *spec;
    CRN_TRY(crn_alloc(&root, v->n));
    cairn_status rc = crn_alloc(&spec, v->n);
    if (rc == CAIRN_OK) {
        rc = memory_digest(v, spec, root, ret);
        free(spec);
    }
    free(root);
    return rc;
}

char *crn_state_digest_text(const crn_digest *d, char buf[STATE_DIGEST_TEXT])
{
    for (size_t i = 0; i < sizeof d->b; i++)
        snprintf(buf + 2 * i, 3, "%02x", d->b[i]);
    return buf;
}
