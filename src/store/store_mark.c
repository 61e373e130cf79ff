/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks in memory: finding a variable by name, loading records and tables from a part.
 */
#include "store/store_part.h"

void crn_mark_free(crn_mark *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->var && i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        free((char *)v->spec.name);
        free((char *)v->spec.type);
        free((char *)v->spec.attributes);
        free(v->table);
    }
    free(m->var);
    free(m->slot);
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

/* The slot of name, or the empty one where it would go. */
static uint32_t *probe(const crn_mark *m, const char *name)
{
    crn_digest d = crn_digest_of(name, strlen(name));
    size_t at = 0;
    memcpy(&at, d.b, sizeof at);
    for (;; at++) {
        uint32_t *slot = &m->slot[at & (m->nslots - 1)];
        if (*slot == 0 || strcmp(m->var[*slot - 1].spec.name, name) == 0)
            return slot;
    }
}

cairn_status crn_mark_index(crn_mark *m)
{
    if (2 * m->nvars >= m->nslots) {
        size_t n = 16;
        while (n <= 4 * m->nvars)
            n *= 2;
        uint32_t *slot;
        CRN_TRY(crn_alloc(&slot, n));
        free(m->slot);
        m->slot = slot;
        m->nslots = n;
        for (size_t i = 0; i < m->nvars; i++)
            *probe(m, m->var[i].spec.name) = (uint32_t)i + 1;
    } else {
        *probe(m, m->var[m->nvars - 1].spec.name) = (uint32_t)m->nvars;
    }
    return CAIRN_OK;
}

crn_var *crn_mark_find(const crn_mark *m, const char *name)
{
    uint32_t i = m->nslots ? *probe(m, name) : 0;
    return i ? &m->var[i - 1] : NULL;
}

cairn_status crn_part_load(crn_part *part, uint64_t version, crn_mark **ret)
{
    for (size_t i = part->cat.n; i-- > 0;) {
        const part_entry *e = &part->cat.at[i];
        unsigned char *data;
        crn_mark *m = NULL;
        if (e->version != version)
            continue;
        CRN_TRY(crn_part_read_blob(part, &e->record, "mark record", &data));
        cairn_status rc = crn_format_get_mark(data, e->record.nbytes, part->super.end, &m);
        free(data);
        if (rc == CAIRN_OK && (m->version != version || m->seq != e->seq)) {
            crn_mark_free(m);
            rc = crn_fail(CAIRN_ECORRUPT, "it is the record of another mark");
        }
        if (rc < 0) {
            crn_err_prefix("'%s', mark %" PRIu64 ": ", part->name, version);
            return rc;
        }
        *ret = m;
        return CAIRN_OK;
    }
    return crn_fail(CAIRN_ENOTFOUND, "'%s' has no mark %" PRIu64, part->name, version);
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
        part_ref ref = {v->table_off, v->table_bytes, v->table_digest};
        rc = crn_part_read_blob(part, &ref, "block table", &data);
        if (rc == CAIRN_OK) {
            rc = crn_format_get_table(data, part->super.end, v);
            free(data);
        }
    }
    if (rc < 0)
        crn_err_prefix("mark %" PRIu64 ", variable '%s': ", m->version, v->spec.name);
    return rc;
}
