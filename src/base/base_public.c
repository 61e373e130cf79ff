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
    }
    return "unknown status";
}

const char *cairn_error_text(void)
{
    const crn_err *err = crn_err_peek();
    return err->text[0] ? err->text : cairn_strerror(err->code);
}
