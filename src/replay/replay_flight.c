/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that are under way between shadows and their ranks: known by their epoch alone, not by
 * requests of the trace. Memory of receives is used again, as the program did: messages into memory
 * that was never touched take far longer than those into a cache.
 */
#include "replay/replay.h"

enum { MANY = 256, LEAST = 6, MOST = 31 }; /* MANY: requests; sizes: powers of two, from and to */
_Static_assert(MOST - LEAST + 1 == CRN_FLIGHT_SIZES, "each size has its place");

void crn_flights_done(crn_flights *f)
{
    for (size_t i = 0; i < f->load.n; i++)
        free(f->load.at[i].buf);
    for (size_t i = 0; i < CRN_FLIGHT_SIZES; i++) {
        for (size_t k = 0; k < f->spare[i].n; k++)
            free(f->spare[i].at[k]);
        crn_vec_done(&f->spare[i]);
    }
    crn_vec_done(&f->request);
    crn_vec_done(&f->load);
    crn_vec_done(&f->index);
    crn_vec_done(&f->status);
}

static int size_of(uint64_t nbytes)
{
    int log = LEAST;
    while (log < MOST && (uint64_t)1 << log < nbytes)
        log++;
    return log - LEAST;
}

static cairn_status take_memory(crn_flights *f, int size, char **ret)
{
    if (f->spare[size].n == 0)
        return crn_alloc(ret, (size_t)1 << (size + LEAST));
    *ret = f->spare[size].at[--f->spare[size].n];
    return CAIRN_OK;
}

static cairn_status land(crn_flights *f, size_t i)
{
    const crn_flight_load load = f->load.at[i];
    f->load.at[i].buf = NULL;
    if (!load.buf)
        return CAIRN_OK;
    f->nreceives--;
    if (crn_vec_push(&f->spare[load.size], load.buf) == CAIRN_OK)
        return CAIRN_OK;
    free(load.buf);
    return CAIRN_ENOMEM;
}

/* Take out what is done. */
static cairn_status sweep(crn_flights *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->request.n; i++) {
        if (f->request.at[i] == MPI_REQUEST_NULL) {
            CRN_TRY(land(f, i));
            continue;
        }
        f->request.at[n] = f->request.at[i];
        f->load.at[n++] = f->load.at[i];
    }
    f->request.n = f->load.n = n;
    f->many = CRN_MAX(MANY, 2 * n);
    return CAIRN_OK;
}

/* Look once which are done. */
static cairn_status look(crn_flights *f)
{
    int ndone;
    if (f->request.n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_vec_reserve(&f->index, f->request.n));
    CRN_TRY(crn_vec_reserve(&f->status, f->request.n));
    CRN_TRY_MPI(MPI_Testsome((int)f->request.n, f->request.at, &ndone, f->index.at, f->status.at));
    return ndone > 0 ? sweep(f) : CAIRN_OK;
}

/* Room for one more, at request.n and load.n. */
static cairn_status make_room(crn_flights *f)
{
    if (f->request.n >= CRN_MAX(f->many, MANY)) {
        CRN_TRY(look(f));
        f->many = CRN_MAX(MANY, 2 * f->request.n);
    }
    CRN_TRY(crn_vec_reserve(&f->request, 1));
    return crn_vec_reserve(&f->load, 1);
}

static void add(crn_flights *f, crn_flight_load load)
{
    f->request.n++;
    f->load.at[f->load.n++] = load;
    f->nreceives += load.buf != NULL;
}

cairn_status crn_flights_send(crn_flights *f, const void *buf, uint64_t nbytes, int to, int tag,
                              uint64_t epoch)
{
    CRN_TRY(make_room(f));
    CRN_TRY_MPI(
        MPI_Isend(buf, (int)nbytes, MPI_BYTE, to, tag, f->comm, &f->request.at[f->request.n]));
    add(f, (crn_flight_load){.epoch = epoch});
    return CAIRN_OK;
}

cairn_status crn_flights_receive(crn_flights *f, uint64_t nbytes, int from, int tag, uint64_t epoch)
{
    const int size = size_of(nbytes);
    char *buf;
    CRN_TRY(make_room(f));
    CRN_TRY(take_memory(f, size, &buf));
    int rc =
        MPI_Irecv(buf, (int)nbytes, MPI_BYTE, from, tag, f->comm, &f->request.at[f->request.n]);
    if (rc != MPI_SUCCESS)
        free(buf);
    CRN_TRY_MPI(rc);
    add(f, (crn_flight_load){epoch, buf, size});
    return CAIRN_OK;
}

cairn_status crn_flights_wait(crn_flights *f, uint64_t until_ns)
{
    do {
        CRN_TRY(look(f));
    } while (f->nreceives > 0 && crn_now_ns() < until_ns);
    return CAIRN_OK;
}

cairn_status crn_flights_complete(crn_flights *f, uint64_t before)
{
    for (size_t i = 0; i < f->request.n; i++)
        if (f->load.at[i].epoch < before)
            CRN_TRY_MPI(MPI_Wait(&f->request.at[i], MPI_STATUS_IGNORE));
    return sweep(f);
}
