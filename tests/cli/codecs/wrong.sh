# SPDX-License-Identifier: BSD-3-Clause
# Wishes, marks and variables that there are not.
small_trail t 1 1 1
cairn codecs -w rhu=1 t 2>&1 | head -1
cairn codecs -w rho t 2>&1 | head -1
cairn codecs -w max=0 t 2>&1 | head -1
cairn codecs -m 11 t
cairn codecs --no-storage t humidity
