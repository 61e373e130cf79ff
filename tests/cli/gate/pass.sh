# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 1 && small_run t b 1e-12 3 1
cairn gate --bless a.golden t/a && cairn gate a.golden t/b
