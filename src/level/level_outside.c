/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Global marks in a form that other tools read: one file that all ranks write together, or one of
 * each rank below a master file. Rank 0 learns which variables there are, lets the files be laid
 * out, and sends every rank the places of its bytes. The parts in the trail then refer to them.
 *
 *     declarations -> rank 0; layout; places -> all ranks; all write and sync; the file gets its
 *     name; all commit their parts
 *
 * Where one waits for another they agree before, so that none waits for one that has failed; until
 * the last step the earlier marks stand, and what was made so far is only in the way.
 */
#include "level/level_ops.h"

#include <unistd.h>

enum { PLACE_BYTES = 12, TAG_PLACES = 300 };

/* Where a variable of this rank goes, as in crn_block. */
typedef struct place {
    uint32_t codec;
    uint64_t off;
} place;

typedef struct effort {
    crn_vault *v;
    uint64_t version;
    bool pieces; /* each rank has a file of its own */
    crn_part *own, *part;
    crn_mark *mark;
    crn_copy copy;
    crn_frame frame; /* rank 0: of all ranks; with pieces, others: of this one */
    crn_buf specs;   /* what this rank has, for rank 0 */
    place *place;    /* of each variable of the mark */
    int dir;         /* of the series */
    char name[CRN_OUTSIDE_NAME], temporary[CRN_OUTSIDE_NAME + 8]; /* of the file of all ranks */
} effort;

static void effort_done(effort *e)
{
    crn_copy_done(&e->copy);
    crn_mark_free(e->mark);
    crn_frame_done(&e->frame);
    crn_buf_done(&e->specs);
    free(e->place);
    if (e->dir >= 0)
        close(e->dir);
}

/* --- beginning ---------------------------------------------------------------------------- */

static cairn_status begin(effort *e)
{
    crn_vault *v = e->v;
    crn_part_id id =
        crn_vault_id(v, CRN_ROLE_TRAIL, v->opt.series, (uint32_t)v->rank, (uint32_t)v->nranks);
    CRN_TRY(crn_vault_own_mark(v, e->version, &e->own, &e->mark));
    CRN_TRY(crn_vault_part(v, &id, true, &e->part));
    CRN_TRY(crn_copy_begin(v, e->part, e->mark, false, &e->copy));
    CRN_TRY(crn_run_series_dir(v->opt.run, v->opt.series, false, &e->dir)); /* the part is there */
    CRN_TRY(crn_alloc(&e->place, e->mark->nvars));
    crn_specs_put(e->mark, &e->specs);
    return crn_buf_status(&e->specs);
}

/* Ranks that have the mark already take it up again with those that do not: the file is new. */
static cairn_status begin_again(effort *e)
{
    if (e->copy.draft)
        return CAIRN_OK;
    crn_copy_done(&e->copy);
    CRN_TRY(crn_part_rewind(e->part, e->version > 0 ? e->version - 1 : CRN_NO_VERSION));
    return crn_copy_begin(e->v, e->part, e->mark, false, &e->copy);
}

/* *ret_there: all ranks have the very mark. */
static cairn_status begin_together(effort *e, bool *ret_there)
{
    CRN_TRY(crn_comm_agree(e->v->comm, begin(e)));
    uint64_t all_none[] = {e->copy.draft == NULL, e->copy.draft != NULL};
    CRN_TRY(crn_comm_allreduce_u64(e->v->comm, CRN_REDUCE_MIN, all_none, 2));
    *ret_there = all_none[0];
    return all_none[0] || all_none[1] ? CAIRN_OK : crn_comm_agree(e->v->comm, begin_again(e));
}

/* --- layout ------------------------------------------------------------------------------- */

static void name_frame(const effort *e, crn_frame *f, uint32_t nranks)
{
    *f = (crn_frame){.run = crn_run_name(e->v->opt.run),
                     .version = e->version,
                     .wall_ns = e->mark->wall_ns,
                     .nranks = nranks};
}

/* On rank 0: the arrays of all ranks. */
static cairn_status build_frame(effort *e, const crn_gathered *all)
{
    name_frame(e, &e->frame, (uint32_t)e->v->nranks);
    for (int r = 0; r < e->v->nranks; r++) {
        crn_cursor c = crn_cursor_of(all->data + all->off[r], all->off[r + 1] - all->off[r]);
        crn_mark *m;
        CRN_TRY(crn_specs_get(&c, &m));
        cairn_status rc = CAIRN_OK;
        for (size_t i = 0; i < m->nvars && rc == CAIRN_OK; i++)
            rc = crn_frame_add(&e->frame, (uint32_t)r, &m->var[i].spec);
        crn_mark_free(m);
        CRN_TRY(rc);
    }
    crn_frame_seal(&e->frame);
    return CAIRN_OK;
}

/* On rank 0: the file of all ranks, under its temporary name; with pieces, it is a master file. */
static cairn_status make_shared(effort *e, const crn_gathered *all)
{
    CRN_TRY(build_frame(e, all));
    return e->v->opt.frame(e->dir, e->temporary, &e->frame, e->pieces);
}

/* On rank 0: send rank r the places of its variables. */
static cairn_status send_places(effort *e, int r, const crn_gathered *all)
{
    crn_cursor c = crn_cursor_of(all->data + all->off[r], all->off[r + 1] - all->off[r]);
    crn_buf b = {0};
    crn_mark *m;
    CRN_TRY(crn_specs_get(&c, &m));
    for (size_t i = 0; i < m->nvars; i++) {
        place p;
        p.codec =
            crn_array_place(crn_frame_find(&e->frame, m->var[i].spec.name), (uint32_t)r, &p.off);
        if (r == e->v->rank)
            e->place[i] = p;
        crn_put_u32(&b, p.codec);
        crn_put_u64(&b, p.off);
    }
    crn_mark_free(m);
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK && r != e->v->rank)
        rc = crn_comm_send(e->v->comm, b.at, b.n, r, TAG_PLACES);
    crn_buf_done(&b);
    return rc;
}

static cairn_status hear_places(effort *e)
{
    const size_t n = e->mark->nvars * PLACE_BYTES;
    unsigned char *data;
    CRN_TRY(crn_alloc(&data, n));
    cairn_status rc = crn_comm_recv(e->v->comm, data, n, 0, TAG_PLACES);
    crn_cursor c = crn_cursor_of(data, n);
    for (size_t i = 0; rc == CAIRN_OK && i < e->mark->nvars; i++) {
        e->place[i].codec = crn_get_u32(&c);
        e->place[i].off = crn_get_u64(&c);
    }
    free(data);
    return rc;
}

/* One file: rank 0 sends its places. */
static cairn_status share_places(effort *e, const crn_gathered *all)
{
    cairn_status rc = CAIRN_OK;
    if (e->v->rank != 0)
        return hear_places(e);
    for (int r = 0; r < e->v->nranks; r++) {
        const cairn_status sent = send_places(e, r, all);
        rc = rc < 0 ? rc : sent; /* the others still wait for theirs */
    }
    return rc;
}

/* A file of this rank alone, whose arrays are its pieces. Whoever comes first makes the directory.
 */
static cairn_status make_own(effort *e)
{
    char name[CRN_OUTSIDE_NAME];
    crn_frame f;
    int dir;
    CRN_TRY(crn_dir_open_within(e->dir, crn_outside_dir(e->version, name), true, &dir));
    close(dir);
    cairn_status rc = CAIRN_OK;
    name_frame(e, &f, 0);
    for (size_t i = 0; i < e->mark->nvars && rc == CAIRN_OK; i++) {
        const uint64_t zero[CRN_DIMS_MAX] = {0};
        crn_var_spec spec = e->mark->var[i].spec;
        spec.global = spec.count;
        spec.offset = zero;
        rc = crn_frame_add(&f, (uint32_t)e->v->rank, &spec);
    }
    if (rc == CAIRN_OK) {
        crn_frame_seal(&f);
        crn_outside_name(e->version, (uint32_t)e->v->rank, name);
        rc = e->v->opt.frame(e->dir, name, &f, false);
    }
    for (size_t i = 0; i < f.array.n; i++)
        e->place[i] = (place){CRN_OUTSIDE | CRN_OUTSIDE_OWN, f.array.at[i].off};
    crn_frame_done(&f);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------ */

static cairn_status write_blocks(effort *e)
{
    char own[CRN_OUTSIDE_NAME];
    crn_file *file;
    crn_scatter *scatter = NULL;
    const crn_part_options *opt = &e->v->opt.part;
    const char *name =
        e->pieces ? crn_outside_name(e->version, (uint32_t)e->v->rank, own) : e->temporary;
    CRN_TRY(crn_file_open(e->dir, name, CRN_WRITE | (opt->direct ? CRN_DIRECT : 0), &file));
    cairn_status rc = crn_scatter_create(file, opt, &scatter);
    for (size_t i = 0; i < e->mark->nvars && rc == CAIRN_OK; i++)
        rc = crn_scatter_variable(scatter, e->own, e->mark, &e->mark->var[i], e->place[i].codec,
                                  e->place[i].off);
    if (rc == CAIRN_OK)
        rc = crn_scatter_finish(scatter);
    crn_scatter_free(scatter);
    crn_file_close(file);
    return rc;
}

/* The master lasts before it gets its name. It is small, and synced while others still write. */
static cairn_status sync_master(effort *e)
{
    crn_file *master;
    CRN_TRY(crn_file_open(e->dir, e->temporary, CRN_WRITE, &master));
    cairn_status rc = crn_file_sync(master);
    crn_file_close(master);
    return rc;
}

/* The names of the ranks' files last. */
static cairn_status sync_pieces(effort *e)
{
    char name[CRN_OUTSIDE_NAME];
    int dir;
    CRN_TRY(crn_dir_open(e->dir, crn_outside_dir(e->version, name), false, &dir));
    cairn_status rc = crn_dir_sync(dir);
    close(dir);
    return rc;
}

/* When all have written: names that last. One rank sees to the file of all ranks, another to those
 * of each. */
static cairn_status put_in_place(effort *e)
{
    if (e->pieces && e->v->rank == e->v->nranks - 1)
        CRN_TRY(sync_pieces(e));
    if (e->v->rank != 0)
        return CAIRN_OK;
    CRN_TRY(crn_rename(e->dir, e->temporary, e->name));
    return crn_dir_sync(e->dir);
}

static void refer(effort *e, crn_raise_stats *stats)
{
    for (size_t i = 0; i < e->mark->nvars; i++) {
        const crn_var *v = &e->mark->var[i];
        crn_draft_put_outside(e->copy.draft, i, e->place[i].codec, e->place[i].off, v->table);
        stats->stored_bytes += v->spec.nbytes;
    }
}

/* One file: it must be there before anyone writes. */
static cairn_status write_shared(effort *e, const crn_gathered *all)
{
    CRN_TRY(crn_comm_agree(e->v->comm, e->v->rank == 0 ? make_shared(e, all) : CAIRN_OK));
    CRN_TRY(share_places(e, all));
    return write_blocks(e);
}

/* A file of each rank: none has to wait for another. */
static cairn_status write_pieces(effort *e, const crn_gathered *all)
{
    if (e->v->rank == 0)
        CRN_TRY(make_shared(e, all));
    CRN_TRY(make_own(e));
    CRN_TRY(write_blocks(e));
    return e->v->rank == 0 ? sync_master(e) : CAIRN_OK;
}

/* Collective; what comes of naming the files may differ between ranks, who agree on it next. */
static cairn_status make_files(effort *e, crn_raise_stats *stats)
{
    crn_comm *comm = e->v->comm;
    crn_gathered all = {0};
    CRN_TRY(crn_comm_gatherv(comm, e->specs.at, e->specs.n, 0, &all));
    cairn_status rc = e->pieces ? write_pieces(e, &all) : write_shared(e, &all);
    crn_gathered_done(&all);
    CRN_TRY(crn_comm_agree(comm, rc));
    refer(e, stats);
    return put_in_place(e);
}

/* What a raise has made that failed must not take the room that the next one needs. */
static void clean_up(const effort *e)
{
    const crn_err why = *crn_err_peek();
    (void)crn_run_sweep(e->v->opt.run, e->part, NULL);
    (void)crn_err_give(&why);
}

cairn_status crn_outside_raise(crn_vault *v, uint64_t version, uint64_t keep,
                               crn_raise_stats *stats)
{
    effort e = {.v = v, .version = version, .pieces = v->opt.form == CRN_FORM_VIRTUAL, .dir = -1};
    bool there = false;
    crn_outside_name(version, CRN_ALL_RANKS, e.name);
    snprintf(e.temporary, sizeof e.temporary, ".%s.tmp", e.name);
    cairn_status rc = begin_together(&e, &there);
    if (rc == CAIRN_OK) {
        rc = there ? CAIRN_OK : make_files(&e, stats);
        rc = crn_copies_finish(v->comm, &e.copy, 1, rc, keep, stats);
        if (rc < 0 && !there)
            clean_up(&e);
    }
    effort_done(&e);
    return rc;
}
