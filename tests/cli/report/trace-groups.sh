# SPDX-License-Identifier: BSD-3-Clause
# More than 64 ranks are joined to groups, and nothing is lost by it.
# NEEDS: zstd
small_trail t 1 1 1 && small_trace t/run-1.ctr 100
cairn trace stat --json t/run-1.ctr >stat
cairn report --json t >report
python3 - <<'END'
import json
stat, trace = json.load(open("stat")), json.load(open("report"))["runs"][0]["trace"]
print(trace["groups"], *(max(p[key] for p in trace["pairs"]) for key in ("rank", "peer")))
for name in ("pairs", "ranks"):
    sums = [[sum(row[key] for row in t[name]) for key in ("events", "nbytes")]
            for t in (stat, trace)]
    print(name, len({row["rank"] for row in trace[name]}), sums[0] == sums[1])
keys = [(p["rank"], p["peer"]) for p in trace["pairs"]]
print(len(keys) == len(set(keys)), (63, 0) in keys)
END
