# SPDX-License-Identifier: BSD-3-Clause
# Data that is gone has no sketch, and that is said; nor can a run without data be held against one.
small_run t a 0.00048828125 4 1 && cairn gate --bless a.golden t/a
small_run t b 0.000488281251 4 1 && cairn gate --all --bound 1e-3 a.golden t/b
