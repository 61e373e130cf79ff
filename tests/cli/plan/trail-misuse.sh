# SPDX-License-Identifier: BSD-3-Clause
small_trail t 4 1 1
cairn plan --trail t
cairn plan --trail t/run-2
cairn plan --trail nowhere
cairn plan --trail t --state 1GB
cairn plan --trail t --simulate none
