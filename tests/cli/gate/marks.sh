# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 0 2 all
cairn gate --bless g t/a >/dev/null
cairn gate --marks common g t/b && cairn gate g t/b
