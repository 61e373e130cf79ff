! SPDX-License-Identifier: BSD-3-Clause
!
! The same with the module mpi_f08, whose handles are types and whose routines have other names.
program trace_fortran08
    use mpi_f08
    implicit none
    integer :: rank, size, ierr, i, index, left, right
    type(MPI_Comm) :: row
    type(MPI_File) :: fh
    type(MPI_Request) :: request(2)
    type(MPI_Status) :: status
    integer :: list(3)
    double precision :: x(100), y(100)
    logical :: flag
    character(len=40) :: name
    integer :: counts(3), displs(3)
    type(MPI_Datatype) :: types(3)

    call mpi_init(ierr)
    call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
    call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
    call mpi_comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, row, ierr)
    left = mod(rank + size - 1, size)
    right = mod(rank + 1, size)
    x = rank
    do i = 1, 50
        call mpi_irecv(y, 100, MPI_DOUBLE_PRECISION, left, 5, MPI_COMM_WORLD, request(1), ierr)
        call mpi_isend(x, 100, MPI_DOUBLE_PRECISION, right, 5, MPI_COMM_WORLD, request(2), ierr)
        call mpi_waitany(2, request, index, MPI_STATUS_IGNORE, ierr)
        call mpi_waitall(2, request, MPI_STATUSES_IGNORE, ierr)
        call mpi_allreduce(MPI_IN_PLACE, y, 10, MPI_DOUBLE_PRECISION, MPI_SUM, row, ierr)
        if (rank == 0) then
            call mpi_recv(list, 3, MPI_INTEGER, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, status, ierr)
        else if (rank == 1) then
            list = i
            call mpi_send(list, 3, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, ierr)
        end if
        call mpi_iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierr)
    end do
    counts = (/ 1, 2, 3 /)
    displs = (/ 0, 64, 128 /)
    types = (/ MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION /)
    call mpi_alltoallw(x, (/ (counts(rank + 1), i = 1, 3) /), displs, types, &
                       y, counts, displs, types, MPI_COMM_WORLD, ierr)
    write (name, '(a,i0)') 'fortran.', rank
    call mpi_file_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierr)
    call mpi_file_write_at(fh, int(800, MPI_OFFSET_KIND), x, 100, MPI_DOUBLE_PRECISION, status, ierr)
    call mpi_file_close(fh, ierr)
    open (unit=10, file='text.out', status='replace')
    write (10, *) rank
    close (10)
    call mpi_comm_free(row, ierr)
    call mpi_finalize(ierr)
end program
