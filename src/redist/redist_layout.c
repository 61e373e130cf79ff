/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the ranks' shares of a variable belong together, as a mark's attributes say it.
 */
#include "redist/redist.h"

#include <inttypes.h>

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

char *crn_layout_lines(crn_var_layout layout, uint64_t ncells, char buf[CRN_LAYOUT_LINES])
{
    const char *word = crn_layout_word(layout);
    buf[0] = 0;
    if (layout == CRN_LAYOUT_RAGGED)
        snprintf(buf, CRN_LAYOUT_LINES, "layout=%s\ncells=%" PRIu64 "\n", word, ncells);
    else if (word)
        snprintf(buf, CRN_LAYOUT_LINES, "layout=%s\n", word);
    return buf;
}

uint64_t crn_layout_ncells(const crn_var_spec *spec)
{
    const char *value = crn_var_attribute(spec, "cells");
    return value ? strtoull(value, NULL, 10) : 0;
}

cairn_status crn_companion_name(const char *name, const char *end, char buf[CRN_VAR_NAME + 1])
{
    const int n = snprintf(buf, CRN_VAR_NAME + 1, "%s%s", name, end);
    CRN_FAIL_IF(n > CRN_VAR_NAME, CAIRN_EINVAL,
                "the name of a variable with %s has at most %zu bytes, not %zu", end + 1,
                CRN_VAR_NAME - strlen(end), strlen(name));
    return CAIRN_OK;
}

cairn_status crn_companion_check(const char *name)
{
    static const char *const ours[] = {CRN_INDEX_END, CRN_HALO_END};
    CRN_FAIL_IF(!name, CAIRN_EINVAL, "a variable needs a name");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        const size_t n = strlen(name), end = strlen(ours[i]);
        CRN_FAIL_IF(n >= end && strcmp(name + n - end, ours[i]) == 0, CAIRN_EINVAL,
                    "variable '%s': names that end in '%s' are Cairn's own", name, ours[i]);
    }
    return CAIRN_OK;
}

cairn_status crn_cells_check(const char *name, uint64_t global, size_t ncells, const uint64_t *cell,
                             const uint64_t *nitems, uint64_t *ret)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ncells; i++) {
        CRN_FAIL_IF(cell[i] >= global, CAIRN_EINVAL,
                    "variable '%s': there is no cell %" PRIu64 " of %" PRIu64, name, cell[i],
                    global);
        CRN_FAIL_IF(i > 0 && cell[i] <= cell[i - 1], CAIRN_EINVAL,
                    "variable '%s': cell %" PRIu64 " follows cell %" PRIu64 ": numbers must grow",
                    name, cell[i], cell[i - 1]);
        CRN_FAIL_IF(__builtin_add_overflow(sum, nitems[i], &sum), CAIRN_EINVAL,
                    "variable '%s' is larger than any memory", name);
    }
    *ret = sum;
    return CAIRN_OK;
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
