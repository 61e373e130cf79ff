/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a mark of regions keeps and why, and where it began, for people: lines of the log, and an
 * event of the run that 'cairn show' and the report print.
 */
#include "region/region_session.h"

#include <inttypes.h>
#include <math.h>

enum { VARS_TOLD = 32, SITES_TOLD = 8 };

static const char *why(const regions *r, const region_name *n, char *buf, size_t cap)
{
    static const char *const words[] = {[REGION_READ] = "read by ",
                                        [REGION_SCOPE] = "left open by scope ",
                                        [REGION_LISTED] = "as the program asks",
                                        [REGION_UNKNOWN] = "undecided at the limit"};
    const bool named = n->reason == REGION_READ || n->reason == REGION_SCOPE;
    snprintf(buf, cap, "%s%s", words[n->reason],
             named ? r->site.at[r->list.at[n->list].site].name : "");
    return buf;
}

/* Bytes kept of each variable, and in all, of all ranks. Collective. False: the ranks have
 * different variables, or no memory. */
static bool sum_kept(const regions *r, uint64_t *kept)
{
    crn_comm *comm = crn_ckpt_comm(r->c);
    uint64_t n[2] = {r->name.n, ~(uint64_t)r->name.n};
    if (crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, n, 2) < 0 || n[0] != ~n[1])
        return false;
    kept[r->name.n] = 0;
    for (size_t i = 0; i < r->name.n; i++) {
        kept[i] = r->name.at[i].kept_bytes;
        kept[r->name.n] += crn_box_volume(&r->var.at[i].whole) * r->var.at[i].item;
    }
    return crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, kept, r->name.n + 1) == CAIRN_OK;
}

/* The largest of what is left of kept, which goes from it; n: nothing is left. */
static size_t take_largest(uint64_t *kept, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (kept[i] > 0 && (best == n || kept[i] > kept[best]))
            best = i;
    return best;
}

static json_t *list_variables(const regions *r, uint64_t *kept)
{
    json_t *list = json_array();
    char text[256];
    for (size_t k = 0, i; k < VARS_TOLD && (i = take_largest(kept, r->name.n)) < r->name.n; k++) {
        const region_name *n = &r->name.at[i];
        const char *reason =
            n->kept_bytes > 0 ? why(r, n, text, sizeof text) : "kept by other ranks";
        const crn_event_kept one = {.name = n->name, .nbytes = kept[i], .why = reason};
        json_array_append_new(list, crn_event_kept_encode(&one));
        kept[i] = 0;
    }
    return list;
}

static crn_event_site describe_site(const regions *r, size_t i)
{
    const region_site *s = &r->site.at[i];
    const double n = (double)CRN_MAX(s->nsamples, UINT64_C(1)), mean = s->sum / n;
    return (crn_event_site){.name = s->name,
                            .mean = r->mean.at[i],
                            .spread = sqrt(fmax(0, s->sum_square / n - mean * mean)),
                            .visits = s->count,
                            .gap = s->gap};
}

/* The candidates of the last choice, the best first. */
static json_t *list_sites(const regions *r)
{
    json_t *list = json_array();
    double last = -1;
    size_t last_at = 0;
    for (size_t k = 0; k < SITES_TOLD; k++) {
        size_t best = r->mean.n;
        for (size_t i = 0; i < r->mean.n; i++)
            if ((r->mean.at[i] > last || (r->mean.at[i] == last && i > last_at)) &&
                r->mean.at[i] < 1e300 && (best == r->mean.n || r->mean.at[i] < r->mean.at[best]))
                best = i;
        if (best == r->mean.n)
            break;
        last = r->mean.at[best];
        last_at = best;
        const crn_event_site one = describe_site(r, best);
        json_array_append_new(list, crn_event_site_encode(&one));
    }
    return list;
}

static void tell_log(const regions *r, const uint64_t *kept)
{
    uint64_t sum = 0;
    char a[CRN_NUMBER_TEXT], b[CRN_NUMBER_TEXT], text[256];
    for (size_t i = 0; i < r->name.n; i++) {
        sum += kept[i];
        if (kept[i] > 0)
            crn_log_write(crn_ckpt_log(r->c), CRN_LOG_INFO, CRN_LOG_ROOT,
                          "mark %" PRIu64 " keeps %s of '%s', %s", r->place_count,
                          crn_format_nbytes(kept[i], a, sizeof a), r->name.at[i].name,
                          why(r, &r->name.at[i], text, sizeof text));
    }
    crn_log_write(crn_ckpt_log(r->c), CRN_LOG_INFO, CRN_LOG_ROOT, "mark %" PRIu64 " keeps %s of %s",
                  r->place_count, crn_format_nbytes(sum, a, sizeof a),
                  crn_format_nbytes(kept[r->name.n], b, sizeof b));
}

void crn_regions_tell_mark(regions *r)
{
    uint64_t *kept = NULL, sum = 0;
    if (crn_comm_agree(crn_ckpt_comm(r->c), crn_alloc(&kept, r->name.n + 1)) < 0)
        return;
    if (sum_kept(r, kept) && crn_comm_rank(crn_ckpt_comm(r->c)) == 0) {
        tell_log(r, kept);
        for (size_t i = 0; i < r->name.n; i++)
            sum += kept[i];
        crn_event e = {.kind = CRN_EVENT_REGIONS,
                       .regions = {.version = r->place_count,
                                   .place = r->site.at[r->place_site].name,
                                   .named = r->place_name != NULL,
                                   .kept = sum,
                                   .whole = kept[r->name.n],
                                   .sites = list_sites(r)}};
        e.regions.variables = list_variables(r, kept);
        crn_ckpt_event(r->c, &e);
    }
    free(kept);
}
