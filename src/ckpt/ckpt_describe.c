/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a program says about its variables for other tools: lines of "key=value", which marks keep.
 */
#include "ckpt/ckpt_session.h"

/* Append line, of n bytes, and its end. */
static void put_line(crn_buf *b, const char *line, size_t n)
{
    crn_put_bytes(b, line, n);
    crn_put_u8(b, '\n');
}

/* The lines of text but that of key. */
static void put_others(crn_buf *b, const char *text, const char *key)
{
    const size_t nkey = strlen(key);
    for (const char *line = text; line && *line;) {
        const size_t n = strcspn(line, "\n");
        if (n <= nkey || line[nkey] != '=' || memcmp(line, key, nkey) != 0)
            put_line(b, line, n);
        line += n + (line[n] == '\n');
    }
}

static cairn_status check(const char *name, const char *key, const char *value)
{
    static const char *const ours[] = {"layout", "cells", "kept"};
    CRN_FAIL_IF(!key || *key == 0 || strpbrk(key, "=\n"), CAIRN_EINVAL,
                "variable '%s': a key is a word without '='", name);
    CRN_FAIL_IF(value && strchr(value, '\n'), CAIRN_EINVAL, "variable '%s': '%s' has several lines",
                name, key);
    CRN_FAIL_IF(strncmp(key, "cairn_", 6) == 0, CAIRN_EINVAL,
                "variable '%s': keys that begin with 'cairn_' are Cairn's own", name);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        CRN_FAIL_IF(strcmp(key, ours[i]) == 0, CAIRN_EINVAL,
                    "variable '%s': the key '%s' is Cairn's own", name, key);
    return CAIRN_OK;
}

/* A text that was written to b, or none. */
static cairn_status take_text(crn_buf *b, char **ret)
{
    crn_put_u8(b, 0);
    cairn_status rc = crn_buf_status(b);
    if (rc < 0)
        crn_buf_done(b);
    else
        *ret = (char *)b->at;
    return rc;
}

static cairn_status describe(cairn *c, const char *name, const char *key, const char *value)
{
    ckpt_var *v = name ? crn_ckpt_find_declared(c, name) : NULL;
    crn_buf b = {0};
    char *remarks;
    CRN_FAIL_IF(!v, CAIRN_ENOTFOUND, "no variable '%s' is protected", name ? name : "");
    CRN_TRY(check(name, key, value));
    put_others(&b, v->remarks, key);
    if (value) {
        crn_put_bytes(&b, key, strlen(key));
        crn_put_u8(&b, '=');
        put_line(&b, value, strlen(value));
    }
    CRN_TRY(take_text(&b, &remarks));
    if (strlen(remarks) + sizeof v->attributes > UINT16_MAX) {
        free(remarks);
        return crn_fail(CAIRN_EINVAL, "variable '%s': too much is said of it", name);
    }
    free(v->remarks);
    v->remarks = remarks;
    c->small.listed = false;
    return crn_ckpt_label(v);
}

cairn_status crn_ckpt_label(ckpt_var *v)
{
    crn_buf b = {0};
    char *lines = NULL;
    if (v->remarks) {
        put_others(&b, v->attributes, "");
        put_others(&b, v->remarks, "");
        CRN_TRY(take_text(&b, &lines));
    }
    free(v->lines);
    v->lines = lines;
    return CAIRN_OK;
}

int cairn_describe(cairn *c, const char *name, const char *key, const char *value)
{
    CKPT_NEEDS(c);
    return crn_ckpt_result(c, describe(c, name, key, value));
}
