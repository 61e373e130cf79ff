/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a trace (docs/format/trace.md). Columns are written once each: most are the same few
 * constants, so a symbol names its columns by number.
 */
#include "tracefmt/tracefmt.h"
#include "tracefmt/tracefmt_file.h"
#include "tracefmt/tracefmt_merge_impl.h"

#include <math.h>

/* The distinct columns so far: bytes one after another, found by an open-addressing table. */
typedef struct column_set {
    crn_buf bytes;
    CRN_VEC(size_t) end; /* of each column in bytes */
    uint32_t *slot;      /* number + 1, or 0 */
    size_t nslots;       /* a power of two */
} column_set;

static void put_items(crn_buf *b, const crn_seq *s)
{
    crn_put_var(b, s->n);
    crn_put_bytes(b, s->at, s->n);
}

static void put_seq(crn_buf *b, const crn_seq *s)
{
    crn_put_svar(b, s->base);
    put_items(b, s);
}

static void put_group(crn_buf *b, const crn_group *g, const crn_seq *all)
{
    bool everyone = crn_seq_equal(&g->ranks, all);
    crn_put_u8(b, (uint8_t)((everyone ? CRN_GROUP_ALL : 0) | (g->nlists ? CRN_GROUP_LISTS : 0) |
                            (g->nhists ? CRN_GROUP_HISTS : 0) | (g->reads ? CRN_GROUP_READS : 0)));
    if (!everyone)
        put_seq(b, &g->ranks);
    put_seq(b, &g->base);
    put_items(b, &g->value);
    if (g->reads > 0)
        crn_put_var(b, g->reads);
    if (g->nlists > 0) {
        crn_put_var(b, g->nlists);
        for (size_t i = 0; i < g->nlists; i++)
            put_seq(b, &g->list[i]);
    }
    if (g->nhists > 0) {
        crn_put_var(b, g->nhists);
        for (size_t i = 0; i < g->nhists; i++)
            crn_hist_put(b, &g->hist[i]);
    }
}

static bool is_constant(const crn_column *c, const crn_seq *all)
{
    return c->enc == CRN_ENC_PLAIN && c->ngroups == 1 && c->group->base.n == 0 &&
           c->group->value.n == 0 && c->group->nlists == 0 && c->group->nhists == 0 &&
           c->group->reads == 0 && crn_seq_equal(&c->group->ranks, all);
}

static unsigned file_enc(const crn_column *c)
{
    static const unsigned enc[] = {[CRN_ENC_PLAIN] = CRN_FILE_PLAIN,
                                   [CRN_ENC_REL] = CRN_FILE_REL,
                                   [CRN_ENC_XOR] = CRN_FILE_XOR,
                                   [CRN_ENC_GRID] = CRN_FILE_GRID};
    return c->other ? CRN_FILE_BOTH : enc[c->enc];
}

static void put_column(crn_buf *b, const crn_column *c, const crn_seq *all)
{
    if (is_constant(c, all)) {
        crn_put_var(b, 0);
        crn_put_svar(b, c->group->base.base);
        return;
    }
    crn_put_var(b, 1 + (c->ngroups << CRN_FILE_ENC_BITS | file_enc(c)));
    if (c->enc == CRN_ENC_GRID) {
        crn_put_var(b, c->grid.ndims);
        for (uint32_t i = 0; i < c->grid.ndims; i++)
            crn_put_var(b, c->grid.dim[i]);
    }
    for (size_t i = 0; i < c->ngroups; i++)
        put_group(b, &c->group[i], all);
    if (c->other)
        crn_put_var(b, c->nothers);
    for (size_t i = 0; i < c->nothers; i++)
        put_group(b, &c->other[i], all);
}

size_t crn_column_size(const crn_column *c, const crn_seq *all)
{
    crn_buf b = {0};
    put_column(&b, c, all);
    const size_t n = b.failed ? 0 : b.n;
    crn_buf_done(&b);
    return n;
}

static size_t column_start(const column_set *set, uint32_t i)
{
    return i > 0 ? set->end.at[i - 1] : 0;
}

/* The slot of the column whose bytes are given, or the free slot where it belongs. */
static uint32_t *find_slot(column_set *set, const unsigned char *p, size_t n)
{
    size_t at = crn_hash_bytes(p, n) & (set->nslots - 1);
    for (; set->slot[at]; at = (at + 1) & (set->nslots - 1)) {
        uint32_t i = set->slot[at] - 1;
        size_t start = column_start(set, i);
        if (set->end.at[i] - start == n && memcmp(set->bytes.at + start, p, n) == 0)
            break;
    }
    return &set->slot[at];
}

static cairn_status grow_slots(column_set *set)
{
    if ((set->end.n + 1) * 2 < set->nslots)
        return CAIRN_OK;
    size_t n = CRN_MAX(set->nslots * 2, 64);
    uint32_t *slot;
    CRN_TRY(crn_alloc(&slot, n));
    free(set->slot);
    set->slot = slot;
    set->nslots = n;
    for (uint32_t i = 0; i < set->end.n; i++) {
        size_t start = column_start(set, i);
        *find_slot(set, set->bytes.at + start, set->end.at[i] - start) = i + 1;
    }
    return CAIRN_OK;
}

/* The number of a column, added to the set if it is new. */
static cairn_status intern(column_set *set, const crn_column *c, const crn_seq *all, uint32_t *ret)
{
    CRN_TRY(grow_slots(set));
    size_t start = set->bytes.n;
    put_column(&set->bytes, c, all);
    CRN_TRY(crn_buf_status(&set->bytes));
    uint32_t *slot = find_slot(set, set->bytes.at + start, set->bytes.n - start);
    if (*slot) {
        set->bytes.n = start;
    } else {
        CRN_TRY(crn_vec_push(&set->end, set->bytes.n));
        *slot = (uint32_t)set->end.n;
    }
    *ret = *slot - 1;
    return CAIRN_OK;
}

static cairn_status put_symbol(crn_buf *b, column_set *set, const crn_symbol *s, const crn_seq *all)
{
    crn_put_var(b, s->call);
    if (s->call == CRN_CALL_NONE) {
        crn_put_var(b, s->nbody << 1 | s->optional);
        for (size_t i = 0; i < s->nbody; i++)
            crn_put_var(b, s->body[i]);
    } else {
        crn_put_var(b, s->within);
        crn_put_var(b, s->site);
        if (crn_call_row(s->call)->named)
            crn_put_var(b, s->name);
    }
    for (size_t i = 0; i < s->ncolumns; i++) {
        uint32_t column;
        CRN_TRY(intern(set, &s->column[i], all, &column));
        crn_put_var(b, column);
    }
    return CAIRN_OK;
}

/* How a class's mean differs from that of its codes, in steps of CRN_FINE of an octave. */
static uint8_t fine_step(const crn_hist *h)
{
    crn_buf b = {0};
    crn_hist rough;
    crn_hist_put_time(&b, h);
    crn_cursor c = crn_cursor_of(b.at, b.n);
    double steps = 0;
    if (crn_buf_status(&b) == CAIRN_OK && crn_hist_get_time(&c, &rough) == CAIRN_OK &&
        crn_hist_mean(&rough) > 0 && crn_hist_mean(h) > 0)
        steps = round(CRN_FINE * log2(crn_hist_mean(h) / crn_hist_mean(&rough)));
    crn_buf_done(&b);
    return (uint8_t)(128 + CRN_MIN(CRN_MAX(steps, -127), 127));
}

static void put_class(crn_buf *b, const crn_seq *ranks, uint64_t nranks, const crn_hist *h)
{
    put_seq(b, ranks);
    crn_put_var(b, nranks);
    crn_put_u8(b, fine_step(h));
    crn_hist_put_time(b, h);
}

/* Ranks that are alike have one histogram, of which more is known while it is to be merged. */
static void put_timing(crn_buf *b, const crn_timing *t)
{
    if (t->all.nbins == 0 || (t->nclasses == 0 && t->nranks == 0)) {
        crn_hist_put_time(b, &t->all);
        return;
    }
    crn_put_u8(b, (uint8_t)(CRN_TIMING_CLASSES + CRN_MAX(t->nclasses, 1)));
    if (t->nclasses == 0)
        put_class(b, &(crn_seq){.base = 0}, t->nranks, &t->all);
    for (size_t i = 0; i < t->nclasses; i++)
        put_class(b, &t->class[i].ranks, t->class[i].nranks, &t->class[i].hist);
}

static void put_times(crn_buf *b, const crn_lane *l)
{
    crn_put_var(b, l->took != NULL);
    if (!l->took)
        return;
    for (size_t i = 0; i < l->nsymbols; i++) {
        if (l->symbol[i].call != CRN_CALL_NONE)
            put_timing(b, &l->took[i]);
    }
    crn_put_var(b, l->ngaps);
    uint32_t before = 0;
    for (size_t i = 0; i < l->ngaps; i++) {
        uint32_t from = l->gap[i].from + 1; /* the start of the lane becomes 0 */
        crn_put_var(b, from - before);
        crn_put_var(b, l->gap[i].to);
        put_timing(b, &l->gap[i].time);
        before = from;
    }
}

static cairn_status put_lane(crn_buf *b, column_set *set, const crn_lane *l)
{
    put_seq(b, &l->ranks);
    crn_put_var(b, l->nsymbols);
    for (size_t i = 0; i < l->nsymbols; i++)
        CRN_TRY(put_symbol(b, set, &l->symbol[i], &l->ranks));
    crn_put_var(b, l->root);
    put_times(b, l);
    return CAIRN_OK;
}

static void put_type(crn_buf *b, const crn_type *type)
{
    crn_put_var(b, type->name);
    crn_put_var(b, type->nbytes);
    crn_put_svar(b, type->lb);
    crn_put_svar(b, type->extent - (int64_t)type->nbytes); /* mostly 0 */
    if (type->name != 0)
        return;
    crn_put_var(b, type->combiner);
    crn_put_var(b, type->nints);
    put_seq(b, &type->ints);
    crn_put_var(b, type->naddrs);
    put_seq(b, &type->addrs);
    crn_put_var(b, type->ntypes);
    put_seq(b, &type->types);
}

static void put_tables(crn_buf *b, const crn_trace *t)
{
    crn_put_var(b, t->nstrings - 1);
    for (size_t i = 1; i < t->nstrings; i++) {
        size_t n = strlen(t->string[i]);
        crn_put_var(b, n);
        crn_put_bytes(b, t->string[i], n);
    }
    crn_put_var(b, t->nsites - 1);
    uint64_t before = 0;
    for (size_t i = 1; i < t->nsites; i++) {
        crn_put_var(b, t->site[i].outer);
        crn_put_var(b, t->site[i].module);
        crn_put_svar(b, (int64_t)(t->site[i].off - before));
        before = t->site[i].off;
    }
    crn_put_var(b, t->nmodules);
    for (size_t i = 0; i < t->nmodules; i++) {
        const crn_module *m = &t->module[i];
        crn_put_var(b, m->name);
        crn_put_var(b, m->path);
        crn_put_var(b, m->nbuild);
        crn_put_bytes(b, m->build, m->nbuild);
    }
    crn_put_var(b, t->ntypes);
    for (size_t i = 0; i < t->ntypes; i++)
        put_type(b, &t->type[i]);
}

static cairn_status put_payload(crn_buf *b, const crn_trace *t)
{
    crn_buf lanes = {0};
    column_set set = {0};
    cairn_status rc = CAIRN_OK;
    crn_put_var(b, t->nranks);
    crn_put_var(b, t->precision);
    crn_put_var(b, t->began);
    crn_put_var(b, t->lasted);
    crn_put_var(b, t->dropped);
    put_seq(b, &t->missing);
    put_seq(b, &t->cut);
    crn_put_var(b, t->program);
    put_tables(b, t);
    for (size_t i = 0; i < t->nlanes; i++)
        CRN_TRY_OUT(rc, put_lane(&lanes, &set, &t->lane[i]));
    crn_put_var(b, set.end.n);
    for (uint32_t i = 0; i < set.end.n; i++)
        crn_put_var(b, set.end.at[i] - column_start(&set, i));
    crn_put_bytes(b, set.bytes.at, set.bytes.n);
    crn_put_var(b, t->nlanes);
    crn_put_bytes(b, lanes.at, lanes.n);
    CRN_TRY_OUT(rc, crn_buf_status(&lanes));
    CRN_TRY_OUT(rc, crn_buf_status(b));
out:
    crn_buf_done(&lanes);
    crn_buf_done(&set.bytes);
    crn_vec_done(&set.end);
    free(set.slot);
    return rc;
}

static cairn_status compress(const crn_buf *raw, int level, crn_buf *b)
{
    unsigned char *frame;
    size_t n;
    /* Traces are small, so the best level costs little; of large ones it would take minutes. */
    level = raw->n < CRN_TRACE_SMALL ? level : CRN_MIN(level, 6);
    CRN_TRY(crn_trace_pack(raw->at, raw->n, level, &frame, &n));
    crn_put_bytes(b, CRN_TRACE_MAGIC, 8);
    crn_put_u16(b, CAIRN_TRACE_FORMAT);
    crn_put_u16(b, 0);
    crn_put_u32(b, (uint32_t)n);
    crn_put_u64(b, raw->n);
    crn_put_bytes(b, frame, n);
    free(frame);
    return crn_buf_status(b);
}

cairn_status crn_trace_encode(const crn_trace *t, int level, crn_buf *b)
{
    crn_buf raw = {0};
    cairn_status rc;
    CRN_TRY_OUT(rc, put_payload(&raw, t));
    if (raw.n > CRN_TRACE_MAX) {
        rc = crn_fail(CAIRN_EUNSUPPORTED, "a folded trace of %zu bytes is larger than %llu", raw.n,
                      (unsigned long long)CRN_TRACE_MAX);
        goto out;
    }
    CRN_TRY_OUT(rc, compress(&raw, level, b));
out:
    crn_buf_done(&raw);
    return rc;
}

cairn_status crn_trace_save(const crn_trace *t, const char *path)
{
    crn_buf b = {0};
    cairn_status rc = crn_trace_encode(t, CRN_TRACE_BEST, &b);
    if (rc == CAIRN_OK)
        rc = crn_output_write(path, b.at, b.n);
    crn_buf_done(&b);
    return rc;
}
