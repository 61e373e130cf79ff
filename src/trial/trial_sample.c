/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Samples of a variable: stretches of the pieces of all ranks, each with the same probability.
 */
#include "trial/trial.h"

#include <inttypes.h>
#include <math.h>

#include "store/store.h"

enum { STRETCH = 256 << 10, SAMPLE = 8 << 20 };

static const crn_part_options reading = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};

typedef struct taking {
    const cairn_sample_options *of;
    crn_trail *trail;
    crn_run *run;
    crn_manifest_mark mark;
    uint64_t stretch;   /* bytes of one */
    uint64_t all, want; /* stretches of the variable, and those still to be taken, */
    uint64_t left;      /* of so many that are left */
    crn_rng rng;
    cairn_sample *s;
} taking;

/* --- finding the variable ------------------------------------------------------------------- */

static cairn_status find_mark(taking *t)
{
    const crn_manifest *m = crn_run_manifest(t->run);
    for (size_t i = 0; i < m->mark.n; i++)
        if (m->mark.at[i].version == t->of->version) {
            t->mark = m->mark.at[i];
            CRN_FAIL_IF(!(t->mark.levels & CRN_IN_TRAIL), CAIRN_ENOTFOUND,
                        "mark %" PRIu64 " is not in the trail, but on the nodes that wrote it",
                        t->of->version);
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_ENOTFOUND,
                    "run '%s' has no mark %" PRIu64 "; 'cairn ls' lists those it has", t->of->run,
                    t->of->version);
}

typedef cairn_status use_fn(taking *t, crn_part *part, crn_mark *share, crn_var *v);

/* Call use with the variable in each rank's share that has it. */
static cairn_status each_rank(taking *t, use_fn *use)
{
    for (uint32_t rank = 0; rank < t->mark.nranks; rank++) {
        crn_part *part;
        crn_mark *share;
        CRN_TRY(crn_run_part(t->run, t->mark.series, rank, t->mark.nranks, false, &reading, &part));
        crn_part_distrust(part);
        cairn_status rc = crn_part_load(part, t->mark.version, &share);
        if (rc == CAIRN_OK) {
            crn_var *v = crn_mark_find(share, t->of->variable);
            rc = v ? use(t, part, share, v) : CAIRN_OK;
            crn_mark_free(share);
        }
        crn_part_close(part);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

static crn_elem elem_of(const char *type)
{
    if (strcmp(type, "float64") == 0)
        return CRN_ELEM_F64;
    return strcmp(type, "float32") == 0 ? CRN_ELEM_F32 : CRN_ELEM_BYTES;
}

static crn_codec_shape shape_of(const crn_var *v)
{
    if (v->spec.ndims < 2)
        return (crn_codec_shape){.ndims = 1};
    return crn_codec_shape_of(v->spec.ndims, v->spec.count);
}

static uint64_t stretches_of(const taking *t, const crn_var *v)
{
    return (v->spec.nbytes + t->stretch - 1) / t->stretch;
}

/* How much there is, and what it is. Stretches are whole blocks of the mark, and of any codec. */
static cairn_status measure(taking *t, crn_part *part, crn_mark *share, crn_var *v)
{
    static const crn_codec_setting boxed = {.family = CRN_FAMILY_ZFP};
    cairn_sample *s = t->s;
    (void)part, (void)share;
    if (t->stretch == 0) {
        const crn_codec_shape shape = shape_of(v);
        crn_loss lost;
        s->elem = elem_of(v->spec.type);
        s->info.ndims = CRN_MAX(shape.ndims, 1);
        t->stretch = CRN_MAX(CRN_MAX((uint32_t)STRETCH, v->spec.block),
                             crn_codec_block(&boxed, s->elem, &shape));
        snprintf(s->info.type, sizeof s->info.type, "%s",
                 s->elem == CRN_ELEM_BYTES ? "bytes" : v->spec.type);
        if (crn_var_loss(&v->spec, &lost))
            crn_loss_print(&lost, s->info.lost);
    }
    CRN_FAIL_IF(elem_of(v->spec.type) != s->elem || t->stretch % v->spec.block != 0,
                CAIRN_EMISMATCH, "variable '%s' is of other types or blocks on other ranks",
                v->spec.name);
    s->info.nbytes += v->spec.nbytes;
    t->all += stretches_of(t, v);
    return CAIRN_OK;
}

/* --- taking it ------------------------------------------------------------------------------ */

/* Is the next stretch one of those? Each set of them is as likely (Knuth's algorithm S). */
static bool is_taken(taking *t)
{
    const bool yes = crn_rng_below(&t->rng, t->left) < t->want;
    t->left--;
    t->want -= yes;
    return yes;
}

static cairn_status take(taking *t, crn_part *part, crn_mark *share, crn_var *v)
{
    cairn_sample *s = t->s;
    for (uint64_t i = 0, n = stretches_of(t, v); i < n; i++) {
        const uint64_t off = i * t->stretch;
        const size_t nbytes = (size_t)CRN_MIN(t->stretch, v->spec.nbytes - off);
        trial_stretch one = {s->nbytes, nbytes, shape_of(v)};
        if (!is_taken(t))
            continue;
        const uint64_t first = off / v->spec.block;
        const uint64_t nblocks = (nbytes + v->spec.block - 1) / v->spec.block;
        one.shape.first = off / crn_elem_nbytes(s->elem);
        CRN_TRY(crn_mark_table(part, share, v));
        CRN_TRY(crn_mark_read(part, share, v, first, nblocks, s->data + s->nbytes, NULL));
        CRN_TRY(crn_vec_push(&s->stretch, one));
        s->nbytes += nbytes;
    }
    return CAIRN_OK;
}

static cairn_status take_stretches(taking *t)
{
    cairn_sample *s = t->s;
    const uint64_t bytes = t->of->sample_bytes > 0 ? t->of->sample_bytes : SAMPLE;
    t->left = t->all;
    t->want = CRN_MIN(t->all, CRN_MAX(bytes / t->stretch, 1));
    t->rng = crn_rng_of(t->of->seed, 0);
    s->info.nstretches = t->all;
    s->info.nsample = t->want;
    CRN_FAIL_IF(t->want > SIZE_MAX / t->stretch / 4, CAIRN_ENOMEM, "the sample is too large");
    const size_t room = (size_t)(t->want * t->stretch);
    CRN_TRY(crn_alloc_aligned(&s->data, room, CRN_CODEC_ALIGN));
    CRN_TRY(crn_alloc_aligned(&s->reads, room, CRN_CODEC_ALIGN));
    memset(s->reads, 0, room); /* no page is new when decoders are timed */
    return each_rank(t, take);
}

static cairn_status find_all(taking *t)
{
    CRN_TRY(crn_trail_open(t->of->trail, false, &t->trail));
    CRN_TRY(crn_run_open(t->trail, t->of->run, false, &t->run));
    CRN_TRY(find_mark(t));
    CRN_TRY(each_rank(t, measure));
    CRN_FAIL_IF(t->stretch == 0, CAIRN_ENOTFOUND, "mark %" PRIu64 " has no variable '%s'",
                t->of->version, t->of->variable);
    return t->all > 0 ? take_stretches(t) : CAIRN_OK;
}

/* --- describing it -------------------------------------------------------------------------- */

void crn_trial_numbers(crn_elem elem, const void *from, size_t n, double *to)
{
    if (elem == CRN_ELEM_F64) {
        memcpy(to, from, n * sizeof *to);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float one;
        memcpy(&one, (const unsigned char *)from + i * sizeof one, sizeof one);
        to[i] = one;
    }
}

/* Neighbours along the fastest dimension. */
static void count_bits(cairn_sample *s)
{
    const size_t width = crn_elem_nbytes(s->elem);
    crn_bits bits = {.width = (uint32_t)(8 * width)};
    double each[64];
    for (size_t i = 0; i < s->stretch.n; i++) {
        const trial_stretch *t = &s->stretch.at[i];
        const size_t n = t->nbytes / width;
        const uint32_t d = t->shape.ndims;
        const uint64_t row = d > 1 && t->shape.extent[d - 1] > 1 ? t->shape.extent[d - 1] : n;
        for (size_t at = 0; at < n;) {
            const uint64_t rest = row - (t->shape.first + at) % row;
            const size_t more = (size_t)CRN_MIN(rest, (uint64_t)(n - at));
            crn_bits_add(&bits, s->data + t->off + at * width, more);
            at += more;
        }
    }
    s->info.information = crn_bits_information(&bits, each);
    s->info.bits = crn_bits_needed(&bits, 0.99);
}

static cairn_status make_numbers(cairn_sample *s)
{
    s->info.bits = -1;
    if (s->elem == CRN_ELEM_BYTES)
        return CAIRN_OK;
    s->nvalues = s->nbytes / crn_elem_nbytes(s->elem);
    CRN_TRY(crn_alloc(&s->x, s->nvalues));
    CRN_TRY(crn_alloc(&s->y, s->nvalues));
    CRN_TRY(crn_alloc(&s->sorted, s->nvalues));
    crn_trial_numbers(s->elem, s->data, s->nvalues, s->x);
    crn_deviation d = {0};
    crn_deviation_add(&d, s->x, s->x, s->nvalues);
    s->info.min = d.min;
    s->info.max = d.max;
    s->info.nspecial = d.nspecial;
    count_bits(s);
    return CAIRN_OK;
}

int cairn_sample_take(const cairn_sample_options *of, cairn_sample **ret)
{
    cairn_sample_options o = {0};
    CRN_FAIL_IF(!of || !ret, CAIRN_EINVAL, "cairn_sample_take: an argument is NULL");
    CRN_TRY(crn_struct_in(of, &o));
    CRN_FAIL_IF(!o.trail || !o.run || !o.variable, CAIRN_EINVAL,
                "cairn_sample_take: trail, run and variable must be named");
    taking t = {.of = &o};
    CRN_TRY(crn_alloc(&t.s, 1));
    cairn_status rc = find_all(&t);
    if (rc == CAIRN_OK)
        rc = make_numbers(t.s);
    const crn_err why = *crn_err_peek();
    crn_run_close(t.run);
    crn_trail_close(t.trail);
    if (rc < 0) {
        cairn_sample_free(t.s);
        return crn_err_give(&why);
    }
    t.s->info.sample_bytes = t.s->nbytes;
    *ret = t.s;
    return CAIRN_OK;
}

void cairn_sample_free(cairn_sample *s)
{
    if (!s)
        return;
    free(s->data);
    free(s->reads);
    free(s->x);
    free(s->y);
    free(s->sorted);
    crn_vec_done(&s->stretch);
    crn_buf_done(&s->scratch);
    crn_buf_done(&s->encoded);
    free(s);
}

int cairn_sample_describe(const cairn_sample *s, cairn_sample_info *ret)
{
    CRN_FAIL_IF(!s || !ret, CAIRN_EINVAL, "cairn_sample_describe: an argument is NULL");
    return crn_struct_out(&s->info, ret);
}
