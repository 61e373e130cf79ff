# SPDX-License-Identifier: BSD-3-Clause
# a state of a shelf: the newest of its key, or one version; the shelf
small_shelf s && cairn show s/m0001 && cairn show s/m0001 3 && cairn show --json s/m0001 3
cairn show s/m0001 4
cairn show s | head -1
