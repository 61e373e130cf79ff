# SPDX-License-Identifier: BSD-3-Clause
# The first leg died when the manifest had mark 30 and the log did not yet: what 'cairn run' tells
# by the log so far stands when the next leg has gone on with mark 30.
small_trail t 2 1 1
lost() { cairn show --json t | python3 -c '
import json, sys
print(json.load(sys.stdin)["legs"][0]["lost_seconds"])'; }
head -n 4 "${0%.sh}.events" >t/run-1/events && lost
cp "${0%.sh}.events" t/run-1/events && lost
