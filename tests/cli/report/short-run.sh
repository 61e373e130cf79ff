# SPDX-License-Identifier: BSD-3-Clause
# Of a long run the model tells about what became of it; a short one that lost half of its time went
# otherwise than is to be expected over a long time, and both are said.
small_trail t 4 1 1
fits() { cairn report --json t | python3 -c '
import json, sys
plan = json.load(sys.stdin)["runs"][0]["plan"]["run"]
print(plan["fits"], plan["failures"], round(plan["took"]), round(plan["achieved"], 2),
      round(plan["done"]["efficiency"], 2))'; }
cp "${0%report/*}plan/trail.events" t/run-1/events && fits
head -n 9 "${0%report/*}plan/trail.events" >t/run-1/events
cat >>t/run-1/events <<'END'
{"event":"open","nranks":4,"nnodes":4,"seen":1230.0,"time":1240.0}
{"event":"resume","version":50,"seconds":1,"from":{"local":{"blocks":9}},"time":1241.0}
{"event":"close","finished":true,"time":1250.0}
END
fits
cairn plan --trail t | tail -n 2
