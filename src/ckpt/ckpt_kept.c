/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks that have less than all of a variable. Boxes are captured at different moments, and blocks
 * hold parts of several; so they are gathered in memory of the variable's size, of which the system
 * gives only the pages that are written to, and put when the mark is committed.
 */
#include "ckpt/ckpt_kept.h"

#include <inttypes.h>

/* What the open mark is to have of a variable. */
typedef struct ckpt_share {
    crn_kept kept;
    unsigned char *copy; /* of the variable's size, zeros but for the boxes; NULL: no box yet */
    char *lines;         /* the variable's, with the one that says so */
} ckpt_share;

void crn_share_forget(ckpt_var *v)
{
    if (!v->share)
        return;
    crn_vec_done(&v->share->kept.box);
    free(v->share->copy);
    free(v->share->lines);
    free(v->share);
    v->share = NULL;
}

/* --- capture --------------------------------------------------------------------------------- */

static cairn_status check_open(const cairn *c, const ckpt_var *v, const char *name)
{
    CRN_FAIL_IF(!c->leg.open, CAIRN_EINVAL, "no mark is open");
    CRN_FAIL_IF(!v || v->layout == CRN_LAYOUT_INDEX || v->layout == CRN_LAYOUT_HALO,
                CAIRN_ENOTFOUND, "no variable '%s' is protected", name);
    CRN_FAIL_IF(crn_ckpt_is_captured(c, v), CAIRN_EINVAL,
                "variable '%s' was captured before in this mark", name);
    CRN_FAIL_IF(
        (v->layout != CRN_LAYOUT_OWN && v->layout != CRN_LAYOUT_PIECE) || crn_ckpt_has_halo(v),
        CAIRN_EUNSUPPORTED,
        "variable '%s': items in cells, lists and pieces with a halo are marked as a whole", name);
    return CAIRN_OK;
}

static cairn_status begin_share(cairn *c, ckpt_var *v)
{
    if (v->share)
        return CAIRN_OK;
    c->small.listed = false;
    CRN_TRY(crn_alloc(&v->share, 1));
    v->share->kept.partial = true;
    v->share->kept.nelements = v->nbytes / v->item;
    return CAIRN_OK;
}

/* Is the box one of the variable, of the same extents as those before it? */
static cairn_status check_box(const ckpt_var *v, const cairn_box *b)
{
    uint64_t n = 1;
    CRN_FAIL_IF(b->ndims < 1 || b->ndims > CRN_DIMS_MAX, CAIRN_EINVAL,
                "variable '%s': a box has 1 to %d dimensions, not %d", v->name, CRN_DIMS_MAX,
                b->ndims);
    for (int d = 0; d < b->ndims; d++) {
        CRN_FAIL_IF(b->lo[d] > b->hi[d] || b->hi[d] > b->extent[d], CAIRN_EINVAL,
                    "variable '%s', dimension %d: there is no box from %" PRIu64 " to %" PRIu64
                    " of %" PRIu64,
                    v->name, d, b->lo[d], b->hi[d], b->extent[d]);
        CRN_FAIL_IF(__builtin_mul_overflow(n, b->extent[d], &n), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", v->name);
    }
    CRN_FAIL_IF(n != v->nbytes / v->item, CAIRN_EINVAL,
                "variable '%s' has %" PRIu64 " elements, and a box's array %" PRIu64, v->name,
                v->nbytes / v->item, n);
    CRN_FAIL_IF(v->layout == CRN_LAYOUT_PIECE &&
                    ((uint32_t)b->ndims != v->ndims ||
                     memcmp(b->extent, v->dims + 2 * v->ndims, v->ndims * sizeof *v->dims) != 0),
                CAIRN_EINVAL, "variable '%s': a box's array is the piece of the global one",
                v->name);
    return CAIRN_OK;
}

static cairn_status check_against_others(const ckpt_var *v, const cairn_box *b)
{
    const crn_kept *k = &v->share->kept;
    const crn_box mine = {.ndims = (uint32_t)b->ndims};
    crn_box own = mine, common;
    memcpy(own.lo, b->lo, sizeof own.lo);
    memcpy(own.hi, b->hi, sizeof own.hi);
    CRN_FAIL_IF(k->ndims > 0 && (k->ndims != own.ndims ||
                                 memcmp(k->extent, b->extent, k->ndims * sizeof *k->extent) != 0),
                CAIRN_EINVAL, "variable '%s': boxes of one mark have the same extents", v->name);
    for (size_t i = 0; i < k->box.n; i++) {
        crn_box other = mine;
        memcpy(other.lo, k->box.at[i].lo, sizeof other.lo);
        memcpy(other.hi, k->box.at[i].hi, sizeof other.hi);
        CRN_FAIL_IF(crn_box_cut(&own, &other, &common), CAIRN_EINVAL,
                    "variable '%s': boxes overlap in this mark", v->name);
    }
    return CAIRN_OK;
}

/* What is in the box of memory goes to its place among the variable's elements. */
static void copy_box(const ckpt_var *v, const crn_kept_box *b)
{
    crn_box piece, memory, box;
    crn_kept_place(v, &v->share->kept, NULL, &piece, &memory);
    if (!crn_kept_box_at(&v->share->kept, b, &piece, &box))
        return;
    crn_stretches s = crn_stretches_of(&box, &piece, &memory);
    while (crn_stretches_next(&s))
        memcpy(v->share->copy + s.from * v->item, (const unsigned char *)v->data + s.to * v->item,
               s.n * v->item);
}

static cairn_status add_box(ckpt_var *v, const cairn_box *b)
{
    crn_kept *k = &v->share->kept;
    crn_kept_box box;
    memcpy(box.lo, b->lo, sizeof box.lo);
    memcpy(box.hi, b->hi, sizeof box.hi);
    k->ndims = (uint32_t)b->ndims;
    memcpy(k->extent, b->extent, sizeof k->extent);
    for (int d = 0; d < b->ndims; d++)
        if (b->lo[d] == b->hi[d])
            return CAIRN_OK;
    if (!v->share->copy)
        CRN_TRY(crn_alloc(&v->share->copy, v->nbytes));
    CRN_TRY(crn_vec_push(&k->box, box));
    copy_box(v, &box);
    return CAIRN_OK;
}

static cairn_status capture_box(cairn *c, const char *name, const cairn_box *given)
{
    cairn_box box;
    ckpt_var *v = crn_ckpt_find(c, name);
    CRN_TRY(crn_struct_in(given, &box));
    CRN_TRY(check_open(c, v, name));
    CRN_TRY(check_box(v, &box));
    CRN_TRY(begin_share(c, v));
    CRN_TRY(check_against_others(v, &box));
    return add_box(v, &box);
}

int cairn_capture_box(cairn *c, const char *name, const cairn_box *box)
{
    CKPT_NEEDS_ALSO(c, name);
    CKPT_NEEDS_ALSO(c, box);
    const uint64_t start = crn_now_ns();
    cairn_status rc = capture_box(c, name, box);
    c->leg.job.held_ns += crn_now_ns() - start;
    return crn_ckpt_result(c, rc);
}

int cairn_omit(cairn *c, const char *name)
{
    CKPT_NEEDS_ALSO(c, name);
    ckpt_var *v = crn_ckpt_find(c, name);
    cairn_status rc = check_open(c, v, name);
    if (rc == CAIRN_OK)
        rc = begin_share(c, v);
    return crn_ckpt_result(c, rc);
}

cairn_status crn_share_view(const ckpt_var *v, ckpt_var *ret)
{
    ckpt_share *s = v->share;
    ckpt_var view = *v;
    crn_buf b = {0};
    crn_put_text(&b, "%s", v->lines ? v->lines : v->attributes);
    crn_kept_put(&b, &s->kept);
    crn_put_u8(&b, 0);
    cairn_status rc = crn_buf_status(&b);
    if (rc < 0) {
        crn_buf_done(&b);
        return rc;
    }
    free(s->lines);
    s->lines = view.lines = (char *)b.at;
    view.data = s->copy;
    view.padded = view.halo = false;
    view.share = NULL;
    view.change = (ckpt_change){0};
    view.seeks = false; /* what changes in marks like this says nothing of the whole */
    view.look = (crn_look){0};
    if (s->kept.box.n == 0) {
        view.nbytes = 0;
        view.dims[2 * (size_t)v->ndims] = 0; /* of a piece, the first count */
    }
    *ret = view;
    return CAIRN_OK;
}

/* --- coming back ------------------------------------------------------------------------------ */

void crn_kept_place(const ckpt_var *v, const crn_kept *k, const crn_box *piece, crn_box *ret_piece,
                    crn_box *ret_memory)
{
    if (v->layout == CRN_LAYOUT_PIECE) {
        const crn_var_spec spec = crn_ckpt_spec(v);
        *ret_piece = piece ? *piece : crn_far_piece(&spec);
        *ret_memory = v->memory;
    } else {
        *ret_piece = *ret_memory = crn_box_of(k->ndims, NULL, k->extent);
    }
}

bool crn_kept_box_at(const crn_kept *k, const crn_kept_box *b, const crn_box *piece, crn_box *ret)
{
    crn_box box = {.ndims = k->ndims};
    if (k->ndims != piece->ndims)
        return false;
    for (uint32_t d = 0; d < k->ndims; d++) {
        if (k->extent[d] != piece->hi[d] - piece->lo[d])
            return false;
        box.lo[d] = piece->lo[d] + b->lo[d];
        box.hi[d] = piece->lo[d] + b->hi[d];
    }
    *ret = box;
    return true;
}

cairn_status crn_kept_pull(crn_pulls *p, uint32_t rank, const ckpt_var *v, const crn_kept *k,
                           const crn_box *old_piece, const crn_box *wanted)
{
    crn_box piece, memory, box, common;
    crn_kept_place(v, k, old_piece, &piece, &memory);
    for (size_t i = 0; i < k->box.n; i++) {
        CRN_FAIL_IF(!crn_kept_box_at(k, &k->box.at[i], &piece, &box), CAIRN_EMISMATCH,
                    "variable '%s': what the mark keeps of it is of another shape", v->name);
        if (crn_box_cut(&box, wanted ? wanted : &piece, &common))
            CRN_TRY(crn_pulls_add_box(p, rank, v->name, 0, &common, &piece, &memory,
                                      (unsigned char *)v->data));
    }
    return CAIRN_OK;
}
