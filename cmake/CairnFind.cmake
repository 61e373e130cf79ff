# SPDX-License-Identifier: BSD-3-Clause
# Finding libraries, for the build and for CairnConfig.cmake.

include(CheckCSourceCompiles)

# crn_find(<name> <pkg-config name> <header> <library> [<function>]): the target CairnDep::<name>,
# where the header and the library are; pkg-config, where there is one, says where to look first. A
# library "-" consists of headers alone. A library without the function is too old.
function(crn_find name pkg header library)
    if(TARGET CairnDep::${name})
        return()
    endif()
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(CAIRN_${name} QUIET ${pkg})
    endif()
    find_path(CAIRN_${name}_INCLUDE ${header} HINTS ${CAIRN_${name}_INCLUDE_DIRS})
    set(found ${CAIRN_${name}_INCLUDE})
    if(NOT library STREQUAL "-")
        find_library(CAIRN_${name}_LIBRARY ${library} HINTS ${CAIRN_${name}_LIBRARY_DIRS}
            ${CAIRN_${name}_LIBDIR})
        if(NOT CAIRN_${name}_LIBRARY)
            set(found FALSE)
        endif()
    endif()
    mark_as_advanced(CAIRN_${name}_INCLUDE CAIRN_${name}_LIBRARY)
    if(found AND ARGN)
        set(CMAKE_REQUIRED_QUIET ON)
        set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
        set(CMAKE_REQUIRED_INCLUDES ${CAIRN_${name}_INCLUDE})
        set(CMAKE_REQUIRED_LIBRARIES ${CAIRN_${name}_LIBRARY})
        check_c_source_compiles("#include <${header}>
            int main(void) { return !${ARGN}; }" CAIRN_${name}_FITS)
        set(found ${CAIRN_${name}_FITS})
    endif()
    if(NOT found)
        return()
    endif()
    add_library(CairnDep::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(CairnDep::${name} SYSTEM INTERFACE ${CAIRN_${name}_INCLUDE})
    if(CAIRN_${name}_LIBRARY)
        target_link_libraries(CairnDep::${name} INTERFACE ${CAIRN_${name}_LIBRARY})
    endif()
endfunction()

# crn_mpi_kind(<variable>): which MPI the target MPI::MPI_C is: "Open MPI", or "MPICH" for all
# others, as the library takes it.
function(crn_mpi_kind ret)
    set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
    set(CMAKE_REQUIRED_QUIET ON)
    # FindMPI's answer may change between two configurations, and this one's with it
    string(MAKE_C_IDENTIFIER "CAIRN_IS_OPEN_MPI_${MPI_C_INCLUDE_DIRS}_${MPI_C_COMPILER}" answer)
    check_c_source_compiles("#include <mpi.h>
        #ifndef OPEN_MPI
        #error another one
        #endif
        int main(void) { return 0; }" ${answer})
    if(${answer})
        set(${ret} "Open MPI" PARENT_SCOPE)
    else()
        set(${ret} "MPICH" PARENT_SCOPE)
    endif()
endfunction()
