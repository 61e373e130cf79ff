/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Folding; see the header for the idea. The list is searched by hashes of its prefixes, so that
 * two stretches compare in constant time, and by the chain of earlier indices of the same symbol,
 * so that only stretches that end alike are compared.
 */
#include "tracefmt/tracefmt.h"

#define NOWHERE   SIZE_MAX
#define HASH_BASE 0x9e3779b97f4a7c15u /* odd, so its powers never vanish */

enum {
    CANDIDATES = 32, /* earlier stretches that are looked at */
    WIDER = 4        /* times the length of a stretch that a rule may have to take it in */
};

cairn_status crn_fold_init(crn_fold *f)
{
    memset(f, 0, sizeof *f);
    CRN_TRY(crn_alloc(&f->power, CRN_FOLD_PERIOD + 1));
    f->power[0] = 1;
    for (size_t i = 1; i <= CRN_FOLD_PERIOD; i++)
        f->power[i] = f->power[i - 1] * HASH_BASE;
    return CAIRN_OK;
}

void crn_fold_done(crn_fold *f)
{
    for (size_t i = 0; i < f->symbol.n; i++) {
        crn_seq_build_done(&f->symbol.at[i].count);
        free(f->symbol.at[i].body);
    }
    crn_vec_done(&f->symbol);
    crn_vec_done(&f->list);
    crn_vec_done(&f->spelt);
    free(f->power);
    memset(f, 0, sizeof *f);
}

static cairn_status new_symbol(crn_fold *f, crn_fold_symbol s, uint32_t *ret)
{
    s.at = s.tail = NOWHERE;
    CRN_TRY(crn_vec_push(&f->symbol, s));
    *ret = (uint32_t)f->symbol.n - 1;
    return CAIRN_OK;
}

cairn_status crn_fold_new_place(crn_fold *f, uint32_t *ret)
{
    return new_symbol(f, (crn_fold_symbol){0}, ret);
}

static bool is_rule(const crn_fold *f, uint32_t symbol)
{
    return f->symbol.at[symbol].nbody > 0;
}

/* The hash of n list items from i on. */
static uint64_t stretch(const crn_fold *f, size_t i, size_t n)
{
    uint64_t before = i > 0 ? f->list.at[i - 1].hash : 0;
    return f->list.at[i + n - 1].hash - before * f->power[n];
}

static bool same_stretch(const crn_fold *f, size_t a, size_t b, size_t n)
{
    if (stretch(f, a, n) != stretch(f, b, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (f->list.at[a + i].symbol != f->list.at[b + i].symbol)
            return false;
    }
    return true;
}

/* ---- the list ---- */

/* Append; newest: of a rule, that this is its newest meeting, which may still grow. */
static void list_push(crn_fold *f, uint32_t symbol, bool newest)
{
    size_t n = f->list.n;
    crn_fold_symbol *s = &f->symbol.at[symbol];
    crn_fold_item item = {.symbol = symbol, .before = s->at, .rule_before = NOWHERE};
    if (n > 0) {
        const crn_fold_item *last = &f->list.at[n - 1];
        item.rule_before = is_rule(f, last->symbol) ? n - 1 : last->rule_before;
        item.hash = last->hash * HASH_BASE;
    }
    item.hash += (uint64_t)symbol * 0xd6e8feb86659fd93u + 1;
    if (crn_vec_push(&f->list, item) < 0) {
        f->failed = true;
        return;
    }
    s->at = n;
    s->tail = newest && is_rule(f, symbol) ? n : NOWHERE;
}

static void list_drop(crn_fold *f, size_t n)
{
    for (; n > 0; n--) {
        const crn_fold_item *item = &f->list.at[--f->list.n];
        f->symbol.at[item->symbol].at = item->before;
        f->symbol.at[item->symbol].tail = NOWHERE;
    }
}

/* ---- rules ---- */

/* Turns of a rule's newest meeting; what it had before can no longer grow. */
static void meet_rule(crn_fold *f, uint32_t rule, uint64_t turns)
{
    crn_fold_symbol *s = &f->symbol.at[rule];
    if (s->has_last)
        crn_seq_add(&s->count, (int64_t)s->last);
    s->last = turns;
    s->has_last = true;
    s->tail = NOWHERE;
}

static bool body_is(const crn_fold *f, const crn_fold_symbol *s, size_t from, size_t n)
{
    if (s->nbody != n || s->hash != stretch(f, from, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->body[i] != f->list.at[from + i].symbol)
            return false;
    }
    return true;
}

static uint32_t find_rule(const crn_fold *f, size_t from, size_t n)
{
    for (size_t i = f->symbol.n; i-- > 0;) {
        if (body_is(f, &f->symbol.at[i], from, n))
            return (uint32_t)i;
    }
    return CRN_NO_SYMBOL;
}

/* The rule whose body is a stretch of the list; CRN_NO_SYMBOL if it cannot be made. */
static uint32_t rule_of(crn_fold *f, size_t from, size_t n)
{
    uint32_t rule = find_rule(f, from, n);
    if (rule != CRN_NO_SYMBOL)
        return rule;
    crn_fold_symbol s = {.nbody = (uint32_t)n, .depth = 1, .hash = stretch(f, from, n)};
    for (size_t i = 0; i < n; i++)
        s.depth = CRN_MAX(s.depth, f->symbol.at[f->list.at[from + i].symbol].depth + 1);
    if (s.depth >= CRN_FOLD_DEPTH || crn_alloc(&s.body, n) < 0)
        return CRN_NO_SYMBOL;
    for (size_t i = 0; i < n; i++)
        s.body[i] = f->list.at[from + i].symbol;
    if (new_symbol(f, s, &rule) < 0) {
        free(s.body);
        f->failed = true;
    }
    return rule;
}

/* Is a symbol somewhere below another? */
static bool holds(const crn_fold *f, uint32_t outer, uint32_t symbol)
{
    const crn_fold_symbol *s = &f->symbol.at[outer];
    for (uint32_t i = 0; i < s->nbody; i++) {
        if (s->body[i] == symbol || holds(f, s->body[i], symbol))
            return true;
    }
    return false;
}

/* Can a stretch of the list be a turn of a rule in which some symbols come no times? */
static bool is_part_of(const crn_fold *f, const crn_fold_symbol *s, size_t from, size_t n)
{
    size_t at = 0;
    if (s->nbody <= n || s->nbody > WIDER * n)
        return false;
    for (uint32_t i = 0; i < s->nbody; i++) {
        if (at < n && f->list.at[from + at].symbol == s->body[i]) {
            at++;
            continue;
        }
        /* a zero that is added now must come after all that the symbol was given before */
        for (size_t k = 0; k < n; k++) {
            uint32_t there = f->list.at[from + k].symbol;
            if (there == s->body[i] || holds(f, there, s->body[i]))
                return false;
        }
    }
    return at == n;
}

static void skip(crn_fold *f, uint32_t symbol);

/*
 * The rule for a stretch that came twice: one with this body, or a wider one that is known already
 * and whose other symbols came no times, or a new one.
 */
static uint32_t rule_for(crn_fold *f, size_t from, size_t n)
{
    if (find_rule(f, from, n) != CRN_NO_SYMBOL)
        return rule_of(f, from, n);
    for (size_t i = f->symbol.n; i-- > 0;) {
        const crn_fold_symbol *s = &f->symbol.at[i];
        if (!is_part_of(f, s, from, n))
            continue;
        for (uint32_t k = 0, at = 0; k < s->nbody; k++) {
            bool came = at < n && f->list.at[from + at].symbol == s->body[k];
            at += came;
            for (int turn = 0; turn < 2 && !came; turn++)
                skip(f, s->body[k]);
        }
        return (uint32_t)i;
    }
    return rule_of(f, from, n);
}

/* A rule becomes the innermost that is followed: at a position of its body, after so many turns. */
static void enter(crn_fold *f, uint32_t rule, uint32_t pos, uint64_t turns)
{
    const crn_fold_symbol *s = &f->symbol.at[rule];
    f->frame[f->depth++] = (crn_fold_frame){
        .body = s->body, .nbody = s->nbody, .rule = rule, .pos = pos, .turns = turns};
}

/* Start to follow a rule that stands at the end of the list and has just ended a turn. */
static void follow(crn_fold *f, uint32_t rule)
{
    const crn_fold_symbol *s = &f->symbol.at[rule];
    f->depth = 0;
    enter(f, rule, s->nbody, s->last - 1);
}

/* The list ends with a rule and, once more, its body. */
static bool extend_rule(crn_fold *f)
{
    size_t n = f->list.n, i = f->list.at[n - 1].rule_before;
    for (int tries = 0; tries < CANDIDATES && i != NOWHERE; tries++) {
        uint32_t rule = f->list.at[i].symbol;
        crn_fold_symbol *s = &f->symbol.at[rule];
        size_t p = n - 1 - i;
        if (p > CRN_FOLD_PERIOD)
            return false;
        if (s->tail == i && body_is(f, s, i + 1, p)) {
            list_drop(f, p);
            s->last++;
            follow(f, rule);
            return true;
        }
        i = f->list.at[i].rule_before;
    }
    return false;
}

/* The list ends with the same stretch twice. */
static bool form_rule(crn_fold *f)
{
    size_t n = f->list.n, i = f->list.at[n - 1].before;
    for (int tries = 0; tries < CANDIDATES && i != NOWHERE; tries++) {
        size_t p = n - 1 - i;
        if (p > CRN_FOLD_PERIOD || 2 * p > n)
            return false;
        if (same_stretch(f, n - 2 * p, n - p, p)) {
            uint32_t rule = rule_for(f, n - p, p);
            if (rule == CRN_NO_SYMBOL)
                return false;
            list_drop(f, 2 * p);
            meet_rule(f, rule, 2);
            list_push(f, rule, true);
            follow(f, rule);
            return true;
        }
        i = f->list.at[i].before;
    }
    return false;
}

/* Append a symbol to the list; with luck a rule is there to be followed afterwards. */
static void spell(crn_fold *f, uint32_t symbol, bool newest)
{
    list_push(f, symbol, newest);
    if (!f->failed && !extend_rule(f))
        form_rule(f);
}

/*
 * The rule at the end of the list is through, and can now be part of a larger one. Not before: a
 * larger rule that is formed while its last part still grows would count the rest as another turn.
 */
static void settle(crn_fold *f)
{
    f->depth = 0;
    while (!f->failed && (extend_rule(f) || form_rule(f)))
        ;
}

/* ---- following ---- */

/* Does an occurrence of symbol begin with place? */
static bool starts_with(const crn_fold *f, uint32_t symbol, uint32_t place)
{
    while (is_rule(f, symbol))
        symbol = f->symbol.at[symbol].body[0];
    return symbol == place;
}

/* The first position from pos on in a rule's body that begins with place; nbody if none does. */
static uint32_t position_of(const crn_fold *f, uint32_t rule, uint32_t pos, uint32_t place)
{
    const crn_fold_symbol *s = &f->symbol.at[rule];
    while (pos < s->nbody && !starts_with(f, s->body[pos], place))
        pos++;
    return pos;
}

/* Pass over a position of the top frame: the symbol came no times. */
static void skip(crn_fold *f, uint32_t symbol)
{
    if (is_rule(f, symbol))
        meet_rule(f, symbol, 0);
    else
        crn_seq_add(&f->symbol.at[symbol].count, 0);
}

static void skip_to(crn_fold *f, crn_fold_frame *top, uint32_t pos)
{
    const crn_fold_symbol *s = &f->symbol.at[top->rule];
    for (; top->pos < pos; top->pos++)
        skip(f, s->body[top->pos]);
}

/* End the top frame's rule, with its current turn, which may be part of one. */
static void leave(crn_fold *f)
{
    crn_fold_frame *top = &f->frame[f->depth - 1];
    skip_to(f, top, f->symbol.at[top->rule].nbody);
    f->symbol.at[top->rule].last = top->turns + 1;
    f->depth--;
}

static void new_turn(crn_fold *f, crn_fold_frame *top)
{
    skip_to(f, top, f->symbol.at[top->rule].nbody);
    top->turns++;
    top->pos = 0;
}

/* Go down to place, with which the top frame's next position begins. */
static void descend(crn_fold *f)
{
    for (;;) {
        crn_fold_frame *top = &f->frame[f->depth - 1];
        uint32_t symbol = f->symbol.at[top->rule].body[top->pos++];
        if (!is_rule(f, symbol))
            return;
        meet_rule(f, symbol, 0);
        enter(f, symbol, 0, 0);
    }
}

/* The common case: place is what the innermost rule has next, in this turn or a new one. */
static bool comes_next(crn_fold *f, uint32_t place)
{
    crn_fold_frame *top = &f->frame[f->depth - 1];
    bool turn = top->pos == top->nbody;
    uint32_t pos = turn ? 0 : top->pos;
    if (top->body[pos] != place)
        return false;
    top->turns += turn;
    top->pos = pos + 1;
    return true;
}

/*
 * Find place in what is being followed, from the innermost rule outwards: further on in this turn,
 * or in a new turn. False if it is nowhere, with nothing changed.
 */
static bool find(crn_fold *f, uint32_t place)
{
    for (int d = f->depth - 1; d >= 0; d--) {
        crn_fold_frame *at = &f->frame[d];
        uint32_t nbody = f->symbol.at[at->rule].nbody;
        uint32_t pos = position_of(f, at->rule, at->pos, place);
        bool turn = pos == nbody;
        if (turn)
            pos = position_of(f, at->rule, 0, place);
        if (pos == nbody)
            continue;
        while (f->depth - 1 > d)
            leave(f);
        if (turn)
            new_turn(f, at);
        skip_to(f, at, pos);
        descend(f);
        return true;
    }
    return false;
}

/*
 * What frames say happened, as symbols: the turn that was begun in each, without the rule that it
 * is in the midst of (that is the next frame), which counts if it has complete turns.
 */
static cairn_status spell_frames(const crn_fold *f, uint32_t **at, size_t *n, size_t *cap)
{
    for (int d = 0; d < f->depth; d++) {
        const crn_fold_frame *frame = &f->frame[d];
        const crn_fold_symbol *s = &f->symbol.at[frame->rule];
        bool whole = frame->pos == s->nbody && d + 1 == f->depth;
        uint32_t pos = whole ? 0 : frame->pos - (d + 1 < f->depth);
        CRN_TRY(crn_vec_grow((void **)at, cap, *n, pos + 1, sizeof **at));
        if (d > 0 && frame->turns + whole > 0)
            (*at)[(*n)++] = frame->rule;
        for (uint32_t i = 0; i < pos; i++)
            (*at)[(*n)++] = s->body[i];
    }
    return CAIRN_OK;
}

/* Turns of the rule of frame d that are complete. */
static uint64_t whole_turns(const crn_fold *f, int d)
{
    const crn_fold_frame *frame = &f->frame[d];
    return frame->turns + (frame->pos == f->symbol.at[frame->rule].nbody && d + 1 == f->depth);
}

/* Nothing fits: spell out the turns that were begun, and follow no more. */
static void unwind(crn_fold *f)
{
    f->spelt.n = 0;
    if (spell_frames(f, &f->spelt.at, &f->spelt.n, &f->spelt.cap) < 0) {
        f->failed = true;
        return;
    }
    for (int d = 0; d < f->depth; d++) {
        crn_fold_symbol *s = &f->symbol.at[f->frame[d].rule];
        s->last = whole_turns(f, d);
        s->has_last = d == 0 || s->last > 0; /* one without turns is not in what is spelt */
    }
    settle(f);
    for (size_t i = 0; i < f->spelt.n && !f->failed; i++) {
        if (f->depth > 0)
            settle(f);
        f->depth = 0; /* what is spelt is over: it cannot be followed */
        spell(f, f->spelt.at[i], i + 1 == f->spelt.n);
    }
}

static void search(crn_fold *f, uint32_t place) CRN_RARE;

/* The place before is over; the new one is somewhere in what is followed, or nowhere. */
static void search(crn_fold *f, uint32_t place)
{
    if (f->repeat > 0) {
        crn_seq_add(&f->symbol.at[f->place].count, (int64_t)f->repeat);
        if (f->depth == 0)
            spell(f, f->place, true);
    }
    while (f->depth > 0 && !find(f, place))
        unwind(f);
}

void crn_fold_move(crn_fold *f, uint32_t place)
{
    /* Only here is a full list refused: what was taken is kept whole, up to the repeating place. */
    if (f->failed || (f->depth == 0 && f->list.n >= CRN_FOLD_LENGTH)) {
        f->failed = true;
        f->dropped++;
        return;
    }
    if (f->depth > 0 && comes_next(f, place))
        crn_seq_add(&f->symbol.at[f->place].count, (int64_t)f->repeat);
    else
        search(f, place);
    f->place = place;
    f->repeat = 1;
}

/* ---- the whole ---- */

cairn_status crn_fold_root(const crn_fold *f, uint32_t **ret_root, size_t *ret_n)
{
    uint32_t *root = NULL;
    size_t n = 0, cap = 0;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_vec_grow((void **)&root, &cap, 0, f->list.n + 1, sizeof *root));
    for (size_t i = 0; i < f->list.n; i++)
        root[n++] = f->list.at[i].symbol;
    CRN_TRY_OUT(rc, spell_frames(f, &root, &n, &cap));
    if (f->depth == 0 && f->repeat > 0) {
        CRN_TRY_OUT(rc, crn_vec_grow((void **)&root, &cap, n, 1, sizeof *root));
        root[n++] = f->place;
    }
    *ret_root = root;
    *ret_n = n;
    return CAIRN_OK;
out:
    free(root);
    return rc;
}

cairn_status crn_fold_count(const crn_fold *f, uint32_t symbol, crn_seq *ret, uint64_t *ret_n)
{
    crn_fold_symbol *s = &f->symbol.at[symbol];
    int64_t more = 0;
    bool has = false;
    if (!is_rule(f, symbol)) {
        has = f->repeat > 0 && f->place == symbol;
        more = (int64_t)f->repeat;
    } else {
        has = s->has_last;
        more = (int64_t)s->last;
    }
    for (int d = 0; d < f->depth; d++) {
        if (f->frame[d].rule == symbol) {
            more = (int64_t)whole_turns(f, d);
            has = d == 0 || more > 0;
        }
    }
    *ret_n = s->count.count + has;
    return crn_seq_encode(&s->count, has ? &more : NULL, true, ret);
}

size_t crn_fold_nbytes(const crn_fold *f)
{
    size_t n = f->list.cap * sizeof *f->list.at + f->symbol.cap * sizeof *f->symbol.at +
               f->spelt.cap * sizeof *f->spelt.at + (CRN_FOLD_PERIOD + 1) * sizeof *f->power;
    for (size_t i = 0; i < f->symbol.n; i++)
        n +=
            f->symbol.at[i].nbody * sizeof(uint32_t) + crn_seq_build_nbytes(&f->symbol.at[i].count);
    return n;
}
