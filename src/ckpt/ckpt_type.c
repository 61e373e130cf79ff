/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types of a session: those that everybody knows, and the structures that the program defines.
 */
#include "ckpt/ckpt_session.h"

const char *crn_ckpt_type(const cairn *c, cairn_type type, uint32_t *ret_nbytes)
{
    const size_t k = (size_t)type - CKPT_TYPE_FIRST;
    if (type < CKPT_TYPE_FIRST) {
        *ret_nbytes = (uint32_t)cairn_type_bytes(type);
        return cairn_type_name(type);
    }
    if (k >= c->type.n)
        return NULL;
    *ret_nbytes = c->type.at[k].nbytes;
    return c->type.at[k].text;
}

static cairn_status compose(const cairn *c, size_t nbytes, const cairn_member *member, size_t n,
                            crn_member_spec *spec, char **ret)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t item = 0;
        const char *type = crn_ckpt_type(c, member[i].type, &item);
        CRN_FAIL_IF(!type, CAIRN_EINVAL, "member '%s': there is no type %u",
                    member[i].name ? member[i].name : "", member[i].type);
        spec[i] = (crn_member_spec){.name = member[i].name,
                                    .offset = member[i].offset,
                                    .nbytes = member[i].nbytes,
                                    .type = type,
                                    .item = item};
    }
    return crn_type_compose(nbytes, spec, n, ret);
}

/* Takes text. Who defines the same again, as in a loop, gets the same. */
static cairn_status add_type(cairn *c, char *text, size_t nbytes, cairn_type *ret)
{
    size_t k = 0;
    while (k < c->type.n && strcmp(c->type.at[k].text, text) != 0)
        k++;
    cairn_status rc = CAIRN_OK;
    if (k == c->type.n)
        rc = crn_vec_push(&c->type, (ckpt_type){.text = text, .nbytes = (uint32_t)nbytes});
    if (rc < 0 || c->type.at[k].text != text)
        free(text);
    if (rc == CAIRN_OK)
        *ret = (cairn_type)(CKPT_TYPE_FIRST + k);
    return rc;
}

static cairn_status define(cairn *c, size_t nbytes, const cairn_member *member, size_t n,
                           cairn_type *ret)
{
    crn_member_spec *spec;
    char *text;
    CRN_TRY(crn_alloc(&spec, n));
    cairn_status rc = compose(c, nbytes, member, n, spec, &text);
    free(spec);
    CRN_TRY(rc);
    return add_type(c, text, nbytes, ret);
}

int cairn_define_type(cairn *c, size_t nbytes, const cairn_member *member, size_t n,
                      cairn_type *ret)
{
    CKPT_NEEDS_ALSO(c, ret);
    return crn_ckpt_result(c, define(c, nbytes, member, n, ret));
}
