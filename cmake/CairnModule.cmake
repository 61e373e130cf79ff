# SPDX-License-Identifier: BSD-3-Clause
# One OBJECT library per folder of src/. USES repeats the layer table of ARCHITECTURE.md for the
# module; tools/check-layers holds includes, USES and table against each other. All modules
# together make libcairn, but for those of a LIBRARY of their own.

set(werror)
if(CAIRN_WERROR)
    set(werror -Werror)
endif()
add_library(cairn_flags INTERFACE)
target_compile_options(cairn_flags INTERFACE -Wall -Wextra ${werror} -Wshadow
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

# crn_module(<name> [LIBRARY <name>] [USES <module>...] [NEEDS <library>...] [LIBS <link item>...]
#     [MORE <source>...] [WITHOUT <source>...] [DEFINES <definition>...])
# Sources are the .c files of the folder but WITHOUT those whose libraries are missing, and MORE
# that the build makes. NEEDS are names of cmake/CairnParts.cmake; those of parts that are missing
# count for nothing. A folder without sources is no module yet.
function(crn_module name)
    cmake_parse_arguments(M "" "LIBRARY" "USES;NEEDS;LIBS;MORE;WITHOUT;DEFINES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    foreach(file ${M_WITHOUT})
        list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    endforeach()
    list(APPEND sources ${M_MORE})
    if(NOT sources)
        return()
    endif()
    set(link ${M_LIBS})
    foreach(part ${M_NEEDS})
        if(TARGET CairnDep::${part})
            list(APPEND link CairnDep::${part})
        endif()
    endforeach()
    add_library(${name} OBJECT ${sources})
    target_link_libraries(${name} PUBLIC cairn_flags ${link})
    target_compile_definitions(${name} PRIVATE ${M_DEFINES})
    set_property(GLOBAL APPEND PROPERTY CAIRN_DEFINES ${M_DEFINES})
    set_property(GLOBAL APPEND PROPERTY CAIRN_MODULES${M_LIBRARY} ${name})
    set_property(GLOBAL APPEND PROPERTY CAIRN_SOURCES ${sources})
    set_property(GLOBAL APPEND PROPERTY CAIRN_LINK${M_LIBRARY} ${link})
endfunction()
