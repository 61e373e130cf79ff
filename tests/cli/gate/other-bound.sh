# SPDX-License-Identifier: BSD-3-Clause
# No bound in common, or none for what is asked; what is the same to the last bit passes anyway.
small_run t a 0 3 1 && cairn gate --bless --sketch none a.golden t/a
CAIRN_VARIABLE_BOUND='1e-4, 1e-6' small_run t same 0 3 1 && cairn gate a.golden t/same
CAIRN_VARIABLE_BOUND='1e-4, 1e-6' small_run t b 1e-12 3 1 && cairn gate a.golden t/b
CAIRN_VARIABLE_BOUND= small_run t c 1e-12 3 1 && cairn gate --variable field a.golden t/c
small_run t d 1e-12 3 1 && cairn gate --bound 1e-10 a.golden t/d
