# SPDX-License-Identifier: BSD-3-Clause
# Twenty thousand legs of three marks each, of which the next leg takes the second: the time that
# the log takes grows with its length only, or the page of a long run would take hours.
small_trail t 1 1 1
python3 - >t/run-1/events <<'END'
import json
for leg in range(20000):
    at = 1_800_000_000 + 100 * leg
    def say(kind, after, **members):
        print(json.dumps({"event": kind, **members, "time": at + after}))
    say("open", 0, nranks=1, nnodes=1, seen=at - 50 if leg else 0)
    if leg:
        say("resume", 1, version=20 * leg, seconds=1.0, **{"from": {}})
    for k in (1, 2, 3):
        say("mark", 10 * k, version=20 * leg + 10 * k, held=0.1, stored=1.0)
        say("raised", 10 * k, version=5, level="global", seconds=1.0) # of no mark
END
cairn report --json t | python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
marks = run["marks"]
print(len(run["legs"]), len(marks), sum(m["abandoned"] for m in marks), marks[2]["abandoned"])'
