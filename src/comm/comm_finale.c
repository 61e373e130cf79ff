/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work for the start of MPI_Finalize. MPI deletes the attributes of MPI_COMM_SELF before anything
 * else, the newest first, and everything that MPI can do still works in their callbacks.
 */
#include <mpi.h>

#include "comm/comm_ops.h"

struct crn_finale {
    int keyval;
    bool armed;
    void (*fn)(void *arg);
    void *arg;
};

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    crn_finale *f = value;
    const bool armed = f->armed;
    f->armed = false;
    if (armed)
        f->fn(f->arg);
    return MPI_SUCCESS;
}

/* A key of its own for each, since an attribute takes the place of one with the same key. */
static int attach(crn_finale *f)
{
    int error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &f->keyval, NULL);
    if (error != MPI_SUCCESS)
        return error;
    error = MPI_Comm_set_attr(MPI_COMM_SELF, f->keyval, f);
    if (error != MPI_SUCCESS)
        MPI_Comm_free_keyval(&f->keyval);
    return error;
}

cairn_status crn_finale_create(void (*fn)(void *arg), void *arg, crn_finale **ret)
{
    crn_finale *f;
    if (!crn_mpi_runs()) {
        *ret = NULL;
        return CAIRN_OK;
    }
    CRN_TRY(crn_alloc(&f, 1));
    *f = (crn_finale){.armed = true, .fn = fn, .arg = arg};
    const int error = attach(f);
    if (error != MPI_SUCCESS) {
        free(f);
        return crn_fail(CAIRN_EINTERNAL, "MPI takes no attribute of MPI_COMM_SELF (error %d)",
                        error);
    }
    *ret = f;
    return CAIRN_OK;
}

void crn_finale_free(crn_finale *f)
{
    if (!f)
        return;
    if (f->armed && crn_mpi_runs()) {
        f->armed = false;
        MPI_Comm_delete_attr(MPI_COMM_SELF, f->keyval);
        MPI_Comm_free_keyval(&f->keyval);
    }
    free(f);
}
