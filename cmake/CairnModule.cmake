# SPDX-License-Identifier: BSD-3-Clause
# One OBJECT library per folder of src/. USES repeats the layer table of ARCHITECTURE.md for the
# module; tools/check-layers holds includes, USES and table against each other. All modules
# together make libcairn.

add_library(cairn_flags INTERFACE)
target_compile_options(cairn_flags INTERFACE -Wall -Wextra -Werror -Wshadow
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    -fno-math-errno
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=) # messages name src/..., not this machine's folders
target_compile_definitions(cairn_flags INTERFACE _GNU_SOURCE)
target_include_directories(cairn_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
    ${PROJECT_SOURCE_DIR}/src)

set(CAIRN_ASAN_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
if(CAIRN_SANITIZE STREQUAL "asan")
    target_compile_options(cairn_flags INTERFACE ${CAIRN_ASAN_FLAGS})
    target_link_options(cairn_flags INTERFACE ${CAIRN_ASAN_FLAGS})
elseif(CAIRN_SANITIZE STREQUAL "tsan")
    target_compile_options(cairn_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
    target_link_options(cairn_flags INTERFACE -fsanitize=thread)
elseif(CAIRN_SANITIZE)
    message(FATAL_ERROR "CAIRN_SANITIZE is '${CAIRN_SANITIZE}': asan, tsan or nothing")
endif()

# crn_module(<name> [USES <module>...] [PKGS <pkg-config name>...] [LIBS <link item>...]
#     [MORE <source>...])
# Sources are the .c files of the folder, and MORE that the build makes. A folder without sources is
# no module yet.
function(crn_module name)
    cmake_parse_arguments(M "" "" "USES;PKGS;LIBS;MORE" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    list(APPEND sources ${M_MORE})
    if(NOT sources)
        return()
    endif()
    set(link ${M_LIBS})
    foreach(pkg ${M_PKGS})
        if(NOT TARGET PkgConfig::${pkg})
            pkg_check_modules(${pkg} REQUIRED IMPORTED_TARGET GLOBAL ${pkg})
        endif()
        list(APPEND link PkgConfig::${pkg})
    endforeach()
    add_library(${name} OBJECT ${sources})
    target_link_libraries(${name} PUBLIC cairn_flags ${link})
    set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES ${name})
    set_property(GLOBAL APPEND PROPERTY CAIRN_SOURCES ${sources})
    set_property(GLOBAL APPEND PROPERTY CAIRN_LINK ${link})
    set_property(GLOBAL APPEND PROPERTY CAIRN_PKGS ${M_PKGS})
endfunction()
