# SPDX-License-Identifier: BSD-3-Clause
# a session says what it has chosen when asked
CAIRN_LOG=info small_run t a 0 3 1 2>&1 |
    grep -oE "trail 't', run 'a'|1 rank on 1 node, local|levels: local|output by|tracking: [a-z.]+"
