# SPDX-License-Identifier: BSD-3-Clause
# a shelf that is sound, and one with a flipped byte in a block
small_shelf s && cairn verify s && cairn verify --json s/m0001
python3 - <<'END'
import struct
name = "s/writers-000/part-1-0"
data = bytearray(open(name, "rb").read())
at = data.find(struct.pack("<d", 117.0), 8192)  # of a block of the first state
data[at] ^= 1
open(name, "wb").write(data)
END
cairn verify s | sed 's/block .*/block/'
cairn verify s > out; echo $?
