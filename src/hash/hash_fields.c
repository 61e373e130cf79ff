/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers within an element of a type: one for a scalar, those of its members for a structure.
 */
#include "hash/hash.h"

#include <cairn/type.h>

/* What is read off a type's description. */
typedef struct reading {
    crn_bound_fn *bound_of;
    const void *arg;
    char path[CRN_FIELD_PATH]; /* of the member that is read */
    size_t npath;
    crn_fields *to;
} reading;

static crn_value_kind kind_of(cairn_type scalar)
{
    return crn_value_kind_of(cairn_type_name(scalar));
}

static bool is_part(const crn_type_member *m, cairn_type scalar, uint32_t offset)
{
    return m->type->scalar == scalar && m->count == 0 && m->offset == offset;
}

/* A complex number is a structure of two floating-point numbers and nothing else that is called so.
 */
static bool is_complex(const crn_type_tree *t)
{
    static const char *const name[][2] = {{"r", "i"}, {"re", "im"}, {"real", "imag"}};
    if (t->scalar != 0 || t->n != 2)
        return false;
    const cairn_type part = t->member[0].type->scalar;
    if ((part != CAIRN_FLOAT32 && part != CAIRN_FLOAT64) ||
        t->nbytes != 2 * cairn_type_bytes(part) || !is_part(&t->member[0], part, 0) ||
        !is_part(&t->member[1], part, (uint32_t)cairn_type_bytes(part)))
        return false;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strcmp(t->member[0].name, name[i][0]) == 0 &&
            strcmp(t->member[1].name, name[i][1]) == 0)
            return true;
    return false;
}

static cairn_status add_number(reading *r, const crn_type_tree *t, uint32_t offset, uint32_t count)
{
    const bool pair = t->scalar == 0;
    crn_field f = {.kind = kind_of(pair ? t->member[0].type->scalar : t->scalar),
                   .is_complex = pair,
                   .offset = offset,
                   .item = t->nbytes,
                   .count = CRN_MAX(count, 1)};
    CRN_FAIL_IF(r->to->n == CRN_FIELDS_MAX, CAIRN_EUNSUPPORTED, "a type has more than %d numbers",
                CRN_FIELDS_MAX);
    f.bound = r->bound_of ? r->bound_of(r->arg, r->path) : (crn_bound){0};
    return crn_vec_push(r->to, f);
}

static cairn_status add_type(reading *r, const crn_type_tree *t, uint32_t offset, uint32_t count)
{
    if (t->scalar != 0 || is_complex(t))
        return add_number(r, t, offset, count);
    for (uint32_t i = 0; i < CRN_MAX(count, 1); i++)
        for (size_t k = 0; k < t->n; k++) {
            const crn_type_member *m = &t->member[k];
            const size_t before = r->npath;
            const int n = snprintf(r->path + before, sizeof r->path - before, "%s%s",
                                   before > 0 ? "." : "", m->name);
            r->npath = CRN_MIN(before + (size_t)n, sizeof r->path - 1);
            CRN_TRY(add_type(r, m->type, offset + i * t->nbytes + m->offset, m->count));
            r->npath = before;
            r->path[before] = 0;
        }
    return CAIRN_OK;
}

cairn_status crn_fields_read(const char *type, crn_bound_fn *bound_of, const void *arg,
                             crn_fields *ret)
{
    reading r = {.bound_of = bound_of, .arg = arg, .to = ret};
    crn_type_tree *t;
    ret->n = 0;
    CRN_TRY(crn_type_parse(type, &t));
    cairn_status rc = add_type(&r, t, 0, 0);
    crn_type_free(t);
    if (rc < 0)
        ret->n = 0;
    return rc;
}
