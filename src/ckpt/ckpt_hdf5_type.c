/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types of elements in HDF5's terms.
 */
#include "ckpt/ckpt_hdf5.h"

#include <cairn/type.h>

/* HDF5's number of a scalar; bytes are shown as numbers. */
static hid_t scalar(const crn_h5 *h5, const char *name)
{
    const struct {
        cairn_type type;
        hid_t id;
    } row[] = {
        {CAIRN_BYTES, h5->H5T_NATIVE_UINT8_g},    {CAIRN_INT8, h5->H5T_NATIVE_INT8_g},
        {CAIRN_INT16, h5->H5T_NATIVE_INT16_g},    {CAIRN_INT32, h5->H5T_NATIVE_INT32_g},
        {CAIRN_INT64, h5->H5T_NATIVE_INT64_g},    {CAIRN_UINT8, h5->H5T_NATIVE_UINT8_g},
        {CAIRN_UINT16, h5->H5T_NATIVE_UINT16_g},  {CAIRN_UINT32, h5->H5T_NATIVE_UINT32_g},
        {CAIRN_UINT64, h5->H5T_NATIVE_UINT64_g},  {CAIRN_FLOAT32, h5->H5T_NATIVE_FLOAT_g},
        {CAIRN_FLOAT64, h5->H5T_NATIVE_DOUBLE_g},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (strcmp(cairn_type_name(row[i].type), name) == 0)
            return row[i].id;
    return -1;
}

cairn_status crn_hdf5_type(const crn_h5 *h5, const char *text, hid_t *ret)
{
    hid_t id = scalar(h5, text);
    CRN_FAIL_IF(id < 0, CAIRN_EUNSUPPORTED, "type '%s' cannot be kept in HDF5", text);
    *ret = h5->H5Tcopy(id);
    return CAIRN_OK;
}

static cairn_status number_text(const crn_h5 *h5, hid_t type, char **ret)
{
    const bool real = h5->H5Tget_class(type) == H5T_FLOAT;
    const bool plus = !real && h5->H5Tget_sign(type) == H5T_SGN_NONE;
    const size_t bits = 8 * h5->H5Tget_size(type);
    char text[32];
    snprintf(text, sizeof text, "%s%zu", real ? "float" : plus ? "uint" : "int", bits);
    CRN_FAIL_IF(scalar(h5, text) < 0, CAIRN_EUNSUPPORTED, "there is no type %s", text);
    return crn_strdup(text, ret);
}

cairn_status crn_hdf5_type_text(const crn_h5 *h5, hid_t type, char **ret)
{
    const H5T_class_t class = h5->H5Tget_class(type);
    if (class == H5T_INTEGER || class == H5T_FLOAT)
        return number_text(h5, type, ret);
    CRN_FAIL_IF(class != H5T_ENUM, CAIRN_EUNSUPPORTED, "its elements are no numbers");
    hid_t base = h5->H5Tget_super(type);
    cairn_status rc = number_text(h5, base, ret);
    h5->H5Tclose(base);
    return rc;
}
