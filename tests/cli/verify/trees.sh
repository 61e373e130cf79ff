# SPDX-License-Identifier: BSD-3-Clause
# The last bytes of a rank's trees are those of a variable; the head of a record lies before them.
small_run t a 0 3 all && cairn verify t
python3 -c '
path = "t/a/trees/000/trees-000000"
data = bytearray(open(path, "rb").read())
second = data.index(b"TREE", data.index(b"TREE") + 1)
data[second + 64] ^= 1
last = data.rindex(b"TREE")
body = last + 64 + -(-int.from_bytes(data[last + 8:last + 16], "little") // 64) * 64
data[body + 5] ^= 1
open(path, "wb").write(data)'
cairn verify t
cairn verify --json t | python3 -c '
import json, sys
for d in json.load(sys.stdin)["damage"]:
    print(d["mark"], d["rank"], d["variable"], d["block"], d["text"])'
# Whoever made this one came no further: that is no damage.
truncate -s 40 t/a/trees/000/trees-000000 && cairn verify t
