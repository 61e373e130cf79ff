/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The public calls of base. Apart from the rest, because a program that links base beside the
 * shared library, as the command does, must get these from the library: the last error is kept
 * where the failing call was.
 */
#include "base/base.h"

const char *cairn_version(void)
{
#define TEXT(x)       #x
#define JOIN(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)
    return JOIN(CAIRN_VERSION_MAJOR, CAIRN_VERSION_MINOR, CAIRN_VERSION_PATCH);
}

const char *cairn_strerror(int status)
{
    switch (status) {
    case CAIRN_OK:
        return "success";
    case CAIRN_NOTHING:
        return "nothing to do";
    case CAIRN_ENOMEM:
        return "no memory";
    case CAIRN_EIO:
        return "input/output error";
    case CAIRN_ENOSPC:
        return "no room";
    case CAIRN_ECORRUPT:
        return "damaged data";
    case CAIRN_ENOTFOUND:
        return "not found";
    case CAIRN_EMISMATCH:
        return "does not match";
    case CAIRN_EBUSY:
        return "busy";
    case CAIRN_EUNSUPPORTED:
        return "not supported";
    case CAIRN_EINVAL:
        return "wrong argument";
    case CAIRN_EPEER:
        return "another rank failed";
    case CAIRN_EINTERNAL:
        return "internal error";
    case CAIRN_ECANCELED:
        return "cancelled";
    }
    return "unknown status";
}

const char *cairn_error_text(void)
{
    const crn_err *err = crn_err_peek();
    return err->text[0] ? err->text : cairn_strerror(err->code);
}

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
