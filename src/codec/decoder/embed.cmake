# SPDX-License-Identifier: BSD-3-Clause
# A program as a C source: cmake -DPROGRAM=<file> -DSOURCE=<file> -P embed.cmake
file(READ ${PROGRAM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes
    "${bytes}")
file(WRITE ${SOURCE} "#include \"codec/codec_worker.h\"
static const unsigned char program[] = {\n${bytes}};
const crn_program crn_decoder_program = {program, sizeof program};\n")
