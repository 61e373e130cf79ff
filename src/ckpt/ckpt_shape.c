/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types and shapes in sentences.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>
#include <stdarg.h>

/* Append to the text in buf, as far as there is room. */
static void append(char *buf, size_t cap, const char *fmt, ...)
{
    const size_t n = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + n, cap - n, fmt, ap);
    va_end(ap);
}

static void append_dims(char *buf, size_t cap, const uint64_t *dims, uint32_t ndims)
{
    for (uint32_t d = 0; d < ndims; d++)
        append(buf, cap, "%s%" PRIu64, d ? " x " : "", dims[d]);
}

/* A long description is shown where it begins to differ from the other one. */
static void append_type(char *buf, size_t cap, const char *type, const char *other)
{
    enum { WIDTH = 90, BEFORE = 30 };
    size_t same = 0;
    while (type[same] && type[same] == other[same])
        same++;
    const size_t skip = strlen(type) > WIDTH && same > BEFORE ? same - BEFORE : 0;
    append(buf, cap, "%s%.*s%s", skip > 0 ? "..." : "", WIDTH, type + skip,
           strlen(type + skip) > WIDTH ? "..." : "");
}

void crn_shape_format(const crn_var_spec *s, const crn_var_spec *other, char buf[CRN_SHAPE_TEXT])
{
    const size_t cap = CRN_SHAPE_TEXT;
    const uint64_t items = s->nbytes / s->item;
    buf[0] = 0;
    append_type(buf, cap, s->type, other->type);
    append(buf, cap, "[");
    append_dims(buf, cap, s->ndims > 0 ? s->count : &items, CRN_MAX(s->ndims, 1));
    if (s->ndims > 0) {
        append(buf, cap, " of ");
        append_dims(buf, cap, s->global, s->ndims);
        append(buf, cap, " at ");
        append_dims(buf, cap, s->offset, s->ndims);
    }
    append(buf, cap, "]");
}
