# SPDX-License-Identifier: BSD-3-Clause
# Cell 1001 lies in block 1, which marks 20 to 40 share.
small_trail t 2 4 3
python3 -c '
import struct
path = "t/run-1/series-1/000/part-000001"
data = open(path, "rb").read().replace(struct.pack("<d", 1 + 0.001 * 1001), struct.pack("<d", 2.5))
open(path, "wb").write(data)'
cairn verify t
