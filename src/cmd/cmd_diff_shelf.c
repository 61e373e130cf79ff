/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn diff of shelves: the states of two keys as the marks of two runs, or all states that two
 * shelves have. Equal digests prove that states are the same; others are compared by their values.
 */
#include "cmd/cmd_diff_shelf.h"

#include <cairn/state_mpi.h>

#include "cmd/cmd_shelf.h"

/* --- states of a key ---------------------------------------------------------------------- */

static cairn_states states_of(const cmd_shelf_place *p)
{
    return (cairn_states){
        .shelf = p->shelf, .key = p->key, .all = !p->has_version, .version = p->version};
}

static int compare_keys(MPI_Comm comm, int rank, cmd_comparison *c, const cmd_shelf_place *a,
                        const cmd_shelf_place *b)
{
    const cairn_states first = states_of(a), second = states_of(b);
    cairn_comparison result = {.struct_bytes = sizeof result};
    cmd_comparison_begin(c, rank == 0, "comparing");
    const int rc = cairn_compare_states(comm, &first, &second, &c->how, &result);
    return cmd_comparison_end(c, rc, &result);
}

/* --- two shelves -------------------------------------------------------------------------- */

typedef struct shelves {
    cmd_comparison *c;
    const cmd_shelf_place *a, *b;
    cairn_verdict verdict;
    uint64_t nsame, nother, nonly_first, nonly_second;
    json_t *rows; /* with json: of what is not the same */
} shelves;

static void say(shelves *s, const cairn_state_info *x, cairn_verdict verdict,
                const cairn_comparison_row *first)
{
    if (s->rows) {
        json_t *row = json_pack("{s:s, s:I, s:s}", "key", x->key, "version", (json_int_t)x->version,
                                "verdict", cmd_comparison_word(verdict));
        if (first)
            json_object_set_new(row, "first", cmd_comparison_json(s->c, first));
        cmd_json_append(&s->rows, row);
        return;
    }
    cmd_line("%s %" PRIu64 ": %s", x->key, x->version, cmd_comparison_word(verdict));
    if (first)
        cmd_comparison_print_first(first);
}

/* A state that one shelf alone has is a difference if all are asked for, as with marks. */
static void only(shelves *s, const cairn_state_info *x, cairn_verdict verdict)
{
    *(verdict == CAIRN_ONLY_FIRST ? &s->nonly_first : &s->nonly_second) += 1;
    if (s->c->how.marks == CAIRN_MARKS_ALL)
        s->verdict = CRN_MAX(s->verdict, verdict);
    say(s, x, verdict, NULL);
}

static bool compare_state(shelves *s, const cairn_state_info *x, const cairn_state_info *y)
{
    const cairn_states first = {s->a->shelf, x->key, false, x->version};
    const cairn_states second = {s->b->shelf, y->key, false, y->version};
    cairn_comparison result = {.struct_bytes = sizeof result};
    if (strcmp(x->digest, y->digest) == 0 && !s->c->how.direct) {
        s->nsame++;
        return true;
    }
    s->c->how.struct_bytes = sizeof s->c->how;
    const int rc = cairn_compare_states(MPI_COMM_SELF, &first, &second, &s->c->how, &result);
    if (rc < 0) {
        (void)cmd_fail("%s", cairn_error_text());
        s->verdict = CRN_MAX(s->verdict, CAIRN_INCONCLUSIVE);
        return rc == CAIRN_ENOTFOUND; /* dropped meanwhile */
    }
    s->verdict = CRN_MAX(s->verdict, result.verdict);
    *(result.verdict == CAIRN_SAME ? &s->nsame : &s->nother) += 1;
    if (result.verdict != CAIRN_SAME)
        say(s, x, result.verdict, result.first.struct_bytes > 0 ? &result.first : NULL);
    return true;
}

static int order(const cairn_state_info *x, const cairn_state_info *y)
{
    const int keys = strcmp(x->key, y->key);
    return keys != 0 ? keys : (x->version > y->version) - (x->version < y->version);
}

/* Both lists are sorted. */
static bool walk(shelves *s)
{
    size_t i = 0, k = 0;
    while (i < s->a->state.n || k < s->b->state.n) {
        const cairn_state_info *x = i < s->a->state.n ? &s->a->state.at[i] : NULL;
        const cairn_state_info *y = k < s->b->state.n ? &s->b->state.at[k] : NULL;
        const int o = !x ? 1 : !y ? -1 : order(x, y);
        if (o < 0)
            only(s, x, CAIRN_ONLY_FIRST);
        else if (o > 0)
            only(s, y, CAIRN_ONLY_SECOND);
        else if (!compare_state(s, x, y))
            return false;
        i += o <= 0;
        k += o >= 0;
        if (s->c->only_first && s->verdict >= CAIRN_ONLY_FIRST)
            break;
    }
    return true;
}

static int compare_all(cmd_comparison *c, const cmd_shelf_place *a, const cmd_shelf_place *b)
{
    shelves s = {.c = c, .a = a, .b = b, .rows = c->json ? json_array() : NULL};
    if (!walk(&s)) {
        json_decref(s.rows);
        return CMD_UNKNOWN;
    }
    if (s.nsame + s.nother == 0 && s.verdict == CAIRN_SAME)
        s.verdict = CAIRN_INCONCLUSIVE;
    const int code = cmd_comparison_code(s.verdict);
    if (s.rows)
        return cmd_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I, s:o}", "verdict",
                                        cmd_comparison_word(s.verdict), "same", (json_int_t)s.nsame,
                                        "other", (json_int_t)s.nother, "only_first",
                                        (json_int_t)s.nonly_first, "only_second",
                                        (json_int_t)s.nonly_second, "states", s.rows),
                              code);
    cmd_line("%s: of the states of both, %" PRIu64 " the same, %" PRIu64 " not; %" PRIu64
             " only in the first, %" PRIu64 " only in the second",
             cmd_comparison_word(s.verdict), s.nsame, s.nother, s.nonly_first, s.nonly_second);
    return code;
}

/* --- both --------------------------------------------------------------------------------- */

static int compare_places(MPI_Comm comm, int rank, cmd_comparison *c, const cmd_shelf_place *a,
                          const cmd_shelf_place *b)
{
    if (a->key && b->key)
        return compare_keys(comm, rank, c, a, b);
    if (a->key || b->key)
        return cmd_fail("name two shelves, or a key of each, as in '%s/KEY'",
                        a->key ? c->second : c->first);
    if (c->csv)
        return cmd_fail("--csv is for the states of a key, as in '%s/KEY'", c->first);
    return rank == 0 ? compare_all(c, a, b) : CMD_YES; /* digests tell most: one process's work */
}

int cmd_diff_shelves(MPI_Comm comm, int rank, void *arg)
{
    cmd_comparison *c = arg;
    cmd_shelf_place a, b;
    int code = cmd_shelf_open(c->first, &a);
    if (code != CMD_YES)
        return code;
    code = cmd_shelf_open(c->second, &b);
    if (code == CMD_YES) {
        code = compare_places(comm, rank, c, &a, &b);
        cmd_shelf_close(&b);
    }
    cmd_shelf_close(&a);
    return code;
}
