/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What codecs made of a run's variables, over all of its marks.
 */
#include "report/report_log.h"

#include <math.h>

typedef struct summing {
    CRN_VEC(crn_event_coded) row; /* texts of their own */
    crn_index name;
    cairn_status rc;
} summing;

static const char *name_of(const crn_event_coded *c)
{
    return c->name ? c->name : "";
}

/* The row of a variable with a setting; a new one where there is none. NULL: no memory. */
static crn_event_coded *row_of(summing *s, const crn_event_coded *c)
{
    const uint64_t hash = crn_hash_bytes(name_of(c), strlen(name_of(c)));
    const char *codec = c->codec ? c->codec : "", *loss = c->loss ? c->loss : "";
    char *copy[3] = {0};
    size_t probe = 0;
    uint32_t at;
    while (crn_index_next(&s->name, hash, &probe, &at)) {
        crn_event_coded *r = &s->row.at[at];
        if (strcmp(r->name, name_of(c)) == 0 && strcmp(r->codec, codec) == 0 &&
            strcmp(r->loss, loss) == 0)
            return r;
    }
    if (crn_strdup(name_of(c), &copy[0]) < 0 || crn_strdup(codec, &copy[1]) < 0 ||
        crn_strdup(loss, &copy[2]) < 0 || crn_vec_reserve(&s->row, 1) < 0 ||
        crn_index_add(&s->name, hash, s->row.n) < 0) {
        for (int i = 0; i < 3; i++)
            free(copy[i]);
        return NULL;
    }
    s->row.at[s->row.n] = (crn_event_coded){.name = copy[0], .codec = copy[1], .loss = copy[2]};
    return &s->row.at[s->row.n++];
}

static cairn_status add(summing *s, const crn_event_coded *c)
{
    crn_event_coded *r = row_of(s, c);
    CRN_FAIL_IF(!r, CAIRN_ENOMEM, "no memory for what codecs made of variables");
    r->blocks += c->blocks;
    r->nbytes += c->nbytes;
    r->stored += c->stored;
    r->stricter += c->stricter;
    r->bound += c->bound;
    r->special += c->special;
    r->size += c->size;
    r->aside += c->aside;
    r->error = fmax(r->error, c->error);
    r->seconds += c->seconds;
    return CAIRN_OK;
}

static int take_line(void *arg, const char *line)
{
    static const crn_event_filter wanted = {.kinds = CRN_EVENT_BIT(CODECS)};
    summing *s = arg;
    crn_event e;
    json_t *one;
    size_t i;
    if (!crn_event_decode(line, &wanted, &e))
        return 0;
    json_array_foreach(e.codecs.variables, i, one)
    {
        const crn_event_coded c = crn_event_coded_decode(one);
        s->rc = add(s, &c);
        if (s->rc < 0)
            break;
    }
    crn_event_done(&e);
    return s->rc < 0;
}

double crn_report_rate(const crn_event_coded *c)
{
    return c->stored > 0 ? (double)c->nbytes / (double)c->stored : 0;
}

json_t *crn_report_coded(const crn_event_coded *c)
{
    return json_pack("{s:s?, s:s?, s:s?, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:f}",
                     "name", c->name && c->name[0] ? c->name : NULL, "codec", c->codec, "loss",
                     c->loss && c->loss[0] ? c->loss : NULL, "blocks", (json_int_t)c->blocks,
                     "nbytes", (json_int_t)c->nbytes, "stored", (json_int_t)c->stored, "rate",
                     crn_report_rate(c), "stricter", (json_int_t)c->stricter, "bound",
                     (json_int_t)c->bound, "special", (json_int_t)c->special, "size",
                     (json_int_t)c->size, "aside", (json_int_t)c->aside, "error", c->error,
                     "seconds", c->seconds);
}

cairn_status crn_report_codecs(cairn_trail *trail, size_t run, json_t **ret)
{
    summing s = {0};
    json_t *list = json_array();
    const cairn_status rc = crn_report_lines(trail, run, take_line, &s);
    for (size_t i = 0; i < s.row.n; i++) {
        crn_event_coded *r = &s.row.at[i];
        json_array_append_new(list, crn_report_coded(r));
        free((char *)r->name);
        free((char *)r->codec);
        free((char *)r->loss);
    }
    crn_vec_done(&s.row);
    crn_index_done(&s.name);
    if (rc < 0) {
        json_decref(list);
        return rc;
    }
    *ret = list;
    return CAIRN_OK;
}
