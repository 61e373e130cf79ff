/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Showing the result of a comparison.
 */
#include "cmd/cmd_compare.h"

static const char *const verdict_name[] = {
    [CAIRN_SAME] = "same",
    [CAIRN_UNPROVEN] = "not proven equal",
    [CAIRN_INCONCLUSIVE] = "could not tell",
    [CAIRN_ONLY_FIRST] = "only in the first",
    [CAIRN_ONLY_SECOND] = "only in the second",
    [CAIRN_DIFFERENT] = "different",
};

static const char *const csv_head = "mark,variable,type,bound,verdict,values,differing,nonfinite,"
                                    "max,rms,rank,index,first,second,low,high,"
                                    "slices,blocks,flagged,false,read,text";

const char *cmd_comparison_word(cairn_verdict v)
{
    return verdict_name[v];
}

int cmd_comparison_code(cairn_verdict v)
{
    return v == CAIRN_SAME ? CMD_YES : v > CAIRN_INCONCLUSIVE ? CMD_NO : CMD_UNKNOWN;
}

/* "200x300" as the shape of raw values. */
static bool parse_shape(cmd_comparison *c)
{
    const char *p = c->shape;
    do {
        char *end;
        if (*p < '0' || *p > '9' || c->how.raw_ndims == 8)
            return false;
        c->how.raw_shape[c->how.raw_ndims++] = strtoull(p, &end, 10);
        p = end;
    } while (*p++ == 'x');
    return p[-1] == 0;
}

bool cmd_comparison_check(cmd_comparison *c, const char *usage)
{
    uint64_t n = 0;
    if (c->shape && (!c->how.raw || !parse_shape(c))) {
        cmd_misuse(usage, "--shape is of --raw values, as 200x300, not '%s'", c->shape);
        return false;
    }
    if (c->nan && strcmp(c->nan, "same") != 0 && strcmp(c->nan, "differ") != 0) {
        cmd_misuse(usage, "--nan is 'same' or 'differ', not '%s'", c->nan);
        return false;
    }
    if (c->marks && strcmp(c->marks, "all") != 0 && strcmp(c->marks, "common") != 0) {
        cmd_misuse(usage, "--marks is 'common' or 'all', not '%s'", c->marks);
        return false;
    }
    if (c->threads && (crn_parse_count(c->threads, &n) < 0 || n == 0 || n > 1024)) {
        cmd_misuse(usage, "--threads is a number from 1 to 1024, not '%s'", c->threads);
        return false;
    }
    if ((c->json && c->csv) || (c->only_first && c->how.all)) {
        cmd_misuse(usage, "--json and --csv, or --all and --first, exclude each other");
        return false;
    }
    if (c->marks)
        c->how.marks = strcmp(c->marks, "all") == 0 ? CAIRN_MARKS_ALL : CAIRN_MARKS_COMMON;
    if (c->how.follow && !c->files) {
        cmd_misuse(usage, "--follow is for files");
        return false;
    }
    c->how.nan_differs = c->nan && strcmp(c->nan, "differ") == 0;
    c->how.nthreads = (unsigned)n;
    return true;
}

/* --- rows ----------------------------------------------------------------------------------- */

/* "[3, 17]"; for CSV and people alike. */
static char *format_index(const uint64_t *index, uint32_t ndims, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "[");
    for (uint32_t d = 0; d < ndims && n < cap; d++)
        n += (size_t)snprintf(buf + n, cap - n, "%s%" PRIu64, d ? ", " : "", index[d]);
    if (n < cap)
        snprintf(buf + n, cap - n, "]");
    return buf;
}

enum { INDEX_TEXT = 400 }; /* also for the slices */

static json_t *json_index(const uint64_t *index, uint32_t ndims)
{
    json_t *list = json_array();
    for (uint32_t d = 0; d < ndims; d++)
        cmd_json_append(&list, json_integer((json_int_t)index[d]));
    return list;
}

/* JSON has no infinity. */
static json_t *json_number(double x)
{
    return x - x == 0 ? json_real(x) : json_null();
}

json_t *cmd_comparison_json(const cmd_comparison *c, const cairn_comparison_row *r)
{
    json_t *mark = c->files ? json_null() : json_integer((json_int_t)r->version);
    json_t *row =
        json_pack("{s:o, s:s, s:o, s:o}", "mark", mark, "verdict", verdict_name[r->verdict],
                  "variable", r->variable ? cmd_json_text(r->variable) : json_null(), "text",
                  r->text && *r->text ? cmd_json_text(r->text) : json_null());
    if (!r->variable)
        return row;
    row = cmd_json_merge(row,
                         json_pack("{s:o, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I}",
                                   "type", cmd_json_text(r->type), "bound", r->bound, "shape",
                                   json_index(r->shape, r->ndims), "values", (json_int_t)r->nvalues,
                                   "differing", (json_int_t)r->ndiffering, "nonfinite",
                                   (json_int_t)r->nnonfinite, "max", json_number(r->max), "rms",
                                   json_number(r->rms), "blocks", (json_int_t)r->nblocks, "flagged",
                                   (json_int_t)r->nflagged, "false", (json_int_t)r->nfalse, "read",
                                   (json_int_t)r->read_bytes));
    if (r->ndiffering == 0 && r->placed)
        return cmd_json_merge(row, json_pack("{s:i, s:o}", "rank", (int)r->rank, "index",
                                             json_index(r->index, r->ndims)));
    if (r->ndiffering == 0)
        return row;
    return cmd_json_merge(
        row, json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "rank", (int)r->rank, "index",
                       json_index(r->index, r->ndims), "first", cmd_json_text(r->first), "second",
                       cmd_json_text(r->second), "low", json_index(r->low, r->ndims), "high",
                       json_index(r->high, r->ndims), "slices", json_index(r->slice, r->nslices)));
}

/* Text in quotes for CSV. */
static void print_quoted(const char *s)
{
    putchar('"');
    while (*s) {
        uint32_t code;
        bool fair;
        const size_t n = crn_utf8_next(s, &code, &fair);
        if (*s == '"')
            putchar('"');
        printf("%.*s", fair ? (int)n : 1, fair ? s : "?");
        s += n;
    }
    putchar('"');
}

/* Numbers as they are; texts may have commas. */
static void print_value(const char *s)
{
    if (strpbrk(s, ",\"'\n"))
        print_quoted(s);
    else
        printf("%s", s);
    putchar(',');
}

/* Where the first difference is, or the first block in doubt; of a difference both values, too. */
static void print_csv_place(const cairn_comparison_row *r)
{
    char index[INDEX_TEXT], low[INDEX_TEXT], high[INDEX_TEXT], slices[INDEX_TEXT];
    if (r->placed)
        printf("%" PRIu32 ",\"%s\",", r->rank,
               format_index(r->index, r->ndims, index, sizeof index));
    else
        printf(",,");
    if (r->ndiffering > 0) {
        print_value(r->first);
        print_value(r->second);
    } else {
        printf(",,");
    }
    if (r->ndiffering > 0)
        printf("\"%s\",\"%s\",\"%s\"", format_index(r->low, r->ndims, low, sizeof low),
               format_index(r->high, r->ndims, high, sizeof high),
               format_index(r->slice, r->nslices, slices, sizeof slices));
    else
        printf(",,");
}

static void print_csv(const cmd_comparison *c, const cairn_comparison_row *r)
{
    if (!c->files)
        printf("%" PRIu64, r->version);
    putchar(',');
    print_quoted(r->variable ? r->variable : "");
    putchar(',');
    print_quoted(r->type ? r->type : "");
    printf(",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.17g,%.17g,", r->bound ? r->bound : "",
           verdict_name[r->verdict], r->nvalues, r->ndiffering, r->nnonfinite, r->max, r->rms);
    print_csv_place(r);
    printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", r->nblocks, r->nflagged, r->nfalse,
           r->read_bytes);
    print_quoted(r->text ? r->text : "");
    putchar('\n');
}

/* Bytes and structures differ, but by no number. */
static void add_distance(cmd_comparison *c, double far)
{
    if (far > 0)
        cmd_cell(&c->t, "%.3g", far);
    else
        cmd_cell(&c->t, "%s", "");
}

/* Slices as a person sees them: none of the values that differ, some, a quarter or more. */
static const char *draw_slices(const cairn_comparison_row *r, char buf[CAIRN_SLICES + 1])
{
    for (uint32_t i = 0; i < r->nslices; i++)
        buf[i] = r->slice[i] == 0 ? '.' : r->slice[i] < r->ndiffering / 4.0 ? '+' : '#';
    buf[r->nslices] = 0;
    return buf;
}

static void add_cells(cmd_comparison *c, const cairn_comparison_row *r)
{
    char low[INDEX_TEXT], high[INDEX_TEXT], slices[CAIRN_SLICES + 1];
    if (!c->files)
        cmd_cell(&c->t, "%" PRIu64, r->version);
    cmd_cell(&c->t, "%s", r->variable ? r->variable : "");
    if (r->ndiffering == 0) {
        cmd_cell(&c->t, "%s", verdict_name[r->verdict]);
        cmd_cell(&c->t, "%s", "");
        cmd_cell(&c->t, "%s", "");
        cmd_cell(&c->t, "%s", "");
        cmd_cell(&c->t, "%s", r->text ? r->text : "");
        return;
    }
    cmd_cell(&c->t, "%" PRIu64 " of %" PRIu64, r->ndiffering, r->nvalues);
    add_distance(c, r->max);
    add_distance(c, r->rms);
    cmd_cell(&c->t, "%s", draw_slices(r, slices));
    char special[64] = "";
    if (r->nnonfinite > 0)
        snprintf(special, sizeof special, "; %" PRIu64 " not finite", r->nnonfinite);
    cmd_cell(&c->t, "%s to %s%s%s%s", format_index(r->low, r->ndims, low, sizeof low),
             format_index(r->high, r->ndims, high, sizeof high), special,
             r->verdict == CAIRN_DIFFERENT && strcmp(r->text, "values differ") == 0 ? "" : "; ",
             strcmp(r->text, "values differ") == 0 ? "" : r->text);
}

static int on_row(void *arg, const cairn_comparison_row *r)
{
    cmd_comparison *c = arg;
    cmd_progress_end(&c->progress);
    c->nrows++;
    if (c->json)
        cmd_json_append(&c->rows, cmd_comparison_json(c, r));
    else if (c->csv)
        print_csv(c, r);
    else if (r->verdict != CAIRN_SAME && !c->only_first && (r->variable || c->lists_marks))
        add_cells(c, r);
    return 0;
}

static void on_progress(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    cmd_comparison *c = arg;
    cmd_progress_update(&c->progress, done_bytes, total_bytes);
}

/* --- the result ----------------------------------------------------------------------------- */

void cmd_comparison_begin(cmd_comparison *c, bool speaks, const char *what)
{
    c->how.struct_bytes = sizeof c->how;
    c->how.arg = c;
    c->lists_marks = c->how.marks == CAIRN_MARKS_ALL;
    c->speaks = speaks;
    if (!speaks)
        return;
    c->how.row = on_row;
    c->how.progress = on_progress;
    c->t.align = c->files ? "lrrrll" : "rlrrrll";
    if (c->json)
        c->rows = json_array();
    if (c->csv)
        printf("%s\n", csv_head);
    cmd_progress_start(&c->progress, what);
}

static int print_json(cmd_comparison *c, const cairn_comparison *r)
{
    json_t *first = r->first.struct_bytes ? cmd_comparison_json(c, &r->first) : json_null();
    json_t *all = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "verdict",
                            verdict_name[r->verdict], "marks", (json_int_t)r->nmarks, "left",
                            (json_int_t)r->nleft, "only_first", (json_int_t)r->nonly_first,
                            "only_second", (json_int_t)r->nonly_second, "nbytes",
                            (json_int_t)r->nbytes, "tree_bytes", (json_int_t)r->tree_bytes, "read",
                            (json_int_t)r->read_bytes, "first", first, "rows", c->rows);
    if (c->files || c->how.exclude)
        all = cmd_json_merge(all, json_pack("{s:I}", "skipped", (json_int_t)r->nskipped));
    if (c->golden)
        all = cmd_json_merge(all, json_pack("{s:{s:I, s:I, s:I}}", "sketch", "marks",
                                            (json_int_t)r->nsketched, "nbytes",
                                            (json_int_t)r->sketch_bytes, "proven",
                                            (json_int_t)r->nproven));
    return cmd_print_json(all, cmd_comparison_code(r->verdict));
}

static void print_first_in_files(const cairn_comparison_row *r)
{
    char index[INDEX_TEXT];
    if (r->ndiffering > 0)
        cmd_line("first difference: '%s', index %s: %s and %s", r->variable,
                 format_index(r->index, r->ndims, index, sizeof index), r->first, r->second);
    else
        cmd_line("first difference: '%s': %s", r->variable, r->text);
}

void cmd_comparison_print_first(const cairn_comparison_row *r)
{
    char index[INDEX_TEXT];
    const char *const head =
        r->verdict <= CAIRN_INCONCLUSIVE ? verdict_name[r->verdict] : "first difference";
    if (r->ndiffering > 0)
        cmd_line("%s: mark %" PRIu64 ", rank %" PRIu32 ", variable '%s', index %s: %s and %s", head,
                 r->version, r->rank, r->variable,
                 format_index(r->index, r->ndims, index, sizeof index), r->first, r->second);
    else if (r->variable && r->placed)
        cmd_line("%s: mark %" PRIu64 ", rank %" PRIu32
                 ", variable '%s', in the block from index %s on: %s",
                 head, r->version, r->rank, r->variable,
                 format_index(r->index, r->ndims, index, sizeof index), r->text);
    else if (r->variable)
        cmd_line("%s: mark %" PRIu64 ", variable '%s': %s", head, r->version, r->variable, r->text);
    else
        cmd_line("%s: mark %" PRIu64 ": %s", head, r->version, r->text);
}

static void print_heads(cmd_comparison *c)
{
    cmd_columns body = c->t;
    static const char *const title[] = {"mark", "variable", "differing", "max",
                                        "rms",  "slices",   "where"};
    c->t = (cmd_columns){.align = body.align};
    for (size_t i = c->files; i < sizeof title / sizeof *title; i++)
        cmd_cell(&c->t, "%s", title[i]);
    crn_put_bytes(&c->t.cells, body.cells.at, body.cells.n);
    c->t.cells.failed |= body.cells.failed;
    crn_buf_done(&body.cells);
}

/* Marks of one run alone. */
static void print_alone(const cmd_comparison *c, const char *which, uint64_t n)
{
    if (n > 0 && !c->lists_marks)
        cmd_line("%" PRIu64 " mark%s only in the %s: not compared (--marks all: different)", n,
                 n == 1 ? " is" : "s are", which);
}

/* The last lines: how much that was. */
static void print_sum(const cmd_comparison *c, const cairn_comparison *r)
{
    char nbytes[CRN_NUMBER_TEXT], nread[CRN_NUMBER_TEXT];
    crn_format_nbytes(r->nbytes, nbytes, sizeof nbytes);
    if (c->files)
        cmd_line("%s: %" PRIu64 " array%s compared, %s", verdict_name[r->verdict], c->nrows,
                 c->nrows == 1 ? "" : "s", nbytes);
    else
        cmd_line(
            "%s: %" PRIu64 " mark%s compared, %s, of which %s were read", verdict_name[r->verdict],
            r->nmarks, r->nmarks == 1 ? "" : "s", nbytes,
            crn_format_nbytes(c->golden ? r->read_bytes : r->read_bytes / 2, nread, sizeof nread));
    if (r->nleft > 0)
        cmd_line("%" PRIu64 " later mark%s not compared: --all does", r->nleft,
                 r->nleft == 1 ? " was" : "s were");
    print_alone(c, "first", r->nonly_first);
    print_alone(c, "second", r->nonly_second);
    if (r->nskipped > 0)
        cmd_line("%" PRIu64 " %s left out by name", r->nskipped, r->nskipped == 1 ? "was" : "were");
}

/* What a golden file's sketch covers, and what it was good for. */
static void print_sketch(const cairn_comparison *r)
{
    char nbytes[CRN_NUMBER_TEXT];
    if (r->sketch_bytes == 0 && r->verdict == CAIRN_SAME)
        return;
    if (r->sketch_bytes == 0)
        cmd_line("no sketch: noise may not be proven equal; bless with --sketch bytes, or bits");
    else
        cmd_line("sketch: %s, of %" PRIu64 " of %" PRIu64 " mark%s; it proved %" PRIu64
                 " block%s equal",
                 crn_format_nbytes(r->sketch_bytes, nbytes, sizeof nbytes), r->nsketched, r->nmarks,
                 r->nmarks == 1 ? "" : "s", r->nproven, r->nproven == 1 ? "" : "s");
}

static int print_text(cmd_comparison *c, const cairn_comparison *r)
{
    int code = cmd_comparison_code(r->verdict);
    if (r->first.struct_bytes > 0)
        (c->files ? print_first_in_files : cmd_comparison_print_first)(&r->first);
    if (c->t.cells.n > 0) {
        print_heads(c);
        code = cmd_columns_print(&c->t, 2, code);
    }
    if (c->only_first && r->first.struct_bytes > 0)
        return code;
    print_sum(c, r);
    if (c->golden)
        print_sketch(r);
    return code;
}

int cmd_comparison_end(cmd_comparison *c, int rc, const cairn_comparison *result)
{
    if (!c->speaks)
        return rc < 0 ? CMD_UNKNOWN : cmd_comparison_code(result->verdict);
    cmd_progress_end(&c->progress);
    if (rc < 0) {
        json_decref(c->rows);
        return cmd_fail("%s", cairn_error_text());
    }
    if (c->json)
        return print_json(c, result);
    return c->csv ? cmd_comparison_code(result->verdict) : print_text(c, result);
}
