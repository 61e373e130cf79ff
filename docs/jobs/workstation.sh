#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One machine without a batch system: keep a computation going over nights, and end it with a mark
# by Ctrl-C. After a reboot the same line goes on.
exec cairn run --hang 30min --trail results -- mpirun -n 8 ./app input
