# SPDX-License-Identifier: BSD-3-Clause
# The list is a configuration file, and JSON has the same keys.
cairn help config | grep -v '^$' | awk '/^\[/ {s = $1} /^; [a-z_]+ = / {print s, $2}' >ini
cairn help config --json | python3 -c '
import json, sys
for o in json.load(sys.stdin):
    print("[%s]" % o["section"], o["key"])' >json
cmp ini json && grep -qx '\[keep\] local' ini
