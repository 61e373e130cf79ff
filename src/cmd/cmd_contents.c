/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adding up what the ranks have of a mark.
 */
#include "cmd/cmd_contents.h"

enum { IN_TRAIL = 1 << 3 }; /* the bit of cairn_mark_info.levels for the level global */
enum { BAD_RANKS = 8 };     /* parts that cannot be read, before the others are not looked at */

void cmd_contents_done(cmd_contents *c)
{
    for (size_t i = 0; i < c->vars.n; i++) {
        free(c->vars.at[i].name);
        free(c->vars.at[i].type);
        json_decref(c->vars.at[i].pieces);
    }
    crn_vec_done(&c->vars);
}

static cmd_totals totals_of(const cairn_variable_info *v)
{
    return (cmd_totals){v->nbytes, v->nblocks, v->nchanged, v->stored_bytes};
}

static void add_up(cmd_totals *sum, cmd_totals more)
{
    sum->nbytes += more.nbytes;
    sum->nblocks += more.nblocks;
    sum->nchanged += more.nchanged;
    sum->stored_bytes += more.stored_bytes;
}

static cmd_variable *find(const cmd_contents *c, const char *name)
{
    size_t probe = 0;
    uint32_t at;
    while (crn_index_next(&c->index, crn_hash_text(name), &probe, &at))
        if (strcmp(c->vars.at[at].name, name) == 0)
            return &c->vars.at[at];
    return NULL;
}

static cmd_variable *add_variable(cmd_contents *c, const cairn_variable_info *info, bool pieces)
{
    cmd_variable v = {.first = *info, .pieces = pieces ? json_array() : NULL};
    if (crn_vec_reserve(&c->vars, 1) == CAIRN_OK && crn_strdup(info->name, &v.name) == CAIRN_OK &&
        crn_strdup(info->type, &v.type) == CAIRN_OK &&
        crn_index_add(&c->index, crn_hash_text(info->name), c->vars.n) == CAIRN_OK) {
        (void)crn_vec_push(&c->vars, v); /* for which there is room */
        return &c->vars.at[c->vars.n - 1];
    }
    free(v.name);
    free(v.type);
    json_decref(v.pieces);
    return NULL;
}

static json_t *json_of_dims(const uint64_t *n, uint32_t ndims)
{
    json_t *list = ndims > 0 ? json_array() : json_null();
    for (uint32_t i = 0; i < ndims; i++)
        cmd_json_append(&list, json_integer((json_int_t)n[i]));
    return list;
}

static json_t *json_of_totals(cmd_totals sum)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "nbytes", (json_int_t)sum.nbytes, "blocks",
                     (json_int_t)sum.nblocks, "changed", (json_int_t)sum.nchanged, "stored_bytes",
                     (json_int_t)sum.stored_bytes);
}

static json_t *json_of_piece(uint32_t rank, const cairn_variable_info *v)
{
    json_t *where = json_pack("{s:i, s:o, s:o, s:s}", "rank", (int)rank, "offset",
                              json_of_dims(v->offset, v->ndims), "count",
                              json_of_dims(v->count, v->ndims), "root", v->root);
    return cmd_json_merge(where, json_of_totals(totals_of(v)));
}

static int add_piece(cmd_contents *c, uint32_t rank, const cairn_variable_info *info, bool pieces)
{
    cmd_variable *v = find(c, info->name);
    if (!v)
        v = add_variable(c, info, pieces);
    if (!v)
        return cmd_fail("no memory for variables");
    add_up(&v->sum, totals_of(info));
    v->whole_bytes += info->whole_bytes;
    v->kept_bytes += info->kept_bytes;
    add_up(&c->sum, totals_of(info));
    if (pieces)
        cmd_json_append(&v->pieces, json_of_piece(rank, info));
    return CMD_YES;
}

static int add_rank(cairn_trail *trail, size_t run, size_t mark, uint32_t rank, bool pieces,
                    cmd_contents *c)
{
    cairn_part_info part = {.struct_bytes = sizeof part};
    int code = CMD_YES;
    if (cairn_trail_part(trail, run, mark, rank, &part) < 0)
        return cmd_fail("%s", cairn_error_text());
    c->file_bytes += part.file_bytes;
    for (size_t i = 0; i < part.nvars && code == CMD_YES; i++) {
        cairn_variable_info info = {.struct_bytes = sizeof info};
        if (cairn_trail_variable(trail, run, mark, rank, i, &info) < 0)
            code = cmd_fail("%s", cairn_error_text());
        else
            code = add_piece(c, rank, &info, pieces);
    }
    return code;
}

int cmd_contents_read(cairn_trail *trail, size_t run, size_t mark, bool pieces, cmd_contents *ret)
{
    int code = CMD_YES;
    ret->info.struct_bytes = sizeof ret->info;
    if (cairn_trail_mark(trail, run, mark, &ret->info) < 0)
        return cmd_fail("%s", cairn_error_text());
    ret->in_trail = ret->info.levels & IN_TRAIL;
    for (uint32_t rank = 0, nbad = 0; ret->in_trail && rank < ret->info.nranks; rank++) {
        int one = add_rank(trail, run, mark, rank, pieces, ret);
        code = CRN_MAX(code, one);
        if (one == CMD_YES || ++nbad < BAD_RANKS || rank + 1 == ret->info.nranks)
            continue;
        code = cmd_fail("mark %" PRIu64 ": the parts of %d ranks cannot be read, and %" PRIu32
                        " are not looked at; 'cairn verify' finds what is there",
                        ret->info.version, BAD_RANKS, ret->info.nranks - rank - 1);
        break;
    }
    crn_index_done(&ret->index);
    return code;
}

static json_t *json_of_variable(const cmd_variable *v)
{
    json_t *object =
        json_pack("{s:o, s:o, s:i, s:i, s:o, s:O}", "name", cmd_json_text(v->name), "type",
                  cmd_json_text(v->type), "item_bytes", (int)v->first.item_bytes, "block_bytes",
                  (int)v->first.block_bytes, "shape", json_of_dims(v->first.global, v->first.ndims),
                  "pieces", v->pieces);
    if (v->kept_bytes < v->whole_bytes)
        object = cmd_json_merge(object,
                                json_pack("{s:I, s:I}", "whole_bytes", (json_int_t)v->whole_bytes,
                                          "kept_bytes", (json_int_t)v->kept_bytes));
    return cmd_json_merge(object, json_of_totals(v->sum));
}

json_t *cmd_contents_json(const cmd_contents *c)
{
    json_t *mark = cmd_json_mark(&c->info);
    if (!c->in_trail)
        return mark;
    json_t *list = json_array();
    for (size_t i = 0; i < c->vars.n; i++)
        cmd_json_append(&list, json_of_variable(&c->vars.at[i]));
    mark = cmd_json_merge(mark, json_of_totals(c->sum));
    return cmd_json_merge(
        mark, json_pack("{s:I, s:o}", "file_bytes", (json_int_t)c->file_bytes, "variables", list));
}
