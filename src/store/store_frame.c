/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The variables of all ranks as arrays: pieces of a global array are one, and what each rank has
 * for itself becomes one, too, rank behind rank. Numbers only; nothing here knows a file.
 */
#include "store/store_format.h"

crn_array *crn_frame_find(const crn_frame *f, const char *name)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&f->name, crn_hash_text(name), &probe, &at);)
        if (strcmp(f->array.at[at].spec.name, name) == 0)
            return &f->array.at[at];
    return NULL;
}

static void array_done(crn_array *a)
{
    free((char *)a->spec.name);
    free((char *)a->spec.type);
    free((char *)a->spec.attributes);
    crn_vec_done(&a->piece);
}

void crn_frame_done(crn_frame *f)
{
    for (size_t i = 0; i < f->array.n; i++)
        array_done(&f->array.at[i]);
    crn_vec_done(&f->array);
    crn_index_done(&f->name);
}

static cairn_status new_array(crn_frame *f, const crn_var_spec *spec, crn_array **ret)
{
    crn_array a = {.by_rank = spec->ndims == 0, .ndims = spec->ndims, .spec = {.item = spec->item}};
    for (uint32_t d = 0; d < spec->ndims; d++)
        a.dims[d] = spec->global[d];
    CRN_TRY(crn_vec_reserve(&f->array, 1));
    CRN_TRY(crn_spec_copy_texts(spec, &a.spec));
    cairn_status rc = crn_index_add(&f->name, crn_hash_text(spec->name), f->array.n);
    if (rc < 0) {
        array_done(&a);
        return rc;
    }
    *ret = &f->array.at[f->array.n++];
    **ret = a;
    return CAIRN_OK;
}

static cairn_status check_same(const crn_array *a, uint32_t rank, const crn_var_spec *spec)
{
    CRN_FAIL_IF(strcmp(a->spec.type, spec->type) != 0 || a->spec.item != spec->item,
                CAIRN_EMISMATCH, "variable '%s' is of type %s on rank %u and of type %s on rank %u",
                spec->name, a->spec.type, a->piece.at[0].rank, spec->type, rank);
    CRN_FAIL_IF(a->ndims != spec->ndims, CAIRN_EMISMATCH,
                "variable '%s' has %u dimensions on rank %u and %u on rank %u", spec->name,
                a->ndims, a->piece.at[0].rank, spec->ndims, rank);
    for (uint32_t d = 0; d < spec->ndims; d++)
        CRN_FAIL_IF(a->dims[d] != spec->global[d], CAIRN_EMISMATCH,
                    "variable '%s', dimension %u: a global size of %" PRIu64
                    " on rank %u and of %" PRIu64 " on rank %u",
                    spec->name, d, a->dims[d], a->piece.at[0].rank, spec->global[d], rank);
    return CAIRN_OK;
}

cairn_status crn_frame_add(crn_frame *f, uint32_t rank, const crn_var_spec *spec)
{
    crn_array *a = crn_frame_find(f, spec->name);
    crn_piece piece = {.rank = rank, .nitems = spec->nbytes / spec->item};
    if (a)
        CRN_TRY(check_same(a, rank, spec));
    else
        CRN_TRY(new_array(f, spec, &a));
    if (a->piece.n > 0) {
        const crn_piece *before = &a->piece.at[a->piece.n - 1];
        piece.start = before->start + before->nitems;
    }
    for (uint32_t d = 0; d < spec->ndims; d++) {
        piece.offset[d] = spec->offset[d];
        piece.count[d] = spec->count[d];
    }
    return crn_vec_push(&a->piece, piece);
}

/* A list, also where all ranks happen to have as many: a shape that depends on counts is a trap. */
static void shape_by_rank(crn_array *a)
{
    const crn_piece *last = &a->piece.at[a->piece.n - 1];
    a->ndims = 1;
    a->dims[0] = last->start + last->nitems;
}

void crn_frame_seal(crn_frame *f)
{
    for (size_t i = 0; i < f->array.n; i++)
        if (f->array.at[i].by_rank)
            shape_by_rank(&f->array.at[i]);
}

uint32_t crn_array_place(const crn_array *a, uint32_t rank, uint64_t *ret_off)
{
    *ret_off = a->off;
    if (!a->by_rank)
        return CRN_OUTSIDE | CRN_OUTSIDE_ROWS;
    size_t lo = 0, hi = a->piece.n; /* pieces were added rank by rank */
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a->piece.at[mid].rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < a->piece.n && a->piece.at[lo].rank == rank)
        *ret_off += a->piece.at[lo].start * a->spec.item;
    return CRN_OUTSIDE;
}
