/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of a state: as the store declares them, and what they digest to.
 */
#include "state/state_shelf.h"

#include <inttypes.h>

static cairn_status check_dims(const cairn_field *f)
{
    for (int d = 0; d < f->ndims; d++)
        CRN_FAIL_IF(f->offset[d] > f->global[d] || f->count[d] > f->global[d] - f->offset[d],
                    CAIRN_EINVAL,
                    "field '%s', dimension %d: %" PRIu64 " elements from %" PRIu64
                    " on are not within %" PRIu64,
                    f->name, d, f->count[d], f->offset[d], f->global[d]);
    return CAIRN_OK;
}

/* The size of a field's blocks. Where marks find it out from what changes, states have the usual
 * one: those of different writers are to be compared by their digests. */
static uint32_t block_of(const cairn_shelf *s, const char *name)
{
    enum { USUAL = 1 << 16 };
    const uint64_t n = crn_config_variable(s->cfg, CRN_OPT_VARIABLE_BLOCK, name).n;
    return n == UINT64_MAX ? USUAL : (uint32_t)n;
}

cairn_status crn_field_codec(const cairn_shelf *s, const char *name, crn_codec_setting *ret)
{
    const char *codec = crn_config_for_variable(s->cfg, CRN_OPT_VARIABLE_CODEC, name);
    const char *loss = crn_config_for_variable(s->cfg, CRN_OPT_VARIABLE_LOSS, name);
    CRN_TRY(crn_codec_parse(codec, loss, ret));
    CRN_FAIL_IF(crn_codec_is_lossy(ret), CAIRN_EINVAL,
                "field '%s': codec '%s' may lose something; states are stored without loss", name,
                codec);
    ret->flat = !crn_config_variable(s->cfg, CRN_OPT_VARIABLE_SHAPE, name).yes;
    return CAIRN_OK;
}

cairn_status crn_field_spec(const cairn_shelf *s, const cairn_field *f, crn_var_spec *ret)
{
    CRN_FAIL_IF(!f->name, CAIRN_EINVAL, "a field has no name");
    const size_t item = cairn_type_bytes(f->type);
    CRN_FAIL_IF(item == 0, CAIRN_EINVAL, "field '%s': there is no type %u", f->name, f->type);
    CRN_FAIL_IF(f->ndims < 0 || f->ndims > CRN_DIMS_MAX, CAIRN_EINVAL,
                "field '%s' has %d dimensions, not 0 to %d", f->name, f->ndims, CRN_DIMS_MAX);
    CRN_TRY(check_dims(f));
    uint64_t n = f->ndims == 0 ? f->count[0] : 1;
    for (int d = 0; d < f->ndims; d++)
        CRN_FAIL_IF(__builtin_mul_overflow(n, f->count[d], &n), CAIRN_EINVAL,
                    "field '%s' is too large", f->name);
    CRN_FAIL_IF(n > INT64_MAX / item, CAIRN_EINVAL, "field '%s' is too large", f->name);
    CRN_FAIL_IF(n > 0 && !f->data, CAIRN_EINVAL, "field '%s' has no data", f->name);
    *ret = (crn_var_spec){.name = f->name,
                          .type = cairn_type_name(f->type),
                          .item = (uint32_t)item,
                          .block = block_of(s, f->name),
                          .nbytes = n * item,
                          .ndims = (uint32_t)f->ndims,
                          .global = f->global,
                          .offset = f->offset,
                          .count = f->count};
    return crn_var_spec_check(ret);
}

/* --- digests ------------------------------------------------------------------------------ */

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

cairn_status crn_memory_digest(const crn_var_spec *spec, const cairn_field *f, size_t n,
                               crn_digest *ret)
{
    crn_digest *root;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&root, n));
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++)
        rc = root_of(&spec[i], f[i].data, &root[i]);
    if (rc == CAIRN_OK)
        rc = crn_share_digest(spec, root, n, ret);
    free(root);
    return rc;
}

char *crn_state_digest_text(const crn_digest *d, char buf[STATE_DIGEST_TEXT])
{
    for (size_t i = 0; i < sizeof d->b; i++)
        snprintf(buf + 2 * i, 3, "%02x", d->b[i]);
    return buf;
}
