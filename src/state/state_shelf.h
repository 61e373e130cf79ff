/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state: named states on shelves. Row 4.
 *
 * A shelf is a directory (docs/format/shelf.md):
 *
 *     SHELF/shelf                          says that it is one, and its identity
 *     SHELF/index                          the states that count (state_index.h)
 *     SHELF/lock                           held while a writer begins, or the index is made anew
 *     SHELF/writers-<s / 100>/part-<s>-<rank>    the states of a writer, as a part file
 *     SHELF/writers-<s / 100>/drops-<s>          what others have dropped of them
 *
 * A writer is a group of processes, or one; its number is the series of its parts. A state counts
 * when the index lists it: all processes of the group have committed their parts before. Who drops
 * a state takes it out of the index first. So a part may have states that do not count, of a put or
 * a drop that was cut short; whoever opens the part to write next removes them.
 */
#ifndef CAIRN_STATE_SHELF_H
#define CAIRN_STATE_SHELF_H

#include <cairn/state.h>

#include "comm/comm.h"
#include "redist/redist.h"
#include "state/state_index.h"

enum { STATE_READERS = 64 };

/* A part that was opened to read. */
typedef struct state_reader {
    uint32_t series, rank;
    uint64_t used; /* when: the longest unused one is closed for another */
    crn_part *part;
} state_reader;

/* Parts that this process writes alone for states of several. */
typedef struct state_host {
    uint32_t series, nranks;
    crn_part **part; /* nranks */
} state_host;

typedef struct state_engine state_engine;
typedef struct state_log state_log;
typedef struct state_putting state_putting;

/* By which codec the program wants a field to be stored. */
typedef struct state_choice {
    char field[CRN_VAR_NAME + 1], codec[CRN_CODEC_TEXT];
} state_choice;

struct cairn_shelf {
    crn_comm *comm;
    int fd;
    char *path;
    crn_config *cfg;
    bool borrowed; /* the configuration: it is another's */
    crn_part_options opt;
    unsigned char id[16];
    state_index *index;
    uint32_t series; /* of the own parts; 0: not yet a writer */
    crn_part *part;  /* this process's */
    bool made_room;  /* a put that found no room has given back what nobody needs */
    CRN_VEC(state_host) host;
    state_reader reader[STATE_READERS];
    uint64_t clock;
    state_engine *engine; /* made when it is needed */
    CRN_VEC(state_choice) chosen; /* codecs of fields, by the program */
    state_log *log;       /* NULL: nobody is told; like the configuration it may be borrowed */
    cairn_transfer
        *pending; /* a put whose end nobody has seen; the engine has the part till then */
};

/* --- the directory (state_shelf.c) -------------------------------------------------------- */

/* Open the shelf at path for the processes of comm, which is taken, also on failure. Collective. */
cairn_status crn_shelf_open(crn_comm *comm, const char *path, const char *config,
                            cairn_shelf **ret);

/* The same shelf again, for another thread of this process; it lasts no longer than s. Not
 * collective. */
cairn_status crn_shelf_again(const cairn_shelf *s, cairn_shelf **ret);

/* Wait for whoever begins a writer or makes the index anew; close *ret to let go. */
cairn_status crn_shelf_lock(cairn_shelf *s, crn_file **ret);

/* The directory of a writer's files; close *ret_fd. */
cairn_status crn_writer_dir(const cairn_shelf *s, uint32_t series, bool create, int *ret_fd);

enum { STATE_FILE_NAME = 48 };
char *crn_writer_part_name(uint32_t series, uint32_t rank, char buf[STATE_FILE_NAME]);
char *crn_writer_drops_name(uint32_t series, char buf[STATE_FILE_NAME]);

/* Call fn for each part of the shelf: its writer and its rank. Negative results end it. */
typedef cairn_status state_part_fn(void *arg, uint32_t series, uint32_t rank);
cairn_status crn_shelf_parts(const cairn_shelf *s, state_part_fn *fn, void *arg);

/* Is what a new state shares with others to be read again? */
bool crn_shelf_rechecks(const cairn_shelf *s);

/* Open the part of a writer's rank. nranks 0: of however many. */
cairn_status crn_writer_part(const cairn_shelf *s, uint32_t series, uint32_t rank, uint32_t nranks,
                             bool write, crn_part **ret);

/* --- the index from the parts (state_mend.c) ------------------------------------------------ */

/* Make the index anew, with the shelf's lock. */
cairn_status crn_shelf_make_index(cairn_shelf *s);

/* What a bucket of it has to have: a state_mend_fn for a shelf. */
cairn_status crn_shelf_mend(void *shelf, uint64_t bucket, state_entries *list);

/* --- putting (state_put.c) ---------------------------------------------------------------- */

/* What cairn_state_put and cairn_state_get do, but for naming the state in messages. */
cairn_status crn_state_put(cairn_shelf *s, crn_state_name name, const char *parent,
                           const cairn_field *field, size_t n);
cairn_status crn_state_get(cairn_shelf *s, crn_state_name name, const cairn_field *field, size_t n);
cairn_status crn_state_verify(cairn_shelf *s, crn_state_name name);
cairn_status crn_state_export(cairn_shelf *s, crn_state_name name, const cairn_export_options *how,
                              cairn_export_result *ret);
cairn_status crn_state_cells(cairn_shelf *s, crn_state_name name, const char *field, size_t ncells,
                             const uint64_t *cell, uint64_t *nitems);

/*
 * A put in its steps. Captured, it needs the program's memory no longer; with staging it was only
 * copied, up to so many bytes. CAIRN_NOTHING: the state is there, and *ret is not set. Stored, by
 * any thread, it is in the own part; finish, which must follow, makes it count. Capture and finish
 * are collective.
 */
cairn_status crn_put_capture(cairn_shelf *s, crn_state_name name, const char *parent,
                             const cairn_field *field, size_t n, uint64_t staging,
                             state_putting **ret);
cairn_status crn_put_store(state_putting *p);
cairn_status crn_put_finish(state_putting *p, cairn_status stored);

/* --- the arbiter (state_claim.c) ---------------------------------------------------------- */

/* Is mine the state that is there? CAIRN_NOTHING: yes; CAIRN_EMISMATCH. */
cairn_status crn_state_judge(const state_entry *there, const state_entry *mine);

/* All parts of the entry's writer have the state: list it, unless another one was first. old, if it
 * is not NULL, is a damaged put of the same, in whose place it is. */
cairn_status crn_state_claim(cairn_shelf *s, const state_entry *e, const state_entry *old);

/* The parts do not have the state any more, or not yet: see to it that the index does not list that
 * put of it, as who mends the index at the same moment may have. */
void crn_state_unlist(cairn_shelf *s, const state_entry *e);

/* How many states count, and the bytes of their fields. */
typedef struct state_census {
    uint64_t nstates, nbytes;
} state_census;

cairn_status crn_state_count(cairn_shelf *s, state_census *ret);

/* Do the limits of the configuration allow another state? What to give up is the caller's to
 * choose. CAIRN_ENOSPC. */
cairn_status crn_state_limits(cairn_shelf *s, const state_entry *e);

/* --- in the background (state_engine.c, state_copy.c) -------------------------------------- */

/* What cairn_state_put_begin and the copying calls do, but for naming the state in messages. */
cairn_status crn_transfer_put(cairn_shelf *s, crn_state_name name, const char *parent,
                              const cairn_field *field, size_t n, cairn_transfer **ret);
cairn_status crn_transfer_copy(cairn_shelf *from, cairn_shelf *to, crn_state_name name,
                               uint64_t limit, cairn_transfer **ret);

/* The end of the put that is under way. Collective where the shelf is a group's. */
void crn_shelf_settle(cairn_shelf *s);

/* Has the engine the own part? */
bool crn_shelf_is_putting(const cairn_shelf *s);

/* Wait for the engine and end it; copies are given up. */
void crn_shelf_disengage(cairn_shelf *s);

/* Copy a state as it is stored, and list it. go_on is called with the bytes of each step, and ends
 * the copy by saying false: CAIRN_ECANCELED. */
typedef bool state_step_fn(void *arg, uint64_t nbytes);
cairn_status crn_state_copy(cairn_shelf *from, cairn_shelf *to, crn_state_name name,
                            state_step_fn *go_on, void *arg);

/* --- writers (state_adopt.c, state_writer.c)
 * ------------------------------------------------------------- */

/* Become a writer: take over the parts of one that is gone, or begin new ones. Collective. */
cairn_status crn_writer_begin(cairn_shelf *s);

void crn_hosts_done(cairn_shelf *s);

/* Remove from a part, opened to write, what the index does not list as its own. */
cairn_status crn_writer_reconcile(cairn_shelf *s, crn_part *part);

/* A state that others have dropped, as a line of a writer's file of drops. Returns buf. */
enum { STATE_DROP_LINE = CRN_KEY_MAX + 48 };
char *crn_drop_line(const state_entry *e, char buf[STATE_DROP_LINE]);

/* The lines of that file; NULL: none. Free it. */
cairn_status crn_writer_drops(const cairn_shelf *s, uint32_t series, char **ret);

/* Drop from the own part what others want dropped. Collective. */
cairn_status crn_writer_heed(cairn_shelf *s);

/* Parts for states of nranks processes, that this one writes alone: copies of what a group has put.
 * Of one process it is the own part. They stay the shelf's. */
cairn_status crn_writer_host(cairn_shelf *s, uint32_t nranks, uint32_t *ret_series,
                             crn_part ***ret);

/* The same for parts of a writer that this process has alone. Not collective. */
cairn_status crn_writer_heed_of(cairn_shelf *s, uint32_t series, crn_part **part, uint32_t nranks);

/* A writer of so many processes, whose parts are all this one's: one that is gone, or a new one. */
cairn_status crn_writer_create(cairn_shelf *s, uint32_t nranks, uint32_t *ret_series,
                               crn_part **ret);

/* A state has left the index: see to it that its space comes back. Not collective. */
cairn_status crn_writer_reclaim(cairn_shelf *s, const state_entry *e);

/* --- reading (state_read.c) --------------------------------------------------------------- */

/* The part that has rank's share of a state, opened since the state was put; stays the shelf's. */
cairn_status crn_reader_part(cairn_shelf *s, const state_entry *e, uint32_t rank, crn_part **ret);
void crn_readers_done(cairn_shelf *s);

/* The state as this rank of its writer has it. Free it. */
cairn_status crn_reader_load(cairn_shelf *s, const state_entry *e, uint32_t rank, crn_part **part,
                             crn_mark **ret);

/* The same from a part of the caller's own, who need not trust it: to be closed. By any thread. */
cairn_status crn_reader_open(const cairn_shelf *s, const state_entry *e, uint32_t rank,
                             crn_part **ret_part, crn_mark **ret);

/* Digest and bytes of a state, from the records of its parts. */
cairn_status crn_reader_sum(cairn_shelf *s, const state_entry *e, crn_digest *ret,
                            uint64_t *ret_nbytes);

/* Read what a process has of a state, and check it. digest: what it is to be, or NULL. */
cairn_status crn_share_verify(cairn_shelf *s, const state_entry *e, uint32_t rank,
                              const crn_digest *digest);

/* Does a failure of reading mean that the state is damaged, or that it was dropped meanwhile? */
bool crn_is_damage(cairn_status rc);

/* Call fn with the fields that a state has (state_describe.c). CAIRN_NOTHING: it ended that. */
cairn_status crn_state_describe(cairn_shelf *s, const state_entry *e, cairn_field_fn *fn,
                                void *arg);

/* --- fields (state_field.c) --------------------------------------------------------------- */

/* A variable of a share: a field, or the index of one with cells. */
typedef struct state_var {
    crn_var_spec spec; /* names and dimensions are the field's */
    const void *data;
    crn_codec_setting codec;
    char lines[256];             /* what spec.attributes has */
    crn_cell_count *index;       /* of an index, which has a name of its own; else NULL */
    char name[CRN_VAR_NAME + 1]; /* likewise */
} state_var;

typedef CRN_VEC(state_var) state_vars;

/* What a program says of a field, as the store wants it, but for layout and codec. The dimensions
 * stay the field's. */
cairn_status crn_field_spec(const cairn_shelf *s, const cairn_field *f, crn_var_spec *ret);

/* The variables that n fields are, zeroed before. */
cairn_status crn_fields_declare(const cairn_shelf *s, const cairn_field *f, size_t n,
                                state_vars *ret);
void crn_state_vars_done(state_vars *v);

/* The codec that the program has chosen for a field; NULL: none (state_code.c). */
const char *crn_shelf_codec_of(const cairn_shelf *s, const char *field);

/* Has each cell of each of n fields one owner? Collective. */
cairn_status crn_fields_share_cells(crn_comm *comm, const cairn_field *f, size_t n);

/* Do all processes of a group name the same state, and say the same of the fields that they share?
 * Collective. CAIRN_EMISMATCH (state_alike.c). */
cairn_status crn_fields_alike(crn_comm *comm, crn_state_name name, const cairn_field *f, size_t n);

/* --- digests (state_digest.c) ------------------------------------------------------------- */

/* Digest of what one process has of a state: n variables by their roots. CAIRN_ENOMEM. */
cairn_status crn_share_digest(const crn_var_spec *spec, const crn_digest *root, size_t n,
                              crn_digest *ret);

/* The same of a mark's, whose tables are loaded, or of one that is read; and how many bytes. */
cairn_status crn_mark_digest(const crn_mark *m, bool drafted, crn_digest *ret,
                             uint64_t *ret_nbytes);

/* The same of what is in memory. */
cairn_status crn_memory_digest(const state_vars *v, crn_digest *ret);

/* Of the shares of all processes, in their order. */
crn_digest crn_shares_digest(const crn_digest *share, size_t n);

enum { STATE_DIGEST_TEXT = 33 };
char *crn_state_digest_text(const crn_digest *d, char buf[STATE_DIGEST_TEXT]);

#endif
