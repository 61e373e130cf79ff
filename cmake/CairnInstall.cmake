# SPDX-License-Identifier: BSD-3-Clause
# What 'make install' installs, and how others find it: a pkg-config file and a CMake package. Both
# compute their prefix from where they lie, so the tree may be staged with DESTDIR or moved.
include(CMakePackageConfigHelpers)

# What the archive stands on: CairnConfig.cmake looks for it by the same names, cairn.pc requires
# it where pkg-config knows it and names it otherwise.
get_property(link GLOBAL PROPERTY CAIRN_LINK)
get_property(found GLOBAL PROPERTY CAIRN_FOUND)
set(CAIRN_CONFIG_FOUND "")
set(CAIRN_PC_PLAIN "")
set(pkgs)
foreach(one ${found})
    separate_arguments(words UNIX_COMMAND "${one}") # name, pkg-config name, header, library
    list(GET words 0 name)
    list(GET words 3 library)
    if(NOT "CairnDep::${name}" IN_LIST link)
        continue()
    endif()
    string(APPEND CAIRN_CONFIG_FOUND "crn_find(${one})\n")
    if(CAIRN_${name}_FOUND)
        list(GET words 1 pkg)
        list(APPEND pkgs ${pkg})
    elseif(NOT library STREQUAL "-")
        string(APPEND CAIRN_PC_PLAIN " -l${library}")
    endif()
endforeach()
list(JOIN pkgs ", " CAIRN_PC_PRIVATE)
foreach(library ${CMAKE_DL_LIBS})
    string(APPEND CAIRN_PC_PLAIN " -l${library}")
endforeach()

# Users of the library need the same MPI; <cairn/ckpt.h> looks whether they have it.
list(TRANSFORM CAIRN_PUBLIC_DEFINES PREPEND "-D" OUTPUT_VARIABLE CAIRN_PC_DEFINES)
list(JOIN CAIRN_PC_DEFINES " " CAIRN_PC_DEFINES)
set(CAIRN_PC_PUBLIC "")
set(mpi_pc_openmpi ompi-c)
set(mpi_pc_mpich mpich)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(CAIRN_MPI_PC QUIET ${mpi_pc_${CAIRN_MPI}})
    if(CAIRN_MPI_PC_FOUND)
        set(CAIRN_PC_PUBLIC ${mpi_pc_${CAIRN_MPI}})
    endif()
endif()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Cairn)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH CAIRN_PC_PREFIX /${pc_dir} /)
string(REGEX REPLACE "/$" "" CAIRN_PC_PREFIX ${CAIRN_PC_PREFIX})
configure_file(cmake/cairn.pc.in cairn.pc @ONLY)
configure_package_config_file(cmake/CairnConfig.cmake.in CairnConfig.cmake
    INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(CairnConfigVersion.cmake COMPATIBILITY SameMinorVersion)

set_target_properties(cairn_static PROPERTIES EXPORT_NAME static)
install(TARGETS cairn cairn_static EXPORT CairnTargets)
if(TARGET cairn-trace)
    set_target_properties(cairn-trace PROPERTIES EXPORT_NAME trace)
    install(TARGETS cairn-trace EXPORT CairnTargets)
endif()
set_target_properties(cairn-ensemble PROPERTIES EXPORT_NAME ensemble)
install(TARGETS cairn-ensemble EXPORT CairnTargets)
install(EXPORT CairnTargets NAMESPACE Cairn:: DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/CairnConfig.cmake
    ${PROJECT_BINARY_DIR}/CairnConfigVersion.cmake cmake/CairnFind.cmake
    DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/cairn.pc DESTINATION ${pc_dir})
install(DIRECTORY include/cairn TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS cairn_cmd)
# Manual pages name some of them.
install(DIRECTORY docs/format docs/guide docs/jobs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/Cairn)
install(DIRECTORY examples/codec examples/filter DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/Cairn)
install(FILES docs/format.md LICENSE CITATION.cff CHANGELOG.md README.md
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/Cairn)
foreach(section 1 5 7)
    file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# For clusters: a template of an environment module, which computes its prefix from where it lies.
configure_file(packaging/module.in ${PROJECT_BINARY_DIR}/module @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/module RENAME ${PROJECT_VERSION}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/cairn)

if(NOT CAIRN_HAS_PYTHON)
    return()
endif()

# Completion offers what the command's tables have.
foreach(shell bash zsh)
    set(made ${PROJECT_BINARY_DIR}/completion/${shell})
    add_custom_command(OUTPUT ${made}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completion
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/completion
            $<TARGET_FILE:cairn_cmd> ${shell} > ${made}
        DEPENDS cairn_cmd tools/completion VERBATIM)
    list(APPEND completions ${made})
endforeach()
add_custom_target(completion ALL DEPENDS ${completions})
install(FILES ${PROJECT_BINARY_DIR}/completion/bash RENAME cairn
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/completion/zsh RENAME _cairn
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# The manual pages of the calls say what the headers say.
file(GLOB headers CONFIGURE_DEPENDS include/cairn/*.h)
list(FILTER headers EXCLUDE REGEX "/cairn\\.h$") # has none of its own
set(pages ${PROJECT_BINARY_DIR}/man/man3)
add_custom_command(OUTPUT ${pages}/cairn_ckpt.3
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/header-pages ${pages} ${headers}
    DEPENDS ${headers} tools/header-pages VERBATIM)
add_custom_target(header_pages ALL DEPENDS ${pages}/cairn_ckpt.3)
install(DIRECTORY ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR})
