# SPDX-License-Identifier: BSD-3-Clause
# Any MPI that CMake finds: by CC=mpicc, MPI_C_COMPILER, MPI_HOME, or in the PATH. Afterwards
# CAIRN_MPI is openmpi or mpich, which the tests are told, and CAIRN_MPI_NAME its name in sentences.
if(CAIRN_MPI AND NOT MPI_C_COMPILER)
    set(MPI_C_COMPILER mpicc.${CAIRN_MPI})
endif()

# The launcher that belongs to the compiler: mpiexec.mpich beside mpicc.mpich.
foreach(compiler ${MPI_C_COMPILER} ${CMAKE_C_COMPILER})
    get_filename_component(name ${compiler} NAME)
    get_filename_component(dir ${compiler} DIRECTORY)
    if(name MATCHES "^mpicc" AND NOT MPIEXEC_EXECUTABLE)
        string(REGEX REPLACE "^mpicc" "mpiexec" name ${name})
        find_program(MPIEXEC_EXECUTABLE NAMES ${name} HINTS ${dir})
    endif()
endforeach()
find_package(MPI REQUIRED COMPONENTS C)

crn_mpi_kind(CAIRN_MPI_NAME)
set(CAIRN_MPI mpich)
if(CAIRN_MPI_NAME STREQUAL "Open MPI")
    set(CAIRN_MPI openmpi)
endif()

# What programs that use the library are compiled with: without MPI's C++ bindings, which nobody
# links any more, and so that <cairn/ckpt.h> notices another MPI than the library's.
string(MAKE_C_IDENTIFIER "CAIRN_FOR_${CAIRN_MPI_NAME}" CAIRN_PUBLIC_DEFINES)
string(TOUPPER ${CAIRN_PUBLIC_DEFINES} CAIRN_PUBLIC_DEFINES)
list(APPEND CAIRN_PUBLIC_DEFINES OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
