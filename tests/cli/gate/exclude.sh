# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 4 all && small_run t b 0.5 4 all
cairn gate --bless g t/a && cairn gate --exclude field g t/b && cairn gate --exclude step g t/b
