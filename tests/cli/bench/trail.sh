# SPDX-License-Identifier: BSD-3-Clause
# Every step writes all of 'field': no size gains.
small_run t one 0 3 3 && small_run t two 0 1 1 &&
cairn bench blocks --trail t/one && cairn bench blocks --trail t &&
cairn bench blocks --json --trail t/one | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j["run"], [v["name"] for v in j["variables"]], j["variables"][0]["sizes"][-1])
'
cairn bench blocks --trail nowhere; echo "exit $?"
cairn bench blocks --trail t here; echo "exit $?"
