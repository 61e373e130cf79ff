/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a rank as a stream of units: where each variable lies in it, what stands for the
 * content of a unit, and reading units from a part.
 */
#include "level/level_encoded.h"

#include <inttypes.h>

cairn_status crn_stream_init(crn_stream *s, const crn_mark *mark)
{
    const uint64_t limit = UINT64_MAX / 4; /* far from overflow below; no file is that long */
    uint64_t *start, end = 0;
    CRN_TRY(crn_alloc(&start, mark->nvars));
    for (size_t v = 0; v < mark->nvars; v++) {
        uint64_t nbytes = mark->var[v].spec.nbytes;
        if (end % CRN_UNIT + CRN_MIN(nbytes, limit) > CRN_UNIT)
            end = CRN_ROUND_UP(end, (uint64_t)CRN_UNIT);
        start[v] = end;
        if (nbytes > limit - end) {
            free(start);
            return crn_fail(CAIRN_ECORRUPT, "variable '%s' cannot have %" PRIu64 " bytes",
                            mark->var[v].spec.name, nbytes);
        }
        end += nbytes;
    }
    *s = (crn_stream){.mark = mark, .start = start, .nunits = (end + CRN_UNIT - 1) / CRN_UNIT};
    return CAIRN_OK;
}

void crn_stream_done(crn_stream *s)
{
    free(s->start);
    *s = (crn_stream){0};
}

static uint64_t end_of(const crn_stream *s, size_t v)
{
    return s->start[v] + s->mark->var[v].spec.nbytes;
}

size_t crn_stream_find(const crn_stream *s, uint64_t from)
{
    size_t low = 0, high = s->mark->nvars; /* the first variable that ends behind from */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (end_of(s, mid) > from)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool crn_stream_next(const crn_stream *s, uint64_t from, uint64_t to, crn_stretch *ret)
{
    size_t v = ret->nbytes > 0 ? ret->v + 1 : ret->v;
    while (v < s->mark->nvars && s->start[v] < to && s->mark->var[v].spec.nbytes == 0)
        v++;
    if (v >= s->mark->nvars || s->start[v] >= to)
        return false;
    uint64_t at = CRN_MAX(s->start[v], from);
    *ret = (crn_stretch){
        .v = v, .off = at - s->start[v], .nbytes = CRN_MIN(end_of(s, v), to) - at, .at = at};
    return true;
}

/* --- what stands for a unit --------------------------------------------------------------- */

/* Where the stretch lies in the unit and in its first block, then the digests of its blocks. */
static void put_stretch(const crn_stream *s, const crn_stretch *p, crn_buf *buf)
{
    const crn_var *v = &s->mark->var[p->v];
    uint64_t first = p->off / v->spec.block, last = (p->off + p->nbytes - 1) / v->spec.block;
    crn_put_u32(buf, (uint32_t)(p->at % CRN_UNIT));
    crn_put_u32(buf, (uint32_t)p->nbytes);
    crn_put_u32(buf, (uint32_t)(p->off % v->spec.block));
    crn_put_u32(buf, v->spec.block);
    for (uint64_t i = first; i <= last; i++)
        crn_put_bytes(buf, v->table[i].digest.b, sizeof v->table[i].digest.b);
}

cairn_status crn_stream_ids(const crn_stream *s, crn_digest *ret)
{
    crn_buf buf = {0};
    for (uint64_t unit = 0; unit < s->nunits && !buf.failed; unit++) {
        uint64_t from = unit * CRN_UNIT, to = from + CRN_UNIT;
        buf.n = 0;
        crn_stretch p = {.v = crn_stream_find(s, from)};
        while (crn_stream_next(s, from, to, &p))
            put_stretch(s, &p, &buf);
        ret[unit] = crn_digest_of(buf.at, buf.n);
    }
    cairn_status rc = crn_buf_status(&buf);
    crn_buf_done(&buf);
    return rc;
}

/* --- reading ------------------------------------------------------------------------------ */

static cairn_status cache_block(crn_stream_reader *r, crn_var *v, uint64_t i)
{
    if (r->var == v && r->i == i)
        return CAIRN_OK;
    if (!r->block)
        CRN_TRY(crn_alloc_aligned(&r->block, (size_t)CRN_BLOCK_MAX, 4096));
    r->var = NULL;
    CRN_TRY(crn_mark_read(r->part, r->stream->mark, v, i, 1, r->block, NULL));
    r->var = v;
    r->i = i;
    return CAIRN_OK;
}

/* A stretch that may begin or end within a block: such blocks are larger than a unit, and several
 * reads in a row want the same one. */
static cairn_status read_within(crn_stream_reader *r, crn_var *v, const crn_stretch *p,
                                unsigned char *dst)
{
    uint64_t off = p->off, end = p->off + p->nbytes;
    while (off < end) {
        uint64_t i = off / v->spec.block, in_block = off % v->spec.block;
        uint64_t nbytes = CRN_MIN(crn_var_block_bytes(v, i) - in_block, end - off);
        if (nbytes == crn_var_block_bytes(v, i)) {
            CRN_TRY(crn_mark_read(r->part, r->stream->mark, v, i, 1, dst, NULL));
        } else {
            CRN_TRY(cache_block(r, v, i));
            memcpy(dst, r->block + in_block, nbytes);
        }
        dst += nbytes;
        off += nbytes;
    }
    return CAIRN_OK;
}

static cairn_status read_stretch(crn_stream_reader *r, const crn_stretch *p, unsigned char *dst)
{
    crn_var *v = &r->stream->mark->var[p->v];
    uint64_t block = v->spec.block;
    if (block > CRN_UNIT)
        return read_within(r, v, p, dst);
    return crn_mark_read(r->part, r->stream->mark, v, p->off / block,
                         (p->nbytes + block - 1) / block, dst, NULL);
}

cairn_status crn_stream_read(crn_stream_reader *r, uint64_t first, uint64_t n, unsigned char *dst)
{
    const crn_stream *s = r->stream;
    uint64_t from = first * CRN_UNIT, to = from + n * CRN_UNIT, at = from;
    crn_stretch p = {.v = crn_stream_find(s, from)};
    while (crn_stream_next(s, from, to, &p)) {
        memset(dst + (at - from), 0, p.at - at);
        CRN_TRY(read_stretch(r, &p, dst + (p.at - from)));
        at = p.at + p.nbytes;
    }
    memset(dst + (at - from), 0, to - at);
    return CAIRN_OK;
}

void crn_stream_reader_done(crn_stream_reader *r)
{
    free(r->block);
    *r = (crn_stream_reader){0};
}
