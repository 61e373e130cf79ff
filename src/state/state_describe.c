/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fields of a state, as all its processes have put them; and what a shelf has.
 */
#include "state/state_shelf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct description {
    CRN_VEC(cairn_field) field; /* whose names are this one's */
    crn_index by_name;
} description;

static cairn_type type_of(const char *name)
{
    for (cairn_type t = CAIRN_BYTES; cairn_type_name(t); t++)
        if (strcmp(cairn_type_name(t), name) == 0)
            return t;
    return 0;
}

static cairn_field *find(const description *d, const char *name)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&d->by_name, crn_hash_text(name), &probe, &at);)
        if (strcmp(d->field.at[at].name, name) == 0)
            return &d->field.at[at];
    return NULL;
}

static cairn_field field_of(const crn_var_spec *v)
{
    const crn_var_layout layout = crn_layout_of(v);
    cairn_field f = {.type = type_of(v->type), .ndims = (int)v->ndims};
    f.count[0] = v->nbytes / v->item;
    for (uint32_t d = 0; d < v->ndims; d++)
        f.global[d] = f.count[d] = v->global[d];
    if (layout == CRN_LAYOUT_LIST) {
        f.kind = CAIRN_FIELD_LIST;
        f.global[0] = f.count[0];
    } else if (layout == CRN_LAYOUT_RAGGED) {
        f.kind = CAIRN_FIELD_CELLS;
        f.global[0] = crn_layout_ncells(v);
    }
    return f;
}

static cairn_status add(description *d, const crn_var_spec *v)
{
    char *name;
    CRN_TRY(crn_vec_reserve(&d->field, 1));
    CRN_TRY(crn_strdup(v->name, &name));
    cairn_field *f = &d->field.at[d->field.n++];
    *f = field_of(v);
    f->name = name;
    return crn_index_add(&d->by_name, crn_hash_text(name), d->field.n - 1);
}

/* Add what a share has; items are counted over all of them. */
static cairn_status add_share(description *d, const crn_mark *m)
{
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var_spec *v = &m->var[i].spec;
        cairn_field *f = find(d, v->name);
        if (crn_layout_of(v) == CRN_LAYOUT_INDEX)
            continue;
        if (!f) {
            CRN_TRY(add(d, v));
        } else if (f->kind != CAIRN_FIELD_ARRAY) {
            f->count[0] += v->nbytes / v->item;
            f->global[0] = f->kind == CAIRN_FIELD_LIST ? f->count[0] : f->global[0];
        }
    }
    return CAIRN_OK;
}

static void done(description *d)
{
    for (size_t i = 0; i < d->field.n; i++)
        free((char *)d->field.at[i].name);
    crn_vec_done(&d->field);
    crn_index_done(&d->by_name);
}

cairn_status crn_state_describe(cairn_shelf *s, const state_entry *e, cairn_field_fn *fn, void *arg)
{
    description d = {0};
    cairn_status rc = CAIRN_OK;
    for (uint32_t r = 0; r < e->nranks && rc == CAIRN_OK; r++) {
        crn_part *part;
        crn_mark *m = NULL;
        rc = crn_reader_load(s, e, r, &part, &m);
        if (rc == CAIRN_OK)
            rc = add_share(&d, m);
        crn_mark_free(m);
    }
    for (size_t i = 0; i < d.field.n && rc == CAIRN_OK; i++)
        rc = fn(arg, &d.field.at[i]) != 0 ? CAIRN_NOTHING : CAIRN_OK;
    done(&d);
    return rc;
}

/* --- shelves ------------------------------------------------------------------------------ */

typedef struct shelf_count {
    const cairn_shelf *shelf;
    cairn_shelf_info info;
} shelf_count;

static uint64_t storage_of(int dirfd, const char *name)
{
    enum { UNIT = 512 }; /* of st_blocks */
    struct stat st;
    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_blocks * UNIT : 0;
}

static cairn_status count_part(void *arg, uint32_t series, uint32_t rank)
{
    shelf_count *c = arg;
    char name[STATE_FILE_NAME];
    int dir;
    CRN_TRY(crn_writer_dir(c->shelf, series, false, &dir));
    c->info.nwriters += rank == 0;
    c->info.nparts++;
    c->info.part_bytes += storage_of(dir, crn_writer_part_name(series, rank, name));
    close(dir);
    return CAIRN_OK;
}

static cairn_status describe_shelf(cairn_shelf *s, shelf_count *c)
{
    state_census census;
    CRN_TRY(crn_state_count(s, &census));
    c->info.nstates = census.nstates;
    c->info.nbytes = census.nbytes;
    c->info.index_bytes = storage_of(s->fd, "index");
    return crn_shelf_parts(s, count_part, c);
}

int cairn_shelf_describe(cairn_shelf *s, cairn_shelf_info *ret)
{
    shelf_count c = {.shelf = s, .info = {.struct_bytes = sizeof c.info}};
    CRN_FAIL_IF(!s, CAIRN_EINVAL, "the shelf is NULL");
    CRN_TRY(crn_struct_check(ret));
    const cairn_status rc = describe_shelf(s, &c);
    if (rc < 0)
        crn_err_prefix("shelf '%s': ", s->path);
    return rc < 0 ? rc : crn_struct_out(&c.info, ret);
}
