/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_particle.h"

#include <math.h>

void crn_particle_task_put(crn_buf *b, const crn_particle_task *t)
{
    crn_put_u32(b, t->parent);
    crn_put_u32(b, t->purpose);
    crn_put_f64(b, t->deviation);
    crn_put_u64(b, t->nrows);
    for (uint64_t i = 0; i < t->nrows; i++)
        crn_put_f64(b, t->row[i]);
}

cairn_status crn_particle_task_get(const crn_buf *data, uint64_t nrows, crn_particle_task *ret)
{
    crn_cursor c = crn_cursor_of(data->at, data->n);
    crn_particle_task t = {.parent = crn_get_u32(&c), .purpose = crn_get_u32(&c)};
    t.deviation = crn_get_f64(&c);
    t.nrows = crn_get_u64(&c);
    crn_cursor_expect(&c, isfinite(t.deviation) && t.deviation >= 0);
    crn_cursor_expect(&c, t.nrows == 0 || t.nrows == nrows);
    crn_cursor_expect(&c, c.n == t.nrows * sizeof(double));
    CRN_FAIL_IF(c.failed, CAIRN_EPEER, "the server's task is not understood");
    CRN_TRY(crn_alloc(&t.row, t.nrows));
    for (uint64_t i = 0; i < t.nrows; i++)
        t.row[i] = crn_get_f64(&c);
    *ret = t;
    return CAIRN_OK;
}

void crn_particle_task_done(crn_particle_task *t)
{
    free(t->row);
}
