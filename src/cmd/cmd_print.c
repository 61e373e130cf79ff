/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Results on standard output: columns for people, JSON for programs.
 */
#include "cmd/cmd.h"

/*
 * All text passes here: names from files must not drive a terminal. NULL when there is no memory.
 */
static char *clean_text(const char *fmt, va_list ap)
{
    char *text;
    if (vasprintf(&text, fmt, ap) < 0)
        return NULL;
    crn_text_clean(text);
    return text;
}

static void print_line(FILE *to, const char *lead, const char *fmt, va_list ap)
{
    char *text = clean_text(fmt, ap);
    fprintf(to, "%s%s\n", lead, text ? text : "no memory for a message");
    free(text);
}

void cmd_line(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print_line(stdout, "", fmt, ap);
    va_end(ap);
}

int cmd_vfail(const char *fmt, va_list ap)
{
    fflush(stdout); /* what was found out comes before what could not be */
    print_line(stderr, "cairn: ", fmt, ap);
    return CMD_UNKNOWN;
}

int cmd_fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int code = cmd_vfail(fmt, ap);
    va_end(ap);
    return code;
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
    va_list ap;
    va_start(ap, fmt);
    char *cell = clean_text(fmt, ap);
    va_end(ap);
    if (!cell || crn_vec_push(&t->cells, cell) < 0) {
        free(cell);
        t->failed = true;
    }
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

/* How many bytes the character at s has; 0: it is none. */
static size_t character_bytes(const char *s)
{
    const size_t most = strnlen(s, 4);
    for (size_t n = 1; n <= most; n++) {
        json_t *one = json_stringn(s, n);
        json_decref(one);
        if (one)
            return n;
    }
    return 0;
}

json_t *cmd_json_text(const char *s)
{
    json_t *text = json_string(s);
    char *copy;
    if (text || crn_strdup(s, &copy) < 0)
        return text;
    for (char *p = copy; *p;) {
        const size_t n = character_bytes(p);
        if (n == 0)
            *p = '?';
        p += CRN_MAX(n, 1);
    }
    text = json_string(copy);
    free(copy);
    return text;
}

void cmd_json_append(json_t **list, json_t *value)
{
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

json_t *cmd_json_merge(json_t *object, json_t *members)
{
    int rc = object ? json_object_update(object, members) : -1;
    json_decref(members);
    if (rc == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* Characters that may not be shown stand in strings only, where an escape means the same. */
static void print_escaped(const char *s)
{
    while (*s) {
        uint32_t c;
        bool fair;
        const size_t n = crn_utf8_next(s, &c, &fair);
        if (fair || c == '\n')
            fwrite(s, 1, n, stdout);
        else
            printf("\\u%04x", c & 0xffff); /* all of them have four digits */
        s += n;
    }
    printf("\n");
}

int cmd_print_json(json_t *value, int code)
{
    char *text = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
    json_decref(value);
    if (!text)
        return cmd_fail("no memory for JSON");
    print_escaped(text);
    free(text);
    return ferror(stdout) ? cmd_fail("cannot print JSON") : code;
}
