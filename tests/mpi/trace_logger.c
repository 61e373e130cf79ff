/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A plain log that shares nothing with the recorder: a library that is preloaded into a program and
 * writes a line for each call that the examples make: its name, where it was made, its bytes. Into
 * LOGGER_DIR, a file for each rank.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LOG(nbytes) put(__func__, __builtin_return_address(0), (long long)(nbytes))

static FILE *out;

static FILE *log_file(void)
{
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/%d", getenv("LOGGER_DIR"), rank);
    out = fopen(path, "w");
    if (!out)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    return out;
}

static void put(const char *call, const void *site, long long nbytes)
{
    Dl_info info = {.dli_fbase = NULL};
    dladdr(site, &info);
    fprintf(out ? out : log_file(), "%s %#llx %lld\n", call,
            (unsigned long long)((const char *)site - (const char *)info.dli_fbase), nbytes);
}

static long long size_of(MPI_Datatype type, long long count)
{
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm)
{
    LOG(size_of(type, count));
    return PMPI_Send(buf, count, type, dst, tag, comm);
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    LOG(size_of(type, count));
    return PMPI_Isend(buf, count, type, dst, tag, comm, request);
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    LOG(size_of(type, count));
    return PMPI_Irecv(buf, count, type, src, tag, comm, request);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    LOG(0);
    return PMPI_Wait(request, status);
}

int MPI_Waitall(int n, MPI_Request request[], MPI_Status status[])
{
    LOG(0);
    return PMPI_Waitall(n, request, status);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    LOG(size_of(type, count));
    return PMPI_Allreduce(from, to, count, type, op, comm);
}

int MPI_Alltoallv(const void *from, const int n[], const int at[], MPI_Datatype type, void *to,
                  const int m[], const int to_at[], MPI_Datatype to_type, MPI_Comm comm)
{
    long long count = 0;
    int size;
    PMPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++)
        count += n[i];
    LOG(size_of(type, count));
    return PMPI_Alltoallv(from, n, at, type, to, m, to_at, to_type, comm);
}

int MPI_Finalize(void)
{
    if (out)
        fclose(out);
    return PMPI_Finalize();
}
