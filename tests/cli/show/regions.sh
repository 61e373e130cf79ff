# SPDX-License-Identifier: BSD-3-Clause
# A mark of a program with regions: its place, what it keeps and why, and the other places.
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events && cairn show t 10
