/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_rows.h"

static uint64_t nelements(const uint64_t *size, int ndims)
{
    uint64_t n = 1;
    for (int d = 0; d < ndims; d++)
        n *= size[d];
    return n;
}

void crn_piece_rows(const crn_state_field *piece, uint64_t first, crn_row_fn *fn, void *arg)
{
    const int last = piece->ndims - 1;
    const uint64_t n = nelements(piece->count, piece->ndims);
    uint64_t at[8] = {0};
    for (size_t i = 0; i < n;) {
        uint64_t index = 0;
        for (int d = 0; d <= last; d++)
            index = index * piece->global[d] + piece->offset[d] + at[d];
        for (uint64_t k = 0; k < piece->count[last]; k++, i++)
            fn(arg, first + index + k, i);
        for (int d = last - 1; d >= 0 && ++at[d] == piece->count[d]; d--)
            at[d] = 0;
    }
}

cairn_status crn_layout_first_rows(const crn_state_layout *l, uint64_t **ret)
{
    uint64_t row = 0;
    CRN_TRY(crn_alloc(ret, l->field.n));
    for (size_t f = 0; f < l->field.n; f++) {
        const crn_state_field *field = &l->field.at[f];
        const bool carried = field->role == CAIRN_CARRIED;
        (*ret)[f] = carried ? UINT64_MAX : row;
        row += carried ? 0 : nelements(field->global, field->ndims);
    }
    return CAIRN_OK;
}

double crn_element_get(cairn_type type, const void *data, size_t at)
{
    return type == CAIRN_FLOAT32 ? ((const float *)data)[at] : ((const double *)data)[at];
}

void crn_element_set(cairn_type type, void *data, size_t at, double value)
{
    if (type == CAIRN_FLOAT32)
        ((float *)data)[at] = (float)value;
    else
        ((double *)data)[at] = value;
}
