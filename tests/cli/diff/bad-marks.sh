# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 1 all
cairn diff --marks some t/a t/a
