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

void cmd_line(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = clean_text(fmt, ap);
    va_end(ap);
    printf("%s\n", text ? text : "no memory for a message");
    free(text);
}

/* A part that is damaged is the same news for each of its 100,000 marks: what has just been said is
 * not said again. */
int cmd_vfail(const char *fmt, va_list ap)
{
    static char *said;
    char *text = clean_text(fmt, ap);
    fflush(stdout); /* what was found out comes before what could not be */
    if (!text || !said || strcmp(text, said) != 0)
        fprintf(stderr, "cairn: %s\n", text ? text : "no memory for a message");
    free(said);
    said = text;
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
    if (cell)
        crn_put_bytes(&t->cells, cell, strlen(cell) + 1);
    t->cells.failed |= !cell;
    free(cell);
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
    const size_t ncolumns = strlen(t->align);
    const char *const first = (const char *)t->cells.at, *const end = first + t->cells.n;
    const bool failed = t->cells.failed;
    size_t i = 0;
    for (const char *cell = first; cell < end; cell += strlen(cell) + 1, i++)
        width[i % ncolumns] = CRN_MAX(width[i % ncolumns], width_of(cell));
    i = 0;
    for (const char *cell = first; cell < end && !failed; cell += strlen(cell) + 1, i++) {
        const size_t column = i % ncolumns;
        printf("%*s", column == 0 ? indent : 0, "");
        print_cell(cell, width[column], t->align[column], column + 1 == ncolumns);
    }
    crn_buf_done(&t->cells);
    return failed ? cmd_fail("no memory for a table") : code;
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

static void print_spaces(int n)
{
    static const char spaces[] = "                                ";
    for (int k; n > 0; n -= k) {
        k = CRN_MIN(n, (int)sizeof spaces - 1);
        fwrite_unlocked(spaces, 1, (size_t)k, stdout);
    }
}

/* Characters that may not be shown stand in strings only, where an escape means the same. */
static void print_escaped(const char *s, int indent)
{
    const char *from = s; /* what is to be printed as it is, at once: there may be megabytes */
    while (*s) {
        uint32_t c;
        bool fair;
        if (*s >= ' ' && *s <= '~') { /* nearly all are */
            s++;
            continue;
        }
        const size_t n = crn_utf8_next(s, &c, &fair);
        s += n;
        if (fair)
            continue;
        fwrite_unlocked(from, 1, (size_t)(s - from) - (c == '\n' ? 0 : n), stdout);
        if (c == '\n')
            print_spaces(indent);
        else
            printf("\\u%04x", c & 0xffff); /* all of them have four digits */
        from = s;
    }
    fwrite_unlocked(from, 1, (size_t)(s - from), stdout); /* of one thread */
}

enum { INDENT = 2 };

static void next_line(const cmd_json *j)
{
    if (j->depth == 0)
        return;
    fputs(j->any ? ",\n" : "\n", stdout);
    print_spaces(INDENT * j->depth);
}

/* On a line of its own behind what is there; value NULL: its name only. */
static void print_item(cmd_json *j, const char *name, json_t *value)
{
    json_t *key = name ? json_string(name) : NULL;
    char *key_text = key ? json_dumps(key, JSON_ENCODE_ANY) : NULL;
    char *text = value ? json_dumps(value, JSON_INDENT(INDENT) | JSON_ENCODE_ANY) : NULL;
    j->failed |= (name && !key_text) || (value && !text);
    next_line(j);
    if (key_text) {
        print_escaped(key_text, 0);
        printf(": ");
    }
    if (text)
        print_escaped(text, INDENT * j->depth);
    j->any = true;
    free(text);
    free(key_text);
    json_decref(key);
}

void cmd_json_begin(cmd_json *j, const char *name, char bracket)
{
    print_item(j, name, NULL);
    putchar(bracket);
    j->depth++;
    j->any = false;
}

void cmd_json_add(cmd_json *j, const char *name, json_t *value)
{
    if (value)
        print_item(j, name, value);
    j->failed |= !value;
    json_decref(value);
}

void cmd_json_add_line(cmd_json *j, const char *line)
{
    next_line(j);
    print_escaped(line, 0);
    j->any = true;
}

void cmd_json_add_members(cmd_json *j, json_t *object)
{
    const char *name;
    json_t *value;
    j->failed |= !object;
    json_object_foreach(object, name, value)
    {
        cmd_json_add(j, name, json_incref(value));
    }
    json_decref(object);
}

void cmd_json_end(cmd_json *j, char bracket)
{
    j->depth--;
    if (j->any)
        printf("\n%*s", INDENT * j->depth, "");
    putchar(bracket);
    j->any = true;
}

int cmd_json_finish(const cmd_json *j, int code)
{
    printf("\n");
    if (j->failed)
        return cmd_fail("no memory for JSON");
    return ferror(stdout) ? cmd_fail("cannot print JSON") : code;
}

int cmd_print_json(json_t *value, int code)
{
    cmd_json j = {0};
    if (!value)
        return cmd_fail("no memory for JSON");
    cmd_json_add(&j, NULL, value);
    return cmd_json_finish(&j, code);
}
