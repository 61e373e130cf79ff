# SPDX-License-Identifier: BSD-3-Clause
# The third mark is where they part, and its data is dropped by then.
small_run t a 0 5 1 && small_run t b 0.5 5 1
cairn diff --all t/a t/b
