/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The messages of a study: CRN_WIRE_ROW(kind, number on the wire, name, may it have data).
 * docs/format/ensemble.md says who sends them and what their fields mean.
 */
CRN_WIRE_ROW(HELLO, 1, "hello", true)
CRN_WIRE_ROW(SERVE, 2, "serve", true)
CRN_WIRE_ROW(FIELDS, 3, "fields", true)
CRN_WIRE_ROW(ASK, 4, "ask", false)
CRN_WIRE_ROW(TASK, 5, "task", true)
CRN_WIRE_ROW(PIECE, 6, "piece", true)
CRN_WIRE_ROW(DONE, 7, "done", false)
CRN_WIRE_ROW(BEAT, 8, "beat", false)
CRN_WIRE_ROW(LEAVE, 9, "leave", false)
CRN_WIRE_ROW(STOP, 10, "stop", false)
CRN_WIRE_ROW(ORDER, 11, "order", false)
CRN_WIRE_ROW(HAVE, 12, "have", true)
CRN_WIRE_ROW(WEIGHT, 13, "weight", false)
CRN_WIRE_ROW(LOAD, 14, "load", false)
CRN_WIRE_ROW(LOADED, 15, "loaded", false)
CRN_WIRE_ROW(EVICT, 16, "evict", false)
CRN_WIRE_ROW(SHARE, 17, "share", true)
