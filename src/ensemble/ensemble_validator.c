/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A validator: a job that reads the backgrounds of a cycle from the shelf, slice by slice of all
 * members of all ensembles, and leaves the sums of a slice in a file. Whoever finds all slices of a
 * cycle there merges them by index, and writes the statistics. Slices follow from the shape of a
 * variable alone, so that any number of validators, killed at any time, finds the same bits.
 *
 * DESIGN of the queue: a slice is taken by locking its byte of a file; the lock ends with the
 * process. Without working locks a slice would be computed twice, with the same result. A result
 * counts when its file is there, which is renamed into place.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include <cairn/state.h>

#include "ensemble/ensemble_jobs.h"
#include "ensemble/ensemble_side.h"
#include "hash/hash.h"

enum { SLICE = 1 << 15, PAUSE_MS = 20, BEAT_NS = 500000000 };

/* A box of a variable of at most SLICE elements, in one dimension a range. */
typedef struct slice {
    size_t field;
    uint64_t offset[8], count[8];
    size_t n;
} slice;

typedef CRN_VEC(slice) slices;

typedef struct validator {
    crn_study *s;
    const crn_side *side;
    cairn_shelf *shelf;
    crn_link *launcher;
    uint32_t number;
    crn_state_fields field;
    slices slice;
    double *weight, **value; /* of members; of states */
    uint32_t nstates;
    uint64_t beat_ns;
} validator;

static cairn_status shelf_failed(int rc)
{
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

static void beat(validator *v)
{
    if (crn_now_ns() < v->beat_ns + BEAT_NS)
        return;
    crn_wire w = {.kind = CRN_WIRE_BEAT, .study = v->s->id, .runner = v->number};
    v->beat_ns = crn_now_ns();
    (void)crn_link_send(v->launcher, NULL, &w, NULL, 0);
}

/* --- slices --------------------------------------------------------------------------------- */

static int note_field(void *arg, const cairn_field *f)
{
    crn_state_fields *list = arg;
    crn_state_field mine = {.type = f->type, .ndims = f->ndims};
    snprintf(mine.name, sizeof mine.name, "%s", f->name);
    memcpy(mine.global, f->global, sizeof mine.global);
    memcpy(mine.count, f->count, sizeof mine.count);
    if (mine.ndims == 0) {
        mine.ndims = 1;
        mine.global[0] = f->count[0];
    }
    return crn_vec_push(list, mine) < 0;
}

/* Step over the outermost dimensions by one, over the next by as much as fits, the rest whole. */
static cairn_status cut_field(slices *list, size_t index, const crn_state_field *f)
{
    uint64_t inner = 1, at[8] = {0};
    int d = f->ndims - 1;
    while (d > 0 && inner * f->global[d] <= SLICE)
        inner *= f->global[d--];
    const uint64_t step = CRN_MAX((uint64_t)SLICE / inner, (uint64_t)1);
    for (int k = 0; k < f->ndims; k++)
        if (f->global[k] == 0)
            return CAIRN_OK;
    for (;;) {
        slice s = {.field = index};
        for (int k = 0; k < f->ndims; k++) {
            s.offset[k] = k <= d ? at[k] : 0;
            s.count[k] = k < d ? 1 : k > d ? f->global[k] : CRN_MIN(step, f->global[k] - at[k]);
        }
        s.n = s.count[d] * inner;
        CRN_TRY(crn_vec_push(list, s));
        int k = d;
        at[d] += step;
        while (at[k] >= f->global[k]) {
            if (k == 0)
                return CAIRN_OK;
            at[k--] = 0;
            at[k]++;
        }
    }
}

/* What a state is, from the first background that is there. */
static cairn_status learn_layout(validator *v, uint32_t cycle)
{
    if (v->field.n > 0)
        return CAIRN_OK;
    crn_state_fields all = {0};
    cairn_state_info info = {.struct_bytes = sizeof info};
    int rc = cairn_state_describe(v->shelf, "b000000", cycle, &info, note_field, &all);
    if (rc < 0)
        return shelf_failed(rc);
    cairn_status done = CAIRN_OK;
    for (size_t i = 0; done == CAIRN_OK && i < all.n; i++)
        if (crn_side_takes(v->side, &all.at[i])) {
            done = crn_vec_push(&v->field, all.at[i]);
            if (done == CAIRN_OK)
                done = cut_field(&v->slice, v->field.n - 1, &all.at[i]);
        }
    crn_vec_done(&all);
    CRN_TRY(done);
    CRN_FAIL_IF(v->slice.n == 0, CAIRN_EINVAL,
                "the model has no variable of floating-point values that could be compared");
    return CAIRN_OK;
}

static void widen(const float *from, double *to, size_t n)
{
    while (n-- > 0) /* from the end: both begin at the same place */
        to[n] = from[n];
}

static cairn_status read_slice(validator *v, uint32_t cycle, const slice *s)
{
    const crn_state_field *f = &v->field.at[s->field];
    cairn_field wanted = {.name = f->name, .type = f->type, .ndims = f->ndims};
    memcpy(wanted.global, f->global, sizeof wanted.global);
    memcpy(wanted.offset, s->offset, sizeof wanted.offset);
    memcpy(wanted.count, s->count, sizeof wanted.count);
    for (uint32_t m = 0; m < v->nstates; m++) {
        char key[32];
        snprintf(key, sizeof key, "b%06u", m);
        wanted.data = v->value[m];
        int rc = cairn_state_get(v->shelf, key, cycle, &wanted, 1);
        if (rc < 0)
            return shelf_failed(rc);
        if (f->type == CAIRN_FLOAT32)
            widen((const float *)v->value[m], v->value[m], s->n);
        beat(v);
    }
    return CAIRN_OK;
}

/* --- results of slices ---------------------------------------------------------------------- */

/* Validators of one study run on one kind of machine: sums are kept as they are in memory. */
typedef struct slice_head {
    char magic[8];
    uint32_t nrows, row_bytes;
    crn_digest digest; /* of the rows */
} slice_head;

static const char slice_magic[8] = "CRNSUMS";

static cairn_status slice_path(const validator *v, uint32_t cycle, size_t index, char **ret)
{
    char what[24], name[48];
    snprintf(what, sizeof what, "s%05zu", index);
    return crn_study_path(v->s, crn_side_name(cycle, what, name), ret);
}

static cairn_status save_slice(const validator *v, uint32_t cycle, size_t index,
                               const crn_spread *sums)
{
    const size_t nbytes = v->nstates * sizeof *sums->row;
    slice_head head = {.nrows = v->nstates, .row_bytes = sizeof *sums->row};
    unsigned char *data;
    char *path;
    memcpy(head.magic, slice_magic, sizeof head.magic);
    head.digest = crn_digest_of(sums->row, nbytes);
    CRN_TRY(slice_path(v, cycle, index, &path));
    cairn_status rc = crn_alloc(&data, sizeof head + nbytes);
    if (rc == CAIRN_OK) {
        memcpy(data, &head, sizeof head);
        memcpy(data + sizeof head, sums->row, nbytes);
        rc = crn_output_write(path, data, sizeof head + nbytes);
        free(data);
    }
    free(path);
    return rc;
}

/* CAIRN_NOTHING: it is not there, or damaged, and is to be computed. */
static cairn_status load_slice(const validator *v, uint32_t cycle, size_t index, crn_spread *sums)
{
    const size_t nbytes = v->nstates * sizeof *sums->row;
    slice_head head;
    char *path;
    CRN_TRY(slice_path(v, cycle, index, &path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return CAIRN_NOTHING;
    const bool whole = read(fd, &head, sizeof head) == (ssize_t)sizeof head &&
                       memcmp(head.magic, slice_magic, sizeof head.magic) == 0 &&
                       head.nrows == v->nstates && head.row_bytes == sizeof *sums->row &&
                       read(fd, sums->row, nbytes) == (ssize_t)nbytes;
    close(fd);
    if (!whole)
        return CAIRN_NOTHING;
    const crn_digest digest = crn_digest_of(sums->row, nbytes);
    return memcmp(&digest, &head.digest, sizeof digest) == 0 ? CAIRN_OK : CAIRN_NOTHING;
}

static bool slice_is_there(const validator *v, uint32_t cycle, size_t index)
{
    char *path;
    if (slice_path(v, cycle, index, &path) < 0)
        return false;
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static cairn_status compute_slice(validator *v, uint32_t cycle, size_t index)
{
    crn_spread sums;
    const slice *s = &v->slice.at[index];
    CRN_TRY(read_slice(v, cycle, s));
    CRN_TRY(crn_spread_init(&sums, (uint32_t)v->side->coding.n, v->s->members, v->weight));
    cairn_status rc = crn_spread_add(&sums, (const double *const *)v->value, s->n);
    if (rc == CAIRN_OK)
        rc = save_slice(v, cycle, index, &sums);
    crn_spread_done(&sums);
    return rc;
}

/* --- the queue ------------------------------------------------------------------------------ */

static cairn_status open_claims(const validator *v, uint32_t cycle, int *ret)
{
    char name[48], *path;
    CRN_TRY(crn_study_path(v->s, crn_side_name(cycle, "claims", name), &path));
    *ret = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cairn_status rc = *ret < 0 ? crn_fail_sys(errno, "cannot open '%s'", path) : CAIRN_OK;
    free(path);
    return rc;
}

static bool claim(int fd, size_t index, bool take)
{
    struct flock l = {.l_type = take ? F_WRLCK : F_UNLCK,
                      .l_whence = SEEK_SET,
                      .l_start = (off_t)index,
                      .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &l) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* --- a cycle -------------------------------------------------------------------------------- */

static cairn_status read_numbers(const validator *v, uint32_t cycle, const char *what, size_t n,
                                 double *ret)
{
    char name[48], *text, *at;
    size_t i = 0;
    CRN_TRY(crn_study_read(v->s->dir, crn_side_name(cycle, what, name), &text));
    at = text;
    for (; i < n && *at; i++) {
        char *end;
        ret[i] = strtod(at, &end);
        if (end == at)
            break;
        at = end;
    }
    free(text);
    CRN_FAIL_IF(i < n, CAIRN_ECORRUPT, "'%s/%s' has %zu numbers, not %zu", v->s->dir, name, i, n);
    return CAIRN_OK;
}

static void write_statistics(const validator *v, uint32_t cycle, const crn_spread *all,
                             const double *rate, crn_buf *b)
{
    const size_t nfields = v->field.n;
    for (size_t f = 0; f < nfields; f++)
        for (uint32_t m = 0; m < v->nstates; m++) {
            const uint32_t e = m / v->s->members, p = m % v->s->members;
            crn_spread_stats t;
            crn_spread_stats_of(&all[f], e, p, &t);
            crn_put_text(
                b,
                "%u,%s,%u,%s,%u,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,"
                "%.17g,%.17g,%.17g,%.17g,%.17g,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                cycle, v->field.at[f].name, e, v->side->coding.at[e].name, p, rate[m * nfields + f],
                t.rmsz0, t.rmsz, t.delta, t.rmse, t.psnr, t.decorrelation, t.error, t.nrmse, t.npme,
                t.mean, t.deviation, t.min, t.max, t.share, t.n, t.nbroken, t.noutside);
        }
}

static cairn_status merge_slices(validator *v, uint32_t cycle, crn_spread *all)
{
    crn_spread part;
    CRN_TRY(crn_spread_init(&part, (uint32_t)v->side->coding.n, v->s->members, v->weight));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < v->slice.n; i++) {
        rc = load_slice(v, cycle, i, &part);
        if (rc == CAIRN_NOTHING && (rc = compute_slice(v, cycle, i)) == CAIRN_OK)
            rc = load_slice(v, cycle, i, &part);
        if (rc == CAIRN_OK)
            crn_spread_merge(&all[v->slice.at[i].field], &part);
        beat(v);
    }
    crn_spread_done(&part);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_EIO, "a slice of cycle %u cannot be kept in '%s'", cycle,
                v->s->dir);
    return rc;
}

static void drop_slices(const validator *v, uint32_t cycle)
{
    char *path;
    for (size_t i = 0; i < v->slice.n; i++)
        if (slice_path(v, cycle, i, &path) == CAIRN_OK) {
            (void)unlink(path);
            free(path);
        }
}

/* All slices are there: the statistics of the cycle. */
static cairn_status conclude(validator *v, uint32_t cycle)
{
    crn_spread *all = NULL;
    crn_buf b = {0};
    char name[48];
    double *rate;
    CRN_TRY(crn_alloc(&rate, v->nstates * v->field.n));
    cairn_status rc = read_numbers(v, cycle, "rates", v->nstates * v->field.n, rate);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&all, v->field.n);
    for (size_t f = 0; rc == CAIRN_OK && f < v->field.n; f++)
        rc = crn_spread_init(&all[f], (uint32_t)v->side->coding.n, v->s->members, v->weight);
    if (rc == CAIRN_OK)
        rc = merge_slices(v, cycle, all);
    if (rc == CAIRN_OK)
        write_statistics(v, cycle, all, rate, &b);
    if (rc == CAIRN_OK && (rc = crn_buf_status(&b)) == CAIRN_OK)
        rc = crn_study_write(v->s, crn_side_name(cycle, "csv", name), crn_buf_text(&b));
    if (rc == CAIRN_OK)
        drop_slices(v, cycle);
    for (size_t f = 0; all && f < v->field.n; f++)
        crn_spread_done(&all[f]);
    free(all);
    free(rate);
    crn_buf_done(&b);
    return rc;
}

/* Do what is left of a cycle; *ret_left: others are at it. */
static cairn_status work_on(validator *v, uint32_t cycle, bool *ret_left)
{
    int fd;
    bool left = false;
    CRN_TRY(learn_layout(v, cycle));
    CRN_TRY(read_numbers(v, cycle, "ready", v->s->members, v->weight));
    CRN_TRY(open_claims(v, cycle, &fd));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < v->slice.n; i++) {
        if (slice_is_there(v, cycle, i))
            continue;
        if (!claim(fd, i, true)) {
            left = true;
            continue;
        }
        if (!slice_is_there(v, cycle, i) && !crn_side_has(v->s, cycle, "csv"))
            rc = compute_slice(v, cycle, i);
        (void)claim(fd, i, false);
    }
    if (rc == CAIRN_OK && !left && claim(fd, v->slice.n, true)) {
        if (!crn_side_has(v->s, cycle, "csv"))
            rc = conclude(v, cycle);
        (void)claim(fd, v->slice.n, false);
    }
    close(fd);
    *ret_left = left;
    return rc;
}

/* --- the job -------------------------------------------------------------------------------- */

static void pause_ms(long ms)
{
    const struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

static cairn_status loop(validator *v)
{
    uint32_t cycle = 1;
    while (cycle <= v->s->cycles) {
        bool left = false;
        beat(v);
        if (crn_side_has(v->s, cycle, "csv")) {
            cycle++;
            continue;
        }
        if (crn_side_has(v->s, cycle, "ready"))
            CRN_TRY(work_on(v, cycle, &left));
        if (left && crn_side_has(v->s, cycle + 1, "ready"))
            CRN_TRY(work_on(v, cycle + 1, &left));
        if (!crn_side_has(v->s, cycle, "csv"))
            pause_ms(PAUSE_MS);
    }
    return CAIRN_OK;
}

static cairn_status start(validator *v)
{
    const char *job = getenv("CAIRN_ENSEMBLE_JOB");
    char *path, *address;
    CRN_FAIL_IF(!job || job[0] != 'v', CAIRN_EINVAL,
                "a validator is started by 'cairn ensemble validate', not by hand");
    v->number = (uint32_t)strtoul(job + 1, NULL, 10);
    CRN_TRY(crn_study_path(v->s, "shelf", &path));
    int rc = cairn_shelf_open(path, NULL, &v->shelf);
    free(path);
    if (rc < 0)
        return shelf_failed(rc);
    CRN_TRY(crn_study_read(v->s->dir, "launcher", &address));
    address[strcspn(address, "\n")] = 0;
    cairn_status connected = crn_link_connect(&v->s->keys, address, job, &v->launcher);
    free(address);
    CRN_TRY(connected);
    crn_wire w = {.kind = CRN_WIRE_HELLO, .study = v->s->id, .runner = v->number};
    (void)crn_link_send(v->launcher, NULL, &w, NULL, 0);
    CRN_TRY(crn_alloc(&v->weight, v->s->members));
    CRN_TRY(crn_alloc(&v->value, v->nstates));
    for (uint32_t m = 0; m < v->nstates; m++)
        CRN_TRY(crn_alloc(&v->value[m], SLICE));
    return CAIRN_OK;
}

cairn_status crn_validator_run(crn_study *s)
{
    validator v = {.s = s, .side = s->side, .nstates = (uint32_t)s->side->coding.n * s->members};
    cairn_status rc = start(&v);
    if (rc == CAIRN_OK)
        rc = loop(&v);
    for (uint32_t m = 0; v.value && m < v.nstates; m++)
        free(v.value[m]);
    free(v.value);
    free(v.weight);
    crn_vec_done(&v.field);
    crn_vec_done(&v.slice);
    crn_link_free(v.launcher);
    cairn_shelf_close(v.shelf);
    return rc;
}
