# SPDX-License-Identifier: BSD-3-Clause
# Marks that did not get to a level are on the page of a long run, and so is what a mark changed
# that only refers to an earlier one.
small_trail t 1 1 1
python3 - >t/run-1/events <<'END'
import json
def say(kind, **members):
    print(json.dumps({"event": kind, **members, "time": 1_800_000_000 + say.at}))
    say.at += 1
say.at = 0
say("open", nranks=2, nnodes=1, seen=0)
for v in range(1, 5001):
    say("mark", version=v, held=0.5, stored=0.5, nbytes=10, blocks=2, changed=1, written=5)
    if v % 1000 == 1:
        say("changes", version=v, ranks="z0",
            variables=[{"name": f"v{v}", "way": "copy", "nbytes": 10}])
    else:
        say("changes", version=v, **{"as": v - (v - 1) % 1000})
    if v in (17, 2500, 2501, 4444):
        say("failed", version=v, level="global", text="no room")
END
cairn report --json t | python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
print({k: run["totals"][k] for k in ("marks", "failed", "failed_shown", "held", "written")})
print([(m["version"], m["failed"]) for m in run["marks"] if m["failed"]])
print(run["marks"][-1]["ranks"], run["marks"][-1]["variables"])'
