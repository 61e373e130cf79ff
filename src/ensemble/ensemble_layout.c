/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_layout.h"

#include <math.h>

#define STATE_MAX (UINT64_C(1) << 46) /* bytes; more is no state but a damaged message */

/* --- on the wire ---------------------------------------------------------------------------- */

void crn_fields_put(crn_buf *b, const crn_state_fields *fields)
{
    crn_put_u32(b, (uint32_t)fields->n);
    for (size_t i = 0; i < fields->n; i++) {
        const crn_state_field *f = &fields->at[i];
        crn_put_str(b, f->name);
        crn_put_u32(b, (uint32_t)f->role);
        crn_put_u32(b, f->type);
        crn_put_u32(b, (uint32_t)f->ndims);
        for (int d = 0; d < f->ndims; d++) {
            crn_put_u64(b, f->global[d]);
            crn_put_u64(b, f->offset[d]);
            crn_put_u64(b, f->count[d]);
        }
    }
}

static void get_dims(crn_cursor *c, crn_state_field *f)
{
    uint64_t nbytes = cairn_type_bytes(f->type);
    for (int d = 0; d < f->ndims; d++) {
        f->global[d] = crn_get_u64(c);
        f->offset[d] = crn_get_u64(c);
        f->count[d] = crn_get_u64(c);
        crn_cursor_expect(c, f->global[d] > 0 && f->count[d] <= f->global[d] &&
                                 f->offset[d] <= f->global[d] - f->count[d]);
        crn_cursor_expect(c, !__builtin_mul_overflow(nbytes, f->global[d], &nbytes) &&
                                 nbytes <= STATE_MAX);
        if (c->failed)
            return;
    }
}

static void get_field(crn_cursor *c, crn_state_field *f)
{
    *f = (crn_state_field){0};
    crn_get_str(c, f->name, sizeof f->name - 1);
    f->role = (cairn_role)crn_get_u32(c);
    f->type = crn_get_u32(c);
    const uint32_t ndims = crn_get_u32(c);
    crn_cursor_expect(c, crn_name_is_safe(f->name));
    crn_cursor_expect(c, f->role >= CAIRN_ASSIMILATED && f->role <= CAIRN_PARAMETER);
    crn_cursor_expect(c, f->role == CAIRN_CARRIED
                             ? cairn_type_bytes(f->type) > 0
                             : f->type == CAIRN_FLOAT32 || f->type == CAIRN_FLOAT64);
    crn_cursor_expect(c, ndims >= 1 && ndims <= 8);
    f->ndims = c->failed ? 0 : (int)ndims;
    if (!c->failed)
        get_dims(c, f);
}

cairn_status crn_fields_get(const void *data, size_t n, crn_state_fields *ret)
{
    crn_cursor c = crn_cursor_of(data, n);
    crn_state_fields fields = {0};
    crn_state_field f;
    uint32_t count = crn_get_u32(&c);
    crn_cursor_expect(&c, count >= 1 && count <= CRN_MEMBER_FIELDS);
    cairn_status rc = CAIRN_OK;
    for (uint32_t i = 0; rc == CAIRN_OK && !c.failed && i < count; i++) {
        get_field(&c, &f);
        rc = crn_vec_push(&fields, f);
    }
    crn_cursor_expect(&c, c.n == 0);
    if (rc == CAIRN_OK)
        rc = crn_cursor_status(&c, "a message with fields");
    if (rc < 0)
        crn_vec_done(&fields);
    else
        *ret = fields;
    return rc;
}

/* --- layouts -------------------------------------------------------------------------------- */

static uint64_t volume(const crn_state_field *f, const uint64_t *count)
{
    uint64_t n = 1;
    for (int d = 0; d < f->ndims; d++)
        n *= count[d];
    return n;
}

uint64_t crn_field_nbytes(const crn_state_field *f)
{
    return volume(f, f->count) * cairn_type_bytes(f->type);
}

cairn_status crn_layout_init(crn_state_layout *l, const crn_state_fields *fields)
{
    *l = (crn_state_layout){0};
    for (size_t i = 0; i < fields->n; i++) {
        crn_state_field f = fields->at[i];
        memset(f.offset, 0, sizeof f.offset);
        memcpy(f.count, f.global, sizeof f.count);
        f.at = l->nbytes;
        f.low = -INFINITY;
        f.high = INFINITY;
        cairn_status rc = crn_vec_push(&l->field, f);
        l->nbytes += CRN_ROUND_UP(crn_field_nbytes(&f), UINT64_C(8));
        l->nrows += f.role == CAIRN_CARRIED ? 0 : volume(&f, f.global);
        if (rc == CAIRN_OK && l->nbytes > STATE_MAX)
            rc = crn_fail(CAIRN_EINVAL, "a state of more than %llu bytes",
                          (unsigned long long)STATE_MAX);
        if (rc < 0) {
            crn_layout_done(l);
            return rc;
        }
    }
    l->end = l->nbytes;
    return CAIRN_OK;
}

void crn_layout_done(crn_state_layout *l)
{
    crn_vec_done(&l->field);
    *l = (crn_state_layout){0};
}

cairn_status crn_layout_check(const crn_state_layout *l, const crn_state_fields *f)
{
    CRN_FAIL_IF(f->n != l->field.n, CAIRN_EMISMATCH, "it declares %zu fields, the study has %zu",
                f->n, l->field.n);
    for (size_t i = 0; i < f->n; i++) {
        const crn_state_field *is = &f->at[i], *should = &l->field.at[i];
        CRN_FAIL_IF(strcmp(is->name, should->name) != 0, CAIRN_EMISMATCH,
                    "its field %zu is '%s', the study's is '%s'", i, is->name, should->name);
        CRN_FAIL_IF(is->role != should->role || is->type != should->type ||
                        is->ndims != should->ndims ||
                        memcmp(is->global, should->global, sizeof is->global) != 0,
                    CAIRN_EMISMATCH, "its field '%s' has another role, type or shape", is->name);
    }
    return CAIRN_OK;
}

/* --- rows ----------------------------------------------------------------------------------- */

double crn_element(const unsigned char *at, cairn_type type, uint64_t i)
{
    return type == CAIRN_FLOAT64 ? ((const double *)(const void *)at)[i]
                                 : ((const float *)(const void *)at)[i];
}

void crn_rows_read(const crn_state_layout *l, const unsigned char *state, double *row)
{
    for (size_t k = 0; k < l->field.n; k++) {
        const crn_state_field *f = &l->field.at[k];
        for (uint64_t i = 0, n = volume(f, f->global); f->role != CAIRN_CARRIED && i < n; i++)
            *row++ = crn_element(state + f->at, f->type, i);
    }
}

void crn_rows_write(const crn_state_layout *l, const double *row, unsigned char *state)
{
    for (size_t k = 0; k < l->field.n; k++) {
        const crn_state_field *f = &l->field.at[k];
        void *at = state + f->at;
        for (uint64_t i = 0, n = volume(f, f->global); f->role != CAIRN_CARRIED && i < n; i++)
            if (f->type == CAIRN_FLOAT64)
                ((double *)at)[i] = *row++;
            else
                ((float *)at)[i] = (float)*row++;
    }
}

bool crn_rows_find_bad(const crn_state_layout *l, const unsigned char *slice, char *name,
                       size_t cap)
{
    uint64_t first, end;
    for (size_t k = 0; k < l->field.n; k++) {
        const crn_state_field *f = &l->field.at[k];
        crn_slice_range(l, k, &first, &end);
        for (uint64_t i = first; f->role != CAIRN_CARRIED && i < end; i++) {
            const double x = crn_element(slice + crn_slice_at(l, k, first), f->type, i - first);
            if (isfinite(x) && x >= f->low && x <= f->high)
                continue;
            if (isfinite(x))
                snprintf(name, cap, "element %llu of field '%s' is %g, out of its range %g to %g",
                         (unsigned long long)i, f->name, x, f->low, f->high);
            else
                snprintf(name, cap, "element %llu of field '%s' is not finite",
                         (unsigned long long)i, f->name);
            return true;
        }
    }
    return false;
}

bool crn_row_of(const crn_state_layout *l, const char *field, uint64_t index, uint64_t *ret)
{
    uint64_t row = 0;
    for (size_t k = 0; k < l->field.n; k++) {
        const crn_state_field *f = &l->field.at[k];
        if (f->role == CAIRN_CARRIED)
            continue;
        uint64_t n = volume(f, f->global);
        if (strcmp(f->name, field) == 0 && index < n) {
            *ret = row + index;
            return true;
        }
        row += n;
    }
    return false;
}

cairn_field crn_layout_field(const crn_state_layout *l, size_t i, const unsigned char *state)
{
    const crn_state_field *f = &l->field.at[i];
    cairn_field ret = {
        .name = f->name, .data = (void *)(state + f->at), .type = f->type, .ndims = f->ndims};
    memcpy(ret.global, f->global, sizeof ret.global);
    memcpy(ret.count, f->global, sizeof ret.count);
    return ret;
}
