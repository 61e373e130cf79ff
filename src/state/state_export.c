/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A state as an HDF5 file.
 */
#include "exchange/exchange.h"
#include "state/state_read.h"

typedef struct exporting {
    getting g; /* first: what is tried is passed on as such */
    cairn_export_options how;
    cairn_export_result result;
} exporting;

cairn_status crn_reader_open(const cairn_shelf *s, const state_entry *e, uint32_t rank,
                             crn_part **ret_part, crn_mark **ret)
{
    crn_part *part;
    CRN_TRY(crn_writer_part(s, e->series, rank, e->nranks, false, &part));
    crn_part_distrust(part);
    const cairn_status rc = crn_part_load_state(part, (crn_state_name){e->key, e->version}, ret);
    if (rc < 0)
        crn_part_close(part);
    else
        *ret_part = part;
    return rc;
}

static cairn_status open_share(void *arg, uint32_t rank, crn_part **ret_part, crn_mark **ret)
{
    const exporting *x = arg;
    return crn_reader_open(x->g.shelf, &x->g.entry, rank, ret_part, ret);
}

static cairn_status write_state(getting *g)
{
    exporting *x = (exporting *)g;
    const state_entry *e = &g->entry;
    const crn_export_source from = {.name = e->key,
                                    .version = e->version,
                                    .wall_ns = e->wall_ns,
                                    .nbytes = e->nbytes,
                                    .nranks = e->nranks,
                                    .open = open_share,
                                    .arg = x};
    return crn_export_shares(&from, &x->how, &x->result);
}

cairn_status crn_state_export(cairn_shelf *s, crn_state_name name, const cairn_export_options *how,
                              cairn_export_result *ret)
{
    exporting x = {.g = {.shelf = s, .name = name}, .result = {.struct_bytes = sizeof x.result}};
    CRN_TRY(crn_export_check(how, &x.how, ret));
    const cairn_status rc = crn_get_or_gone(&x.g, write_state);
    return rc == CAIRN_OK && ret ? crn_struct_out(&x.result, ret) : rc;
}
