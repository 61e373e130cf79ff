# SPDX-License-Identifier: BSD-3-Clause
# Put the option table that CAIRN prints into the manual page TEXT and write it to PAGE.
execute_process(COMMAND ${CAIRN} help config --man OUTPUT_VARIABLE CAIRN_OPTIONS
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result)
if(NOT result EQUAL 0)
    message(FATAL_ERROR "'${CAIRN} help config --man' failed: ${result}")
endif()
configure_file(${TEXT} ${PAGE} @ONLY)
