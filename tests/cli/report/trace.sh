# SPDX-License-Identifier: BSD-3-Clause
# The numbers are those of 'cairn trace stat --json'.
# NEEDS: zstd
small_trail t 1 1 1 && small_trace t.ctr 4
cairn trace stat --json t.ctr >stat
cairn report --json --trace t.ctr t >named
mv t.ctr t/run-1.ctr && cairn report --json t/run-1 >beside
python3 - <<'END'
import json
stat, *reports = [json.load(open(name)) for name in ("stat", "named", "beside")]
for report in reports:
    trace = report["runs"][0]["trace"]
    print(trace.pop("groups"), trace == stat)
END
