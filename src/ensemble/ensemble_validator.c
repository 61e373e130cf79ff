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
#include "ensemble/ensemble_validator.h"
#include "hash/hash.h"

enum { SLICE = 1 << 15, PAUSE_MS = 20, BEAT_NS = 500000000 };

static cairn_status shelf_failed(int rc)
{
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

static void beat(crn_validator *v)
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
static cairn_status cut_field(crn_validator_slices *list, size_t index, const crn_state_field *f)
{
    uint64_t inner = 1, all = 1, at[8] = {0};
    int d = f->ndims - 1;
    for (int k = 0; k < f->ndims; k++)
        all *= f->global[k];
    while (d > 0 && inner * f->global[d] <= SLICE)
        inner *= f->global[d--];
    const uint64_t step = CRN_MAX((uint64_t)SLICE / inner, (uint64_t)1);
    for (int k = 0; k < f->ndims; k++)
        if (f->global[k] == 0)
            return CAIRN_OK;
    for (;;) {
        crn_validator_slice s = {.field = index};
        for (int k = 0; k < f->ndims; k++) {
            s.offset[k] = k <= d ? at[k] : 0;
            s.count[k] = k < d ? 1 : k > d ? f->global[k] : CRN_MIN(step, f->global[k] - at[k]);
        }
        s.n = s.count[d] * inner;
        s.all = all;
        for (int k = 0; k <= d; k++)
            s.first = s.first * f->global[k] + s.offset[k];
        s.first *= inner;
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

/* The structure of what has planes is compared member by member. */
static cairn_status add_planes(crn_validator *v)
{
    for (size_t f = 0; f < v->field.n; f++)
        for (uint32_t p = 0; v->field.at[f].ndims > 1 && p < v->s->members; p++)
            CRN_TRY(crn_vec_push(&v->slice,
                                 ((crn_validator_slice){.field = f, .planes = true, .member = p})));
    return CAIRN_OK;
}

/* What a state is, from the first background that is there. */
static cairn_status learn_layout(crn_validator *v, uint32_t cycle)
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
    return add_planes(v);
}

static void widen(const float *from, double *to, size_t n)
{
    while (n-- > 0) /* from the end: both begin at the same place */
        to[n] = from[n];
}

/* A box of a field of a state, as doubles. */
static cairn_status read_box(crn_validator *v, uint32_t cycle, uint32_t state,
                             const crn_validator_slice *s, double *to)
{
    const crn_state_field *f = &v->field.at[s->field];
    cairn_field wanted = {.name = f->name, .type = f->type, .ndims = f->ndims, .data = to};
    char key[32];
    memcpy(wanted.global, f->global, sizeof wanted.global);
    memcpy(wanted.offset, s->offset, sizeof wanted.offset);
    memcpy(wanted.count, s->count, sizeof wanted.count);
    snprintf(key, sizeof key, "b%06u", state);
    int rc = cairn_state_get(v->shelf, key, cycle, &wanted, 1);
    if (rc < 0)
        return shelf_failed(rc);
    if (f->type == CAIRN_FLOAT32)
        widen((const float *)(const void *)to, to, s->n);
    beat(v);
    return CAIRN_OK;
}

static cairn_status read_slice(crn_validator *v, uint32_t cycle, const crn_validator_slice *s)
{
    for (uint32_t m = 0; m < v->nstates; m++)
        CRN_TRY(read_box(v, cycle, m, s, v->value[m]));
    return CAIRN_OK;
}

/* --- results of slices ---------------------------------------------------------------------- */

/* Validators of one study run on one kind of machine: sums are kept as they are in memory. */
typedef struct slice_head {
    char magic[8];
    uint32_t nrows, row_bytes;
    uint64_t extra_bytes;
    crn_digest digest; /* of rows and extra */
} slice_head;

static const char slice_magic[8] = "CRNSUM2";

static cairn_status slice_path(const crn_validator *v, uint32_t cycle, size_t index, char **ret)
{
    char what[24], name[48];
    snprintf(what, sizeof what, "s%05zu", index);
    return crn_study_path(v->s, crn_side_name(cycle, what, name), ret);
}

/* What is found in a slice: sums and more, or the structure of planes, [ensemble]. */
typedef struct found {
    crn_spread sums;
    crn_extra extra;
    double *structure;
} found;

static void found_done(found *x)
{
    crn_spread_done(&x->sums);
    crn_extra_done(&x->extra);
    free(x->structure);
    *x = (found){0};
}

static cairn_status found_init(const crn_validator *v, const crn_validator_slice *s, found *x)
{
    const uint32_t n = (uint32_t)v->side->coding.n;
    *x = (found){0};
    if (s->planes)
        return crn_alloc(&x->structure, n);
    cairn_status rc = crn_spread_init(&x->sums, n, v->s->members, v->weight);
    if (rc == CAIRN_OK)
        rc = crn_extra_init(&x->extra, n, v->s->members, crn_sample_count(s->all, s->first, s->n),
                            v->function.n);
    if (rc < 0)
        found_done(x);
    return rc;
}

/* The two stretches that a slice's file has behind its head. */
static void parts_of(const crn_validator *v, const found *x, void *part[2], size_t nbytes[2])
{
    part[0] = x->structure ? (void *)x->structure : (void *)x->sums.row;
    nbytes[0] =
        x->structure ? v->side->coding.n * sizeof *x->structure : v->nstates * sizeof *x->sums.row;
    part[1] = x->extra.data;
    nbytes[1] = x->extra.nbytes;
}

static crn_digest digest_of(void *const part[2], const size_t nbytes[2])
{
    const crn_digest both[] = {crn_digest_of(part[0], nbytes[0]),
                               crn_digest_of(part[1], nbytes[1])};
    return crn_digest_of(both, sizeof both);
}

static cairn_status save_slice(const crn_validator *v, uint32_t cycle, size_t index, const found *x)
{
    void *part[2];
    size_t nbytes[2];
    crn_buf b = {0};
    char *path;
    parts_of(v, x, part, nbytes);
    slice_head head = {.nrows = v->nstates,
                       .row_bytes = (uint32_t)(nbytes[0] / v->nstates),
                       .extra_bytes = nbytes[1],
                       .digest = digest_of(part, nbytes)};
    memcpy(head.magic, slice_magic, sizeof head.magic);
    crn_put_bytes(&b, &head, sizeof head);
    crn_put_bytes(&b, part[0], nbytes[0]);
    crn_put_bytes(&b, part[1], nbytes[1]);
    cairn_status rc = slice_path(v, cycle, index, &path);
    if (rc == CAIRN_OK) {
        rc = crn_buf_status(&b);
        if (rc == CAIRN_OK)
            rc = crn_output_write(path, b.at, b.n);
        free(path);
    }
    crn_buf_done(&b);
    return rc;
}

/* CAIRN_NOTHING: it is not there, or damaged, and is to be computed. */
static cairn_status load_slice(const crn_validator *v, uint32_t cycle, size_t index, found *x)
{
    void *part[2];
    size_t nbytes[2];
    slice_head head;
    char *path;
    parts_of(v, x, part, nbytes);
    CRN_TRY(slice_path(v, cycle, index, &path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return CAIRN_NOTHING;
    const bool whole = read(fd, &head, sizeof head) == (ssize_t)sizeof head &&
                       memcmp(head.magic, slice_magic, sizeof head.magic) == 0 &&
                       head.nrows == v->nstates && head.extra_bytes == nbytes[1] &&
                       head.row_bytes == (uint32_t)(nbytes[0] / v->nstates) &&
                       read(fd, part[0], nbytes[0]) == (ssize_t)nbytes[0] &&
                       read(fd, part[1], nbytes[1]) == (ssize_t)nbytes[1];
    close(fd);
    if (!whole)
        return CAIRN_NOTHING;
    const crn_digest digest = digest_of(part, nbytes);
    return memcmp(&digest, &head.digest, sizeof digest) == 0 ? CAIRN_OK : CAIRN_NOTHING;
}

static bool slice_is_there(const crn_validator *v, uint32_t cycle, size_t index)
{
    char *path;
    if (slice_path(v, cycle, index, &path) < 0)
        return false;
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static void beat_of(void *arg)
{
    beat(arg);
}

static cairn_status call_functions(crn_validator *v, uint32_t cycle, const crn_validator_slice *s,
                                   crn_extra *x)
{
    const crn_state_field *f = &v->field.at[s->field];
    crn_function_case c = {.stretch = {.variable = f->name,
                                       .cycle = cycle,
                                       .ndims = f->ndims,
                                       .first = s->first,
                                       .n = s->n},
                           .nensembles = (uint32_t)v->side->coding.n,
                           .nmembers = v->s->members,
                           .setting = v->setting,
                           .value = (const double *const *)v->value,
                           .beat = beat_of,
                           .arg = v};
    memcpy(c.stretch.global, f->global, sizeof f->global);
    return v->function.n > 0 ? crn_functions_call(&v->function, &c, x->value, x->why) : CAIRN_OK;
}

static cairn_status compute_sums(crn_validator *v, uint32_t cycle, const crn_validator_slice *s,
                                 found *x)
{
    const double *const *value = (const double *const *)v->value;
    CRN_TRY(read_slice(v, cycle, s));
    CRN_TRY(crn_spread_add(&x->sums, value, s->n));
    crn_extra_add(&x->extra, value, s->all, s->first, s->n);
    return call_functions(v, cycle, s, &x->extra);
}

/* The least structural similarity of the planes of a member, under each setting. plane: two. */
static cairn_status compare_planes(crn_validator *v, uint32_t cycle, const crn_validator_slice *s,
                                   double *plane, double *ret)
{
    const crn_state_field *f = &v->field.at[s->field];
    const uint64_t rows = f->global[f->ndims - 2], columns = f->global[f->ndims - 1];
    crn_validator_slice box = {.field = s->field, .n = rows * columns};
    uint64_t nplanes = 1;
    for (int d = 0; d < f->ndims; d++)
        box.count[d] = d < f->ndims - 2 ? 1 : f->global[d];
    for (int d = 0; d < f->ndims - 2; d++)
        nplanes *= f->global[d];
    for (uint32_t e = 0; e < v->side->coding.n; e++)
        ret[e] = 1;
    for (uint64_t k = 0; k < nplanes; k++) {
        uint64_t rest = k;
        for (int d = f->ndims - 3; d >= 0; rest /= f->global[d--])
            box.offset[d] = rest % f->global[d];
        CRN_TRY(read_box(v, cycle, s->member, &box, plane));
        for (uint32_t e = 1; e < v->side->coding.n; e++) {
            double one;
            CRN_TRY(read_box(v, cycle, e * v->s->members + s->member, &box, plane + box.n));
            CRN_TRY(crn_ssim(plane, plane + box.n, rows, columns, &one));
            ret[e] = fmin(ret[e], one);
        }
    }
    return CAIRN_OK;
}

static cairn_status compute_planes(crn_validator *v, uint32_t cycle, const crn_validator_slice *s,
                                   found *x)
{
    const crn_state_field *f = &v->field.at[s->field];
    double *plane;
    CRN_TRY(crn_alloc(&plane, 2 * f->global[f->ndims - 2] * f->global[f->ndims - 1]));
    cairn_status rc = compare_planes(v, cycle, s, plane, x->structure);
    free(plane);
    return rc;
}

static cairn_status compute_slice(crn_validator *v, uint32_t cycle, size_t index)
{
    found x;
    const crn_validator_slice *s = &v->slice.at[index];
    CRN_TRY(found_init(v, s, &x));
    cairn_status rc = (s->planes ? compute_planes : compute_sums)(v, cycle, s, &x);
    if (rc == CAIRN_OK)
        rc = save_slice(v, cycle, index, &x);
    found_done(&x);
    return rc;
}

/* --- the queue ------------------------------------------------------------------------------ */

static cairn_status open_claims(const crn_validator *v, uint32_t cycle, int *ret)
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

static cairn_status read_numbers(const crn_validator *v, uint32_t cycle, const char *what, size_t n,
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

static void wholes_free(const crn_validator *v, crn_validated *all)
{
    for (size_t f = 0; all && f < v->field.n; f++) {
        crn_spread_done(&all[f].sums);
        crn_extra_done(&all[f].extra);
        free(all[f].structure);
        free(all[f].why);
        while (all[f].value.n > 0)
            free(all[f].value.at[--all[f].value.n]);
        crn_vec_done(&all[f].value);
    }
    free(all);
}

static cairn_status wholes_make(const crn_validator *v, crn_validated **ret)
{
    const uint32_t n = (uint32_t)v->side->coding.n;
    crn_validated *all;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&all, v->field.n));
    for (size_t f = 0; rc == CAIRN_OK && f < v->field.n; f++) {
        uint64_t elements = 1;
        for (int d = 0; d < v->field.at[f].ndims; d++)
            elements *= v->field.at[f].global[d];
        rc = crn_spread_init(&all[f].sums, n, v->s->members, v->weight);
        if (rc == CAIRN_OK)
            rc = crn_extra_init(&all[f].extra, n, v->s->members,
                                crn_sample_count(elements, 0, elements), 0);
        if (rc == CAIRN_OK && v->field.at[f].ndims > 1)
            rc = crn_alloc(&all[f].structure, v->nstates);
        if (rc == CAIRN_OK)
            rc = crn_alloc(&all[f].why, CRN_MAX(v->function.n, 1u));
    }
    if (rc < 0)
        wholes_free(v, all);
    else
        *ret = all;
    return rc;
}

/* --- the end of a cycle --------------------------------------------------------------------- */

/* Take what a slice says; its functions' values are the whole's from now on. */
static cairn_status take_slice(const crn_validator *v, const crn_validator_slice *s, found *x,
                               crn_validated *w)
{
    if (s->planes) {
        for (uint32_t e = 0; e < v->side->coding.n; e++)
            w->structure[e * v->s->members + s->member] = x->structure[e];
        return CAIRN_OK;
    }
    crn_spread_merge(&w->sums, &x->sums);
    crn_extra_merge(&w->extra, &x->extra, &w->nsampled);
    for (uint32_t q = 0; q < v->function.n; q++)
        w->why[q] = w->why[q] != CRN_FUNCTION_WELL ? w->why[q] : x->extra.why[q];
    if (v->function.n == 0)
        return CAIRN_OK;
    double *copy;
    const size_t n = (size_t)v->function.n * v->nstates;
    CRN_TRY(crn_alloc(&copy, n));
    memcpy(copy, x->extra.value, n * sizeof *copy);
    cairn_status rc = crn_vec_push(&w->value, copy);
    if (rc < 0)
        free(copy);
    return rc;
}

static cairn_status merge_slices(crn_validator *v, uint32_t cycle, crn_validated *all)
{
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < v->slice.n; i++) {
        const crn_validator_slice *s = &v->slice.at[i];
        found x;
        CRN_TRY(found_init(v, s, &x));
        rc = load_slice(v, cycle, i, &x);
        if (rc == CAIRN_NOTHING && (rc = compute_slice(v, cycle, i)) == CAIRN_OK)
            rc = load_slice(v, cycle, i, &x);
        if (rc == CAIRN_OK)
            rc = take_slice(v, s, &x, &all[s->field]);
        found_done(&x);
        beat(v);
    }
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_EIO, "a slice of cycle %u cannot be kept in '%s'", cycle,
                v->s->dir);
    return rc;
}

static void drop_slices(const crn_validator *v, uint32_t cycle)
{
    char *path;
    for (size_t i = 0; i < v->slice.n; i++)
        if (slice_path(v, cycle, i, &path) == CAIRN_OK) {
            (void)unlink(path);
            free(path);
        }
}

/* All slices are there: the statistics of the cycle. */
static cairn_status conclude(crn_validator *v, uint32_t cycle)
{
    crn_validated *all = NULL;
    double *rate;
    CRN_TRY(crn_alloc(&rate, v->nstates * v->field.n));
    cairn_status rc = read_numbers(v, cycle, "rates", v->nstates * v->field.n, rate);
    if (rc == CAIRN_OK)
        rc = wholes_make(v, &all);
    if (rc == CAIRN_OK)
        rc = merge_slices(v, cycle, all);
    if (rc == CAIRN_OK)
        rc = crn_validator_write(v, cycle, all, rate);
    if (rc == CAIRN_OK)
        drop_slices(v, cycle);
    wholes_free(v, all);
    free(rate);
    return rc;
}

/* Do what is left of a cycle; *ret_left: others are at it. */
static cairn_status work_on(crn_validator *v, uint32_t cycle, bool *ret_left)
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

static cairn_status loop(crn_validator *v)
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

static cairn_status start(crn_validator *v)
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
    CRN_TRY(crn_functions_open(v->s, &v->function));
    CRN_TRY(crn_alloc(&v->setting, v->side->coding.n));
    for (size_t e = 0; e < v->side->coding.n; e++)
        v->setting[e] = v->side->coding.at[e].name;
    CRN_TRY(crn_alloc(&v->weight, v->s->members));
    CRN_TRY(crn_alloc(&v->value, v->nstates));
    for (uint32_t m = 0; m < v->nstates; m++)
        CRN_TRY(crn_alloc(&v->value[m], SLICE));
    return CAIRN_OK;
}

cairn_status crn_validator_run(crn_study *s)
{
    crn_validator v = {
        .s = s, .side = s->side, .nstates = (uint32_t)s->side->coding.n * s->members};
    cairn_status rc = start(&v);
    if (rc == CAIRN_OK)
        rc = loop(&v);
    for (uint32_t m = 0; v.value && m < v.nstates; m++)
        free(v.value[m]);
    free(v.value);
    free(v.weight);
    free(v.setting);
    crn_functions_done(&v.function);
    crn_vec_done(&v.field);
    crn_vec_done(&v.slice);
    crn_link_free(v.launcher);
    cairn_shelf_close(v.shelf);
    return rc;
}
