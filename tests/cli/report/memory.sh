# SPDX-License-Identifier: BSD-3-Clause
# What reads the log of a run keeps little of each mark in memory: 30,000 marks more take less than
# 400 bytes each, where the lines of each, parsed, would take some thousands.
cat >log.py <<'END'
import json, sys
print(json.dumps({"event": "open", "nranks": 1, "nnodes": 1, "seen": 0, "time": 1.8e9}))
for v in range(1, int(sys.argv[1]) + 1):
    for e in ({"event": "mark", "version": v, "held": 0.5, "stored": 0.5, "interval": 1.0,
               "nbytes": 16896, "blocks": 2, "changed": 2, "written": 22592},
              {"event": "changes", "version": v, "ranks": "z", "variables": [
                  {"name": "a", "way": "compare", "nbytes": 16384, "hashed": 16384}]},
              {"event": "tuned", "interval": 100.0, "every": {"local": 1}, "efficiency": 0.5,
               "better_interval": 3.5, "better_every": {"local": 1}}):
        print(json.dumps({**e, "time": 1.8e9 + v}))
END
cat >peak.py <<'END'
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(status, usage.ru_maxrss * 1024)
END
if grep -q -e __asan_init -e __tsan_init "$(command -v cairn)"; then
    allowed=1000000 # the sanitizers' own memory counts, too
else
    allowed=400
fi
for n in 10000 40000; do
    small_trail t$n 1 1 1
    python3 log.py $n >t$n/run-1/events
done
for command in "ls" "ls --json" "show" "show --json" "report -o r.html" "report --json"; do
    set -- $(python3 peak.py cairn $command t10000) $(python3 peak.py cairn $command t40000)
    [ $1$3 = 00 ] && [ $((($4 - $2) / 30000)) -lt $allowed ] && echo "$command: little" ||
        echo "$command: $1 $3, $((($4 - $2) / 30000)) bytes a mark"
done
