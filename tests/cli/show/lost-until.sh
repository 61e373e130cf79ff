# SPDX-License-Identifier: BSD-3-Clause
# Work is lost until the death that "cairn run" saw, not until the last sign of life; only one that
# hung (leg 2) is not known to have worked after its last sign. "cairn plan" goes by the same times.
small_trail t 2 1 1
cp "${0%.sh}.events" t/run-1/events
cairn show --json t | python3 -c '
import json, sys
for leg in json.load(sys.stdin)["legs"]:
    print(leg["end"], leg["ended"], leg["lost_seconds"], leg["restart_seconds"])'
cairn plan --json --trail t/run-1 | python3 -c '
import json, sys
def find(o):
    if isinstance(o, dict):
        if "coming_back" in o:
            return o
        o = list(o.values())
    return next((f for f in map(find, o) if f), None) if isinstance(o, list) else None
o = find(json.load(sys.stdin))
print(round(o["lost"], 6), round(o["coming_back"], 6))'
