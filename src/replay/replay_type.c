/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datatypes made again from what the trace says they are made of, and memory for their elements.
 * What cannot be made, or would need absurd memory (types of absolute addresses), is as many bytes.
 */
#include "replay/replay.h"

enum { SPAN_MAX = 1 << 28 }; /* bytes from the first to the last of one element */

/* Types that are known by their own names. */
/* clang-format off */
#define TYPES(X) \
    X(MPI_CHAR) X(MPI_SIGNED_CHAR) X(MPI_UNSIGNED_CHAR) X(MPI_BYTE) X(MPI_SHORT) \
    X(MPI_UNSIGNED_SHORT) X(MPI_INT) X(MPI_UNSIGNED) X(MPI_LONG) X(MPI_UNSIGNED_LONG) \
    X(MPI_LONG_LONG) X(MPI_LONG_LONG_INT) X(MPI_FLOAT) X(MPI_UNSIGNED_LONG_LONG) X(MPI_DOUBLE) \
    X(MPI_LONG_DOUBLE) X(MPI_INT8_T) X(MPI_INT16_T) X(MPI_INT32_T) X(MPI_INT64_T) \
    X(MPI_UINT8_T) X(MPI_UINT16_T) X(MPI_UINT32_T) X(MPI_UINT64_T) X(MPI_AINT) X(MPI_OFFSET) \
    X(MPI_COUNT) X(MPI_C_BOOL) X(MPI_WCHAR) X(MPI_PACKED) X(MPI_FLOAT_INT) X(MPI_DOUBLE_INT) \
    X(MPI_LONG_INT) X(MPI_2INT) X(MPI_SHORT_INT) X(MPI_LONG_DOUBLE_INT) X(MPI_C_COMPLEX) \
    X(MPI_C_DOUBLE_COMPLEX)
/* clang-format on */

static MPI_Datatype named(const char *name)
{
#define ROW(type) {#type, type},
    const struct {
        const char *name;
        MPI_Datatype type;
    } known[] = {TYPES(ROW){"MPI_INTEGER", MPI_INT},
                 {"MPI_REAL", MPI_FLOAT},
                 {"MPI_DOUBLE_PRECISION", MPI_DOUBLE},
                 {"MPI_REAL8", MPI_DOUBLE},
                 {"MPI_LOGICAL", MPI_INT},
                 {"MPI_CHARACTER", MPI_CHAR},
                 {"MPI_COMPLEX", MPI_C_COMPLEX},
                 {"MPI_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX}};
#undef ROW
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].type;
    return MPI_DATATYPE_NULL;
}

/* What MPI_Type_get_contents gave. */
typedef struct contents {
    int *i;
    MPI_Aint *a;
    MPI_Datatype *d;
    size_t ni, na, nd;
} contents;

static void contents_done(contents *c)
{
    free(c->i);
    free(c->a);
    free(c->d);
}

static cairn_status get_contents(const crn_player *p, const crn_type *type, contents *c)
{
    *c = (contents){.ni = type->nints, .na = type->naddrs, .nd = type->ntypes};
    CRN_TRY(crn_alloc(&c->i, c->ni));
    CRN_TRY(crn_alloc(&c->a, c->na));
    CRN_TRY(crn_alloc(&c->d, c->nd));
    for (size_t k = 0; k < c->ni; k++)
        c->i[k] = (int)crn_seq_at(&type->ints, k);
    for (size_t k = 0; k < c->na; k++)
        c->a[k] = (MPI_Aint)crn_seq_at(&type->addrs, k);
    for (size_t k = 0; k < c->nd; k++) /* smaller numbers: made already */
        c->d[k] = p->type[crn_seq_at(&type->types, k)].mpi;
    return CAIRN_OK;
}

/* Are there as many of each as the combiner needs? A damaged trace may have fewer. */
static bool has(const contents *c, size_t ni, size_t na, size_t nd)
{
    return c->ni >= ni && c->na >= na && c->nd >= nd;
}

static int make_indexed(const crn_type *type, const contents *c, MPI_Datatype *ret)
{
    size_t n = c->ni > 0 && c->i[0] >= 0 ? (size_t)c->i[0] : SIZE_MAX / 4;
    if (type->combiner == CRN_COMBINER_INDEXED && has(c, 1 + 2 * n, 0, 1))
        return MPI_Type_indexed((int)n, c->i + 1, c->i + 1 + n, c->d[0], ret);
    if (type->combiner == CRN_COMBINER_HINDEXED && has(c, 1 + n, n, 1))
        return MPI_Type_create_hindexed((int)n, c->i + 1, c->a, c->d[0], ret);
    if (type->combiner == CRN_COMBINER_INDEXED_BLOCK && has(c, 2 + n, 0, 1))
        return MPI_Type_create_indexed_block((int)n, c->i[1], c->i + 2, c->d[0], ret);
    if (type->combiner == CRN_COMBINER_HINDEXED_BLOCK && has(c, 2, n, 1))
        return MPI_Type_create_hindexed_block((int)n, c->i[1], c->a, c->d[0], ret);
    if (type->combiner == CRN_COMBINER_STRUCT && has(c, 1 + n, n, n))
        return MPI_Type_create_struct((int)n, c->i + 1, c->a, c->d, ret);
    return MPI_ERR_TYPE;
}

static int make_subarray(const contents *c, MPI_Datatype *ret)
{
    size_t n = c->ni > 0 && c->i[0] > 0 ? (size_t)c->i[0] : SIZE_MAX / 4;
    if (!has(c, 2 + 3 * n, 0, 1))
        return MPI_ERR_TYPE;
    int order = c->i[1 + 3 * n] == MPI_ORDER_FORTRAN ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    return MPI_Type_create_subarray((int)n, c->i + 1, c->i + 1 + n, c->i + 1 + 2 * n, order,
                                    c->d[0], ret);
}

static int make_derived(const crn_type *type, const contents *c, MPI_Datatype *ret)
{
    uint32_t how = type->combiner;
    if (how == CRN_COMBINER_DUP && has(c, 0, 0, 1))
        return MPI_Type_dup(c->d[0], ret);
    if (how == CRN_COMBINER_CONTIGUOUS && has(c, 1, 0, 1))
        return MPI_Type_contiguous(c->i[0], c->d[0], ret);
    if (how == CRN_COMBINER_VECTOR && has(c, 3, 0, 1))
        return MPI_Type_vector(c->i[0], c->i[1], c->i[2], c->d[0], ret);
    if (how == CRN_COMBINER_HVECTOR && has(c, 2, 1, 1))
        return MPI_Type_create_hvector(c->i[0], c->i[1], c->a[0], c->d[0], ret);
    if (how == CRN_COMBINER_RESIZED && has(c, 0, 2, 1))
        return MPI_Type_create_resized(c->d[0], c->a[0], c->a[1], ret);
    return how == CRN_COMBINER_SUBARRAY ? make_subarray(c, ret) : make_indexed(type, c, ret);
}

static cairn_status measure(crn_play_type *y)
{
    MPI_Aint lb;
    CRN_TRY_MPI(MPI_Type_get_extent(y->mpi, &lb, &y->extent));
    CRN_TRY_MPI(MPI_Type_get_true_extent(y->mpi, &y->lb, &y->span));
    return CAIRN_OK;
}

/* Fit to be used: the right size, and buffers of it are of a sane one. */
static bool is_fit(const crn_play_type *y, uint64_t nbytes)
{
    int size;
    return MPI_Type_size(y->mpi, &size) == MPI_SUCCESS && (uint64_t)size == nbytes &&
           y->extent >= 0 && y->span >= 0 && y->span <= SPAN_MAX && y->extent <= SPAN_MAX;
}

static cairn_status make_bytes(uint64_t nbytes, crn_play_type *y)
{
    CRN_FAIL_IF(nbytes > SPAN_MAX, CAIRN_EUNSUPPORTED,
                "a datatype of %llu bytes is too large to be made again",
                (unsigned long long)nbytes);
    CRN_TRY_MPI(MPI_Type_contiguous((int)nbytes, MPI_BYTE, &y->mpi));
    y->own = true;
    return measure(y);
}

static cairn_status make_type(crn_player *p, size_t index)
{
    const crn_type *type = &p->t->type[index];
    crn_play_type y = {.mpi = MPI_DATATYPE_NULL, .nbytes = type->nbytes};
    contents c = {0};
    if (type->name) {
        y.mpi = named(p->t->string[type->name]);
        y.named = y.mpi != MPI_DATATYPE_NULL;
    } else {
        cairn_status rc = get_contents(p, type, &c);
        y.own = rc == CAIRN_OK && make_derived(type, &c, &y.mpi) == MPI_SUCCESS;
        contents_done(&c);
        CRN_TRY(rc);
    }
    if (y.named || y.own)
        CRN_TRY(measure(&y));
    if (!(y.named || y.own) || !is_fit(&y, type->nbytes)) {
        if (y.own)
            MPI_Type_free(&y.mpi);
        y.named = false;
        CRN_TRY(make_bytes(type->nbytes, &y));
    }
    if (y.own)
        CRN_TRY_MPI(MPI_Type_commit(&y.mpi));
    p->type[index] = y;
    return CAIRN_OK;
}

/* One more than the trace has: the last stands for numbers that mean nothing, a byte. */
cairn_status crn_play_types_make(crn_player *p)
{
    CRN_TRY(crn_alloc(&p->type, p->t->ntypes + 1));
    p->type[p->t->ntypes] =
        (crn_play_type){.mpi = MPI_BYTE, .named = true, .span = 1, .extent = 1, .nbytes = 1};
    for (size_t i = 0; i < p->t->ntypes; i++)
        CRN_TRY(make_type(p, i));
    return CAIRN_OK;
}

void crn_play_types_free(crn_player *p)
{
    for (size_t i = 0; p->type && i < p->t->ntypes; i++)
        if (p->type[i].own)
            MPI_Type_free(&p->type[i].mpi);
    free(p->type);
}

const crn_play_type *crn_play_type_of(const crn_player *p, int64_t type)
{
    return &p->type[(uint64_t)type < p->t->ntypes ? (size_t)type : p->t->ntypes];
}

/* ---- memory ---- */

static void fill(char *at, size_t nbytes, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i += 8) {
        uint64_t v = crn_hash_mix(seed, i);
        memcpy(at + i, &v, CRN_MIN(nbytes - i, 8));
    }
}

cairn_status crn_play_bytes(crn_play_memory *m, size_t nbytes, uint64_t seed, char **ret)
{
    if (m->piece.n == 0 || nbytes > m->nbytes) {
        size_t n = CRN_MAX(nbytes, CRN_MAX(2 * m->nbytes, 65536));
        char *piece;
        CRN_TRY(crn_vec_reserve(&m->piece, 1));
        CRN_TRY(crn_alloc_aligned(&piece, CRN_ROUND_UP(n, (size_t)4096), 4096));
        if (m->random)
            fill(piece, n, seed);
        m->piece.at[m->piece.n++] = piece;
        m->nbytes = n;
    }
    *ret = m->piece.at[m->piece.n - 1];
    return CAIRN_OK;
}

void crn_play_memory_done(crn_play_memory *m)
{
    for (size_t i = 0; i < m->piece.n; i++)
        free(m->piece.at[i]);
    crn_vec_done(&m->piece);
}

static size_t room_for(const crn_play_type *y, int64_t count)
{
    return count > 0 ? (size_t)(y->span + (count - 1) * CRN_MAX(y->extent, 0)) : 0;
}

cairn_status crn_play_buffer(crn_player *p, crn_play_memory *m, int64_t type, int64_t count,
                             void **ret)
{
    const crn_play_type *y = crn_play_type_of(p, type);
    char *at;
    CRN_TRY(crn_play_bytes(m, room_for(y, count), p->opt->seed + (uint64_t)p->rank, &at));
    *ret = at - y->lb;
    return CAIRN_OK;
}

cairn_status crn_play_slot_buffer(crn_player *p, crn_play_slot *s, int64_t type, int64_t count,
                                  void **ret)
{
    const crn_play_type *y = crn_play_type_of(p, type);
    size_t room = CRN_MAX(room_for(y, count), 1);
    if (s->cap < room) {
        char *at;
        CRN_TRY(crn_alloc(&at, room));
        free(s->buf);
        s->buf = at;
        s->cap = room;
    }
    *ret = (char *)s->buf - y->lb;
    return CAIRN_OK;
}
