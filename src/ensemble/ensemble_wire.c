/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_wire.h"

#include <math.h>

#define CRN_WIRE_ROW(kind, number, name, data) [number] = {name, data},
static const struct {
    const char *name;
    bool data;
} table[] = {
#include "ensemble/ensemble_wire_table.h"
};
#undef CRN_WIRE_ROW

const char *crn_wire_name(crn_wire_kind kind)
{
    return (size_t)kind < sizeof table / sizeof *table ? table[kind].name : NULL;
}

bool crn_wire_has_data(crn_wire_kind kind)
{
    return crn_wire_name(kind) && table[kind].data;
}

void crn_wire_put(crn_buf *b, const crn_wire *w)
{
    crn_put_u32(b, CRN_WIRE_MAGIC);
    crn_put_u16(b, CRN_WIRE_VERSION);
    crn_put_u16(b, (uint16_t)w->kind);
    crn_put_u64(b, w->study);
    crn_put_u32(b, w->incarnation);
    crn_put_u32(b, w->cycle);
    crn_put_u32(b, w->member);
    crn_put_u32(b, w->attempt);
    crn_put_u32(b, w->runner);
    crn_put_u32(b, w->rank);
    crn_put_u64(b, w->number);
    crn_put_u64(b, w->more);
    crn_put_f64(b, w->seconds);
    crn_put_str(b, w->text);
}

bool crn_wire_get(const void *data, size_t n, crn_wire *ret)
{
    crn_cursor c = crn_cursor_of(data, n);
    crn_cursor_expect(&c, crn_get_u32(&c) == CRN_WIRE_MAGIC);
    crn_cursor_expect(&c, crn_get_u16(&c) == CRN_WIRE_VERSION);
    ret->kind = (crn_wire_kind)crn_get_u16(&c);
    crn_cursor_expect(&c, crn_wire_name(ret->kind) != NULL);
    ret->study = crn_get_u64(&c);
    ret->incarnation = crn_get_u32(&c);
    ret->cycle = crn_get_u32(&c);
    ret->member = crn_get_u32(&c);
    ret->attempt = crn_get_u32(&c);
    ret->runner = crn_get_u32(&c);
    ret->rank = crn_get_u32(&c);
    ret->number = crn_get_u64(&c);
    ret->more = crn_get_u64(&c);
    ret->seconds = crn_get_f64(&c);
    crn_cursor_expect(&c, isfinite(ret->seconds) && ret->seconds >= 0);
    crn_get_str(&c, ret->text, CRN_WIRE_TEXT);
    crn_cursor_expect(&c, c.n == 0);
    return !c.failed;
}
