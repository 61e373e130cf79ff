# SPDX-License-Identifier: BSD-3-Clause
# Numbers that nothing can have: whoever reads them says what can be said.
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events
cairn show t/run-1 && cairn ls t
cairn report --json t | python3 -c '
import json, sys
run, = json.load(sys.stdin)["runs"]
print(len(run["legs"]), len(run["marks"]))'
