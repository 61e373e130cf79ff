/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/cmd_shelf.h"

#include <limits.h>
#include <sys/stat.h>

static bool has_shelf(const char *path)
{
    char file[PATH_MAX];
    struct stat st;
    return snprintf(file, sizeof file, "%s/shelf", path) < PATH_MAX && stat(file, &st) == 0 &&
           S_ISREG(st.st_mode);
}

/* "KEY@VERSION": cut the version off. */
static bool split_version(char *key, cmd_shelf_place *p)
{
    char *at = strchr(key, '@');
    if (!at)
        return true;
    *at = 0;
    p->has_version = crn_parse_count(at + 1, &p->version) == CAIRN_OK;
    return p->has_version;
}

/* Cut the key off p->path, if it is the path's last part. */
static bool split(cmd_shelf_place *p)
{
    if (has_shelf(p->path))
        return true;
    char *slash = strrchr(p->path, '/');
    if (!slash || slash == p->path || !slash[1])
        return false;
    *slash = 0;
    p->key = slash + 1;
    return has_shelf(p->path) && split_version(slash + 1, p);
}

bool cmd_is_shelf(const char *name)
{
    cmd_shelf_place p = {0};
    if (crn_strdup(name, &p.path) < 0)
        return false;
    const bool yes = split(&p);
    free(p.path);
    return yes;
}

/* --- opening ------------------------------------------------------------------------------ */

static int take_state(void *arg, const cairn_state_info *info)
{
    cmd_shelf_place *p = arg;
    if ((p->key && strcmp(p->key, info->key) != 0) ||
        (p->has_version && p->version != info->version))
        return 0;
    return crn_vec_push(&p->state, *info) < 0;
}

static int by_name(const void *a, const void *b)
{
    const cairn_state_info *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->version > y->version) - (x->version < y->version);
}

void cmd_shelf_close(cmd_shelf_place *p)
{
    cairn_shelf_close(p->shelf);
    crn_vec_done(&p->state);
    free(p->path);
}

int cmd_shelf_open(const char *name, cmd_shelf_place *p)
{
    *p = (cmd_shelf_place){0};
    if (crn_strdup(name, &p->path) < 0)
        return cmd_fail("no memory");
    (void)split(p);
    int code = CMD_YES;
    if (cairn_shelf_open(p->path, NULL, &p->shelf) < 0 ||
        cairn_state_list(p->shelf, p->key, true, 0, take_state, p) < 0)
        code = cmd_fail("%s", cairn_error_text());
    else if (p->key && p->state.n == 0)
        code = cmd_fail("shelf '%s' has no state '%s'%s", p->path, p->key,
                        p->has_version ? " of this version" : "");
    if (code != CMD_YES)
        cmd_shelf_close(p);
    else if (p->state.n > 0)
        qsort(p->state.at, p->state.n, sizeof *p->state.at, by_name);
    return code;
}

/* --- ls ----------------------------------------------------------------------------------- */

static json_t *json_of(const cairn_state_info *s)
{
    char date[CMD_WORDS];
    return json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:s}", "key", s->key, "version",
                     (json_int_t)s->version, "time", cmd_date(s->put_ns, date), "nbytes",
                     (json_int_t)s->nbytes, "writer", (json_int_t)s->writer, "processes",
                     (json_int_t)s->nprocesses, "pins", (json_int_t)s->npins, "digest", s->digest);
}

static int list_json(const cmd_shelf_place *p)
{
    cmd_json j = {0};
    cmd_json_begin(&j, NULL, '{');
    cmd_json_begin(&j, "states", '[');
    for (size_t i = 0; i < p->state.n; i++)
        cmd_json_add(&j, NULL, json_of(&p->state.at[i]));
    cmd_json_end(&j, ']');
    cmd_json_end(&j, '}');
    return cmd_json_finish(&j, CMD_YES);
}

static int list_words(const cmd_shelf_place *p)
{
    cmd_columns t = {.align = "lrlrrl"};
    char date[CMD_WORDS], nbytes[CRN_NUMBER_TEXT];
    uint64_t total = 0;
    for (size_t i = 0; i < p->state.n; i++) {
        const cairn_state_info *s = &p->state.at[i];
        total += s->nbytes;
        cmd_cell(&t, "%s", s->key);
        cmd_cell(&t, "%" PRIu64, s->version);
        cmd_cell(&t, "%s", cmd_date(s->put_ns, date));
        cmd_cell(&t, "%" PRIu32 " process%s", s->nprocesses, s->nprocesses == 1 ? "" : "es");
        cmd_cell(&t, "%s", crn_format_nbytes(s->nbytes, nbytes, sizeof nbytes));
        cmd_cell(&t, "writer %" PRIu32 "%s", s->writer, s->npins > 0 ? ", pinned" : "");
    }
    cmd_line("%zu state%s, %s", p->state.n, p->state.n == 1 ? "" : "s",
             crn_format_nbytes(total, nbytes, sizeof nbytes));
    return cmd_columns_print(&t, 2, CMD_YES);
}

int cmd_shelf_ls(const char *name, bool json)
{
    cmd_shelf_place p;
    int code = cmd_shelf_open(name, &p);
    if (code != CMD_YES)
        return code;
    code = json ? list_json(&p) : list_words(&p);
    cmd_shelf_close(&p);
    return code;
}

/* --- show --------------------------------------------------------------------------------- */

typedef struct fields {
    cairn_shelf *shelf;
    const cairn_state_info *state;
    cmd_columns *t; /* NULL: JSON */
    json_t *list;
} fields;

static void shape_of(const cairn_field *f, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int d = 0; d < f->ndims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRIu64, d > 0 ? " x " : "", f->global[d]);
    if (f->kind == CAIRN_FIELD_CELLS)
        snprintf(buf, size, "%" PRIu64 " in %" PRIu64 " cells", f->count[0], f->global[0]);
    else if (f->ndims == 0)
        snprintf(buf, size, "%" PRIu64 "%s", f->count[0],
                 f->kind == CAIRN_FIELD_LIST ? ", a list" : "");
}

static int take_field(void *arg, const cairn_field *f)
{
    fields *all = arg;
    const char *type = cairn_type_name(f->type) ? cairn_type_name(f->type) : "structure";
    char codec[CAIRN_CODEC_TEXT];
    if (cairn_state_codec(all->shelf, all->state->key, all->state->version, f->name, codec) < 0)
        codec[0] = 0;
    if (all->t) {
        char shape[200];
        shape_of(f, shape, sizeof shape);
        const size_t n = strlen(shape);
        if (codec[0])
            snprintf(shape + n, sizeof shape - n, ", %s", codec);
        cmd_cell(all->t, "%s", f->name);
        cmd_cell(all->t, "%s", type);
        cmd_cell(all->t, "%s", shape);
        return 0;
    }
    json_t *shape = json_array();
    for (int d = 0; d < f->ndims; d++)
        json_array_append_new(shape, json_integer((json_int_t)f->global[d]));
    if (f->ndims == 0)
        json_array_append_new(shape, json_integer((json_int_t)f->count[0]));
    json_t *facts =
        json_pack("{s:o, s:s, s:o}", "field", cmd_json_text(f->name), "type", type, "shape", shape);
    if (codec[0])
        json_object_set_new(facts, "codec", json_string(codec));
    if (f->kind != CAIRN_FIELD_ARRAY)
        json_object_set_new(facts, "kind",
                            json_string(f->kind == CAIRN_FIELD_LIST ? "list" : "cells"));
    if (f->kind == CAIRN_FIELD_CELLS)
        json_object_set_new(facts, "cells", json_integer((json_int_t)f->global[0]));
    cmd_json_append(&all->list, facts);
    return 0;
}

static int show_state(const cmd_shelf_place *p, const cairn_state_info *s, bool json)
{
    cmd_columns t = {.align = "lll"};
    cairn_state_info info = {.struct_bytes = sizeof info};
    fields all = {
        .shelf = p->shelf, .state = s, .t = json ? NULL : &t, .list = json ? json_array() : NULL};
    char date[CMD_WORDS], nbytes[CRN_NUMBER_TEXT];
    if (cairn_state_describe(p->shelf, s->key, s->version, &info, take_field, &all) < 0) {
        json_decref(all.list);
        crn_buf_done(&t.cells);
        return cmd_fail("%s", cairn_error_text());
    }
    if (json)
        return cmd_print_json(
            cmd_json_merge(json_of(&info), json_pack("{s:o}", "fields", all.list)), CMD_YES);
    cmd_line("%s %" PRIu64 "  %s, put %s by writer %" PRIu32 ", %" PRIu32 " process%s%s", info.key,
             info.version, crn_format_nbytes(info.nbytes, nbytes, sizeof nbytes),
             cmd_date(info.put_ns, date), info.writer, info.nprocesses,
             info.nprocesses == 1 ? "" : "es", info.npins > 0 ? ", pinned" : "");
    cmd_line("digest %s", info.digest);
    return cmd_columns_print(&t, 2, CMD_YES);
}

static int find_and_show(const cmd_shelf_place *p, const char *version, bool json)
{
    char *end;
    if (!version)
        return show_state(p, &p->state.at[p->state.n - 1], json);
    const uint64_t want = strtoull(version, &end, 10);
    for (size_t i = 0; i < p->state.n; i++)
        if (!*end && p->state.at[i].version == want)
            return show_state(p, &p->state.at[i], json);
    return cmd_fail("shelf '%s' has no version %s of '%s'; 'cairn ls' lists those it has", p->path,
                    version, p->key);
}

static int show_shelf(const cmd_shelf_place *p, bool json)
{
    cairn_shelf_info s = {.struct_bytes = sizeof s};
    char nbytes[CRN_NUMBER_TEXT], stored[CRN_NUMBER_TEXT], listed[CRN_NUMBER_TEXT];
    if (cairn_shelf_describe(p->shelf, &s) < 0)
        return cmd_fail("%s", cairn_error_text());
    if (json)
        return cmd_print_json(
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "states", (json_int_t)s.nstates, "nbytes",
                      (json_int_t)s.nbytes, "writers", (json_int_t)s.nwriters, "parts",
                      (json_int_t)s.nparts, "part_bytes", (json_int_t)s.part_bytes, "index_bytes",
                      (json_int_t)s.index_bytes),
            CMD_YES);
    cmd_line("%" PRIu64 " state%s, %s, by %" PRIu64 " writer%s", s.nstates,
             s.nstates == 1 ? "" : "s", crn_format_nbytes(s.nbytes, nbytes, sizeof nbytes),
             s.nwriters, s.nwriters == 1 ? "" : "s");
    cmd_line("%" PRIu64 " part%s of %s, index %s", s.nparts, s.nparts == 1 ? "" : "s",
             crn_format_nbytes(s.part_bytes, stored, sizeof stored),
             crn_format_nbytes(s.index_bytes, listed, sizeof listed));
    return CMD_YES;
}

int cmd_shelf_show(const char *name, const char *version, bool json)
{
    cmd_shelf_place p;
    int code = cmd_shelf_open(name, &p);
    if (code != CMD_YES)
        return code;
    if (p.key)
        code = find_and_show(&p, version, json);
    else
        code = show_shelf(&p, json);
    cmd_shelf_close(&p);
    return code;
}

/* --- verify ------------------------------------------------------------------------------- */

typedef struct shelf_verdict {
    uint64_t nsound, ndamaged, ngone, nbytes;
    bool unread;
    json_t *damage; /* NULL: words */
} shelf_verdict;

static void verify_state(const cmd_shelf_place *p, const cairn_state_info *s, shelf_verdict *v)
{
    const int rc = cairn_state_verify(p->shelf, s->key, s->version);
    if (rc == CAIRN_OK) {
        v->nsound++;
        v->nbytes += s->nbytes;
    } else if (rc == CAIRN_ENOTFOUND && cairn_state_has(p->shelf, s->key, s->version) != CAIRN_OK) {
        v->ngone++; /* dropped while we were reading */
    } else if (rc == CAIRN_ECORRUPT || rc == CAIRN_ENOTFOUND) {
        v->ndamaged++;
        if (v->damage)
            cmd_json_append(&v->damage, cmd_json_text(cairn_error_text()));
        else
            cmd_line("%s", cairn_error_text());
    } else {
        v->unread = true;
        (void)cmd_fail("%s", cairn_error_text());
    }
}

static int print_verdict(const shelf_verdict *v)
{
    const int code = v->ndamaged > 0 ? CMD_NO : v->unread ? CMD_UNKNOWN : CMD_YES;
    char nbytes[CRN_NUMBER_TEXT];
    const uint64_t n = v->nsound + v->ndamaged;
    if (v->damage)
        return cmd_print_json(json_pack("{s:b, s:b, s:I, s:I, s:o}", "sound", code == CMD_YES,
                                        "complete", !v->unread, "states", (json_int_t)n, "nbytes",
                                        (json_int_t)v->nbytes, "damage", v->damage),
                              code);
    cmd_line("%" PRIu64 " state%s, %s sound; %" PRIu64 " damaged", n, n == 1 ? "" : "s",
             crn_format_nbytes(v->nbytes, nbytes, sizeof nbytes), v->ndamaged);
    return code;
}

int cmd_shelf_verify(const char *name, bool json)
{
    cmd_shelf_place p;
    shelf_verdict v = {0};
    cmd_progress progress;
    const int code = cmd_shelf_open(name, &p);
    if (code != CMD_YES)
        return code;
    v.damage = json ? json_array() : NULL;
    cmd_progress_start(&progress, "verifying the shelf");
    for (size_t i = 0; i < p.state.n; i++) {
        verify_state(&p, &p.state.at[i], &v);
        cmd_progress_update(&progress, i + 1, p.state.n);
    }
    cmd_progress_end(&progress);
    cmd_shelf_close(&p);
    return print_verdict(&v);
}
