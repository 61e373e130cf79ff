/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slices of states, and what of a runner's pieces is in them. A box of an array, walked with its
 * last index fastest, meets the array's elements in ascending order: what of it lies between two
 * elements is one stretch of the box's own elements, too. So a runner sends and receives its parts
 * where they lie.
 */
#include "ensemble/ensemble_layout.h"

static uint64_t volume(int ndims, const uint64_t *count)
{
    uint64_t n = 1;
    for (int d = 0; d < ndims; d++)
        n *= count[d];
    return n;
}

static uint64_t nelements(const crn_state_field *f)
{
    return volume(f->ndims, f->global);
}

static uint64_t nstretches(const crn_state_field *f)
{
    return (nelements(f) + CRN_LAYOUT_STRETCH - 1) / CRN_LAYOUT_STRETCH;
}

/* Where stretch number t begins, in bytes of the state. */
static uint64_t byte_of(const crn_state_layout *l, uint64_t t)
{
    for (size_t i = 0; i < l->field.n; i++) {
        const crn_state_field *f = &l->field.at[i];
        if (t < nstretches(f))
            return f->at + t * CRN_LAYOUT_STRETCH * cairn_type_bytes(f->type);
        t -= nstretches(f);
    }
    return l->nbytes;
}

void crn_layout_slice(crn_state_layout *l, uint32_t rank, uint32_t nranks)
{
    uint64_t all = 0;
    for (size_t i = 0; i < l->field.n; i++)
        all += nstretches(&l->field.at[i]);
    l->first = byte_of(l, all * rank / nranks);
    l->end = byte_of(l, all * (rank + 1) / nranks);
}

uint64_t crn_slice_nbytes(const crn_state_layout *l)
{
    return l->end - l->first;
}

/* The element at a byte of the state, or the nearest one of the field; ends are ends of stretches,
 * or behind the padding of a field. */
static uint64_t element_at(const crn_state_field *f, uint64_t byte)
{
    const uint64_t n = nelements(f), from = byte > f->at ? byte - f->at : 0;
    return CRN_MIN(n, from / cairn_type_bytes(f->type));
}

void crn_slice_range(const crn_state_layout *l, size_t field, uint64_t *ret_first,
                     uint64_t *ret_end)
{
    const crn_state_field *f = &l->field.at[field];
    *ret_first = element_at(f, l->first);
    *ret_end = element_at(f, l->end);
}

uint64_t crn_slice_at(const crn_state_layout *l, size_t field, uint64_t element)
{
    const crn_state_field *f = &l->field.at[field];
    const uint64_t byte = f->at + element * cairn_type_bytes(f->type);
    return byte > l->first ? byte - l->first : 0;
}

/* --- boxes ---------------------------------------------------------------------------------- */

/* The largest box that begins with an element and ends before another: all of the last dimensions,
 * a number of planes of one, and one index of those before it. */
static uint64_t largest(const crn_state_field *f, uint64_t at, uint64_t end, cairn_field *box)
{
    uint64_t stride = 1, index[8] = {0}, rest = at;
    int d = f->ndims - 1;
    for (int k = d; k >= 0; k--) {
        index[k] = rest % f->global[k];
        rest /= f->global[k];
    }
    while (d > 0 && index[d] == 0 && at + stride * f->global[d] <= end)
        stride *= f->global[d--];
    for (int k = 0; k < f->ndims; k++) {
        box->offset[k] = k > d ? 0 : index[k];
        box->count[k] = k > d ? f->global[k] : 1;
    }
    box->count[d] = CRN_MIN((end - at) / stride, f->global[d] - index[d]);
    return stride * box->count[d];
}

size_t crn_slice_boxes(const crn_state_layout *l, size_t field, const unsigned char *slice,
                       cairn_field *box)
{
    const crn_state_field *f = &l->field.at[field];
    uint64_t at, end;
    size_t n = 0;
    crn_slice_range(l, field, &at, &end);
    while (at < end) {
        cairn_field *b = &box[n++];
        *b = (cairn_field){.name = f->name,
                           .data = (void *)(slice + crn_slice_at(l, field, at)),
                           .type = f->type,
                           .ndims = f->ndims};
        memcpy(b->global, f->global, sizeof b->global);
        at += largest(f, at, end, b);
    }
    return n;
}

/* --- parts ---------------------------------------------------------------------------------- */

/* How many elements of a piece come before an element of the global array. */
static uint64_t count_before(const crn_state_field *p, uint64_t element)
{
    uint64_t before = 0, inside = 1, rest = element, index[8] = {0};
    for (int d = p->ndims - 1; d >= 0; d--) {
        index[d] = rest % p->global[d];
        rest /= p->global[d];
    }
    if (rest > 0) /* behind the last one */
        return volume(p->ndims, p->count);
    for (int d = 0; d < p->ndims; d++)
        inside *= p->count[d];
    for (int d = 0; d < p->ndims && inside > 0; d++) {
        inside /= p->count[d]; /* of one index of this dimension */
        if (index[d] < p->offset[d])
            return before;
        if (index[d] >= p->offset[d] + p->count[d])
            return before + p->count[d] * inside;
        before += (index[d] - p->offset[d]) * inside;
    }
    return before;
}

void crn_part_range(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                    uint64_t *ret_first, uint64_t *ret_end)
{
    uint64_t first, end;
    crn_slice_range(l, field, &first, &end);
    *ret_first = count_before(piece, first);
    *ret_end = CRN_MAX(*ret_first, count_before(piece, end));
}

uint64_t crn_part_nbytes(const crn_state_layout *l, size_t field, const crn_state_field *piece)
{
    uint64_t first, end;
    crn_part_range(l, field, piece, &first, &end);
    return (end - first) * cairn_type_bytes(piece->type);
}

/* Copy between the part and the slice, stretch by stretch of the piece. */
static void copy_part(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                      unsigned char *data, unsigned char *slice, bool into)
{
    const uint32_t ndims = (uint32_t)piece->ndims;
    const crn_box box = crn_box_of(ndims, piece->offset, piece->count);
    const crn_box all = crn_box_of(ndims, NULL, piece->global);
    const size_t item = cairn_type_bytes(piece->type);
    uint64_t first, end;
    crn_part_range(l, field, piece, &first, &end);
    if (first == end)
        return;
    crn_stretches walk = crn_stretches_of(&box, &box, &all);
    while (crn_stretches_next(&walk) && walk.from < end) {
        const uint64_t skip = walk.from < first ? first - walk.from : 0;
        if (skip >= walk.n)
            continue;
        const uint64_t n = CRN_MIN(walk.n, end - walk.from) - skip;
        unsigned char *at = data + (walk.from + skip - first) * item;
        unsigned char *in = slice + crn_slice_at(l, field, walk.to + skip);
        memcpy(into ? in : at, into ? at : in, n * item);
    }
}

void crn_part_read(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                   const unsigned char *slice, void *data)
{
    copy_part(l, field, piece, data, (unsigned char *)slice, false);
}

void crn_part_write(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                    const void *data, unsigned char *slice)
{
    copy_part(l, field, piece, (unsigned char *)data, slice, true);
}
