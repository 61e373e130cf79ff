/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs that a program chooses itself: by which a field's next puts are stored, and what a reader
 * would get of it then.
 */
#include "state/state_shelf.h"

#include <inttypes.h>
#include <math.h>

const char *crn_shelf_codec_of(const cairn_shelf *s, const char *field)
{
    for (size_t i = 0; i < s->chosen.n; i++)
        if (strcmp(s->chosen.at[i].field, field) == 0)
            return s->chosen.at[i].codec;
    return NULL;
}

static cairn_status choose(cairn_shelf *s, const char *field, const char *codec)
{
    crn_codec_setting setting;
    state_choice c = {0};
    if (codec)
        CRN_TRY(crn_codec_parse(codec, "", &setting));
    for (size_t i = 0; i < s->chosen.n; i++)
        if (strcmp(s->chosen.at[i].field, field) == 0)
            s->chosen.at[i--] = s->chosen.at[--s->chosen.n];
    if (!codec)
        return CAIRN_OK;
    CRN_FAIL_IF(strlen(codec) >= sizeof c.codec || strlen(field) >= sizeof c.field, CAIRN_EINVAL,
                "'%.80s' is too long", strlen(codec) >= sizeof c.codec ? codec : field);
    snprintf(c.codec, sizeof c.codec, "%s", codec);
    snprintf(c.field, sizeof c.field, "%s", field);
    return crn_vec_push(&s->chosen, c);
}

int cairn_shelf_set_codec(cairn_shelf *s, const char *field, const char *codec)
{
    CRN_FAIL_IF(!s || !field, CAIRN_EINVAL, "the shelf or the field is NULL");
    cairn_status rc = choose(s, field, codec);
    if (rc < 0)
        crn_err_prefix("shelf '%s', codec of field '%s': ", s->path, field);
    return rc;
}

/* --- what readers would get ----------------------------------------------------------------- */

typedef struct trial {
    crn_codec_setting setting;
    crn_var_spec spec;
    crn_codec_values values; /* shape and kind, of each block */
    unsigned char *dst, *scratch;
    cairn_coded sum;
} trial;

static cairn_status code_blocks(trial *t, const unsigned char *from, unsigned char *reads)
{
    const size_t width = crn_elem_nbytes(t->values.elem);
    for (size_t at = 0; at < t->spec.nbytes; at += t->spec.block) {
        crn_codec_result r;
        t->values.at = from + at;
        t->values.nbytes = CRN_MIN((size_t)t->spec.block, t->spec.nbytes - at);
        t->values.shape.first = at / width;
        CRN_TRY(crn_codec_store(&t->setting, &t->values, t->dst, t->scratch, &r));
        if (reads)
            memmove(reads + at, r.reads, t->values.nbytes);
        t->sum.stored += r.codec != 0 ? r.n : t->values.nbytes;
        t->sum.error = fmax(t->sum.error, r.error);
    }
    return CAIRN_OK;
}

static cairn_status code(const cairn_shelf *s, const cairn_field *field, const char *codec,
                         void *reads, trial *t)
{
    CRN_TRY(crn_codec_parse(codec, "", &t->setting));
    CRN_TRY(crn_field_spec(s, field, &t->spec));
    t->values.elem = crn_elem_of(&t->spec);
    CRN_FAIL_IF(t->values.elem == CRN_ELEM_BYTES, CAIRN_EINVAL,
                "field '%s' has no floating-point values", field->name);
    if (t->spec.ndims > 1 && !t->setting.flat)
        t->values.shape = crn_codec_shape_of(t->spec.ndims, t->spec.count);
    CRN_TRY(crn_alloc(&t->dst, crn_codec_store_bound(t->spec.block)));
    cairn_status rc = crn_alloc_aligned(
        &t->scratch, crn_codec_store_scratch(&t->setting, t->spec.block), CRN_CODEC_ALIGN);
    if (rc == CAIRN_OK) {
        rc = code_blocks(t, field->data, reads);
        free(t->scratch);
    }
    free(t->dst);
    return rc;
}

int cairn_field_code(const cairn_shelf *s, const cairn_field *field, const char *codec, void *reads,
                     cairn_coded *ret)
{
    trial t = {.sum = {.struct_bytes = sizeof t.sum}};
    const uint64_t begun = crn_now_ns();
    CRN_FAIL_IF(!s || !field || !codec || !ret, CAIRN_EINVAL, "an argument is NULL");
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(code(s, field, codec, reads, &t));
    t.sum.nbytes = t.spec.nbytes;
    t.sum.seconds = (double)(crn_now_ns() - begun) * 1e-9;
    return crn_struct_out(&t.sum, ret);
}

/* --- what was chosen ------------------------------------------------------------------------ */

static cairn_status read_choice(cairn_shelf *s, crn_state_name name, const char *field,
                                char codec[CAIRN_CODEC_TEXT])
{
    state_entry e;
    crn_part *part;
    crn_mark *m;
    cairn_status rc = crn_state_index_find(s->index, name, &e);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOTFOUND, "there is no such state");
    CRN_TRY(rc);
    CRN_TRY(crn_reader_load(s, &e, 0, &part, &m));
    const crn_var *v = crn_mark_find(m, field);
    const char *text = v ? crn_var_attribute(&v->spec, CRN_CODEC_KEY) : NULL;
    if (text)
        snprintf(codec, CAIRN_CODEC_TEXT, "%.*s", (int)strcspn(text, "\n"), text);
    crn_mark_free(m);
    return text ? CAIRN_OK : CAIRN_NOTHING;
}

int cairn_state_codec(cairn_shelf *s, const char *key, uint64_t version, const char *field,
                      char codec[CAIRN_CODEC_TEXT])
{
    CRN_FAIL_IF(!s || !key || !field || !codec, CAIRN_EINVAL, "an argument is NULL");
    codec[0] = 0;
    cairn_status rc = read_choice(s, (crn_state_name){key, version}, field, codec);
    if (rc < 0)
        crn_err_prefix("shelf '%s', state '%s' %" PRIu64 ": ", s->path, key, version);
    return rc;
}
