# SPDX-License-Identifier: BSD-3-Clause
# Value 701 is in a block that has to be looked at.
small_run t a 0 3 all && small_run t b 0.5 3 all
python3 -c '
import struct
path = "t/b/series-1/000/part-000000"
data = open(path, "rb").read().replace(struct.pack("<d", 701 * 0.25 + 3.5), struct.pack("<d", 9.5))
open(path, "wb").write(data)'
cairn diff t/a t/b
