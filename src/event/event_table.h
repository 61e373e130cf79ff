/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kinds of events in a run's log and their members, in the order in which they are written.
 * Structures, encoder and decoder are made from this table, and tests/api compares it with
 * docs/format/events.md, which describes the members.
 *
 * M(type, name) is always written, O(type, name) only if it is not what a reader gets for a member
 * that is missing: the first value below. Types:
 *     VERSION       uint64_t     CRN_EVENT_NO_VERSION; a mark's
 *     COUNT         uint64_t     0; things, bytes
 *     REAL          double       0; seconds, rates
 *     REAL_OR_NULL  double       NAN, which is written as null
 *     INT_OR_NULL   int          -1, likewise
 *     FLAG          bool         false
 *     TEXT          const char * NULL
 *     JSON          json_t *     NULL; arrays and objects
 */
#ifndef CAIRN_EVENT_TABLE_H
#define CAIRN_EVENT_TABLE_H

#define CRN_EVENT_LAUNCH_MEMBERS(M, O)                                                             \
    M(JSON, command) M(COUNT, tries) M(COUNT, nranks) M(REAL, seen)

#define CRN_EVENT_OPEN_MEMBERS(M, O) M(COUNT, nranks) M(COUNT, nnodes) M(REAL, seen) M(TEXT, id)

#define CRN_EVENT_IDENTITY_MEMBERS(M, O) M(TEXT, program) O(TEXT, text)

#define CRN_EVENT_RECOVERED_MEMBERS(M, O) M(COUNT, marks)

/* from: by the name of a level, a crn_event_source each */
#define CRN_EVENT_RESUME_MEMBERS(M, O) M(VERSION, version) M(REAL, seconds) M(JSON, from)

#define CRN_EVENT_LOST_MEMBERS(M, O) M(VERSION, version) M(TEXT, text)

#define CRN_EVENT_CLOSE_MEMBERS(M, O) M(FLAG, finished) O(FLAG, forgotten)

#define CRN_EVENT_ENDED_MEMBERS(M, O)                                                              \
    M(TEXT, why)                                                                                   \
    M(INT_OR_NULL, code)                                                                           \
    M(INT_OR_NULL, signal)                                                                         \
    M(REAL, launched)                                                                              \
    O(REAL, until) M(JSON, command) M(COUNT, nranks) M(JSON, output) M(REAL, seen)

#define CRN_EVENT_MARK_MEMBERS(M, O)                                                               \
    M(VERSION, version)                                                                            \
    M(REAL, held)                                                                                  \
    M(REAL, stored)                                                                                \
    O(REAL, begun)                                                                                 \
    M(REAL, interval)                                                                              \
    M(COUNT, nbytes) M(COUNT, blocks) M(COUNT, changed) M(COUNT, written) O(COUNT, healed)

#define CRN_EVENT_RAISED_MEMBERS(M, O)                                                             \
    M(VERSION, version)                                                                            \
    M(TEXT, level)                                                                                 \
    O(TEXT, format) M(REAL, seconds) M(REAL, held) M(COUNT, moved) M(COUNT, stored) O(COUNT, healed)

#define CRN_EVENT_FAILED_MEMBERS(M, O) M(VERSION, version) M(TEXT, level) M(TEXT, text)

#define CRN_EVENT_TREES_MEMBERS(M, O)                                                              \
    M(VERSION, version) M(COUNT, nranks) M(REAL, held) M(REAL, stored) M(COUNT, nbytes)

#define CRN_EVENT_COMPARED_MEMBERS(M, O)                                                           \
    M(VERSION, version) M(TEXT, reference) M(TEXT, verdict) O(TEXT, text)

#define CRN_EVENT_DIVERGED_MEMBERS(M, O)                                                           \
    M(VERSION, version) M(COUNT, rank) M(TEXT, variable) O(JSON, index) O(TEXT, here) O(TEXT, there)

/* every, better_every: a number by the name of a level; changed: three numbers; levels: a
 * crn_event_belief each */
#define CRN_EVENT_TUNED_MEMBERS(M, O)                                                              \
    M(REAL, interval)                                                                              \
    M(JSON, every)                                                                                 \
    M(REAL, efficiency)                                                                            \
    M(REAL, better_interval) M(JSON, better_every) M(JSON, changed) M(JSON, levels)

/* variables: a crn_event_variable each; as: instead of the other two */
#define CRN_EVENT_CHANGES_MEMBERS(M, O)                                                            \
    M(VERSION, version) O(VERSION, as) O(TEXT, ranks) O(JSON, variables)

/* variables: a crn_event_coded each */
#define CRN_EVENT_CODECS_MEMBERS(M, O) M(VERSION, version) M(JSON, variables)

/* Seconds of a byte, but for the rate. */
#define CRN_EVENT_CODEC_MEMBERS(M, O)                                                              \
    M(VERSION, version)                                                                            \
    M(TEXT, name)                                                                                  \
    M(TEXT, codec) M(TEXT, was) M(REAL, encode) M(REAL, rate) M(REAL, device) M(REAL, copy)

/* variables: a crn_event_kept each; sites: a crn_event_site each, the best first */
#define CRN_EVENT_REGIONS_MEMBERS(M, O)                                                            \
    M(VERSION, version)                                                                            \
    M(TEXT, place) O(FLAG, named) M(COUNT, kept) M(COUNT, whole) M(JSON, variables) O(JSON, sites)

#define CRN_EVENT_FINDING_MEMBERS(M, O)                                                            \
    M(TEXT, site) M(TEXT, variable) M(TEXT, kind) M(COUNT, index) M(COUNT, count) O(COUNT, rank)

#define CRN_EVENT_DRAINED_MEMBERS(M, O) M(VERSION, version) M(REAL, seconds) M(COUNT, stored)

#define CRN_EVENT_PRUNED_MEMBERS(M, O) M(COUNT, marks) M(COUNT, files)

/* what: put, copied, dropped, or what of these failed; text: why */
#define CRN_EVENT_STATE_MEMBERS(M, O)                                                              \
    M(TEXT, what)                                                                                  \
    M(TEXT, key)                                                                                   \
    M(VERSION, version)                                                                            \
    O(COUNT, nbytes) O(COUNT, writer) O(COUNT, processes) O(REAL, seconds) O(TEXT, text)

#define CRN_EVENT_SHELF_MEMBERS(M, O) M(TEXT, what) O(COUNT, writer) M(COUNT, states)

/* All kinds: K(constant, name), and BARE(constant, name) without members of its own. */
#define CRN_EVENT_KINDS(K, BARE)                                                                   \
    K(LAUNCH, launch)                                                                              \
    K(OPEN, open)                                                                                  \
    K(IDENTITY, identity)                                                                          \
    K(RECOVERED, recovered)                                                                        \
    K(RESUME, resume)                                                                              \
    K(LOST, lost)                                                                                  \
    BARE(STOP, stop)                                                                               \
    K(CLOSE, close)                                                                                \
    K(ENDED, ended)                                                                                \
    K(MARK, mark)                                                                                  \
    K(RAISED, raised)                                                                              \
    K(FAILED, failed)                                                                              \
    K(TREES, trees)                                                                                \
    K(COMPARED, compared)                                                                          \
    K(DIVERGED, diverged)                                                                          \
    K(TUNED, tuned)                                                                                \
    K(CHANGES, changes)                                                                            \
    K(CODECS, codecs)                                                                              \
    K(CODEC, codec)                                                                                \
    K(REGIONS, regions)                                                                            \
    K(FINDING, finding)                                                                            \
    K(DRAINED, drained)                                                                            \
    K(PRUNED, pruned)                                                                              \
    K(STATE, state)                                                                                \
    K(SHELF, shelf)

/* Objects inside of events, likewise. */
#define CRN_EVENT_SOURCE_MEMBERS(M, O)                                                             \
    M(COUNT, blocks) M(COUNT, bytes) M(COUNT, bad) M(COUNT, absent)

#define CRN_EVENT_BELIEF_MEMBERS(M, O)                                                             \
    M(TEXT, level)                                                                                 \
    M(REAL, rate) M(REAL, restart) M(REAL, fixed) M(REAL, bandwidth) M(REAL, background)

#define CRN_EVENT_VARIABLE_MEMBERS(M, O)                                                           \
    M(TEXT, name)                                                                                  \
    M(TEXT, way)                                                                                   \
    O(FLAG, tracked)                                                                               \
    M(COUNT, nbytes)                                                                               \
    O(COUNT, written)                                                                              \
    O(COUNT, hashed)                                                                               \
    O(COUNT, changed) O(COUNT, stored) O(REAL_OR_NULL, predicted) O(REAL_OR_NULL, measured)

#define CRN_EVENT_CODED_MEMBERS(M, O)                                                              \
    O(TEXT, name)                                                                                  \
    M(TEXT, codec)                                                                                 \
    O(TEXT, loss)                                                                                  \
    M(COUNT, blocks)                                                                               \
    M(COUNT, nbytes)                                                                               \
    M(COUNT, stored)                                                                               \
    O(COUNT, stricter)                                                                             \
    O(COUNT, bound) O(COUNT, special) O(COUNT, size) O(COUNT, aside) O(REAL, error) M(REAL, seconds)

#define CRN_EVENT_KEPT_MEMBERS(M, O) M(TEXT, name) M(COUNT, nbytes) M(TEXT, why)

#define CRN_EVENT_SITE_MEMBERS(M, O)                                                               \
    M(TEXT, name) M(REAL, mean) M(REAL, spread) M(COUNT, visits) M(COUNT, gap)

#define CRN_EVENT_PARTS(K)                                                                         \
    K(SOURCE, source)                                                                              \
    K(BELIEF, belief)                                                                              \
    K(VARIABLE, variable)                                                                          \
    K(CODED, coded)                                                                                \
    K(KEPT, kept)                                                                                  \
    K(SITE, site)

#endif
