# SPDX-License-Identifier: BSD-3-Clause
# What is no file is written to, and stays what it is.
small_trail t 1 1 1 && mkfifo pipe
grep -c '"run":"run-1"' pipe &
cairn report -o pipe t && wait
test -p pipe && echo a pipe
mkdir folder; cairn report -o folder t
