/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forms: what elements of any of HDF5's types consist of, so that two can be held against each
 * other without asking HDF5 about every element.
 */
#include "hdf5/hdf5.h"

enum { DEPTH_MAX = 16 };

static cairn_status form_of(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form **ret);

static cairn_status get_number(const crn_h5 *h5, hid_t type, crn_hdf5_form *f)
{
    f->kind = CRN_FORM_NUMBER;
    const bool real = h5->H5Tget_class(type) == H5T_FLOAT;
    const bool plus = !real && h5->H5Tget_sign(type) == H5T_SGN_NONE;
    snprintf(f->number, sizeof f->number, "%s%zu",
             real   ? "float"
             : plus ? "uint"
                    : "int",
             8 * f->nbytes);
    CRN_FAIL_IF(f->nbytes > (real ? sizeof(long double) : sizeof(int64_t)), CAIRN_EUNSUPPORTED,
                "there is no type %s", f->number);
    return CAIRN_OK;
}

/* The one form that an array, a sequence or an enumeration stands on. */
static cairn_status get_inner(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form *f)
{
    CRN_TRY(crn_alloc(&f->part, 1));
    f->nparts = 1;
    hid_t inner = h5->H5Tget_super(type);
    if (inner < 0)
        return crn_hdf5_fail(h5, "its type is not known");
    cairn_status rc = form_of(h5, inner, depth + 1, &f->part[0].form);
    h5->H5Tclose(inner);
    return rc;
}

static cairn_status get_array(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form *f)
{
    hsize_t dims[H5S_MAX_RANK];
    f->kind = CRN_FORM_ARRAY;
    f->count = 1;
    const int ndims = h5->H5Tget_array_ndims(type);
    if (ndims < 1 || h5->H5Tget_array_dims2(type, dims) < 0)
        return crn_hdf5_fail(h5, "its type is not known");
    for (int d = 0; d < ndims; d++)
        f->count *= dims[d];
    return get_inner(h5, type, depth, f);
}

static cairn_status get_part(const crn_h5 *h5, hid_t type, unsigned i, int depth,
                             crn_hdf5_part *part)
{
    char *theirs = h5->H5Tget_member_name(type, i);
    cairn_status rc = crn_strdup(theirs ? theirs : "", &part->name);
    h5->H5free_memory(theirs);
    CRN_TRY(rc);
    part->off = h5->H5Tget_member_offset(type, i);
    hid_t member = h5->H5Tget_member_type(type, i);
    if (member < 0)
        return crn_hdf5_fail(h5, "its type is not known");
    rc = form_of(h5, member, depth + 1, &part->form);
    h5->H5Tclose(member);
    return rc;
}

static cairn_status get_structure(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form *f)
{
    const int n = h5->H5Tget_nmembers(type);
    f->kind = CRN_FORM_STRUCTURE;
    CRN_FAIL_IF(n < 1, CAIRN_EUNSUPPORTED, "a structure of %d members", n);
    CRN_TRY(crn_alloc(&f->part, (size_t)n));
    for (f->nparts = 0; f->nparts < (size_t)n;) { /* also a half-made part is to be freed */
        const size_t i = f->nparts++;
        CRN_TRY(get_part(h5, type, (unsigned)i, depth, &f->part[i]));
    }
    return CAIRN_OK;
}

static cairn_status get_text(const crn_h5 *h5, hid_t type, crn_hdf5_form *f)
{
    f->kind = h5->H5Tis_variable_str(type) > 0 ? CRN_FORM_FREE_TEXT : CRN_FORM_TEXT;
    f->spaces = h5->H5Tget_strpad(type) == H5T_STR_SPACEPAD;
    return CAIRN_OK;
}

static cairn_status get_form(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form *f)
{
    CRN_FAIL_IF(depth > DEPTH_MAX, CAIRN_EUNSUPPORTED, "types lie more than %d deep in each other",
                DEPTH_MAX);
    f->nbytes = h5->H5Tget_size(type);
    switch (h5->H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
        return get_number(h5, type, f);
    case H5T_ENUM:
        f->kind = CRN_FORM_ENUM;
        return get_inner(h5, type, depth, f);
    case H5T_STRING:
        return get_text(h5, type, f);
    case H5T_COMPOUND:
        return get_structure(h5, type, depth, f);
    case H5T_ARRAY:
        return get_array(h5, type, depth, f);
    case H5T_VLEN:
        f->kind = CRN_FORM_SEQUENCE;
        return get_inner(h5, type, depth, f);
    case H5T_OPAQUE:
    case H5T_BITFIELD:
        f->kind = CRN_FORM_BYTES;
        return CAIRN_OK;
    case H5T_REFERENCE:
        f->kind = CRN_FORM_REFERENCE;
        CRN_FAIL_IF(h5->H5Tequal(type, h5->H5T_STD_REF_OBJ_g) <= 0, CAIRN_EUNSUPPORTED,
                    "its elements refer to regions of datasets");
        return CAIRN_OK;
    default:
        return crn_fail(CAIRN_EUNSUPPORTED, "its elements are of no type that is known");
    }
}

static cairn_status form_of(const crn_h5 *h5, hid_t type, int depth, crn_hdf5_form **ret)
{
    crn_hdf5_form *f;
    CRN_TRY(crn_alloc(&f, 1));
    cairn_status rc = get_form(h5, type, depth, f);
    if (rc == CAIRN_OK)
        *ret = f;
    else
        crn_hdf5_form_free(f);
    return rc;
}

cairn_status crn_hdf5_form_of(const crn_h5 *h5, hid_t type, crn_hdf5_form **ret)
{
    return form_of(h5, type, 0, ret);
}

void crn_hdf5_form_free(crn_hdf5_form *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->nparts; i++) {
        free(f->part[i].name);
        crn_hdf5_form_free(f->part[i].form);
    }
    free(f->part);
    free(f);
}

static bool is_text(const crn_hdf5_form *f)
{
    return f->kind == CRN_FORM_TEXT || f->kind == CRN_FORM_FREE_TEXT;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool crn_hdf5_form_like(const crn_hdf5_form *a, const crn_hdf5_form *b)
{
    if (is_text(a) && is_text(b)) /* text is text, however much room it has */
        return true;
    if (a->kind != b->kind || a->nparts != b->nparts || a->count != b->count ||
        strcmp(a->number, b->number) != 0)
        return false;
    if (a->kind == CRN_FORM_BYTES && a->nbytes != b->nbytes)
        return false;
    for (size_t i = 0; i < a->nparts; i++)
        if (!same_name(a->part[i].name, b->part[i].name) ||
            !crn_hdf5_form_like(a->part[i].form, b->part[i].form))
            return false;
    return true;
}

bool crn_hdf5_form_is_variable(const crn_hdf5_form *f)
{
    bool is = f->kind == CRN_FORM_FREE_TEXT || f->kind == CRN_FORM_SEQUENCE;
    for (size_t i = 0; i < f->nparts && !is; i++)
        is = crn_hdf5_form_is_variable(f->part[i].form);
    return is;
}

const char *crn_hdf5_form_word(const crn_hdf5_form *f)
{
    static const char *const word[] = {
        [CRN_FORM_ENUM] = "enumeration", [CRN_FORM_TEXT] = "text",
        [CRN_FORM_FREE_TEXT] = "text",   [CRN_FORM_STRUCTURE] = "structures",
        [CRN_FORM_ARRAY] = "arrays",     [CRN_FORM_SEQUENCE] = "sequences",
        [CRN_FORM_BYTES] = "opaque",     [CRN_FORM_REFERENCE] = "references",
    };
    return f->kind == CRN_FORM_NUMBER ? f->number : word[f->kind];
}
