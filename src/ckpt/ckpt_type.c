/* SPDX-License-Identifier: BSD-3-Clause */
#include <cairn/type.h>

static const struct {
    const char *name;
    size_t nbytes;
} types[] = {
    [CAIRN_BYTES] = {"bytes", 1},     [CAIRN_INT8] = {"int8", 1},
    [CAIRN_INT16] = {"int16", 2},     [CAIRN_INT32] = {"int32", 4},
    [CAIRN_INT64] = {"int64", 8},     [CAIRN_UINT8] = {"uint8", 1},
    [CAIRN_UINT16] = {"uint16", 2},   [CAIRN_UINT32] = {"uint32", 4},
    [CAIRN_UINT64] = {"uint64", 8},   [CAIRN_FLOAT32] = {"float32", 4},
    [CAIRN_FLOAT64] = {"float64", 8},
};

size_t cairn_type_bytes(cairn_type type)
{
    return type < sizeof types / sizeof *types ? types[type].nbytes : 0;
}

const char *cairn_type_name(cairn_type type)
{
    return type < sizeof types / sizeof *types ? types[type].name : NULL;
}
