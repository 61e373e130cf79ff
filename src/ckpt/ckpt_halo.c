/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What lies in memory around a piece of an array. Ranks may hold values there that differ in the
 * last bit from those of the neighbour that the place belongs to, as where both compute the same
 * vertices. So a rank that goes on with its piece goes on with these, too: marks have them as a
 * companion of the piece, which is of use to nobody else.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

bool crn_ckpt_has_halo(const ckpt_var *v)
{
    return v->halo && v->padded && v->nbytes > 0;
}

ckpt_var *crn_ckpt_halo_of(cairn *c, const char *name)
{
    char full[CRN_VAR_NAME + 1];
    const bool fits = crn_companion_name(name, CRN_HALO_END, full) == CAIRN_OK;
    return fits ? crn_ckpt_find(c, full) : NULL;
}

/* The piece, also of its halo, which has no dimensions of its own. */
static crn_box piece_of(const ckpt_var *v)
{
    const uint32_t ndims = v->memory.ndims;
    const crn_var_spec spec = {
        .ndims = ndims, .offset = v->dims + ndims, .count = v->dims + 2 * (size_t)ndims};
    return crn_far_piece(&spec);
}

uint32_t crn_ckpt_boxes(const ckpt_var *v, crn_box ret[CKPT_BOXES_MAX])
{
    const crn_box piece = piece_of(v);
    crn_box left = v->memory; /* what no strip has yet */
    uint32_t n = 0;
    if (v->layout != CRN_LAYOUT_HALO) {
        ret[0] = piece;
        return 1;
    }
    for (uint32_t d = 0; d < left.ndims; d++) {
        if (left.lo[d] < piece.lo[d]) {
            ret[n] = left;
            ret[n++].hi[d] = piece.lo[d];
        }
        if (piece.hi[d] < left.hi[d]) {
            ret[n] = left;
            ret[n++].lo[d] = piece.hi[d];
        }
        left.lo[d] = piece.lo[d];
        left.hi[d] = piece.hi[d];
    }
    return n;
}

/* The lines that say how wide the strips are. */
static cairn_status write_lines(const ckpt_var *v, char **ret)
{
    const crn_box piece = piece_of(v);
    crn_buf b = {0};
    crn_put_text(&b, "layout=halo\nbefore=");
    for (uint32_t d = 0; d < piece.ndims; d++)
        crn_put_text(&b, "%s%" PRIu64, d ? " " : "", piece.lo[d] - v->memory.lo[d]);
    crn_put_text(&b, "\nafter=");
    for (uint32_t d = 0; d < piece.ndims; d++)
        crn_put_text(&b, "%s%" PRIu64, d ? " " : "", v->memory.hi[d] - piece.hi[d]);
    crn_put_text(&b, "\n");
    cairn_status rc = crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_strdup(crn_buf_text(&b), ret);
    crn_buf_done(&b);
    return rc;
}

cairn_status crn_ckpt_declare_halo(cairn *c, const ckpt_var *piece)
{
    char name[CRN_VAR_NAME + 1];
    ckpt_var halo = *piece;
    CRN_TRY(crn_companion_name(piece->name, CRN_HALO_END, name));
    halo.name = name;
    halo.layout = CRN_LAYOUT_HALO;
    halo.halo = false;
    halo.ndims = 0;
    halo.nbytes = crn_box_volume(&piece->memory) * piece->item - piece->nbytes;
    CRN_TRY(write_lines(piece, &halo.lines));
    cairn_status rc = crn_ckpt_declare(c, &halo);
    if (rc < 0)
        free(halo.lines);
    return rc;
}
