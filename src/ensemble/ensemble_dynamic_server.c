/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dynamic mode on the server: what the runners wrote down of a cycle becomes the orders of the
 * next. All is done when the first task of a cycle is given, and found in files by a new server.
 */
#include "ensemble/ensemble_dynamic.h"

#include <math.h>
#include <unistd.h>

#include "ensemble/ensemble_server.h"

enum { CONTROL = 2, LEAST = 2 }; /* every so many-th; states that a measurement needs */

/* What states cost, in seconds; of those that were coded, and of those that were not. */
typedef struct group {
    double code, store, load;
    uint32_t nstates, nstored, nloaded;
} group;

struct crn_dynamics {
    crn_orders o;  /* of the cycle that runs */
    double *store; /* seconds of each member's put or push in it; NAN: not known */
    bool *coded;   /* members of the last cycle that ended */
    group lossy, plain;
    double rate; /* mean of what was coded in the last cycle */
};

/* --- orders --------------------------------------------------------------------------------- */

static const crn_ladder *own_ladder(const crn_ladders *l, const char *field)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].field, field) == 0)
            return &l->at[i];
    return NULL;
}

static cairn_status copy_ladder(const crn_ladder *from, const char *field, crn_ladders *to)
{
    crn_ladder l = {.sigma = from->sigma};
    snprintf(l.field, sizeof l.field, "%s", field);
    CRN_TRY(crn_vec_push(to, l));
    for (size_t k = 0; k < from->coding.n; k++)
        CRN_TRY(crn_vec_push(&to->at[to->n - 1].coding, from->coding.at[k]));
    return CAIRN_OK;
}

/* All codecs of all fields, as the study has them. */
static cairn_status list_all(const crn_server *s, crn_ladders *ret)
{
    const crn_ladders *all = &s->study->dynamic->ladder;
    size_t nown = 0;
    for (size_t i = 0; i < s->layout.field.n; i++) {
        const crn_state_field *f = &s->layout.field.at[i];
        const crn_ladder *own = own_ladder(all, f->name), *l = own ? own : own_ladder(all, "");
        nown += own != NULL;
        if (l && (f->type == CAIRN_FLOAT32 || f->type == CAIRN_FLOAT64))
            CRN_TRY(copy_ladder(l, f->name, ret));
    }
    for (size_t i = 0; i < all->n && nown < all->n; i++) {
        bool there = !all->at[i].field[0];
        for (size_t f = 0; f < s->layout.field.n; f++)
            there = there || strcmp(s->layout.field.at[f].name, all->at[i].field) == 0;
        CRN_FAIL_IF(!there, CAIRN_EINVAL,
                    "'%s': dynamic mode has codecs for field '%s', which the model does not have",
                    s->study->file, all->at[i].field);
    }
    return CAIRN_OK;
}

static cairn_status read_orders(const crn_server *s, uint32_t cycle, crn_orders *ret)
{
    char name[48], *text;
    CRN_TRY(crn_study_read(s->study->dir, crn_side_name(cycle, "codecs", name), &text));
    cairn_status rc = crn_orders_get(text, ret);
    free(text);
    return rc;
}

static cairn_status write_orders(const crn_server *s, const crn_orders *o)
{
    char name[48];
    crn_buf b = {0};
    crn_orders_put(o, &b);
    return crn_study_write_buf(s->study, crn_side_name(o->cycle, "codecs", name), &b);
}

/* --- what was found ------------------------------------------------------------------------- */

/* A codec in a trial. */
typedef struct tally {
    uint32_t ntried, nheld;
    double rate; /* sum */
    size_t index;
} tally;

typedef struct reading {
    crn_server *s;
    struct crn_dynamics *d;
    tally **tally; /* [ladder][codec] of the orders */
    crn_buf csv;
    double rate;
    uint32_t nrates;
} reading;

static void count_tried(reading *r, const char *field, const char *codec, double rate, bool holds)
{
    const crn_ladders *l = &r->d->o.ladder;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; strcmp(l->at[i].field, field) == 0 && k < l->at[i].coding.n; k++)
            if (strcmp(l->at[i].coding.at[k].name, codec) == 0) {
                r->tally[i][k].ntried++;
                r->tally[i][k].nheld += holds;
                r->tally[i][k].rate += rate;
            }
}

/* One line of a member: "tried FIELD CODEC RATE ERROR HOLDS SECONDS", or "used" likewise. */
static void take_line(reading *r, uint32_t member, const char *line, double *ret_code)
{
    char what[8], field[64], codec[96];
    double rate, error, seconds;
    int holds;
    if (sscanf(line, "%7s %63s %95s %lg %lg %d %lg", what, field, codec, &rate, &error, &holds,
               &seconds) != 7)
        return;
    const bool used = strcmp(what, "used") == 0, coded = strcmp(codec, "none") != 0;
    crn_put_text(&r->csv, "%u,%u,%s,%s,%s,%.17g,%.17g,%d,%.9f\n", r->d->o.cycle, member, field,
                 what, codec, rate, error, holds, seconds);
    if (!used)
        count_tried(r, field, codec, rate, holds);
    if (used == r->d->o.trial)
        *ret_code += seconds; /* of a trial, only that of what was used */
    if (used && coded) {
        r->d->coded[member] = true;
        r->rate += rate;
        r->nrates++;
    }
}

static cairn_status read_member(reading *r, uint32_t member)
{
    struct crn_dynamics *d = r->d;
    char name[48], what[24], *text, *rest = NULL;
    double code = 0;
    snprintf(what, sizeof what, "coded%u", member);
    cairn_status rc =
        crn_study_read(r->s->study->dir, crn_side_name(d->o.cycle, what, name), &text);
    d->coded[member] = false;
    if (rc == CAIRN_ENOTFOUND) /* the member was given up */
        return CAIRN_OK;
    CRN_TRY(rc);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(r, member, line, &code);
    free(text);
    group *g = d->coded[member] ? &d->lossy : &d->plain;
    g->nstates++;
    g->code += code;
    if (!isnan(d->store[member])) {
        g->store += d->store[member];
        g->nstored++;
    }
    return CAIRN_OK;
}

static void remove_members(const crn_server *s, uint32_t cycle)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        char name[48], what[24], *path;
        snprintf(what, sizeof what, "coded%u", m);
        if (crn_study_path(s->study, crn_side_name(cycle, what, name), &path) == CAIRN_OK) {
            (void)unlink(path);
            free(path);
        }
    }
}

static cairn_status write_csv(reading *r)
{
    static const char head[] = "cycle,member,variable,what,codec,rate,error,holds,seconds\n";
    char *path;
    CRN_TRY(crn_study_path(r->s->study, "dynamic.csv", &path));
    const bool there = access(path, F_OK) == 0;
    free(path);
    if (!there)
        CRN_TRY(crn_study_note(r->s->study, "dynamic.csv", head));
    const char *text = crn_buf_text(&r->csv);
    return text ? crn_study_note(r->s->study, "dynamic.csv", text) : crn_buf_status(&r->csv);
}

/* --- the gain ------------------------------------------------------------------------------- */

static double mean(double sum, uint32_t n)
{
    return n > 0 ? sum / n : NAN;
}

/* Seconds that a state costs, coded and not; what was not measured follows from the rate. False:
 * too little is known. */
static bool weigh_gain(const struct crn_dynamics *d, double ret[6])
{
    const group *c = &d->lossy, *p = &d->plain;
    double *code = &ret[0], *store = &ret[1], *plain = &ret[2], *load = &ret[3];
    *code = mean(c->code, c->nstates);
    *store = mean(c->store, c->nstored);
    *plain = p->nstored >= LEAST ? mean(p->store, p->nstored) : *store * d->rate;
    *load = mean(c->load, c->nloaded);
    ret[4] = p->nloaded > 0 ? mean(p->load, p->nloaded) : *load * d->rate;
    const double loads = (double)(c->nloaded + p->nloaded) / CRN_MAX(c->nstates + p->nstates, 1u);
    ret[5] = *plain - *code - *store + (isnan(*load) ? 0 : loads * (ret[4] - *load));
    return c->nstored >= LEAST && !isnan(ret[5]);
}

static void judge_gain(crn_server *s, struct crn_dynamics *d, crn_orders *next)
{
    double t[6];
    const bool known = weigh_gain(d, t), measure = s->study->dynamic->measure;
    crn_study_event(s->study, "dynamic", "{s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "cycle",
                    (int)d->o.cycle, "coded", (int)d->lossy.nstates, "plain", (int)d->plain.nstates,
                    "rate", crn_study_real(d->rate), "code", crn_study_real(t[0]), "store",
                    crn_study_real(t[1]), "store_plain", crn_study_real(t[2]), "load",
                    crn_study_real(t[3]), "load_plain", crn_study_real(t[4]), "gain",
                    crn_study_real(t[5]));
    next->stopped = measure && d->o.stopped && !d->o.trial; /* a trial decides anew */
    if (measure && known && !next->stopped && t[5] <= 0) {
        next->stopped = true;
        crn_study_event(s->study, "dynamic_stopped", "{s:i,s:s,s:f,s:f}", "cycle", (int)d->o.cycle,
                        "why", "coding a state takes longer than what it saves", "coded",
                        t[0] + t[1], "plain", t[2]);
    }
}

/* --- the next orders ------------------------------------------------------------------------ */

static int by_rate(const void *a, const void *b)
{
    const tally *x = a, *y = b;
    const double dx = x->rate / x->ntried, dy = y->rate / y->ntried;
    return dx != dy ? (dx < dy) - (dx > dy) : (x->index > y->index) - (x->index < y->index);
}

/* Of a trial: the codecs that held for most members, best rate first. The others are set aside. */
static cairn_status order_ladder(reading *r, size_t i, crn_ladders *to)
{
    const crn_ladder *from = &r->d->o.ladder.at[i];
    tally *t = r->tally[i];
    crn_ladder none = *from;
    size_t n = 0;
    none.coding = (crn_codings){0};
    CRN_TRY(copy_ladder(&none, from->field, to));
    for (size_t k = 0; k < from->coding.n; k++)
        if (t[k].nheld * 2 > t[k].ntried) {
            t[n] = t[k];
            t[n++].index = k;
        }
    qsort(t, n, sizeof *t, by_rate);
    for (size_t k = 0; k < n; k++)
        CRN_TRY(crn_vec_push(&to->at[i].coding, from->coding.at[t[k].index]));
    return CAIRN_OK;
}

/* The order after the last trial outlives cycles in which nothing is coded: it is in the file of
 * the trial's next cycle, and copied from there. */
static cairn_status order_next(reading *r, crn_orders *next)
{
    const crn_orders *o = &r->d->o;
    if (next->trial)
        return list_all(r->s, &next->ladder);
    for (size_t i = 0; i < o->ladder.n; i++) {
        CRN_TRY(o->trial ? order_ladder(r, i, &next->ladder)
                         : copy_ladder(&o->ladder.at[i], o->ladder.at[i].field, &next->ladder));
        if (next->stopped)
            next->ladder.at[i].coding.n = 0;
    }
    return CAIRN_OK;
}

static cairn_status make_tallies(reading *r)
{
    const crn_ladders *l = &r->d->o.ladder;
    CRN_TRY(crn_alloc(&r->tally, CRN_MAX(l->n, (size_t)1)));
    for (size_t i = 0; i < l->n; i++)
        CRN_TRY(crn_alloc(&r->tally[i], CRN_MAX(l->at[i].coding.n, (size_t)1)));
    return CAIRN_OK;
}

static cairn_status read_members(reading *r)
{
    struct crn_dynamics *d = r->d;
    if (d->o.trial)
        d->lossy = d->plain = (group){0};
    for (uint32_t m = 0; m < r->s->nmembers; m++)
        CRN_TRY(read_member(r, m));
    d->rate = r->nrates > 0 ? r->rate / r->nrates : NAN;
    return write_csv(r);
}

/* The cycle of the orders has ended. */
static cairn_status conclude(reading *r, crn_orders *next)
{
    CRN_TRY(make_tallies(r));
    CRN_TRY(read_members(r));
    judge_gain(r->s, r->d, next);
    return order_next(r, next);
}

static cairn_status end_cycle(crn_server *s, struct crn_dynamics *d, crn_orders *next)
{
    reading r = {.s = s, .d = d};
    cairn_status rc = conclude(&r, next);
    for (size_t i = 0; r.tally && i < d->o.ladder.n; i++)
        free(r.tally[i]);
    free(r.tally);
    crn_buf_done(&r.csv);
    return rc;
}

static crn_orders begin_orders(const crn_server *s)
{
    const crn_dynamic *how = s->study->dynamic;
    const bool trial = (s->cycle - 1) % how->retry == 0;
    return (crn_orders){.cycle = s->cycle,
                        .check = how->check,
                        .trial = trial,
                        .control = trial && how->measure ? CONTROL : 0};
}

static cairn_status make_orders(crn_server *s, struct crn_dynamics *d, crn_orders *next)
{
    if (d->o.cycle + 1 != s->cycle && s->cycle > 1) { /* a new server */
        crn_orders_done(&d->o);
        d->o = (crn_orders){0};
        cairn_status rc = read_orders(s, s->cycle - 1, &d->o);
        CRN_TRY(rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc);
    }
    if (d->o.cycle == 0) { /* dynamic mode begins */
        next->trial = true;
        next->control = s->study->dynamic->measure ? CONTROL : 0;
        CRN_TRY(list_all(s, &next->ladder));
    } else
        CRN_TRY(end_cycle(s, d, next));
    CRN_TRY(write_orders(s, next));
    remove_members(s, s->cycle - 1);
    return CAIRN_OK;
}

static cairn_status begin_cycle(crn_server *s, struct crn_dynamics *d)
{
    crn_orders next = begin_orders(s);
    cairn_status rc = read_orders(s, s->cycle, &next);
    if (rc == CAIRN_ENOTFOUND)
        rc = make_orders(s, d, &next);
    if (rc < 0) {
        crn_orders_done(&next);
        return rc;
    }
    crn_orders_done(&d->o);
    d->o = next;
    for (uint32_t m = 0; m < s->nmembers; m++)
        d->store[m] = NAN;
    return CAIRN_OK;
}

static cairn_status open_dynamics(crn_server *s)
{
    struct crn_dynamics *d;
    CRN_TRY(crn_alloc(&d, 1));
    s->dynamics = d;
    CRN_TRY(crn_alloc(&d->store, s->nmembers));
    return crn_alloc(&d->coded, s->nmembers);
}

/* --- for the methods ------------------------------------------------------------------------ */

static bool is_on(const crn_server *s)
{
    return s->study->dynamic && !s->study->side && !s->twin && !s->study->plain && s->cycle > 0;
}

cairn_status crn_dynamic_task(crn_server *s, crn_wire *w)
{
    if (!is_on(s))
        return CAIRN_OK;
    if (!s->dynamics)
        CRN_TRY(open_dynamics(s));
    if (s->dynamics->o.cycle != s->cycle)
        CRN_TRY(begin_cycle(s, s->dynamics));
    w->rank |= CRN_TASK_CODED;
    return CAIRN_OK;
}

void crn_dynamic_stored(crn_server *s, uint32_t cycle, uint32_t member, double seconds)
{
    if (s->dynamics && s->dynamics->o.cycle == cycle && member < s->nmembers)
        s->dynamics->store[member] = seconds;
}

void crn_dynamic_loaded(crn_server *s, uint32_t cycle, uint32_t member, double seconds)
{
    struct crn_dynamics *d = s->dynamics;
    if (!d || cycle + 1 != d->o.cycle || member >= s->nmembers)
        return;
    group *g = d->coded[member] ? &d->lossy : &d->plain; /* as the last end of a cycle found it */
    g->load += seconds;
    g->nloaded++;
}

/* The last cycle has no next orders. */
static cairn_status close_last(crn_server *s, struct crn_dynamics *d)
{
    crn_orders next = {.cycle = s->cycle};
    if (s->phase != CRN_PHASE_OVER || d->o.cycle + 1 != s->cycle)
        return CAIRN_OK;
    cairn_status rc = end_cycle(s, d, &next);
    crn_orders_done(&next);
    remove_members(s, d->o.cycle);
    return rc;
}

cairn_status crn_dynamic_close(crn_server *s, cairn_status rc)
{
    struct crn_dynamics *d = s->dynamics;
    if (!d)
        return rc;
    if (rc == CAIRN_OK && d->o.cycle > 0)
        rc = close_last(s, d);
    crn_orders_done(&d->o);
    free(d->store);
    free(d->coded);
    free(d);
    s->dynamics = NULL;
    return rc;
}
