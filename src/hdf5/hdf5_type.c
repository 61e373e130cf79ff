/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of elements in HDF5's terms. A structure has its members by name, arrays as arrays.
 */
#include "hdf5/hdf5.h"

#include <cairn/type.h>

/* HDF5's number of a scalar; bytes are shown as numbers. -1 for what is none. */
static hid_t scalar(const crn_h5 *h5, cairn_type type)
{
    switch (type) {
    case CAIRN_INT8:
        return h5->H5T_NATIVE_INT8_g;
    case CAIRN_INT16:
        return h5->H5T_NATIVE_INT16_g;
    case CAIRN_INT32:
        return h5->H5T_NATIVE_INT32_g;
    case CAIRN_INT64:
        return h5->H5T_NATIVE_INT64_g;
    case CAIRN_BYTES:
    case CAIRN_UINT8:
        return h5->H5T_NATIVE_UINT8_g;
    case CAIRN_UINT16:
        return h5->H5T_NATIVE_UINT16_g;
    case CAIRN_UINT32:
        return h5->H5T_NATIVE_UINT32_g;
    case CAIRN_UINT64:
        return h5->H5T_NATIVE_UINT64_g;
    case CAIRN_FLOAT32:
        return h5->H5T_NATIVE_FLOAT_g;
    case CAIRN_FLOAT64:
        return h5->H5T_NATIVE_DOUBLE_g;
    default:
        return -1;
    }
}

/* --- to HDF5 ------------------------------------------------------------------------------ */

/* A type to be closed; negative when HDF5 refuses. Types lie a few deep in each other. */
static hid_t make_type(const crn_h5 *h5, const crn_type_tree *t)
{
    if (t->scalar != 0)
        return h5->H5Tcopy(scalar(h5, t->scalar));
    hid_t type = h5->H5Tcreate(H5T_COMPOUND, t->nbytes);
    for (size_t i = 0; i < t->n && type >= 0; i++) {
        const crn_type_member *m = &t->member[i];
        const hsize_t count = m->count;
        hid_t inner = make_type(h5, m->type), array = -1;
        if (inner >= 0 && m->count > 0)
            array = h5->H5Tarray_create2(inner, 1, &count);
        const hid_t used = m->count > 0 ? array : inner;
        const bool ok = used >= 0 && h5->H5Tinsert(type, m->name, m->offset, used) >= 0;
        if (array >= 0)
            h5->H5Tclose(array);
        if (inner >= 0)
            h5->H5Tclose(inner);
        if (!ok) {
            h5->H5Tclose(type);
            type = -1;
        }
    }
    return type;
}

cairn_status crn_hdf5_type(const crn_h5 *h5, const char *text, hid_t *ret)
{
    crn_type_tree *tree;
    CRN_TRY(crn_type_parse(text, &tree));
    hid_t type = make_type(h5, tree);
    crn_type_free(tree);
    if (type < 0)
        return crn_hdf5_fail(h5, "type '%s' cannot be kept in HDF5", text);
    *ret = type;
    return CAIRN_OK;
}

/* --- from HDF5 ---------------------------------------------------------------------------- */

static cairn_status number_text(const crn_h5 *h5, hid_t type, char **ret)
{
    const bool real = h5->H5Tget_class(type) == H5T_FLOAT;
    const bool plus = !real && h5->H5Tget_sign(type) == H5T_SGN_NONE;
    const size_t bits = 8 * h5->H5Tget_size(type);
    char text[32];
    crn_type_tree *tree;
    snprintf(text, sizeof text, "%s%zu", real ? "float" : plus ? "uint" : "int", bits);
    CRN_FAIL_IF(crn_type_parse(text, &tree) < 0, CAIRN_EUNSUPPORTED, "there is no type %s", text);
    crn_type_free(tree);
    return crn_strdup(text, ret);
}

/* What an array consists of, and how many of them; anything else is one of itself. To be closed. */
static hid_t element_of(const crn_h5 *h5, hid_t type, size_t *ret_n)
{
    hsize_t dims[H5S_MAX_RANK];
    *ret_n = 1;
    if (h5->H5Tget_class(type) != H5T_ARRAY)
        return h5->H5Tcopy(type);
    const int ndims = h5->H5Tget_array_ndims(type);
    if (ndims > 0 && h5->H5Tget_array_dims2(type, dims) >= 0)
        for (int d = 0; d < ndims; d++)
            *ret_n *= dims[d];
    return h5->H5Tget_super(type);
}

/* One member of a structure; its name and the text of its type are to be freed. */
static cairn_status get_member(const crn_h5 *h5, hid_t type, unsigned i, crn_member_spec *ret)
{
    char *text, *name, *theirs = h5->H5Tget_member_name(type, i);
    size_t n;
    cairn_status rc = crn_strdup(theirs ? theirs : "", &name);
    h5->H5free_memory(theirs);
    CRN_TRY(rc);
    hid_t member = h5->H5Tget_member_type(type, i), element = element_of(h5, member, &n);
    h5->H5Tclose(member);
    const size_t item = h5->H5Tget_size(element);
    rc = crn_hdf5_type_text(h5, element, &text);
    h5->H5Tclose(element);
    if (rc < 0) {
        free(name);
        return rc;
    }
    *ret = (crn_member_spec){.name = name,
                             .offset = h5->H5Tget_member_offset(type, i),
                             .nbytes = n * item,
                             .type = text,
                             .item = item};
    return CAIRN_OK;
}

static cairn_status compound_text(const crn_h5 *h5, hid_t type, char **ret)
{
    const int n = h5->H5Tget_nmembers(type);
    crn_member_spec *member;
    cairn_status rc = CAIRN_OK;
    size_t found = 0;
    CRN_FAIL_IF(n < 1 || n > CRN_TYPE_MEMBERS, CAIRN_EUNSUPPORTED, "a structure of %d members", n);
    CRN_TRY(crn_alloc(&member, (size_t)n));
    while (found < (size_t)n && rc == CAIRN_OK) {
        rc = get_member(h5, type, (unsigned)found, &member[found]);
        found += rc == CAIRN_OK;
    }
    if (rc == CAIRN_OK)
        rc = crn_type_compose(h5->H5Tget_size(type), member, found, ret);
    if (rc == CAIRN_EINVAL) /* for example a name that a member cannot have */
        rc = crn_fail(CAIRN_EUNSUPPORTED, "its elements are no structures that Cairn knows");
    while (found-- > 0) {
        free((char *)member[found].name);
        free((char *)member[found].type);
    }
    free(member);
    return rc;
}

cairn_status crn_hdf5_type_text(const crn_h5 *h5, hid_t type, char **ret)
{
    const H5T_class_t class = h5->H5Tget_class(type);
    if (class == H5T_INTEGER || class == H5T_FLOAT)
        return number_text(h5, type, ret);
    if (class == H5T_COMPOUND)
        return compound_text(h5, type, ret);
    CRN_FAIL_IF(class != H5T_ENUM, CAIRN_EUNSUPPORTED, "its elements are no numbers");
    hid_t base = h5->H5Tget_super(type);
    cairn_status rc = number_text(h5, base, ret);
    h5->H5Tclose(base);
    return rc;
}
