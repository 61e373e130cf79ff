/* SPDX-License-Identifier: BSD-3-Clause */
#include "tracefmt/tracefmt.h"

#define CRN_CALL_ROW(id, text, layer, traits, named, ncolumns, ...)                                \
    {text, layer, traits, named, ncolumns, {__VA_ARGS__}},
static const crn_call calls[] = {
    {.name = "none"},
#include "tracefmt/tracefmt_calls.inc"
};
#undef CRN_CALL_ROW

_Static_assert(sizeof calls / sizeof *calls == CRN_CALLS, "one row for each call");

const crn_call *crn_call_row(unsigned id)
{
    return &calls[id < CRN_CALLS ? id : 0];
}

const char *crn_layer_name(crn_layer layer)
{
    static const char *const names[CRN_LAYERS] = {"note", "env", "p2p",   "wait", "coll",
                                                  "comm", "rma", "mpiio", "posix"};
    return (unsigned)layer < CRN_LAYERS ? names[layer] : "unknown";
}

const char *crn_kind_name(crn_kind kind)
{
    static const char *const names[CRN_KINDS] = {
        "none",   "int",  "count",   "type", "peer",   "tag",  "comm",  "newcomm", "group", "root",
        "op",     "req",  "reqs",    "flag", "index",  "list", "total", "inplace", "bytes", "moved",
        "offset", "file", "newfile", "win",  "newwin", "fd",   "newfd", "number",  "repeat"};
    return (unsigned)kind < CRN_KINDS ? names[kind] : "unknown";
}
