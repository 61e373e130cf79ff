# SPDX-License-Identifier: BSD-3-Clause
small_run t a 0 3 all && small_run t b 0.5 3 all
cairn diff --bound 'field=0.5, 1e-9' t/a t/b && cairn diff --bound '1, field=1e-9' --first t/a t/b
