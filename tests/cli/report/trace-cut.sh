# SPDX-License-Identifier: BSD-3-Clause
# What is missing from a trace is told, here and on the page.
# NEEDS: zstd
small_trail t 1 1 1 && small_trace t/run-1.ctr 2 cut
cairn report t && grep -o '"incomplete":"[^"]*"' report.html
