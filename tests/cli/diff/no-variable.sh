# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 2 all && small_run t b 0 2 all
cairn diff --variable fields t/a t/b
