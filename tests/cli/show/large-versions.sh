# SPDX-License-Identifier: BSD-3-Clause
# Of versions all digits count: doubles, which have 53 bits, would not tell neighbours apart.
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events
cairn show t | sed -n '/LEG/,$p'
cairn report --json t | grep -E '"(version|abandoned)"'
