/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks in memory: finding a variable by name, loading records and tables from a part.
 */
#include "store/store_part.h"

static void free_vars(crn_var *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)v[i].spec.name);
        free((char *)v[i].spec.type);
        free((char *)v[i].spec.attributes);
        free(v[i].table);
    }
}

void crn_mark_free(crn_mark *m)
{
    if (!m)
        return;
    if (m->var && !m->has_page)
        free_vars(m->var, m->nvars);
    for (size_t i = 0; m->var && m->has_page && i < m->npages; i++) {
        size_t n;
        const size_t first = crn_page_vars(m, i, &n);
        if (m->has_page[i]) /* to touch the memory of others would cost as much as to read them */
            free_vars(m->var + first, n);
    }
    free(m->var);
    free(m->page);
    free(m->has_page);
    crn_index_done(&m->name);
    free(m);
}

uint32_t crn_var_block_bytes(const crn_var *v, uint64_t i)
{
    return (uint32_t)CRN_MIN((uint64_t)v->spec.block, v->spec.nbytes - i * v->spec.block);
}

cairn_status crn_spec_copy_texts(const crn_var_spec *spec, crn_var_spec *to)
{
    char *name = NULL, *type = NULL, *attributes = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_strdup(spec->name, &name));
    CRN_TRY_OUT(rc, crn_strdup(spec->type, &type));
    CRN_TRY_OUT(rc, crn_strdup(spec->attributes ? spec->attributes : "", &attributes));
    to->name = name;
    to->type = type;
    to->attributes = attributes;
    return CAIRN_OK;
out:
    free(name);
    free(type);
    free(attributes);
    return rc;
}

cairn_status crn_var_declare(crn_var *v, const crn_var_spec *spec)
{
    crn_var_spec copy = *spec;
    CRN_TRY(crn_spec_copy_texts(spec, &copy));
    const uint64_t *from[3] = {spec->global, spec->offset, spec->count};
    const uint64_t **to[3] = {&copy.global, &copy.offset, &copy.count};
    for (int k = 0; k < 3; k++) {
        *to[k] = v->dims + (size_t)k * spec->ndims;
        if (spec->ndims > 0)
            memcpy(v->dims + (size_t)k * spec->ndims, from[k], spec->ndims * sizeof *from[k]);
    }
    v->spec = copy;
    v->nblocks = spec->nbytes / spec->block + (spec->nbytes % spec->block != 0);
    return CAIRN_OK;
}

cairn_status crn_mark_index(crn_mark *m)
{
    while (m->name.n < m->nvars)
        CRN_TRY(crn_index_add(&m->name, crn_hash_text(m->var[m->name.n].spec.name), m->name.n));
    return CAIRN_OK;
}

crn_var *crn_mark_find(const crn_mark *m, const char *name)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&m->name, crn_hash_text(name), &probe, &at);)
        if (strcmp(m->var[at].spec.name, name) == 0)
            return &m->var[at];
    return NULL;
}

/* --- loading ------------------------------------------------------------------------------ */

/* Where the file that part has open ends, if that is less than it should be. */
static cairn_status end_of(const crn_part *part, uint64_t *ret)
{
    uint64_t nbytes;
    CRN_TRY(crn_file_nbytes(part->file, &nbytes));
    *ret = CRN_MIN(part->super.end, nbytes);
    return CAIRN_OK;
}

cairn_status crn_mark_load_page(crn_part *part, crn_mark *m, size_t page)
{
    unsigned char *data;
    CRN_TRY(crn_part_read_blob(part, &m->page[page], "mark record", &data));
    m->has_page[page] = true; /* perhaps not all of it */
    cairn_status rc = crn_format_get_page(data, m->page[page].nbytes, part->super.end, m, page);
    free(data);
    return rc;
}

static cairn_status load_pages(crn_part *part, crn_mark *m)
{
    for (size_t i = 0; i < m->npages; i++)
        CRN_TRY(crn_mark_load_page(part, m, i));
    return crn_mark_index(m);
}

static cairn_status get_record(crn_part *part, const part_entry *e, const unsigned char *data,
                               crn_mark **ret)
{
    uint64_t end;
    if (!crn_format_is_root(data, e->record.nbytes))
        return crn_format_get_mark(data, e->record.nbytes, part->super.end, ret);
    CRN_TRY(end_of(part, &end));
    return crn_format_get_root(data, e->record.nbytes, end, ret);
}

cairn_status crn_part_load_record(crn_part *part, const part_entry *e, bool root_only,
                                  crn_mark **ret)
{
    unsigned char *data;
    crn_mark *m = NULL;
    CRN_TRY(crn_part_read_blob(part, &e->record, "mark record", &data));
    cairn_status rc = get_record(part, e, data, &m);
    free(data);
    if (rc == CAIRN_OK && (m->version != e->version || m->seq != e->seq))
        rc = crn_fail(CAIRN_ECORRUPT, "it is the record of another mark");
    if (rc == CAIRN_OK && !root_only)
        rc = load_pages(part, m);
    if (rc < 0) {
        crn_mark_free(m);
        crn_err_prefix("'%s', mark %" PRIu64 ": ", part->name, e->version);
        return rc;
    }
    *ret = m;
    return CAIRN_OK;
}

/* The entry of a version, or NULL; versions ascend. */
static const part_entry *find_entry(const crn_part *part, uint64_t version)
{
    size_t lo = 0, hi = part->cat.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (part->cat.at[mid].version < version)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < part->cat.n && part->cat.at[lo].version == version ? &part->cat.at[lo] : NULL;
}

bool crn_part_has(const crn_part *part, uint64_t version)
{
    return find_entry(part, version);
}

cairn_status crn_part_load(crn_part *part, uint64_t version, crn_mark **ret)
{
    const part_entry *e = find_entry(part, version);
    CRN_FAIL_IF(!e, CAIRN_ENOTFOUND, "'%s' has no mark %" PRIu64, part->name, version);
    return crn_part_load_record(part, e, false, ret);
}

cairn_status crn_mark_table(crn_part *part, const crn_mark *m, crn_var *v)
{
    unsigned char *data;
    if (v->table)
        return CAIRN_OK;
    cairn_status rc = CAIRN_OK;
    if (v->nblocks == 0) {
        rc = crn_alloc(&v->table, 0);
    } else {
        rc = crn_part_read_blob(part, &v->place, "block table", &data);
        if (rc == CAIRN_OK) {
            crn_cursor c = crn_cursor_of(data, v->place.nbytes);
            rc = crn_format_get_table(&c, part->super.end, v);
            free(data);
        }
    }
    if (rc < 0)
        crn_err_prefix("mark %" PRIu64 ", variable '%s': ", m->version, v->spec.name);
    return rc;
}
