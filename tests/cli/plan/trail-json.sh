# SPDX-License-Identifier: BSD-3-Clause
small_trail t 4 1 1 && cp "${0%-json.sh}.events" t/run-1/events
cairn plan --trail t --json | sed "/\"worse\"/,/^  \]/d"
