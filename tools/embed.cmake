# SPDX-License-Identifier: BSD-3-Clause
# One page of several files:
#
#     cmake -DPAGE=<file> -DOUT=<file> -DWORDS=<word>;... [-D<word>=<file>;...] -P embed.cmake
#
# Each @word@ in PAGE becomes the text of the word's files, one after the other; a word without
# files becomes nothing.
file(READ ${PAGE} text)
foreach(word ${WORDS})
    set(content)
    set(glue)
    foreach(file ${${word}})
        file(READ ${file} piece)
        string(APPEND content "${glue}${piece}")
        set(glue "\n")
    endforeach()
    string(REPLACE "@${word}@" "${content}" text "${text}")
endforeach()
file(WRITE ${OUT} "${text}")
