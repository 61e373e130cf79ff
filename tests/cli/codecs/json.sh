# SPDX-License-Identifier: BSD-3-Clause
# What codecs make of a small variable, without what differs from machine to machine.
# NEEDS: lz4 zstd zfp fpzip
small_trail t 1 1 1 && cairn codecs --json --no-storage t | python3 -c 'import json, sys
d = json.load(sys.stdin)
v = d["variables"][0]
print(d["run"], d["mark"], d["left_out"], d["storage"], v["name"], v["type"], v["nbytes"])
for t in v["trials"]:
    assert t["encode"] > 0 and t["decode"] > 0 and t["safe"] is None
    assert t["rate_low"] == t["rate"] and t["nbytes"] == v["sample_bytes"]
    print(t["front"], t["codec"], "%.3g %.3g" % (t["rate"], t["max"]), "(%s)" % t["loss"])
'
