# SPDX-License-Identifier: BSD-3-Clause
# a program that finishes its run and then ends with a code of its own
cairn run --trail t -- sh -c 'small_run "$CAIRN_RUN_TRAIL" "$CAIRN_RUN_NAME" 0 3 1; exit 3'
