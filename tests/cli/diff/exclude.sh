# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 4 all && small_run t b 0.5 4 all
cairn diff --exclude 'fi*' t/a t/b && cairn diff --exclude step --first t/a t/b
cairn diff --exclude field,none --json t/a t/b | tail -2
cairn diff --exclude 'f*,s*' t/a t/b
