/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size of a variable's blocks, where the configuration leaves it to us: the first marks are
 * looked at, and what changed between them says which size would have written least (crn_look).
 * Each rank chooses for itself: nobody else reads its blocks by a size that is not in its own
 * files, and trees have leaves of their own.
 */
#include "ckpt/ckpt_session.h"

enum {
    START = 64 << 10, /* until more is known: the size that is the default otherwise */
    LOOKS = 3,        /* marks that are looked at: the third has the size that they tell */
    WORTH = 8 << 10   /* bytes of a variable */
};

crn_elem crn_ckpt_elem(const char *type)
{
    if (strcmp(type, "float64") == 0)
        return CRN_ELEM_F64;
    return strcmp(type, "float32") == 0 ? CRN_ELEM_F32 : CRN_ELEM_BYTES;
}

/* Arrays whose codec sees dimensions want larger blocks; 0: any will do. */
static uint32_t block_of_codec(const cairn *c, const ckpt_var *v)
{
    const crn_codec_setting s = crn_ckpt_codec(c->held.cfg, v->name);
    const crn_elem elem = crn_ckpt_elem(v->type);
    const crn_codec_shape shape = crn_codec_shape_of(v->ndims, v->dims + 2 * (size_t)v->ndims);
    uint32_t block = v->ndims > 1 ? crn_codec_block(&s, elem, &shape) : 0;
    while (block > START && block / 2 >= v->nbytes)
        block /= 2;
    return block;
}

void crn_blocks_declare(const cairn *c, const ckpt_var *old, ckpt_var *v)
{
    const uint64_t n = crn_config_variable(c->held.cfg, CRN_OPT_VARIABLE_BLOCK, v->name).n;
    const bool found = n == UINT64_MAX;
    v->block = found ? START : (uint32_t)n;
    if (!found && !crn_config_is_given_for(c->held.cfg, CRN_OPT_VARIABLE_BLOCK, v->name))
        v->block = CRN_MAX(v->block, block_of_codec(c, v));
    v->seeks = found;
    if (old) {
        v->block = found ? old->block : v->block;
        v->seeks = old->seeks;
        v->look = old->look;
    }
}

void crn_blocks_inherit(ckpt_var *v, uint32_t block)
{
    if (!v->seeks)
        return;
    crn_look_done(&v->look);
    v->block = block;
    v->seeks = block == START; /* perhaps its first marks were too few */
}

static cairn_status look_at(void *arg, uint64_t i, const unsigned char *data, size_t nbytes)
{
    crn_look *look = arg;
    if (crn_look_wants(look, i))
        crn_look_at(look, data, nbytes);
    return CAIRN_OK;
}

static cairn_status look_once(ckpt_var *v)
{
    CRN_TRY(crn_look_begin(&v->look, v->nbytes));
    return crn_ckpt_each_stretch(v, CRN_LOOK_STRETCH, look_at, &v->look);
}

static uint32_t choose(const cairn *c, const ckpt_var *v)
{
    const crn_codec_setting s = crn_ckpt_codec(c->held.cfg, v->name);
    return crn_look_choose(&v->look, s.family != CRN_FAMILY_NONE, v->block);
}

void crn_blocks_look(const cairn *c, ckpt_var *v)
{
    if (!v->seeks || v->nbytes < WORTH || v->layout == CRN_LAYOUT_INDEX)
        return;
    const uint32_t before = v->block;
    const bool looked = look_once(v) == CAIRN_OK; /* a help, not a need: without memory it stays */
    if (looked && v->look.nmarks < LOOKS)
        return;
    if (looked)
        v->block = choose(c, v);
    v->seeks = false;
    crn_look_done(&v->look);
    if (v->block != before)
        crn_log_write(&c->held.log, CRN_LOG_INFO, CRN_LOG_EACH,
                      "variable '%s': blocks of %u KiB instead of %u KiB, by what changed", v->name,
                      v->block >> 10, before >> 10);
}
