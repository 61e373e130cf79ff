/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log of regions and values, and the variables of a mark that it is kept in:
 *
 *   region#log    numbers of lists, + 1, and after a 0 a value: its length and its bytes
 *   region#texts  the lists by number, each a line
 *   region#state  where the mark is, the payload of the last forward point, and which variables
 *                 were modified, in part or wholly
 *
 * Numbers have seven bits to a byte, the lowest first. The log only grows, so that marks write its
 * end alone.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <string.h>

static void put_number(crn_buf *b, uint64_t n)
{
    for (; n >= 128; n >>= 7)
        crn_put_u8(b, (uint8_t)(n | 128));
    crn_put_u8(b, (uint8_t)n);
}

/* Past its bound the log stops growing, and no mark is taken, until a forward point empties it. */
static cairn_status check_size(regions *r)
{
    CRN_TRY(crn_buf_status(&r->log));
    r->full = r->log.n > r->log_max;
    if (r->full)
        crn_log_write(crn_ckpt_log(r->c), CRN_LOG_WARN, CRN_LOG_EACH,
                      "the log of regions and values has reached %" PRIu64 " bytes at region '%s': "
                      "no mark is taken until the program calls cairn_forward, which empties it",
                      r->log_max, r->met < r->list.n ? r->list.at[r->met].text : "");
    return CAIRN_OK;
}

cairn_status crn_regions_tell_text(regions *r, const char *text, uint32_t *ret)
{
    uint32_t n;
    char *copy;
    for (n = 0; n < r->told.n; n++)
        if (strcmp(r->told.at[n], text) == 0)
            break;
    if (n == r->told.n) {
        CRN_TRY(crn_strdup(text, &copy));
        if (crn_vec_push(&r->told, copy) < 0) {
            free(copy);
            return CAIRN_ENOMEM;
        }
    }
    *ret = n;
    return CAIRN_OK;
}

cairn_status crn_regions_tell(regions *r, uint32_t list)
{
    region_list *l = &r->list.at[list];
    return l->told == UINT32_MAX ? crn_regions_tell_text(r, l->text, &l->told) : CAIRN_OK;
}

cairn_status crn_regions_log_number(regions *r, uint64_t number)
{
    put_number(&r->log, number);
    return check_size(r);
}

cairn_status crn_regions_log_list(regions *r, uint32_t list)
{
    if (r->full)
        return CAIRN_OK;
    CRN_TRY(crn_regions_tell(r, list));
    return crn_regions_log_number(r, (uint64_t)r->list.at[list].told + 1);
}

cairn_status crn_regions_log_value(regions *r, const void *value, size_t nbytes)
{
    if (r->full)
        return CAIRN_OK;
    put_number(&r->log, 0);
    put_number(&r->log, nbytes);
    crn_put_bytes(&r->log, value, nbytes);
    return check_size(r);
}

/* --- in a mark ------------------------------------------------------------------------------- */

static cairn_status write_texts(regions *r)
{
    r->texts.n = 0;
    for (size_t i = 0; i < r->told.n; i++)
        crn_put_text(&r->texts, "%s\n", r->told.at[i]);
    return crn_buf_status(&r->texts);
}

static cairn_status write_state(regions *r)
{
    crn_buf *b = &r->state;
    b->n = 0;
    crn_put_u64(b, r->count);
    crn_put_u64(b, r->has_init);
    crn_put_u64(b, r->forwarded);
    crn_put_u64(b, r->base);
    crn_put_str(b, r->list.at[r->met].text);
    crn_put_u64(b, r->payload.n);
    crn_put_bytes(b, r->payload.at, r->payload.n);
    for (size_t i = 0; i < r->var.n; i++)
        if (r->var.at[i].modified.n > 0) {
            crn_put_str(b, r->name.at[i].name);
            crn_put_u8(b, r->var.at[i].all_modified);
        }
    return crn_buf_status(b);
}

static cairn_status keep_bytes(regions *r, const char *name, crn_buf *b)
{
    static unsigned char nothing;
    CRN_TRY(cairn_protect(r->c, name, b->at ? b->at : &nothing, CAIRN_BYTES, b->n));
    return cairn_capture(r->c, name);
}

cairn_status crn_regions_capture_log(regions *r)
{
    CRN_TRY(write_texts(r));
    CRN_TRY(write_state(r));
    CRN_TRY(keep_bytes(r, "region#texts", &r->texts));
    CRN_TRY(keep_bytes(r, "region#state", &r->state));
    return keep_bytes(r, "region#log", &r->log);
}
