# SPDX-License-Identifier: BSD-3-Clause
# What is not proven has its place and its sentence in a table, too.
small_run t a 0 5 1 && small_run t b 0.5 5 1
cairn diff --csv --all --variable field t/a t/b
