# SPDX-License-Identifier: BSD-3-Clause
# beside a trail, and where the environment names it
small_trail cairn.trail 1 1 1 && cairn ls && cairn verify .
mv cairn.trail other && CAIRN_RUN_TRAIL=other cairn ls && cairn ls
