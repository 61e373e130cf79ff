/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark of a trail as an HDF5 file.
 */
#include <cairn/exchange.h>
#include <inttypes.h>

#include "exchange/exchange.h"

typedef struct exporter {
    const cairn_export_options *how;
    crn_trail *trail;
    crn_run *run;
    crn_manifest_mark mark;
} exporter;

static const crn_part_options plain = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};

static cairn_status find_mark(exporter *e)
{
    const crn_manifest *m = crn_run_manifest(e->run);
    for (size_t i = 0; i < m->mark.n; i++) {
        if (m->mark.at[i].version != e->how->version)
            continue;
        e->mark = m->mark.at[i];
        CRN_FAIL_IF(!(e->mark.levels & CRN_IN_TRAIL), CAIRN_ENOTFOUND,
                    "mark %" PRIu64 " is not in the trail, but on the nodes that wrote it: 'cairn "
                    "drain' brings the newest",
                    e->mark.version);
        return CAIRN_OK;
    }
    return crn_fail(CAIRN_ENOTFOUND,
                    "run '%s' has no mark %" PRIu64 "; 'cairn ls' lists those it has", e->how->run,
                    e->how->version);
}

/* Why a mark could not be read: a program that keeps few may have dropped it under our hands. */
static cairn_status explain(const exporter *e, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    const bool suspect = rc == CAIRN_ENOTFOUND || rc == CAIRN_ECORRUPT || rc == CAIRN_EMISMATCH;
    CRN_FAIL_IF(suspect && e->mark.nranks > 0 && crn_trail_dropped(e->trail, e->how->run, &e->mark),
                CAIRN_ENOTFOUND,
                "mark %" PRIu64 " of run '%s' went while it was read: its program keeps few "
                "(keep.global); export the newest instead, or keep more",
                e->mark.version, e->how->run);
    return crn_err_give(&why);
}

static cairn_status open_share(void *arg, uint32_t rank, crn_part **ret_part, crn_mark **ret)
{
    const exporter *e = arg;
    crn_part *part;
    CRN_TRY(crn_run_part(e->run, e->mark.series, rank, e->mark.nranks, false, &plain, &part));
    crn_part_distrust(part);
    const cairn_status rc = crn_part_load(part, e->mark.version, ret);
    if (rc < 0)
        crn_part_close(part);
    else
        *ret_part = part;
    return rc;
}

static cairn_status export_mark(exporter *e, cairn_export_result *ret)
{
    CRN_TRY(crn_trail_open(e->how->trail, false, &e->trail));
    CRN_TRY(crn_run_open(e->trail, e->how->run, false, &e->run));
    CRN_TRY(find_mark(e));
    const crn_export_source from = {.name = e->how->run,
                                    .version = e->mark.version,
                                    .wall_ns = e->mark.wall_ns,
                                    .nbytes = e->mark.nbytes,
                                    .nranks = e->mark.nranks,
                                    .open = open_share,
                                    .arg = e};
    return crn_export_shares(&from, e->how, ret);
}

int cairn_export(const cairn_export_options *how, cairn_export_result *ret)
{
    cairn_export_options ours;
    cairn_export_result result = {.struct_bytes = sizeof result};
    exporter e = {.how = &ours};
    CRN_TRY(crn_export_check(how, &ours, ret));
    CRN_FAIL_IF(!ours.trail || !ours.run, CAIRN_EINVAL, "cairn_export: trail or run is missing");
    cairn_status rc = export_mark(&e, &result);
    if (rc < 0)
        rc = explain(&e, rc);
    crn_run_close(e.run);
    crn_trail_close(e.trail);
    return rc == CAIRN_OK && ret ? crn_struct_out(&result, ret) : rc;
}
