/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states: variables of a program at one version, put on a shelf by one group of processes and
 * got by any other, while nobody waits for anybody. A shelf is a directory, on a node or shared.
 *
 *     cairn_shelf *s;
 *     if (cairn_shelf_open("/scratch/members", NULL, &s) < 0)
 *         fail(cairn_error_text());
 *     const cairn_field f = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {n}};
 *     if (cairn_state_put(s, "m0042", 17, NULL, &f, 1) < 0)
 *         fail(cairn_error_text());
 *     ...
 *     if (cairn_state_has(s, "m0042", 17) == CAIRN_OK)
 *         rc = cairn_state_get(s, "m0042", 17, &f, 1);
 *     cairn_shelf_close(s);
 *
 * A state is there wholly or not at all, whatever dies when; every byte that is got was checked.
 * Blocks that several states of a writer have in common are stored once. This header needs no MPI;
 * <cairn/state_mpi.h> opens a shelf for a group. Guide: docs/guide/state.md.
 *
 * A shelf that was opened is used by one thread at a time; cairn_error_text() tells what failed.
 */
#ifndef CAIRN_STATE_H
#define CAIRN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>
#include <cairn/exchange.h>
#include <cairn/type.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_shelf cairn_shelf;
typedef struct cairn_transfer cairn_transfer; /* a state on its way, in the background */

/*
 * Open a shelf, for this process alone.
 *   path    [in]  the directory, no link, made where there is none; the one above it must be there
 *   config  [in]  path of an INI file; NULL: $CAIRN_CONFIG, or the defaults ('cairn help config')
 *   ret     [out] the shelf, to be closed with cairn_shelf_close
 * Opening reads no states. CAIRN_EINVAL, CAIRN_ENOTFOUND, CAIRN_ECORRUPT, CAIRN_EUNSUPPORTED,
 * CAIRN_EBUSY, CAIRN_EIO, CAIRN_ENOSPC, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_shelf_open(const char *path, const char *config, cairn_shelf **ret);

/* Close a shelf; its states stay. NULL is allowed. Collective where it was opened by a group. */
CAIRN_API void cairn_shelf_close(cairn_shelf *s);

/* Called with an event of a shelf: a JSON object on one line (docs/format/events.md). By the
 * program's thread or the shelf's own, one at a time; it must not call into the shelf. */
typedef void cairn_shelf_event_fn(void *arg, const char *event);

/*
 * Take the events of a shelf as this process sees them, for a log of the program's own; fn NULL,
 * the start: they go to the file 'events' of the shelf. Which there are, state.events of the
 * configuration says. Not collective; while no transfer is under way.
 */
CAIRN_API void cairn_shelf_listen(cairn_shelf *s, cairn_shelf_event_fn *fn, void *arg);

/* What a field is, of all processes of a group together. */
typedef enum cairn_field_kind {
    CAIRN_FIELD_ARRAY = 0, /* a global array; with ndims 0, each process's own */
    CAIRN_FIELD_LIST = 1,  /* items of which it does not matter who has which */
    CAIRN_FIELD_CELLS = 2  /* items in cells, some in each: particles in the cells of a grid */
} cairn_field_kind;

/*
 * A variable of a state, and this process's piece of it.
 *
 * An array: with ndims 0 it is count[0] elements that are this process's own. Else it is a piece of
 * a global array of ndims (1 to 8) dimensions, last index fastest: count[d] of global[d] elements
 * from offset[d] on.
 *
 * A list: whoever puts has count[0] items. All of them, one process's behind the other's, are the
 * list; whoever gets has count[0] of them from offset[0] on. global[0] is how many there are, or 0.
 *
 * Cells: there are global[0] of them, and each belongs to one process of the group that puts. This
 * process has ncells, whose numbers cell[i] grow, with nitems[i] items each; data has the items of
 * the first one, those of the second, ... Whoever gets names any cells, whoever had them, and
 * learns from cairn_state_cells how many items they have.
 */
typedef struct cairn_field {
    const char *name;
    void *data; /* put reads it, get fills it */
    cairn_type type;
    int ndims; /* of arrays */
    uint64_t global[8], offset[8], count[8];
    cairn_field_kind kind;
    size_t ncells;
    const uint64_t *cell, *nitems; /* ncells each */
} cairn_field;

/*
 * Put a state on a shelf. Collective over the group that opened the shelf.
 * Key and version name it. A key has 1 to 63 letters, digits, '.', '_', '-', and does not begin
 * with '.' or '-'; versions need not grow. parent is the key of a state that this one is like, or
 * NULL: what both have is stored once. The pieces that all processes of the group give of the n
 * fields make the state.
 *
 * Durable and found by all when it returns. The first put of a name counts: an equal second one is
 * CAIRN_NOTHING, a different one CAIRN_EMISMATCH, and the sentence has both digests; so is a group
 * whose processes do not name the same state, or give a field other types or global shapes. Of a
 * state that is there and was damaged since, an equal one takes the place: CAIRN_OK.
 * CAIRN_ENOSPC: there is no room, or a limit of the configuration (state.max_bytes,
 * state.max_states) is reached: drop something first. CAIRN_EINVAL, CAIRN_ENOTFOUND (the shelf was
 * removed), CAIRN_EBUSY, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EPEER. A failed put leaves nothing.
 */
CAIRN_API CAIRN_CHECK int cairn_state_put(cairn_shelf *s, const char *key, uint64_t version,
                                          const char *parent, const cairn_field *field, size_t n);

/*
 * The same in the background: returns when the fields may be changed again, which takes a copy of
 * what is new, and no more. Collective over the group.
 *   ret  [out] to be waited for with cairn_transfer_wait, which says what became of the put, as
 *              above; NULL where it has ended already, as a failure, or with CAIRN_NOTHING
 * The state counts when the transfer is done; of a group, when its processes have waited for it.
 * One put of a shelf is under way at a time: the next one, and a drop by this process, wait for it
 * first. Memory for the copy: mark.staging; what is beyond that is written before it returns.
 */
CAIRN_API CAIRN_CHECK int cairn_state_put_begin(cairn_shelf *s, const char *key, uint64_t version,
                                                const char *parent, const cairn_field *field,
                                                size_t n, cairn_transfer **ret);

/*
 * Store a field by a codec in the puts of this shelf that follow, whatever the configuration says.
 *   codec  [in]  in the words of [variable] codec, such as "zfp:accuracy=1e-8"; NULL: as the
 *                configuration says
 * What was chosen is recorded with the state. Not collective; but the processes of a group choose
 * the same. CAIRN_EINVAL: there is no such codec; CAIRN_EUNSUPPORTED, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_shelf_set_codec(cairn_shelf *s, const char *field,
                                                const char *codec);

/* By which codec was a field of a state stored, where a program has chosen it? CAIRN_NOTHING: it
 * has not, or only one without loss. CAIRN_ENOTFOUND, and as cairn_state_describe. */
enum { CAIRN_CODEC_TEXT = 96 };
CAIRN_API CAIRN_CHECK int cairn_state_codec(cairn_shelf *s, const char *key, uint64_t version,
                                            const char *field, char codec[CAIRN_CODEC_TEXT]);

/* What a codec made of a field. */
typedef struct cairn_coded {
    size_t struct_bytes;     /* <cairn/version.h> */
    uint64_t nbytes, stored; /* in memory; as they would be stored */
    double error;            /* the largest |x - y| of finite values */
    double seconds;          /* to encode, decode and check */
} cairn_coded;

/*
 * Learn what readers would get of a field of floating-point values, bit for bit, if this process
 * put it by a codec: its piece is encoded and decoded, and nothing is put.
 *   reads  [out] as large as the piece; it may be the field's own data; NULL: not wanted
 * Not collective. CAIRN_EINVAL, CAIRN_EUNSUPPORTED, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_field_code(const cairn_shelf *s, const cairn_field *field,
                                           const char *codec, void *reads, cairn_coded *ret);

/*
 * Get fields of a state into memory, whoever put it. Not collective: each process gets what it
 * needs. A field with dimensions is any box of the global array, whatever pieces the writers had; a
 * list any stretch of it, cells any of them; another one is that of a writer of one process, and
 * has as many elements. Several boxes of one field may be asked for at once. What was stored by a
 * codec that loses something comes back within the stated bound. CAIRN_ENOTFOUND: there is no such
 * state or field, or the state was dropped meanwhile; CAIRN_EMISMATCH: another type or shape;
 * CAIRN_ECORRUPT: it is damaged; memory may have been written to. CAIRN_EINVAL, CAIRN_EIO,
 * CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_state_get(cairn_shelf *s, const char *key, uint64_t version,
                                          const cairn_field *field, size_t n);

/*
 * How many items have ncells cells of a field of a state, whose numbers grow? Not collective. As
 * cairn_state_get; CAIRN_EMISMATCH: there is no such cell, or the field has no cells.
 */
CAIRN_API CAIRN_CHECK int cairn_state_cells(cairn_shelf *s, const char *key, uint64_t version,
                                            const char *name, size_t ncells, const uint64_t *cell,
                                            uint64_t *nitems);

/* Is a state there? CAIRN_OK or CAIRN_NOTHING, or a failure. Every put that returned before this
 * call is seen. Not collective. */
CAIRN_API CAIRN_CHECK int cairn_state_has(cairn_shelf *s, const char *key, uint64_t version);

/* A state of a shelf. */
typedef struct cairn_state_info {
    size_t struct_bytes; /* <cairn/version.h> */
    char key[64];
    uint64_t version;
    uint64_t nbytes; /* of all fields and processes */
    uint64_t put_ns; /* when, since 1970, by the writer's clock */
    uint32_t writer; /* the number of the group that put it, and of how many processes it is */
    uint32_t nprocesses;
    uint32_t npins;
    char digest[33]; /* of all that it has, hexadecimal */
} cairn_state_info;

/* Called for a state; nonzero ends the call. */
typedef int cairn_state_fn(void *arg, const cairn_state_info *info);

/*
 * Tell fn of the states of a shelf, in no order: those whose key begins with prefix (NULL: all),
 * and with any = false of one version only, such as all members of cycle 17. One pass over the
 * shelf's index, which reads no parts. Not collective. CAIRN_NOTHING: fn ended it. CAIRN_ECORRUPT,
 * CAIRN_ENOTFOUND, CAIRN_EIO, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_state_list(cairn_shelf *s, const char *prefix, bool any,
                                           uint64_t version, cairn_state_fn *fn, void *arg);

/* What a shelf has, and the space that it takes. */
typedef struct cairn_shelf_info {
    size_t struct_bytes;       /* <cairn/version.h> */
    uint64_t nstates, nbytes;  /* that count, and bytes of their fields */
    uint64_t nwriters, nparts; /* groups that have put, and files with what they put: one for each
                                  process */
    uint64_t part_bytes;       /* of storage that those take: equal blocks are stored once */
    uint64_t index_bytes;
} cairn_shelf_info;

/* Describe a shelf: one pass over its index and its directories, which opens no parts. Not
 * collective. CAIRN_EINVAL, CAIRN_ECORRUPT, CAIRN_ENOTFOUND, CAIRN_EIO, CAIRN_ENOMEM. */
CAIRN_API CAIRN_CHECK int cairn_shelf_describe(cairn_shelf *s, cairn_shelf_info *ret);

/* Called for a state of the which-th shelf; nonzero ends the call. */
typedef int cairn_survey_fn(void *arg, size_t which, const cairn_state_info *info);

/*
 * The same over n shelves, for a set of states: which members of cycle 17 are there, on which
 * shelf, how large, put by whom and when? A state that is on several is told of for each. A shelf
 * that is NULL is left out. Cheap enough to be asked every second: one pass over each index.
 */
CAIRN_API CAIRN_CHECK int cairn_state_survey(cairn_shelf *const *shelf, size_t n,
                                             const char *prefix, uint64_t version,
                                             cairn_survey_fn *fn, void *arg);

/* Called for a field of a state: data is NULL, offset and count are those of the whole array; of a
 * list global[0] and count[0] are its items, of cells global[0] the cells and count[0] the items.
 */
typedef int cairn_field_fn(void *arg, const cairn_field *field);

/*
 * Describe a state, and tell fn (NULL is allowed) of its fields. Not collective. CAIRN_ENOTFOUND,
 * CAIRN_EINVAL, CAIRN_ECORRUPT, CAIRN_EIO, CAIRN_ENOMEM; CAIRN_NOTHING: fn ended it.
 */
CAIRN_API CAIRN_CHECK int cairn_state_describe(cairn_shelf *s, const char *key, uint64_t version,
                                               cairn_state_info *info, cairn_field_fn *fn,
                                               void *arg);

/*
 * Read all that a state has and check it against its digests. Not collective. CAIRN_ECORRUPT: it is
 * damaged, and the sentence says where; CAIRN_ENOTFOUND: there is no such state, or it was dropped
 * meanwhile. CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_state_verify(cairn_shelf *s, const char *key, uint64_t version);

/*
 * Make an HDF5 file of a state, at how->path, as cairn_export makes one of a mark
 * (<cairn/exchange.h>), whose name of the run is the key; trail, run and version of how are not
 * looked at. Not collective; ret may be NULL. As there, and as cairn_state_get.
 */
CAIRN_API CAIRN_CHECK int cairn_state_export(cairn_shelf *s, const char *key, uint64_t version,
                                             const cairn_export_options *how,
                                             cairn_export_result *ret);

/*
 * Drop a state, whoever put it: nobody finds it any more. Its space is used again when its writer
 * puts the next one, or at once where that writer is gone; what is more than that needs, the file
 * system gets back, also on a full disk. Not collective. CAIRN_NOTHING: it was not there;
 * CAIRN_EBUSY: it is pinned. CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOSPC, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_state_drop(cairn_shelf *s, const char *key, uint64_t version);

/* Keep a state from being dropped, until it is unpinned as often as it was pinned. Pins last beyond
 * the process. Not collective. CAIRN_ENOTFOUND, CAIRN_EINVAL (it has no pin), and as above. */
CAIRN_API CAIRN_CHECK int cairn_state_pin(cairn_shelf *s, const char *key, uint64_t version);
CAIRN_API CAIRN_CHECK int cairn_state_unpin(cairn_shelf *s, const char *key, uint64_t version);

/* --- between shelves ---------------------------------------------------------------------- */

/*
 * Copy a state in the background, whoever put it: push it from shelf s to another one, such as from
 * a node's to shared storage, or fetch it from there to s. Not collective.
 *   limit  [in]  bytes a second; 0: as fast as it goes
 *   ret    [out] to be waited for; both shelves stay open until then
 * Every block is checked, and copied as it is stored; what the other shelf's part of this process
 * has already is not. The copy has the digest and the time of the state. It is there wholly or not
 * at all, whatever dies. cairn_transfer_wait says CAIRN_OK, CAIRN_NOTHING (the same state is there
 * already), CAIRN_EMISMATCH (another one is), CAIRN_ENOTFOUND (there is no such state, or it was
 * dropped meanwhile, or a shelf was removed), CAIRN_ECANCELED, CAIRN_ECORRUPT, CAIRN_ENOSPC,
 * CAIRN_EIO, CAIRN_ENOMEM. The calls themselves: CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM,
 * CAIRN_ENOTFOUND. Copies to a shelf happen one after the other, in the order of the calls.
 */
CAIRN_API CAIRN_CHECK int cairn_state_push(cairn_shelf *s, const char *key, uint64_t version,
                                           cairn_shelf *to, uint64_t limit, cairn_transfer **ret);
CAIRN_API CAIRN_CHECK int cairn_state_fetch(cairn_shelf *s, const char *key, uint64_t version,
                                            cairn_shelf *from, uint64_t limit,
                                            cairn_transfer **ret);

/*
 * Is a transfer done, so that to wait for it takes no time? Not collective.
 *   ret_nbytes  [out] bytes that were copied so far, of a push or fetch; NULL is allowed
 */
CAIRN_API bool cairn_transfer_done(const cairn_transfer *t, uint64_t *ret_nbytes);

/* Give up a push or a fetch, as soon as possible; it must still be waited for. A put goes on. */
CAIRN_API void cairn_transfer_cancel(cairn_transfer *t);

/*
 * Wait for a transfer, free it, and say what became of it. Collective for the put of a group.
 * A shelf that is closed before waits for its put and cancels what is copied to it.
 */
CAIRN_API CAIRN_CHECK int cairn_transfer_wait(cairn_transfer *t);

#ifdef __cplusplus
}
#endif
#endif
