# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 0.5 3 all
cairn diff --direct --threads 1 t/a t/b
