# SPDX-License-Identifier: BSD-3-Clause
# What 'make install' installs, and how others find it: a pkg-config file and a CMake package. Both
# compute their prefix from where they lie, so the tree may be staged with DESTDIR or moved.
include(CMakePackageConfigHelpers)

get_property(pkgs GLOBAL PROPERTY CAIRN_PKGS)
get_property(link GLOBAL PROPERTY CAIRN_LINK)
list(REMOVE_DUPLICATES pkgs)
list(JOIN pkgs ", " CAIRN_PC_PRIVATE)
set(CAIRN_CONFIG_PKGS "${pkgs}")

# Libraries without a pkg-config file are named as they are.
set(plain ${link})
list(FILTER plain EXCLUDE REGEX "::")
list(TRANSFORM plain PREPEND "-l")
list(REMOVE_DUPLICATES plain)
list(JOIN plain " " CAIRN_PC_PLAIN)

# Once a module uses MPI, users of the library need the same one.
set(CAIRN_CONFIG_MPI FALSE)
set(CAIRN_PC_PUBLIC "")
if("MPI::MPI_C" IN_LIST link)
    set(CAIRN_CONFIG_MPI TRUE)
    set(mpi_pc_openmpi ompi-c)
    set(mpi_pc_mpich mpich)
    set(CAIRN_PC_PUBLIC ${mpi_pc_${CAIRN_MPI}})
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
install(EXPORT CairnTargets NAMESPACE Cairn:: DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/CairnConfig.cmake
    ${PROJECT_BINARY_DIR}/CairnConfigVersion.cmake DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/cairn.pc DESTINATION ${pc_dir})
install(DIRECTORY include/cairn TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS cairn_cmd)
# Manual pages name some of them.
install(DIRECTORY docs/format docs/guide docs/jobs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/Cairn)
install(FILES docs/format.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/Cairn)
foreach(section 1 5 7)
    file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# The manual pages of the calls say what the headers say.
file(GLOB headers CONFIGURE_DEPENDS include/cairn/*.h)
list(FILTER headers EXCLUDE REGEX "/cairn\\.h$") # has none of its own
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(pages ${PROJECT_BINARY_DIR}/man/man3)
add_custom_command(OUTPUT ${pages}/cairn_ckpt.3
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/header-pages ${pages} ${headers}
    DEPENDS ${headers} tools/header-pages VERBATIM)
add_custom_target(header_pages ALL DEPENDS ${pages}/cairn_ckpt.3)
install(DIRECTORY ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR})
