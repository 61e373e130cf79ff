/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks whose blocks lie outside of the part, in a file that other tools can read: what that is
 * called, how blocks are found in it, and when it goes. The part keeps tables and digests as ever;
 * so what someone has changed in such a file is noticed like any other damage.
 */
#include "store/store_trail.h"

#include <fcntl.h>
#include <unistd.h>

static const char suffix[] = ".h5";

char *crn_outside_dir(uint64_t version, char buf[CRN_OUTSIDE_NAME])
{
    snprintf(buf, CRN_OUTSIDE_NAME, "mark-%" PRIu64, version);
    return buf;
}

char *crn_outside_name(uint64_t version, uint32_t rank, char buf[CRN_OUTSIDE_NAME])
{
    if (rank == CRN_ALL_RANKS)
        snprintf(buf, CRN_OUTSIDE_NAME, "mark-%" PRIu64 "%s", version, suffix);
    else
        snprintf(buf, CRN_OUTSIDE_NAME, "mark-%" PRIu64 "/rank-%06u%s", version, rank, suffix);
    return buf;
}

/* --- places ------------------------------------------------------------------------------- */

uint64_t crn_var_place(const crn_var_spec *s, uint64_t pos, uint64_t *ret_run)
{
    *ret_run = 0;
    if (s->nbytes == 0)
        return 0;
    const crn_box piece = crn_box_of(s->ndims, s->offset, s->count);
    const crn_box whole = crn_box_of(s->ndims, NULL, s->global);
    const crn_stretches row = crn_stretches_of(&piece, &piece, &whole);
    const uint64_t run = row.n * s->item;
    uint64_t from, to;
    crn_stretches_at(&row, pos / run, &from, &to);
    *ret_run = run - pos % run;
    return to * s->item + pos % run;
}

/* --- reading ------------------------------------------------------------------------------ */

static cairn_status read_bytes(crn_file *file, const crn_var *v, uint64_t pos, uint64_t nbytes,
                               unsigned char *dst)
{
    const bool rows = v->table->codec & CRN_OUTSIDE_ROWS;
    while (nbytes > 0) {
        uint64_t run = nbytes, off = pos;
        if (rows)
            off = crn_var_place(&v->spec, pos, &run);
        run = CRN_MIN(run, nbytes);
        CRN_TRY(crn_file_read(file, dst, run, v->table->off + off));
        pos += run;
        dst += run;
        nbytes -= run;
    }
    return CAIRN_OK;
}

/* Blocks [first, first + n), of which those that are bad are noted, or end it. */
static cairn_status read_blocks(crn_file *file, const crn_var *v, uint64_t first, uint64_t n,
                                unsigned char *dst, crn_bad_blocks *bad)
{
    const uint64_t pos = first * v->spec.block;
    const uint64_t nbytes = CRN_MIN(n * v->spec.block, v->spec.nbytes - pos);
    cairn_status rc = file ? read_bytes(file, v, pos, nbytes, dst) : CAIRN_ENOTFOUND;
    if (rc < 0 && !bad)
        return rc;
    if (rc < 0 && file && n > 1) { /* one bad sector costs one block */
        for (uint64_t i = 0; i < n; i++)
            CRN_TRY(read_blocks(file, v, first + i, 1, dst + i * v->spec.block, bad));
        return CAIRN_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        crn_digest d = {{0}};
        if (rc == CAIRN_OK)
            d = crn_digest_of(dst + i * v->spec.block, crn_var_block_bytes(v, first + i));
        if (rc == CAIRN_OK && crn_digest_equal(&d, &v->table[first + i].digest))
            continue;
        CRN_FAIL_IF(!bad, CAIRN_ECORRUPT, "block %" PRIu64 " is damaged or was changed", first + i);
        CRN_TRY(crn_vec_push(bad, first + i));
    }
    return CAIRN_OK;
}

cairn_status crn_outside_read(crn_part *part, const crn_mark *m, const crn_var *v, uint64_t first,
                              uint64_t n, unsigned char *dst, crn_bad_blocks *bad)
{
    enum { PIECE_BYTES = 8 << 20 };
    char name[CRN_OUTSIDE_NAME], path[CRN_OUTSIDE_NAME + 4];
    crn_file *file = NULL;
    const bool own = v->table->codec & CRN_OUTSIDE_OWN;
    snprintf(path, sizeof path, "../%s",
             crn_outside_name(m->version, own ? part->super.id.rank : CRN_ALL_RANKS, name));
    cairn_status rc = crn_file_open(part->dir, path, CRN_READ, &file);
    if (bad && (rc == CAIRN_ENOTFOUND || rc == CAIRN_EIO))
        rc = CAIRN_OK; /* then all are bad */
    const uint64_t step = CRN_MAX((uint64_t)PIECE_BYTES / v->spec.block, 1);
    for (uint64_t i = 0; i < n && rc == CAIRN_OK; i += step)
        rc = read_blocks(file, v, first + i, CRN_MIN(step, n - i), dst + i * v->spec.block, bad);
    crn_file_close(file);
    if (rc < 0)
        crn_err_prefix("'%s', variable '%s': ", name, v->spec.name);
    return rc;
}

/* --- sweeping ----------------------------------------------------------------------------- */

/* What a name in the directory of a series is: of which mark, and is it the directory of that? A
 * temporary file is of none, and so of one that is not retained. */
static bool parse_name(const char *name, uint64_t *ret_version, bool *ret_dir)
{
    char digits[CRN_OUTSIDE_NAME];
    const bool temporary = strncmp(name, ".mark-", 6) == 0;
    if (!temporary && strncmp(name, "mark-", 5) != 0)
        return false;
    const char *number = name + (temporary ? 6 : 5);
    const size_t n = strspn(number, "0123456789");
    *ret_dir = number[n] == 0;
    if (n == 0 || n >= sizeof digits || (!*ret_dir && number[n] != '.'))
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)n, number);
    uint64_t version;
    if (crn_parse_count(digits, &version) < 0)
        return false;
    *ret_version = temporary ? CRN_NO_VERSION : version;
    return true;
}

static bool is_retained(const crn_part *part, uint64_t version)
{
    for (size_t i = 0; i < part->cat.n; i++)
        if (part->cat.at[i].version == version)
            return true;
    return false;
}

/* Remove what this rank answers for of one name; it may be gone already. */
static cairn_status sweep_name(int dir, const crn_part *part, const char *name, uint64_t *nfiles)
{
    char path[CRN_OUTSIDE_NAME];
    const uint32_t rank = part->super.id.rank;
    uint64_t version;
    bool is_dir;
    if (!parse_name(name, &version, &is_dir) || is_retained(part, version))
        return CAIRN_OK;
    if (!is_dir && rank != 0)
        return CAIRN_OK;
    cairn_status rc = crn_unlink(dir, is_dir ? crn_outside_name(version, rank, path) : name);
    *nfiles += rc == CAIRN_OK;
    if (is_dir && unlinkat(dir, name, AT_REMOVEDIR) == 0) /* whoever is the last finds it empty */
        rc = CAIRN_OK;
    return rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
}

cairn_status crn_run_sweep(crn_run *run, const crn_part *part, uint64_t *nfiles)
{
    char **names;
    size_t n;
    uint64_t ignored = 0;
    int dir;
    CRN_TRY(crn_run_series_dir(run, part->super.id.series, false, &dir));
    cairn_status rc = crn_dir_list(dir, &names, &n);
    if (rc == CAIRN_OK) {
        for (size_t i = 0; i < n; i++) {
            if (rc == CAIRN_OK)
                rc = sweep_name(dir, part, names[i], nfiles ? nfiles : &ignored);
            free(names[i]);
        }
        free(names);
    }
    close(dir);
    return rc;
}
