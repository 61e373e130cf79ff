/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/store_coder.h"

/* At least n bytes, aligned for codecs; what was there is lost. */
static cairn_status make_room(crn_buf *b, size_t n)
{
    if (n <= b->cap)
        return CAIRN_OK;
    crn_buf_done(b);
    CRN_TRY(crn_alloc_aligned(&b->at, CRN_ROUND_UP(n, (size_t)CRN_CODEC_ALIGN), CRN_CODEC_ALIGN));
    b->cap = n;
    return CAIRN_OK;
}

void crn_coder_done(crn_coder *c)
{
    crn_buf_done(&c->work);
    crn_buf_done(&c->copy);
}

crn_elem crn_elem_of(const crn_var_spec *spec)
{
    if (strcmp(spec->type, "float64") == 0)
        return CRN_ELEM_F64;
    return strcmp(spec->type, "float32") == 0 ? CRN_ELEM_F32 : CRN_ELEM_BYTES;
}

cairn_status crn_coder_store(crn_coder *c, const crn_codec_setting *s, const crn_codec_values *v,
                             crn_codec_result *ret)
{
    CRN_TRY(make_room(&c->work, crn_codec_store_scratch(s, v->nbytes)));
    CRN_TRY(make_room(&c->copy, crn_codec_store_bound(v->nbytes)));
    return crn_codec_store(s, v, c->copy.at, c->work.at, ret);
}

static cairn_status decode(crn_coder *c, const crn_var *v, uint64_t i, const unsigned char *stored,
                           unsigned char *to)
{
    const crn_block *b = &v->table[i];
    const crn_codec_ops *codec = crn_codec_of_id(b->codec);
    CRN_TRY(make_room(&c->work, crn_codec_decode_scratch(codec)));
    if (stored == to) {
        CRN_TRY(make_room(&c->copy, b->nbytes));
        stored = memcpy(c->copy.at, stored, b->nbytes);
    }
    return (c->apart ? crn_codec_decode_apart : crn_codec_decode)(
        codec, crn_elem_of(&v->spec), stored, b->nbytes, to, crn_var_block_bytes(v, i), c->work.at);
}

cairn_status crn_coder_bring(crn_coder *c, const crn_var *v, uint64_t i,
                             const unsigned char *stored, unsigned char *to, bool *ret_good)
{
    const crn_block *b = &v->table[i];
    crn_digest d;
    if (b->codec != 0 && v->has_stored) {
        d = crn_digest_of(stored, b->nbytes); /* no decoder sees what storage has damaged */
        *ret_good = crn_digest_equal(&d, &b->stored);
        if (!*ret_good)
            return CAIRN_OK;
    }
    if (b->codec != 0) {
        cairn_status rc = decode(c, v, i, stored, to);
        if (rc < 0) {
            *ret_good = false;
            return rc == CAIRN_ECORRUPT ? CAIRN_OK : rc;
        }
        d = crn_digest_of(to, crn_var_block_bytes(v, i));
    } else {
        d = stored == to ? crn_digest_of(to, b->nbytes) : crn_digest_copy(to, stored, b->nbytes);
    }
    *ret_good = crn_digest_equal(&d, &b->digest);
    return CAIRN_OK;
}
