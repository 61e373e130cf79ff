# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 1 1
cairn gate --bless --sketch lots a.golden t/a
cairn gate --sketch bits a.golden t/a
