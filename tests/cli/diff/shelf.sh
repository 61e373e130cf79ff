# SPDX-License-Identifier: BSD-3-Clause
# states: two versions of a key, within a bound or not; the versions that two keys have; two shelves
small_shelf s && cairn diff s/m0001@3 s/m0001@17; cairn diff --bound 14 s/m0001@3 s/m0001@17
cairn diff s/m0001 s/m0002; cairn diff --marks all --first s/m0001 s/m0002
small_shelf t && cairn diff s t && cairn diff --json s t
small_shelf u other && cairn diff s u; cairn diff --bound 1 --marks all s u
cairn diff s/m0001@5 s/m0001@3; cairn diff s t/m0001
