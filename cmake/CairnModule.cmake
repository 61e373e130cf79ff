# SPDX-License-Identifier: BSD-3-Clause
# One OBJECT library per folder of src/; USES repeats the layer table of ARCHITECTURE.md, so that a
# module sees only the rows below it. All modules together make libcairn.

add_library(cairn_flags INTERFACE)
target_compile_options(cairn_flags INTERFACE -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> -fno-math-errno)
target_compile_definitions(cairn_flags INTERFACE _GNU_SOURCE)
target_include_directories(cairn_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/src)
if(CAIRN_SANITIZE STREQUAL "asan")
    set(CAIRN_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
elseif(CAIRN_SANITIZE STREQUAL "tsan")
    set(CAIRN_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
endif()
target_compile_options(cairn_flags INTERFACE ${CAIRN_SANITIZE_FLAGS})
target_link_options(cairn_flags INTERFACE ${CAIRN_SANITIZE_FLAGS})

# crn_module(<name> [USES <module>...] [PKGS <pkg-config name>...] [LIBS <link item>...])
# Sources are the .c files of the folder.
function(crn_module name)
    cmake_parse_arguments(M "" "" "USES;PKGS;LIBS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    if(NOT sources)
        return()
    endif()
    add_library(${name} OBJECT ${sources})
    target_link_libraries(${name} PUBLIC cairn_flags ${M_LIBS})
    foreach(pkg ${M_PKGS})
        if(NOT TARGET PkgConfig::${pkg})
            pkg_check_modules(${pkg} REQUIRED IMPORTED_TARGET GLOBAL ${pkg})
        endif()
        target_link_libraries(${name} PUBLIC PkgConfig::${pkg})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES ${name})
    set_property(GLOBAL PROPERTY CAIRN_USES_${name} "${M_USES}")
    set_property(GLOBAL APPEND PROPERTY CAIRN_LINK ${M_LIBS})
    foreach(pkg ${M_PKGS})
        set_property(GLOBAL APPEND PROPERTY CAIRN_LINK PkgConfig::${pkg})
        set_property(GLOBAL APPEND PROPERTY CAIRN_PKGS ${pkg})
    endforeach()
endfunction()
