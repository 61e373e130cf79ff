# SPDX-License-Identifier: BSD-3-Clause
# The nodes of a record are hit: the digests in the part take their place.
small_run t a 0 3 all && small_run t b 0.5 3 all
python3 -c '
path = "t/a/trees/000/trees-000000"
data = bytearray(open(path, "rb").read())
for i in range(512, len(data), 128):
    data[i] ^= 1
open(path, "wb").write(data)'
cairn diff --bound 1e-3 t/a t/b
