# SPDX-License-Identifier: BSD-3-Clause
# A mark that changed what an earlier one did refers to that in the log.
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events && cairn show t 10
