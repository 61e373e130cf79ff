/* SPDX-License-Identifier: BSD-3-Clause
 *
 * level: how safe a mark is. Row 3.
 *
 * A vault knows where the copies of a run's marks lie: on the storage of each node, and in the
 * trail. A mark is first committed by every rank to its own part (crn_vault_own); raising it to a
 * level makes the copies that this level promises; loading finds each block wherever a whole copy
 * of it is left, cheapest level first.
 *
 *   local     the own part, on the node                        survives the death of processes
 *   partner   a copy of the part on another node               survives the loss of a node
 *   encoded   parity over the nodes of a group                 survives the loss of any m of them
 *   global    a copy of the part in the trail                  survives the loss of all nodes
 *
 * All copies are part files, and only what the copy lacks is moved: whoever keeps a copy compares
 * the digests of the new mark with those of its newest one and asks for the blocks that differ. So
 * nothing needs to be remembered between marks or legs.
 *
 *     LOCAL[/node-<k>]/<run id>/series-<s>/own-<rank>          node-<k> for virtual nodes only
 *                                         /partner-<rank>      of the rank whose blocks they are
 *                                         /parity-<rank>       of the rank whose node it is
 *
 * Calls marked Collective are made by all ranks of the vault's communicator in the same order, and
 * return the same status on all. A vault is used by one thread at a time.
 *
 * To add a level, see base/base_level.h.
 */
#ifndef CAIRN_LEVEL_H
#define CAIRN_LEVEL_H

#include "base/base.h"
#include "codec/codec.h"
#include "comm/comm.h"
#include "store/store.h"

typedef struct crn_vault crn_vault;

/* How marks lie in the trail. */
typedef enum crn_form {
    CRN_FORM_PARTS,  /* as part files, which take what changed only */
    CRN_FORM_SHARED, /* as a file for other tools, which all ranks write together */
    CRN_FORM_VIRTUAL /* as such a file of each rank, and one that shows them as one */
} crn_form;

/* Make a file for other tools with the arrays of a frame, and note in them where their bytes go;
 * pieces: it only refers to the ranks' own files. */
typedef cairn_status crn_frame_fn(int dirfd, const char *name, crn_frame *f, bool pieces);

/* The codec for the blocks of a variable, or NULL. */
typedef crn_codec_setting crn_codec_fn(const void *arg, const char *variable);

typedef struct crn_vault_options {
    crn_run *run;       /* in the trail; stays the caller's */
    uint32_t series;    /* that marks are written to */
    const char *local;  /* node-local directory; NULL: own parts lie in the trail itself, and
                           the manifest's levels have CRN_IN_TRAIL from the start */
    int node_size;      /* ranks of a virtual node; 0: nodes are real */
    int home;           /* crn_vault_home of an earlier vault of this process: its virtual
                           node and directory stay; 0: virtual nodes are counted now */
    int group, nparity; /* of the encoded level: nodes of a group, and how many may vanish */
    crn_form form;
    crn_frame_fn *frame; /* for forms other than parts */
    crn_part_options part;
    crn_codec_fn *codec; /* how copies store blocks; NULL: as they are */
    const void *codec_arg;
} crn_vault_options;

/*
 * Collective. comm stays the caller's and must outlive the vault; it may be replaced between two
 * calls (crn_vault_use_comm), by one that has the same ranks, when another thread takes over.
 */
cairn_status crn_vault_create(crn_comm *comm, const crn_vault_options *opt, crn_vault **ret);
void crn_vault_free(crn_vault *v); /* not collective; NULL is allowed */
void crn_vault_use_comm(crn_vault *v, crn_comm *comm);

const crn_nodes *crn_vault_nodes(const crn_vault *v);

/* This rank's virtual node, for a later vault that has other ranks. */
int crn_vault_home(const crn_vault *v);

/* Can marks be raised to level with these nodes? CAIRN_EINVAL says why not. Same on all ranks. */
cairn_status crn_vault_check(crn_vault *v, crn_level level);

/* Make this node's directory, so that a place that cannot be used is known before the first mark.
 * Not collective. */
cairn_status crn_vault_prepare(crn_vault *v);

/*
 * Leave word in this node's directory of the trail that it belongs to, and hold it against those
 * who clean up until the vault is freed. Each rank may call; the first of the node does it. Never
 * fails: who finds no word waits longer. Not collective.
 */
void crn_vault_settle(crn_vault *v, const char *trail);

/* Who needs what a run has left on a node's storage? */
typedef enum crn_need {
    CRN_NEED_NONE,    /* nobody: its run is finished, or was removed with or from its trail */
    CRN_NEED_UNKNOWN, /* it is not known here, or only to the user */
    CRN_NEED_RESUME   /* a run that is not finished, or a program that is running */
} crn_need;

/* What a run has left. */
typedef struct crn_orphan {
    const char *id; /* of the run: the name of the directory */
    crn_need need;  /* and why that is thought */
    char why[CRN_ERR_TEXT];
    bool old;                /* nothing was written for as long as was asked for */
    bool goes;               /* it is removed, or would be */
    uint64_t changed_ns;     /* when something was written last */
    uint64_t nbytes, nfiles; /* that it takes; files that were removed */
} crn_orphan;

typedef struct crn_sweep {
    double after_s; /* remove what nobody is known to need when it is so old; 0: never, */
    bool at_once;   /* and what nobody needs however old it is */
    bool dry;       /* only report */
    void (*report)(void *arg, const crn_orphan *orphan);
    void *arg;
} crn_sweep;

/*
 * Remove what other runs of this user have left in a node-local directory, and report each one that
 * was looked at. What a run needs that is not finished stays, and what a running program holds.
 * own: the directory of the own run, which is passed over, or "". Never fails. As vault: on the
 * first rank of the node. Not collective.
 */
void crn_local_sweep(const char *local, const char *own, const crn_sweep *how);
void crn_vault_sweep(crn_vault *v, const crn_sweep *how);

/* Between marks: let go of open files that someone has removed, so that they are made anew. */
void crn_vault_refresh(crn_vault *v);

/* This rank's own part, opened to write; made where there is none. It stays the vault's. */
cairn_status crn_vault_own(crn_vault *v, crn_part **ret);

typedef struct crn_raise_stats {
    uint64_t moved_bytes;  /* sent to other ranks by this one */
    uint64_t stored_bytes; /* written by this rank for the level, for itself and for others */
    uint64_t nblocks;      /* that the copies lacked, */
    uint64_t nhealed;      /* and of those, that they had but storage lost */
} crn_raise_stats;

/*
 * Raise the mark version, which every rank has committed to its own part, to a level; each copy
 * retains keep marks (at least one) besides the new one until crn_vault_trim. Collective. On
 * failure the level's earlier marks stand. A mark that the copies have already costs little: what
 * was raised before may be raised again. CAIRN_EINVAL when a copy has a newer mark.
 */
cairn_status crn_vault_raise(crn_vault *v, crn_level level, uint64_t version, uint64_t keep,
                             crn_raise_stats *ret_stats);

/*
 * Begin a mark in the trail's part, for a rank whose own part has no room for it; not where the own
 * part lies in the trail. *ret_anew: all blocks must be put, also those that are inherited. Not
 * collective.
 */
cairn_status crn_vault_divert(crn_vault *v, uint64_t version, crn_draft **ret, bool *ret_anew);

/*
 * Raise a mark to the global level that some ranks have in such a draft, which is freed, and the
 * others (diverted NULL) in their own parts. It lies in part files, whatever the form. The rest is
 * as with crn_vault_raise. Collective.
 */
cairn_status crn_vault_raise_diverted(crn_vault *v, uint64_t version, crn_draft *diverted,
                                      uint64_t keep, crn_raise_stats *ret_stats);

/* Bad blocks were found in copies of a level: the next ones there inherit none. Not collective, but
 * the same on all ranks. */
void crn_vault_distrust(crn_vault *v, crn_level level);

/* Drop all but the newest keep marks, at least one, of the level's copies on this rank. Not
 * collective. */
cairn_status crn_vault_trim(crn_vault *v, crn_level level, uint64_t keep);

/* Drop all but the newest and n listed marks of this rank's own part. What partner and parity
 * survive, they survive together with the own parts of the nodes that are left: a mark must stay
 * here for as long as it is at one of those levels. Not collective. */
cairn_status crn_vault_retain_own(crn_vault *v, const uint64_t *version, size_t n);

/* Drop marks above version from this rank's files of the current series: an abandoned future, or a
 * mark that some rank did not commit. Not collective. */
cairn_status crn_vault_rewind(crn_vault *v, uint64_t version);

/* The same for the copy in the trail alone, where that is not the own part. */
cairn_status crn_vault_rewind_trail(crn_vault *v, uint64_t version);

/* From now on marks are written to another series of files. The same on all ranks. */
void crn_vault_begin_series(crn_vault *v, uint32_t series);

/* --- coming back -------------------------------------------------------------------------- */

/*
 * Look at what every node's storage holds of the run, any series. Of the marks found, only those
 * count that are among the n known ones, by series, version and time: where ranks moved between
 * nodes, a file that stayed behind may hold another mark of the same version, from a future that
 * was abandoned. known NULL: all count. With virtual nodes a job sees the directories of its own
 * nodes only, as on a machine where it got fewer nodes than before; a lone process sees all.
 * Collective (known).
 */
cairn_status crn_vault_survey(crn_vault *v, const crn_manifest_mark *known, size_t n);

/*
 * After a survey: the marks that it has seen of own parts and partners' copies, each once, oldest
 * first; without their sizes, and at the levels at which they are whole. Where files of a series
 * have several marks of one version, the latest is meant. For who has lost the manifest; the same
 * on all ranks. Not collective.
 */
typedef CRN_VEC(crn_manifest_mark) crn_marks;
cairn_status crn_vault_sighted(crn_vault *v, crn_marks *ret);

/*
 * After a survey: can a mark be produced, as far as the files show? levels are the manifest's.
 * On CAIRN_ENOTFOUND the sentence says which rank's share is missing and where it was looked for.
 * Same on all ranks; not collective.
 */
cairn_status crn_vault_can_load(crn_vault *v, const crn_manifest_mark *mark);

/*
 * The shares of old ranks in a mark: variables and digests, without places. Each rank asks for any
 * number of old ranks. Free each with crn_mark_free. Collective.
 */
cairn_status crn_vault_describe(crn_vault *v, const crn_manifest_mark *mark, const uint32_t *ranks,
                                size_t n, crn_mark **ret);

typedef struct crn_load_stats {
    struct {
        uint64_t blocks, bytes; /* that came from this level, */
        uint64_t bad;           /* that should have, and are damaged there */
        uint64_t absent;        /* that should have, and whose files are gone, or not here */
    } from[CRN_NLEVELS];
} crn_load_stats;

/*
 * Bring all wanted blocks of a mark, each verified against the share's digests: from the own part,
 * wherever its file is; what fails there from the partner's copy, then from parity, then from the
 * trail. Collective; each rank has its own list, which may be empty. CAIRN_ENOTFOUND when some rank
 * misses a block in the end; the sentence names the first and what was tried.
 */
cairn_status crn_vault_load(crn_vault *v, const crn_manifest_mark *mark, crn_want *want, size_t n,
                            crn_load_stats *ret_stats);

/* Remove the run's files from this node's storage, as a lone process from that of all virtual
 * nodes, and add to *nfiles. Each rank may call; the first of the node does it. Not collective. */
cairn_status crn_vault_remove(crn_vault *v, uint64_t *nfiles);

/* Remove the files of an old series, which no mark is in any more, from this node's storage. Each
 * rank may call; the first of the node does it. Not collective. */
cairn_status crn_vault_remove_series(crn_vault *v, uint32_t series);

/*
 * Copy a mark into the trail from wherever it can be loaded, after a survey, on any number of
 * ranks; each part there retains keep older marks, at least one. What was copied when a failure
 * came is found there by the next try. Collective. The manifest is the caller's.
 */
cairn_status crn_vault_drain(crn_vault *v, const crn_manifest_mark *mark, uint64_t keep,
                             crn_raise_stats *ret_stats);

#endif
