/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of a model: what may be declared.
 */
#include "ensemble/ensemble_member.h"

static cairn_status check_name(const cairn_ensemble *e, const char *name)
{
    CRN_FAIL_IF(!name || !crn_name_is_safe(name) || strlen(name) > 63, CAIRN_EINVAL,
                "a field's name '%s' is not 1 to 63 letters, digits, '.', '_', '-'",
                name ? name : "");
    for (size_t i = 0; i < e->field.n; i++)
        CRN_FAIL_IF(strcmp(e->field.at[i]->name, name) == 0, CAIRN_EINVAL,
                    "field '%s' was declared before", name);
    return CAIRN_OK;
}

static cairn_status check_type(cairn_role role, const cairn_field *f)
{
    CRN_FAIL_IF(role < CAIRN_ASSIMILATED || role > CAIRN_PARAMETER, CAIRN_EINVAL,
                "field '%s': role %d is none of <cairn/ensemble.h>", f->name, (int)role);
    CRN_FAIL_IF(cairn_type_bytes(f->type) == 0, CAIRN_EINVAL,
                "field '%s': type %u is none of <cairn/type.h>", f->name, (unsigned)f->type);
    CRN_FAIL_IF(role != CAIRN_CARRIED && f->type != CAIRN_FLOAT32 && f->type != CAIRN_FLOAT64,
                CAIRN_EINVAL,
                "field '%s' is of type '%s': observations change float32 and float64; "
                "declare it as carried",
                f->name, cairn_type_name(f->type));
    return CAIRN_OK;
}

static cairn_status check_piece(const cairn_field *f)
{
    uint64_t nbytes = cairn_type_bytes(f->type);
    CRN_FAIL_IF(f->ndims < 0 || f->ndims > 8, CAIRN_EINVAL,
                "field '%s' has %d dimensions: 0 to 8 are possible", f->name, f->ndims);
    for (int d = 0; d < f->ndims; d++) {
        CRN_FAIL_IF(f->global[d] == 0 || f->count[d] > f->global[d] ||
                        f->offset[d] > f->global[d] - f->count[d],
                    CAIRN_EINVAL, "field '%s': the piece is not within its array in dimension %d",
                    f->name, d);
        CRN_FAIL_IF(__builtin_mul_overflow(nbytes, f->global[d], &nbytes), CAIRN_EINVAL,
                    "field '%s' is larger than any memory", f->name);
    }
    return CAIRN_OK;
}

cairn_status crn_member_field_check(const cairn_ensemble *e, cairn_role role, const cairn_field *f)
{
    CRN_FAIL_IF(e->begun, CAIRN_EINVAL,
                "a field is declared after the first task; declare all before it");
    CRN_FAIL_IF(e->field.n == CRN_MEMBER_FIELDS, CAIRN_EINVAL, "more than %d fields",
                CRN_MEMBER_FIELDS);
    CRN_TRY(check_name(e, f->name));
    CRN_TRY(check_type(role, f));
    CRN_TRY(check_piece(f));
    uint64_t n = f->ndims > 0 ? 1 : f->count[0];
    for (int d = 0; d < f->ndims; d++)
        n *= f->count[d];
    CRN_FAIL_IF(n > 0 && !f->data, CAIRN_EINVAL, "field '%s' has elements here, but no data",
                f->name);
    return CAIRN_OK;
}
