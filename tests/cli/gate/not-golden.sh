# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 1 1 && echo nothing >a.golden
cairn gate a.golden t/a
