/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The way back: the program's calls are held against the log of the mark until its place is
 * reached, where the data comes back.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <string.h>

/* --- what the mark says ------------------------------------------------------------------------
 */

static cairn_status read_variable(regions *r, const char *name, crn_buf *b)
{
    size_t n = 0;
    CRN_TRY(cairn_probe_count(r->c, name, &n));
    b->n = 0;
    crn_put_zeros(b, n + 1); /* an empty one has an address, too */
    CRN_TRY(crn_comm_agree(crn_ckpt_comm(r->c), crn_buf_status(b)));
    b->n = n;
    CRN_TRY(cairn_probe_read(r->c, name, b->at, CAIRN_BYTES, n));
    return cairn_protect(r->c, name, b->at, CAIRN_BYTES, n);
}

static cairn_status push_text(regions *r, const char *at, size_t n)
{
    char *text;
    CRN_TRY(crn_strndup(at, n, &text));
    if (crn_vec_push(&r->told, text) == CAIRN_OK)
        return CAIRN_OK;
    free(text);
    return CAIRN_ENOMEM;
}

static cairn_status push_modified(regions *r, const char *name, bool all)
{
    region_modified m = {.all = all};
    CRN_TRY(crn_strdup(name, &m.name));
    if (crn_vec_push(&r->modified, m) == CAIRN_OK)
        return CAIRN_OK;
    free(m.name);
    return CAIRN_ENOMEM;
}

static cairn_status parse_texts(regions *r)
{
    const char *at = (const char *)r->texts.at, *end = at + r->texts.n;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        CRN_FAIL_IF(!stop, CAIRN_ECORRUPT, "the mark's list of regions has no end");
        CRN_TRY(push_text(r, at, (size_t)(stop - at)));
        at = stop + 1;
    }
    return CAIRN_OK;
}

static cairn_status parse_state(regions *r)
{
    crn_cursor cur = crn_cursor_of(r->state.at, r->state.n);
    char text[UINT16_MAX + 1];
    r->mark_count = crn_get_u64(&cur);
    r->has_init = crn_get_u64(&cur);
    r->forwarded = crn_get_u64(&cur);
    r->base = crn_get_u64(&cur);
    crn_get_str(&cur, text, UINT16_MAX);
    const uint64_t n = crn_get_u64(&cur);
    const void *payload = crn_get_view(&cur, n);
    CRN_TRY(crn_cursor_status(&cur, "the mark's state of regions"));
    CRN_TRY(crn_strdup(text, &r->place_text));
    crn_put_bytes(&r->payload, payload, n);
    while (cur.n > 0 && !cur.failed) {
        crn_get_str(&cur, text, CRN_VAR_NAME);
        CRN_TRY(push_modified(r, text, crn_get_u8(&cur)));
    }
    CRN_TRY(crn_buf_status(&r->payload));
    return crn_cursor_status(&cur, "the mark's state of regions");
}

cairn_status crn_regions_start(regions *r)
{
    size_t n = 0;
    r->phase = REGION_RUN;
    cairn_status rc = cairn_probe(r->c, &r->version);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(cairn_probe_count(r->c, "region#state", &n));
    CRN_FAIL_IF(n == 0, CAIRN_EMISMATCH, "mark %" PRIu64 " was not taken by regions", r->version);
    CRN_TRY(read_variable(r, "region#state", &r->state));
    CRN_TRY(read_variable(r, "region#texts", &r->texts));
    CRN_TRY(read_variable(r, "region#log", &r->log));
    rc = parse_texts(r);
    if (rc == CAIRN_OK)
        rc = parse_state(r);
    CRN_TRY(crn_comm_agree(crn_ckpt_comm(r->c), rc));
    r->phase = r->has_init ? REGION_INIT : r->forwarded ? REGION_FORWARD : REGION_REPLAY;
    r->count = 0;
    return CAIRN_OK;
}

/* --- the log -----------------------------------------------------------------------------------
 */

static uint64_t take_number(regions *r)
{
    uint64_t n = 0;
    for (unsigned shift = 0; r->at < r->log.n && shift < 64; shift += 7) {
        const uint8_t byte = r->log.at[r->at++];
        n |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return n;
}

uint64_t crn_regions_peek(regions *r)
{
    const size_t at = r->at;
    const uint64_t n = take_number(r);
    r->at = at;
    return n;
}

/* What the log has next, for a sentence. Leaves it there. */
static const char *what_is_next(regions *r, char *buf, size_t cap)
{
    const size_t at = r->at;
    if (at == r->log.n) {
        snprintf(buf, cap, "the mark's place, %s", r->place_text);
        return buf;
    }
    const uint64_t n = take_number(r);
    if (n == 0)
        snprintf(buf, cap, "a value of %" PRIu64 " bytes", take_number(r));
    else
        snprintf(buf, cap, "%s", n - 1 < r->told.n ? r->told.at[n - 1] : "an unknown region");
    r->at = at;
    return buf;
}

static cairn_status mismatch(regions *r, const char *here)
{
    char text[512];
    return crn_fail(
        CAIRN_EMISMATCH,
        "on the way back to mark %" PRIu64 ", behind %" PRIu64
        " regions: the program is at %s, and it was at %s: has it changed, does a value "
        "not pass through cairn_value, or does a region stand in another's body, where "
        "only cairn_scope may be?",
        r->version, r->count, here, what_is_next(r, text, sizeof text));
}

/* --- the place ---------------------------------------------------------------------------------
 */

/* The handle of a variable that was modified, UINT32_MAX: it has none, or is empty. */
static uint32_t find_modified(const regions *r, const region_modified *m)
{
    for (uint32_t k = 0; k < r->name.n; k++)
        if (strcmp(r->name.at[k].name, m->name) == 0 && crn_box_volume(&r->var.at[k].whole) > 0)
            return k;
    return UINT32_MAX;
}

/* What regions that were skipped unnamed have modified: all of the variable, for all that is
 * known. */
static cairn_status set_modified(regions *r)
{
    for (size_t i = 0; i < r->modified.n; i++) {
        const uint32_t k = find_modified(r, &r->modified.at[i]);
        if (k == UINT32_MAX)
            continue;
        r->var.at[k].modified.n = 0;
        r->var.at[k].all_modified = true;
        CRN_TRY(crn_boxes_add(&r->var.at[k].modified, &r->var.at[k].whole));
    }
    return CAIRN_OK;
}

/* What was modified and does not come back is not needed: check that. Of a variable that regions
 * have modified in part, some may be what the initialisation made. */
static void poison_dropped(const regions *r)
{
    for (size_t i = 0; i < r->modified.n; i++) {
        const uint32_t k = find_modified(r, &r->modified.at[i]);
        if (k != UINT32_MAX && (r->modified.at[i].all || !r->unseen))
            crn_check_drop(r, k);
    }
}

/* Collective: the ranks are at the same place. */
static cairn_status restore(regions *r)
{
    if (r->unseen)
        CRN_TRY(set_modified(r));
    if (r->check.on)
        poison_dropped(r);
    CRN_TRY(cairn_resume_at(r->c, r->version));
    r->phase = REGION_RUN;
    r->count = r->mark_count;
    r->mark_ns = r->start_ns = crn_now_ns();
    r->start_count = r->count;
    r->marked = true;
    return CAIRN_OK;
}

static cairn_status skip_logged(regions *r, const region_list *l)
{
    const crn_accesses a = {l->access, l->nused, l->touched};
    const size_t at = r->at;
    const uint64_t n = take_number(r);
    if (n == 0 || n - 1 != l->told) {
        r->at = at;
        return mismatch(r, l->text);
    }
    r->count++;
    return crn_modify(&r->var, &a);
}

int crn_regions_skip(regions *r, uint32_t list)
{
    if (r->phase == REGION_INIT)
        return 1;
    if (r->phase == REGION_FORWARD)
        return 0;
    CRN_TRY(crn_regions_tell(r, list));
    if (r->list.at[list].scope && crn_scope_is_skipped(r, list)) {
        (void)take_number(r);
        r->count++;
        r->unseen = true;
        return 0;
    }
    if (r->at < r->log.n) {
        CRN_TRY(skip_logged(r, &r->list.at[list]));
        return r->list.at[list].scope; /* the place lies in it */
    }
    if (strcmp(r->list.at[list].text, r->place_text) != 0)
        return mismatch(r, r->list.at[list].text);
    CRN_TRY(restore(r));
    CRN_TRY(crn_regions_before(r, list));
    return 1;
}

/* --- values ------------------------------------------------------------------------------------
 */

cairn_status crn_regions_take_value(regions *r, void *value, size_t nbytes)
{
    char here[64];
    const size_t at = r->at;
    snprintf(here, sizeof here, "a value of %zu bytes", nbytes);
    if (at == r->log.n)
        return mismatch(r, here);
    if (take_number(r) != 0 || take_number(r) != nbytes || nbytes > r->log.n - r->at) {
        r->at = at;
        return mismatch(r, here);
    }
    memcpy(value, r->log.at + r->at, nbytes);
    r->at += nbytes;
    return CAIRN_OK;
}

cairn_status crn_regions_take_payload(regions *r, void *payload, size_t nbytes)
{
    CRN_FAIL_IF(nbytes != r->payload.n, CAIRN_EMISMATCH,
                "on the way back to mark %" PRIu64
                ": a forward point has %zu bytes, and it had %zu",
                r->version, nbytes, r->payload.n);
    memcpy(payload, r->payload.at, nbytes);
    r->phase = REGION_REPLAY;
    r->count = r->base;
    r->unseen = true;
    return CAIRN_OK;
}
