# SPDX-License-Identifier: BSD-3-Clause
# The first leg was killed with its 'cairn run' 50 s after its last mark. When it was seen last is
# said by the first who came after it; later ones saw those before them.
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events
cairn show t/run-1 | sed -n '/LEG/,$p' && cairn plan --trail t | sed -n 2p
