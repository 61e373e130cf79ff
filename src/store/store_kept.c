/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line of a variable's attributes that says which of its elements a mark has
 * (docs/format.md, section 4.6.1).
 */
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

static const char KEY[] = "kept=";

const char *crn_kept_line(const char *attributes)
{
    for (const char *line = attributes; line && *line;) {
        if (strncmp(line, KEY, sizeof KEY - 1) == 0)
            return line;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

bool crn_kept_is_none(const char *attributes)
{
    const char *line = crn_kept_line(attributes);
    return line && strncmp(line, "kept=none ", 10) == 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Where reading is; bad once something was not as it must be. */
typedef struct reader {
    const char *at;
    bool bad;
} reader;

static bool take(reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static uint64_t take_number(reader *r)
{
    uint64_t n = 0;
    r->bad = r->bad || *r->at < '0' || *r->at > '9';
    while (!r->bad && *r->at >= '0' && *r->at <= '9')
        r->bad = __builtin_mul_overflow(n, UINT64_C(10), &n) ||
                 __builtin_add_overflow(n, (uint64_t)(*r->at++ - '0'), &n);
    return n;
}

static void take_extents(reader *r, crn_kept *k)
{
    uint64_t product = 1;
    do {
        if (k->ndims == CRN_DIMS_MAX) {
            r->bad = true;
            return;
        }
        k->extent[k->ndims] = take_number(r);
        r->bad = r->bad || __builtin_mul_overflow(product, k->extent[k->ndims], &product);
        k->ndims++;
    } while (!r->bad && take(r, 'x'));
    k->nelements = product;
}

static void take_corner(reader *r, const crn_kept *k, uint64_t corner[CRN_DIMS_MAX])
{
    for (uint32_t d = 0; d < k->ndims && !r->bad; d++) {
        r->bad = d > 0 && !take(r, ',');
        corner[d] = take_number(r);
        r->bad = r->bad || corner[d] > k->extent[d];
    }
}

static cairn_status take_boxes(reader *r, crn_kept *k)
{
    while (!r->bad && take(r, ' ')) {
        crn_kept_box b = {0};
        take_corner(r, k, b.lo);
        r->bad = r->bad || !take(r, ':');
        take_corner(r, k, b.hi);
        for (uint32_t d = 0; d < k->ndims; d++)
            r->bad = r->bad || b.lo[d] >= b.hi[d];
        if (!r->bad)
            CRN_TRY(crn_vec_push(&k->box, b));
    }
    return CAIRN_OK;
}

static cairn_status parse(const char *line, crn_kept *k)
{
    reader r = {.at = line + sizeof KEY - 1};
    k->partial = true;
    if (strncmp(r.at, "none ", 5) == 0) {
        r.at += 5;
        k->ndims = 1;
        k->nelements = k->extent[0] = take_number(&r);
    } else {
        take_extents(&r, k);
        CRN_TRY(take_boxes(&r, k));
    }
    CRN_FAIL_IF(r.bad || (*r.at != '\n' && *r.at != 0), CAIRN_ECORRUPT,
                "'%.*s' does not say which elements are kept", (int)strcspn(line, "\n"), line);
    return CAIRN_OK;
}

cairn_status crn_kept_parse(const char *attributes, crn_kept *ret)
{
    const char *line = crn_kept_line(attributes);
    crn_kept k = {0};
    cairn_status rc = line ? parse(line, &k) : CAIRN_OK;
    if (rc < 0)
        crn_vec_done(&k.box);
    else
        *ret = k;
    return rc;
}

/* --- writing --------------------------------------------------------------------------------- */

static void put_corner(crn_buf *buf, uint32_t ndims, const uint64_t *corner)
{
    for (uint32_t d = 0; d < ndims; d++)
        crn_put_text(buf, "%s%" PRIu64, d ? "," : "", corner[d]);
}

void crn_kept_put(crn_buf *buf, const crn_kept *k)
{
    crn_put_text(buf, "%s", KEY);
    if (k->box.n == 0)
        crn_put_text(buf, "none %" PRIu64, k->nelements);
    for (uint32_t d = 0; d < k->ndims && k->box.n > 0; d++)
        crn_put_text(buf, "%s%" PRIu64, d ? "x" : "", k->extent[d]);
    for (size_t i = 0; i < k->box.n; i++) {
        crn_put_text(buf, " ");
        put_corner(buf, k->ndims, k->box.at[i].lo);
        crn_put_text(buf, ":");
        put_corner(buf, k->ndims, k->box.at[i].hi);
    }
    crn_put_text(buf, "\n");
}

uint64_t crn_kept_count(const crn_kept *k)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < k->box.n; i++) {
        uint64_t n = 1;
        for (uint32_t d = 0; d < k->ndims; d++)
            n *= k->box.at[i].hi[d] - k->box.at[i].lo[d];
        sum += n;
    }
    return sum;
}
