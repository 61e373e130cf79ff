# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 1 1 && rm -r t/a/trees
cairn gate --bless a.golden t/a
