/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the ranks' shares of a variable belong together, as a mark's attributes say it.
 */
#include "redist/redist.h"

static const char *const words[] = {
    [CRN_LAYOUT_RAGGED] = "ragged",
    [CRN_LAYOUT_INDEX] = "index",
    [CRN_LAYOUT_LIST] = "list",
    [CRN_LAYOUT_HALO] = "halo",
};

enum { NWORDS = sizeof words / sizeof *words };

const char *crn_layout_word(crn_var_layout layout)
{
    return (size_t)layout < NWORDS ? words[layout] : NULL;
}

crn_var_layout crn_layout_of(const crn_var_spec *spec)
{
    if (spec->ndims > 0)
        return CRN_LAYOUT_PIECE;
    for (size_t i = 0; i < NWORDS; i++)
        if (words[i] && crn_var_has_layout(spec, words[i]))
            return (crn_var_layout)i;
    return CRN_LAYOUT_OWN;
}

crn_box crn_far_piece(const crn_var_spec *spec)
{
    crn_box b = crn_box_of(spec->ndims, spec->offset, spec->count);
    for (uint32_t d = 0; d < spec->ndims; d++) {
        b.lo[d] += CRN_FAR;
        b.hi[d] += CRN_FAR;
    }
    return b;
}
