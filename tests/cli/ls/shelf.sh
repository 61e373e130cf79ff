# SPDX-License-Identifier: BSD-3-Clause
# the states of a shelf, and those of a key; one that is not there
small_shelf s && cairn ls s && cairn ls s/m0001 && cairn ls --json s/m0002 && cairn ls s/m3
