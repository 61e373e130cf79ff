/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn bench blocks --trail: what other block sizes would mean to the marks of a run that is
 * there, and which ones 'block = auto' would choose. Bytes are those of all ranks, each of which
 * chooses for itself.
 */
#include "cmd/cmd_bench.h"

/* One variable, over all ranks. */
typedef struct row {
    char *name;
    uint64_t nbytes;
    uint64_t block[2], best[2];        /* the smallest and the largest of the ranks, */
    uint64_t written, best_written;    /* and what a mark writes with these */
    uint64_t sizes[CAIRN_BLOCK_SIZES]; /* and with one size on all ranks */
} row;

typedef struct rows {
    const char *run;
    CRN_VEC(row) row;
} rows;

/* What is written in blocks of a size; larger ones than are looked at count as the largest. */
static uint64_t written_in(const cairn_block_choice *c, uint32_t block)
{
    size_t k = 0;
    while (k + 1 < CAIRN_BLOCK_SIZES && (1024u << k) < block)
        k++;
    return c->written[k];
}

static void widen(uint64_t range[2], uint64_t value)
{
    range[0] = range[0] == 0 ? value : CRN_MIN(range[0], value);
    range[1] = CRN_MAX(range[1], value);
}

static void add_choice(row *r, const cairn_block_choice *c)
{
    r->nbytes += c->nbytes;
    widen(r->block, c->block_bytes);
    widen(r->best, c->best_bytes);
    r->written += written_in(c, c->block_bytes);
    r->best_written += written_in(c, c->best_bytes);
    for (size_t k = 0; k < CAIRN_BLOCK_SIZES; k++)
        r->sizes[k] += c->written[k];
}

/* A variable that a rank does not have, or not long enough, adds nothing. */
static cairn_status fill_row(cairn_trail *t, size_t run, uint32_t nranks, row *r)
{
    for (uint32_t rank = 0; rank < nranks; rank++) {
        cairn_block_choice c = {.struct_bytes = sizeof c};
        cairn_status rc = cairn_trail_blocks(t, run, rank, r->name, &c);
        if (rc == CAIRN_OK)
            add_choice(r, &c);
        else if (rc < 0 && rc != CAIRN_ENOTFOUND)
            return rc;
    }
    return CAIRN_OK;
}

/* The variables of rank 0 in the newest mark. */
static cairn_status name_rows(cairn_trail *t, size_t run, size_t mark, rows *ret)
{
    cairn_part_info part = {.struct_bytes = sizeof part};
    CRN_TRY(cairn_trail_part(t, run, mark, 0, &part));
    for (size_t i = 0; i < part.nvars; i++) {
        cairn_variable_info v = {.struct_bytes = sizeof v};
        row r = {0};
        CRN_TRY(cairn_trail_variable(t, run, mark, 0, i, &v));
        CRN_TRY(crn_vec_reserve(&ret->row, 1));
        CRN_TRY(crn_strdup(v.name, &r.name));
        ret->row.at[ret->row.n++] = r;
    }
    return CAIRN_OK;
}

static cairn_status look(cairn_trail *t, size_t run, rows *ret)
{
    cairn_run_info info = {.struct_bytes = sizeof info};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    CRN_TRY(cairn_trail_run(t, run, &info));
    ret->run = info.name;
    CRN_FAIL_IF(info.nmarks == 0, CAIRN_ENOTFOUND, "run '%s' has no marks", info.name);
    CRN_TRY(cairn_trail_mark(t, run, info.nmarks - 1, &mark));
    CRN_TRY(name_rows(t, run, info.nmarks - 1, ret));
    for (size_t i = 0; i < ret->row.n; i++)
        CRN_TRY(fill_row(t, run, mark.nranks, &ret->row.at[i]));
    return CAIRN_OK;
}

/* --- printing ------------------------------------------------------------------------------- */

static json_t *json_of(const row *r)
{
    json_t *sizes = json_array();
    for (size_t k = 0; k < CAIRN_BLOCK_SIZES; k++)
        cmd_json_append(&sizes, json_pack("{s:I, s:I}", "block_bytes", (json_int_t)1024 << k,
                                          "written_bytes", (json_int_t)r->sizes[k]));
    return json_pack("{s:o, s:I, s:[II], s:I, s:[II], s:I, s:o}", "name", cmd_json_text(r->name),
                     "nbytes", (json_int_t)r->nbytes, "block_bytes", (json_int_t)r->block[0],
                     (json_int_t)r->block[1], "written_bytes", (json_int_t)r->written, "auto_bytes",
                     (json_int_t)r->best[0], (json_int_t)r->best[1], "auto_written_bytes",
                     (json_int_t)r->best_written, "sizes", sizes);
}

static void range_cell(cmd_columns *t, const uint64_t range[2])
{
    char low[CRN_NUMBER_TEXT], high[CRN_NUMBER_TEXT];
    crn_format_nbytes(range[0], low, sizeof low);
    crn_format_nbytes(range[1], high, sizeof high);
    if (range[0] == range[1])
        cmd_cell(t, "%s", low);
    else
        cmd_cell(t, "%s to %s", low, high);
}

static int print_rows(const rows *list)
{
    static const char *const head[] = {"VARIABLE", "STATE", "BLOCK", "WRITTEN", "AUTO", "WRITTEN"};
    cmd_columns t = {.align = "lrrrrr"};
    char text[CRN_NUMBER_TEXT];
    size_t nleft = 0;
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        cmd_cell(&t, "%s", head[i]);
    for (size_t i = 0; i < list->row.n; i++) {
        const row *r = &list->row.at[i];
        nleft += r->nbytes == 0;
        if (r->nbytes == 0)
            continue;
        cmd_cell(&t, "%s", r->name);
        cmd_cell(&t, "%s", crn_format_nbytes(r->nbytes, text, sizeof text));
        range_cell(&t, r->block);
        cmd_cell(&t, "%s", crn_format_nbytes(r->written, text, sizeof text));
        range_cell(&t, r->best);
        cmd_cell(&t, "%s", crn_format_nbytes(r->best_written, text, sizeof text));
    }
    const int code = cmd_columns_print(&t, 0, CMD_YES);
    if (nleft > 0)
        cmd_line(
            "%zu variables are not in two marks of the trail ('keep.global' says how many stay)",
            nleft);
    return code;
}

static int print(const rows *list, bool json)
{
    if (!json)
        return print_rows(list);
    json_t *variables = json_array();
    for (size_t i = 0; i < list->row.n; i++)
        cmd_json_append(&variables, json_of(&list->row.at[i]));
    return cmd_print_json(
        json_pack("{s:o, s:o}", "run", cmd_json_text(list->run), "variables", variables), CMD_YES);
}

int cmd_bench_trail(const char *name, bool json)
{
    cmd_place place;
    rows list = {0};
    if (cmd_place_open(name, &place) != CMD_YES)
        return CMD_UNKNOWN;
    int code = CMD_UNKNOWN;
    if (place.end == place.first)
        cmd_fail("trail '%s' has no run", name);
    else if (look(place.trail, place.end - 1, &list) < 0)
        cmd_fail("%s", cairn_error_text());
    else
        code = print(&list, json);
    for (size_t i = 0; i < list.row.n; i++)
        free(list.row.at[i].name);
    crn_vec_done(&list.row);
    cmd_place_close(&place);
    return code;
}
