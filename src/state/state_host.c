/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts that one process writes alone for states of several: a copy of what a group has put has the
 * shares that the group's processes had, and so the same digest.
 */
#include "state/state_shelf.h"

static void close_parts(crn_part **part, uint32_t n)
{
    for (uint32_t r = 0; part && r < n; r++)
        crn_part_close(part[r]);
    free(part);
}

void crn_hosts_done(cairn_shelf *s)
{
    for (size_t i = 0; i < s->host.n; i++)
        close_parts(s->host.at[i].part, s->host.at[i].nranks);
    crn_vec_done(&s->host);
}

static cairn_status begin_host(cairn_shelf *s, uint32_t nranks)
{
    state_host h = {.nranks = nranks};
    CRN_TRY(crn_vec_reserve(&s->host, 1));
    CRN_TRY(crn_alloc(&h.part, nranks));
    const cairn_status rc = crn_writer_create(s, nranks, &h.series, h.part);
    if (rc < 0) {
        close_parts(h.part, nranks);
        return rc;
    }
    s->host.at[s->host.n++] = h;
    return CAIRN_OK;
}

cairn_status crn_writer_host(cairn_shelf *s, uint32_t nranks, uint32_t *ret_series, crn_part ***ret)
{
    size_t i = 0;
    if (nranks == 1) {
        CRN_TRY(crn_writer_begin(s));
        *ret_series = s->series;
        *ret = &s->part;
        return crn_writer_heed(s);
    }
    while (i < s->host.n && s->host.at[i].nranks != nranks)
        i++;
    if (i == s->host.n)
        CRN_TRY(begin_host(s, nranks));
    *ret_series = s->host.at[i].series;
    *ret = s->host.at[i].part;
    return crn_writer_heed_of(s, *ret_series, *ret, nranks);
}
