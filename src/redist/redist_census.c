/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking a census. Records travel as they lie in memory: ranks of one job share a byte order.
 */
#include "redist/redist.h"

_Static_assert(sizeof(crn_owner_record) % 8 == 0, "dimensions follow a record, aligned");

const uint64_t *crn_record_dims(const crn_owner_record *r)
{
    return (const uint64_t *)(const void *)(r + 1);
}

const char *crn_record_name(const crn_owner_record *r)
{
    return (const char *)(crn_record_dims(r) + 3 * (size_t)r->ndims);
}

const char *crn_record_type(const crn_owner_record *r)
{
    return crn_record_name(r) + r->name_bytes;
}

const char *crn_record_kept(const crn_owner_record *r)
{
    return crn_record_type(r) + r->type_bytes;
}

crn_var_spec crn_record_spec(const crn_owner_record *r)
{
    const uint64_t *dims = crn_record_dims(r);
    return (crn_var_spec){.name = crn_record_name(r),
                          .type = crn_record_type(r),
                          .item = r->item,
                          .nbytes = r->nbytes,
                          .ndims = r->ndims,
                          .global = dims,
                          .offset = dims + r->ndims,
                          .count = dims + 2 * (size_t)r->ndims};
}

crn_box crn_record_box(const crn_owner_record *r)
{
    const crn_var_spec spec = crn_record_spec(r);
    return crn_far_piece(&spec);
}

void crn_census_add(crn_census *s, uint32_t rank, const crn_var_spec *spec, uint64_t ncells,
                    const crn_digest *root)
{
    const size_t name = strlen(spec->name) + 1, type = strlen(spec->type) + 1;
    const char *line = crn_kept_line(spec->attributes);
    const size_t kept = line ? strcspn(line, "\n") : 0;
    const size_t nbytes =
        sizeof(crn_owner_record) + 3 * spec->ndims * sizeof(uint64_t) + name + type + kept + 1;
    crn_owner_record r = {.room = (uint32_t)CRN_ROUND_UP(nbytes, (size_t)8),
                          .rank = rank,
                          .layout = (uint32_t)crn_layout_of(spec),
                          .item = spec->item,
                          .ndims = spec->ndims,
                          .name_bytes = (uint32_t)name,
                          .type_bytes = (uint32_t)type,
                          .left_out = crn_kept_is_none(spec->attributes),
                          .nbytes = spec->nbytes,
                          .ncells = ncells};
    if (root)
        r.root = *root;
    crn_put_bytes(&s->own, &r, sizeof r);
    crn_put_bytes(&s->own, spec->global, spec->ndims * sizeof(uint64_t));
    crn_put_bytes(&s->own, spec->offset, spec->ndims * sizeof(uint64_t));
    crn_put_bytes(&s->own, spec->count, spec->ndims * sizeof(uint64_t));
    crn_put_bytes(&s->own, spec->name, name);
    crn_put_bytes(&s->own, spec->type, type);
    crn_put_bytes(&s->own, line ? line : "", kept);
    crn_put_u8(&s->own, 0);
    crn_put_zeros(&s->own, r.room - nbytes);
}

static int compare_records(const void *x, const void *y)
{
    const crn_owner_record *a = *(const crn_owner_record *const *)x,
                           *b = *(const crn_owner_record *const *)y;
    const int order = strcmp(crn_record_name(a), crn_record_name(b));
    return order != 0 ? order : a->rank < b->rank ? -1 : a->rank > b->rank;
}

static cairn_status sort_records(crn_census *s, size_t nbytes)
{
    for (size_t at = 0; at < nbytes;) {
        const crn_owner_record *r = (const crn_owner_record *)(const void *)(s->all.data + at);
        CRN_TRY(crn_vec_push(&s->record, r));
        at += r->room;
    }
    if (s->record.n > 0)
        qsort(s->record.at, s->record.n, sizeof *s->record.at, compare_records);
    return CAIRN_OK;
}

cairn_status crn_census_take(crn_census *s, crn_comm *comm)
{
    CRN_TRY(crn_comm_agree(comm, crn_buf_status(&s->own)));
    CRN_TRY(crn_comm_gatherv(comm, s->own.at, s->own.n, CRN_COMM_ALL, &s->all));
    return crn_comm_agree(comm, sort_records(s, s->all.off[crn_comm_size(comm)]));
}

void crn_census_done(crn_census *s)
{
    crn_buf_done(&s->own);
    crn_gathered_done(&s->all);
    crn_vec_done(&s->record);
}

size_t crn_census_next(const crn_census *s, size_t first)
{
    size_t end = first + 1;
    while (end < s->record.n &&
           strcmp(crn_record_name(s->record.at[end]), crn_record_name(s->record.at[first])) == 0)
        end++;
    return end;
}

const crn_owner_record *const *crn_census_find(const crn_census *s, const char *name, size_t *ret_n)
{
    size_t lo = 0, hi = s->record.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (strcmp(crn_record_name(s->record.at[mid]), name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_n = 0;
    if (lo == s->record.n || strcmp(crn_record_name(s->record.at[lo]), name) != 0)
        return NULL;
    *ret_n = crn_census_next(s, lo) - lo;
    return &s->record.at[lo];
}

static bool fills_array(const crn_owner_record *r)
{
    const uint64_t *global = crn_record_dims(r), *count = global + 2 * (size_t)r->ndims;
    return memcmp(global, count, r->ndims * sizeof *global) == 0;
}

bool crn_records_are_copies(const crn_owner_record *const *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fills_array(r[i]))
            return false;
    return n > 0;
}
