/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Digests of the leaves of a variable, whatever its type: the exact one, and one for each bound.
 */
#include "hash/hash.h"

struct crn_digester {
    crn_tolerant *floats;   /* of floating-point values; NULL without bounds */
    crn_structured *others; /* of all other types, likewise */
};

/* A digester of structures, whose members may have bounds of their own. */
static cairn_status create_others(const char *type, uint32_t item, uint32_t leaf,
                                  const crn_bound *bound, size_t n, const char *members,
                                  crn_structured **ret)
{
    crn_named_bounds named = {0};
    crn_bound none[CRN_BOUNDS_MAX];
    size_t nnone;
    char *text = members ? strndup(members, strcspn(members, "\n")) : NULL;
    CRN_FAIL_IF(members && !text, CAIRN_ENOMEM, "no memory for bounds");
    cairn_status rc = text ? crn_bounds_parse_named(text, none, &nnone, &named) : CAIRN_OK;
    if (rc == CAIRN_OK)
        rc = crn_structured_create(type, item, leaf, bound, n, &named, ret);
    crn_named_bounds_done(&named);
    free(text);
    return rc;
}

cairn_status crn_digester_create(const char *type, uint32_t item, uint32_t leaf,
                                 const crn_bound *bound, size_t n, const char *members,
                                 crn_digester **ret)
{
    crn_digester *d;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&d, 1));
    if (n > 0 && crn_value_is_float(type))
        rc = crn_tolerant_create(item, bound, n, &d->floats);
    else if (n > 0)
        rc = create_others(type, item, leaf, bound, n, members, &d->others);
    if (rc == CAIRN_OK)
        *ret = d;
    else
        crn_digester_free(d);
    return rc;
}

void crn_digester_free(crn_digester *d)
{
    if (!d)
        return;
    crn_tolerant_free(d->floats);
    crn_structured_free(d->others);
    free(d);
}

bool crn_digester_leaf(crn_digester *d, uint64_t off, const void *data, uint32_t nbytes,
                       crn_digest *exact, crn_digest *tolerant)
{
    if (d->floats)
        return crn_tolerant_digest(d->floats, data, nbytes, exact, tolerant);
    if (exact)
        *exact = crn_digest_of(data, nbytes);
    return d->others && crn_structured_digest(d->others, off, data, nbytes, tolerant);
}
