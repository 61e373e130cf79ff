# SPDX-License-Identifier: BSD-3-Clause
# A trace that cannot be read is told; the page is there all the same.
# NEEDS: zstd
small_trail t 1 1 1 && echo nonsense >t/run-1.ctr
cairn report t
echo $? $(grep -c '"trace":' report.html) $(grep -c '"run":"run-1"' report.html)
cairn report --trace nowhere.ctr t
echo $? $(grep -c '"run":"run-1"' report.html)
