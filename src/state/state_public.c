/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The public calls on states.
 */
#include "state/state_log.h"

#include <inttypes.h>

/* Name what failed. */
static int result(const cairn_shelf *s, crn_state_name name, cairn_status rc)
{
    if (rc < 0)
        crn_err_prefix("shelf '%s', state '%s' %" PRIu64 ": ", s->path, name.key, name.version);
    return rc;
}

/* The same for what reads a state: damage is for the log, too. */
static int read_result(cairn_shelf *s, crn_state_name name, cairn_status rc)
{
    if (rc == CAIRN_ECORRUPT) {
        state_entry e = {.version = name.version};
        snprintf(e.key, sizeof e.key, "%s", name.key);
        crn_log_state(s, &e, "damaged", 0, rc);
    }
    return result(s, name, rc);
}

static cairn_status check(const cairn_shelf *s, const char *key)
{
    CRN_FAIL_IF(!s || !key, CAIRN_EINVAL, "the shelf or the key is NULL");
    CRN_FAIL_IF(!crn_key_is_valid(key), CAIRN_EINVAL,
                "'%.80s' is no key: use 1 to %d letters, digits, '.', '_' and '-'", key,
                CRN_KEY_MAX);
    return CAIRN_OK;
}

int cairn_state_put(cairn_shelf *s, const char *key, uint64_t version, const char *parent,
                    const cairn_field *field, size_t n)
{
    const crn_state_name name = {key ? key : "", version};
    CRN_FAIL_IF(!s || (n > 0 && !field), CAIRN_EINVAL, "the shelf or the fields are NULL");
    crn_shelf_settle(s);
    return result(s, name, crn_state_put(s, name, parent, field, n));
}

int cairn_state_put_begin(cairn_shelf *s, const char *key, uint64_t version, const char *parent,
                          const cairn_field *field, size_t n, cairn_transfer **ret)
{
    const crn_state_name name = {key ? key : "", version};
    CRN_FAIL_IF(!s || (n > 0 && !field) || !ret, CAIRN_EINVAL, "an argument is NULL");
    *ret = NULL;
    crn_shelf_settle(s);
    return result(s, name, crn_transfer_put(s, name, parent, field, n, ret));
}

int cairn_state_push(cairn_shelf *s, const char *key, uint64_t version, cairn_shelf *to,
                     uint64_t limit, cairn_transfer **ret)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    CRN_FAIL_IF(!to || !ret, CAIRN_EINVAL, "an argument is NULL");
    *ret = NULL;
    return result(s, name, crn_transfer_copy(s, to, name, limit, ret));
}

int cairn_state_fetch(cairn_shelf *s, const char *key, uint64_t version, cairn_shelf *from,
                      uint64_t limit, cairn_transfer **ret)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    CRN_FAIL_IF(!from || !ret, CAIRN_EINVAL, "an argument is NULL");
    *ret = NULL;
    return result(s, name, crn_transfer_copy(from, s, name, limit, ret));
}

int cairn_state_get(cairn_shelf *s, const char *key, uint64_t version, const cairn_field *field,
                    size_t n)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    CRN_FAIL_IF(n > 0 && !field, CAIRN_EINVAL, "the fields are NULL");
    return read_result(s, name, crn_state_get(s, name, field, n));
}

int cairn_state_cells(cairn_shelf *s, const char *key, uint64_t version, const char *name,
                      size_t ncells, const uint64_t *cell, uint64_t *nitems)
{
    const crn_state_name state = {key, version};
    CRN_TRY(check(s, key));
    CRN_FAIL_IF(!name || (ncells > 0 && (!cell || !nitems)), CAIRN_EINVAL, "an argument is NULL");
    return result(s, state, crn_state_cells(s, state, name, ncells, cell, nitems));
}

int cairn_state_has(cairn_shelf *s, const char *key, uint64_t version)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    return result(s, name, crn_state_index_find(s->index, name, NULL));
}

int cairn_state_verify(cairn_shelf *s, const char *key, uint64_t version)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    return read_result(s, name, crn_state_verify(s, name));
}

int cairn_state_export(cairn_shelf *s, const char *key, uint64_t version,
                       const cairn_export_options *how, cairn_export_result *ret)
{
    const crn_state_name name = {key, version};
    CRN_TRY(check(s, key));
    return result(s, name, crn_state_export(s, name, how, ret));
}

/* --- describing --------------------------------------------------------------------------- */

static cairn_state_info info_of(const state_entry *e)
{
    cairn_state_info info = {.struct_bytes = sizeof info,
                             .version = e->version,
                             .nbytes = e->nbytes,
                             .put_ns = e->wall_ns,
                             .writer = e->series,
                             .nprocesses = e->nranks,
                             .npins = e->pins};
    memcpy(info.key, e->key, sizeof info.key);
    crn_state_digest_text(&e->digest, info.digest);
    return info;
}

typedef struct listing {
    const char *prefix;
    bool any;
    uint64_t version;
    cairn_state_fn *fn;
    void *arg;
} listing;

static int list_one(void *arg, const state_entry *e)
{
    const listing *l = arg;
    if ((!l->any && e->version != l->version) ||
        (l->prefix && strncmp(e->key, l->prefix, strlen(l->prefix)) != 0))
        return 0;
    const cairn_state_info info = info_of(e);
    return l->fn(l->arg, &info);
}

int cairn_state_list(cairn_shelf *s, const char *prefix, bool any, uint64_t version,
                     cairn_state_fn *fn, void *arg)
{
    listing l = {prefix, any, version, fn, arg};
    CRN_FAIL_IF(!s || !fn, CAIRN_EINVAL, "the shelf or the function is NULL");
    const cairn_status rc = crn_state_index_scan(s->index, list_one, &l);
    if (rc < 0)
        crn_err_prefix("shelf '%s': ", s->path);
    return rc;
}

typedef struct survey {
    size_t which;
    cairn_survey_fn *fn;
    void *arg;
} survey;

static int survey_one(void *arg, const cairn_state_info *info)
{
    const survey *v = arg;
    return v->fn(v->arg, v->which, info);
}

int cairn_state_survey(cairn_shelf *const *shelf, size_t n, const char *prefix, uint64_t version,
                       cairn_survey_fn *fn, void *arg)
{
    survey v = {0, fn, arg};
    CRN_FAIL_IF((n > 0 && !shelf) || !fn, CAIRN_EINVAL, "the shelves or the function are NULL");
    for (; v.which < n; v.which++) {
        int rc = CAIRN_OK;
        if (shelf[v.which])
            rc = cairn_state_list(shelf[v.which], prefix, false, version, survey_one, &v);
        if (rc != CAIRN_OK)
            return rc;
    }
    return CAIRN_OK;
}

int cairn_state_describe(cairn_shelf *s, const char *key, uint64_t version, cairn_state_info *info,
                         cairn_field_fn *fn, void *arg)
{
    const crn_state_name name = {key, version};
    state_entry e;
    CRN_TRY(check(s, key));
    CRN_TRY(crn_struct_check(info));
    cairn_status rc = crn_state_index_find(s->index, name, &e);
    if (rc == CAIRN_NOTHING)
        rc = crn_fail(CAIRN_ENOTFOUND, "there is no such state");
    if (rc == CAIRN_OK && fn)
        rc = crn_state_describe(s, &e, fn, arg);
    if (rc >= 0) {
        const cairn_state_info found = info_of(&e);
        const cairn_status given = crn_struct_out(&found, info);
        rc = given < 0 ? given : rc;
    }
    return result(s, name, rc);
}

/* --- dropping ----------------------------------------------------------------------------- */

/* Change an entry under its lock, or take it out. *ret is what it was. */
typedef cairn_status change_fn(cairn_shelf *s, state_entry *e);

static cairn_status change(cairn_shelf *s, crn_state_name name, change_fn *fn, state_entry *ret)
{
    if (crn_comm_size(s->comm) == 1) /* the engine lists states, too, by the same locks */
        crn_shelf_settle(s);
    CRN_TRY(crn_state_index_lock(s->index, name));
    cairn_status rc = crn_state_index_find(s->index, name, ret);
    if (rc == CAIRN_OK)
        rc = fn(s, ret);
    crn_state_index_unlock(s->index, name);
    return rc;
}

static cairn_status take_out(cairn_shelf *s, state_entry *e)
{
    CRN_FAIL_IF(e->pins > 0, CAIRN_EBUSY, "it is pinned");
    return crn_state_index_remove(s->index, (crn_state_name){e->key, e->version});
}

static cairn_status add_pin(cairn_shelf *s, state_entry *e)
{
    CRN_FAIL_IF(e->pins == UINT32_MAX, CAIRN_EINVAL, "it is pinned too often");
    e->pins++;
    return crn_state_index_put(s->index, e);
}

static cairn_status remove_pin(cairn_shelf *s, state_entry *e)
{
    CRN_FAIL_IF(e->pins == 0, CAIRN_EINVAL, "it is not pinned");
    e->pins--;
    return crn_state_index_put(s->index, e);
}

int cairn_state_drop(cairn_shelf *s, const char *key, uint64_t version)
{
    const crn_state_name name = {key, version};
    state_entry e;
    CRN_TRY(check(s, key));
    cairn_status rc = change(s, name, take_out, &e);
    if (rc == CAIRN_OK) {
        crn_stage_enter(CRN_STAGE_STORE);
        rc = crn_writer_reclaim(s, &e);
        crn_state_unlist(s, &e);
        crn_log_state(s, &e, rc == CAIRN_OK ? "dropped" : "drop failed", 0, rc);
    }
    return result(s, name, rc);
}

static int change_pins(cairn_shelf *s, const char *key, uint64_t version, change_fn *fn)
{
    const crn_state_name name = {key, version};
    state_entry e;
    CRN_TRY(check(s, key));
    cairn_status rc = change(s, name, fn, &e);
    if (rc == CAIRN_NOTHING)
        rc = crn_fail(CAIRN_ENOTFOUND, "there is no such state");
    return result(s, name, rc);
}

int cairn_state_pin(cairn_shelf *s, const char *key, uint64_t version)
{
    return change_pins(s, key, version, add_pin);
}

int cairn_state_unpin(cairn_shelf *s, const char *key, uint64_t version)
{
    return change_pins(s, key, version, remove_pin);
}
