# SPDX-License-Identifier: BSD-3-Clause
# What Cairn stands on. -DCAIRN_WITH_<NAME>=AUTO|ON|OFF decides on what it can do without: AUTO
# takes what is found. CMake asks CAIRN_HAS_<NAME>, which is 1 or 0.

# crn_need(<name> <pkg-config name> <header> <library> <Debian package>): no Cairn without it.
function(crn_need name pkg header library package)
    crn_find(${name} ${pkg} ${header} ${library})
    if(NOT TARGET CairnDep::${name})
        message(FATAL_ERROR "Cairn needs ${pkg}, and <${header}> or its library was not found. "
            "Debian has it as ${package}; CMAKE_PREFIX_PATH says where else to look.")
    endif()
    set_property(GLOBAL APPEND PROPERTY CAIRN_FOUND "${name} ${pkg} ${header} ${library}")
endfunction()

# crn_part(<name> <what is missing without it>): the option.
function(crn_part name what)
    set(CAIRN_WITH_${name} AUTO CACHE STRING "${what}: AUTO, ON or OFF")
    set_property(CACHE CAIRN_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
    if(NOT CAIRN_WITH_${name} MATCHES "^(AUTO|ON|OFF)$")
        message(FATAL_ERROR "CAIRN_WITH_${name} is '${CAIRN_WITH_${name}}': AUTO, ON or OFF")
    endif()
    set_property(GLOBAL APPEND PROPERTY CAIRN_PARTS ${name})
endfunction()

# crn_part_is(<name> <found> <what is missing without it>): after the look for it.
function(crn_part_is name found what)
    if(CAIRN_WITH_${name} STREQUAL "ON" AND NOT found)
        message(FATAL_ERROR "CAIRN_WITH_${name} is ON, but the library was not found: "
            "CMAKE_PREFIX_PATH says where else to look")
    endif()
    if(CAIRN_WITH_${name} STREQUAL "OFF" OR NOT found)
        set(has 0)
        string(TOLOWER ${name} word)
        set_property(GLOBAL APPEND PROPERTY CAIRN_MISSING "${word} (${what})")
    else()
        set(has 1)
    endif()
    set(CAIRN_HAS_${name} ${has} PARENT_SCOPE)
endfunction()

# crn_library_part(<name> <pkg-config name> <header> <library> <what is missing without it>
#     [<function>]): the last as for crn_find.
macro(crn_library_part name pkg header library what)
    crn_part(${name} "${what}")
    if(NOT CAIRN_WITH_${name} STREQUAL "OFF")
        crn_find(${name} ${pkg} ${header} ${library} ${ARGN})
    endif()
    if(TARGET CairnDep::${name})
        set_property(GLOBAL APPEND PROPERTY CAIRN_FOUND "${name} ${pkg} ${header} ${library}")
        crn_part_is(${name} TRUE "${what}")
    else()
        crn_part_is(${name} FALSE "${what}")
    endif()
endmacro()

# crn_soname(<library file> <variable>): what to ask the loader for. Where it does not look by
# itself, that is the whole path.
function(crn_soname file ret)
    get_filename_component(real ${file} REALPATH)
    get_filename_component(dir ${real} DIRECTORY)
    string(REGEX REPLACE "^.*/([^/]*[.]so[.][0-9]+).*$" "\\1" name ${real})
    if(NOT dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES AND EXISTS ${dir}/${name}
            AND NOT dir MATCHES "^/usr/lib")
        set(name ${dir}/${name})
    endif()
    set(${ret} ${name} PARENT_SCOPE)
endfunction()

crn_need(XXHASH libxxhash xxhash.h xxhash libxxhash-dev)
crn_need(JANSSON jansson jansson.h jansson libjansson-dev)
crn_need(INIH inih ini.h inih libinih-dev)
crn_need(RANDOM123 random123 Random123/philox.h - librandom123-dev)
crn_library_part(LZ4 liblz4 lz4.h lz4 "codec lz4")
crn_library_part(ZSTD libzstd zstd.h zstd "codec zstd, traces")
crn_library_part(ZFP zfp zfp.h zfp "codec zfp")
crn_library_part(FPZIP fpzip fpzip.h fpzip "codec fpzip")
crn_library_part(ISAL libisal isa-l/erasure_code.h isal "level encoded")
crn_library_part(LIBURING liburing liburing.h uring "input and output by io_uring"
    io_uring_submit_and_wait_timeout)
crn_library_part(LIBUNWIND libunwind libunwind.h unwind "call stacks in traces")

# HDF5 is not linked but loaded (src/hdf5/hdf5.h says why): a serial one is best, any will do.
crn_part(HDF5 "HDF5 files")
set(hdf5_found FALSE)
if(NOT CAIRN_WITH_HDF5 STREQUAL "OFF")
    foreach(pkg hdf5-serial hdf5_serial hdf5)
        if(NOT TARGET CairnDep::HDF5)
            crn_find(HDF5 ${pkg} hdf5.h "hdf5;hdf5_serial")
        endif()
    endforeach()
    if(NOT TARGET CairnDep::HDF5)
        set(HDF5_PREFER_PARALLEL FALSE)
        find_package(HDF5 1.10 QUIET COMPONENTS C)
        if(HDF5_FOUND)
            set(CAIRN_HDF5_INCLUDE ${HDF5_C_INCLUDE_DIRS})
            list(GET HDF5_C_LIBRARIES 0 CAIRN_HDF5_LIBRARY)
        endif()
    endif()
    if(CAIRN_HDF5_INCLUDE AND CAIRN_HDF5_LIBRARY)
        file(STRINGS ${CAIRN_HDF5_INCLUDE}/H5public.h version REGEX "define H5_VERS_(MAJOR|MINOR)")
        string(REGEX REPLACE "[^;]*H5_VERS_M[A-Z]*[ \t]+([0-9]+)[^;]*" "\\1" version "${version}")
        list(JOIN version "." version)
        if(version VERSION_GREATER_EQUAL 1.10)
            set(hdf5_found TRUE)
        endif()
    endif()
endif()
crn_part_is(HDF5 ${hdf5_found} "HDF5 files")

# What ensembles stand on is not linked but loaded, too: a model that runs alone gets neither.
crn_part(ZMQ "ensembles")
set(zmq_found FALSE)
if(NOT CAIRN_WITH_ZMQ STREQUAL "OFF")
    crn_find(ZMQ libzmq zmq.h zmq)
    if(TARGET CairnDep::ZMQ)
        set(zmq_found TRUE)
    endif()
endif()
crn_part_is(ZMQ ${zmq_found} "ensembles")

# LAPACKE is a library of its own (Debian), or part of OpenBLAS.
crn_part(LAPACKE "filters of ensembles")
set(lapacke_found FALSE)
if(NOT CAIRN_WITH_LAPACKE STREQUAL "OFF")
    crn_find(OPENBLAS openblas cblas.h openblas)
    crn_find(LAPACKE lapacke lapacke.h lapacke)
    crn_find(LAPACKE lapacke lapacke.h openblas)
    if(TARGET CairnDep::OPENBLAS AND TARGET CairnDep::LAPACKE)
        set(lapacke_found TRUE)
    endif()
endif()
crn_part_is(LAPACKE ${lapacke_found} "filters of ensembles")

get_property(missing GLOBAL PROPERTY CAIRN_MISSING)
if(missing)
    list(JOIN missing ", " missing)
    message(STATUS "Cairn goes without: ${missing}")
endif()
