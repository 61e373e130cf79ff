/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Results on standard output: columns for people, JSON for programs.
 */
#include "cmd/cmd.h"

#include <stdarg.h>

static void blank_controls(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = '?';
}

/* Characters, not bytes: those that continue a UTF-8 sequence take no room. */
static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void cmd_cell(cmd_columns *t, const char *fmt, ...)
{
    char *cell = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&cell, fmt, ap) < 0)
        cell = NULL;
    va_end(ap);
    if (!cell || crn_vec_push(&t->cells, cell) < 0) {
        free(cell);
        t->failed = true;
        return;
    }
    blank_controls(cell);
}

static void print_cell(const char *cell, int width, char align, bool last)
{
    int pad = width - width_of(cell);
    if (align == 'r')
        printf("%*s%s%s", pad, "", cell, last ? "\n" : "  ");
    else if (last)
        printf("%s\n", cell);
    else
        printf("%s%*s  ", cell, pad, "");
}

int cmd_columns_print(cmd_columns *t, int indent, int code)
{
    enum { COLUMNS_MAX = 16 };
    int width[COLUMNS_MAX] = {0};
    size_t ncolumns = strlen(t->align);
    for (size_t i = 0; i < t->cells.n; i++)
        width[i % ncolumns] = CRN_MAX(width[i % ncolumns], width_of(t->cells.at[i]));
    for (size_t i = 0; i < t->cells.n && !t->failed; i++) {
        size_t column = i % ncolumns;
        printf("%*s", column == 0 ? indent : 0, "");
        print_cell(t->cells.at[i], width[column], t->align[column], column + 1 == ncolumns);
    }
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.at[i]);
    crn_vec_done(&t->cells);
    return t->failed ? cmd_fail("no memory for a table") : code;
}

json_t *cmd_json_text(const char *s)
{
    json_t *text = json_string(s);
    char *copy;
    if (text || crn_strdup(s, &copy) < 0)
        return text;
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    text = json_string(copy);
    free(copy);
    return text;
}

int cmd_print_json(json_t *value, int code)
{
    if (!value)
        return cmd_fail("no memory for JSON");
    int rc = json_dumpf(value, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(value);
    return rc < 0 ? cmd_fail("cannot print JSON") : code;
}
