# SPDX-License-Identifier: BSD-3-Clause
# Twenty thousand legs of three marks each, of which the next leg takes the second: the time that
# the log takes grows with its length only, or the page of a long run would take hours. All marks
# are counted, and those that are worth seeing shown.
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
        slow = leg == 7777 and k == 2
        say("mark", 10 * k, version=20 * leg + 10 * k, held=9.0 if slow else 0.125, stored=1.0,
            written=5000 if leg == 1234 and k == 2 else 100, nbytes=1000)
        say("raised", 10 * k, version=5, level="global", seconds=1.0) # of no mark
        say("tuned", 10 * k, interval=10.0, every={"local": 1})
END
cairn report --json t | python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
marks, totals = run["marks"], run["totals"]
print(len(run["legs"]), totals)
print(totals["shown"] == len(marks) < 2000, len(run["plan"]["tuned"]) <= 1001)
print([m["version"] for m in marks if m["held"] > 1 or m["written"] > 100])
print(marks[0]["version"], [(m["version"], m["abandoned"]) for m in marks[-3:]])
print(all(m["abandoned"] == ((m["time"] + 1) % 100 == 30 and m["leg"] < 20000) for m in marks),
      any(m["abandoned"] for m in marks))'
