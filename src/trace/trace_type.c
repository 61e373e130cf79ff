/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datatypes: described once by what they are made of, so that a type that is made anew in each turn
 * of a loop is the same type, and the replay can make it.
 */
#include "trace/trace.h"

enum { CACHE = 64 };

static crn_handles handles;             /* guarded by the recorder's lock */
static CRN_VEC(uint32_t) index_of;      /* by number: index into the table; same lock */
static _Atomic unsigned changes[CACHE]; /* types freed, by their place in the caches */

typedef struct known_type {
    MPI_Datatype type;
    uint32_t index;
    unsigned changes; /* + 1, so that 0 is empty */
} known_type;

static _Thread_local known_type cache[CACHE] __attribute__((tls_model("initial-exec")));

static uint32_t look_up(MPI_Datatype type);

static crn_combiner combiner_of(int combiner)
{
    static const struct {
        int mpi;
        crn_combiner ours;
    } known[] = {{MPI_COMBINER_DUP, CRN_COMBINER_DUP},
                 {MPI_COMBINER_CONTIGUOUS, CRN_COMBINER_CONTIGUOUS},
                 {MPI_COMBINER_VECTOR, CRN_COMBINER_VECTOR},
                 {MPI_COMBINER_HVECTOR, CRN_COMBINER_HVECTOR},
                 {MPI_COMBINER_INDEXED, CRN_COMBINER_INDEXED},
                 {MPI_COMBINER_HINDEXED, CRN_COMBINER_HINDEXED},
                 {MPI_COMBINER_INDEXED_BLOCK, CRN_COMBINER_INDEXED_BLOCK},
                 {MPI_COMBINER_HINDEXED_BLOCK, CRN_COMBINER_HINDEXED_BLOCK},
                 {MPI_COMBINER_STRUCT, CRN_COMBINER_STRUCT},
                 {MPI_COMBINER_SUBARRAY, CRN_COMBINER_SUBARRAY},
                 {MPI_COMBINER_DARRAY, CRN_COMBINER_DARRAY},
                 {MPI_COMBINER_RESIZED, CRN_COMBINER_RESIZED}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].mpi == combiner)
            return known[i].ours;
    }
    return CRN_COMBINER_OTHER;
}

/* Only what is worth its room: the contents of giant types would outweigh the trace. */
enum { CONTENTS_MAX = 1 << 16, CONTENTS_FEW = 32 };

/* What MPI_Type_get_contents would give of a type; none, CRN_COMBINER_OTHER, if its numbers are
 * beyond an int, which it refuses to give. */
static int envelope(MPI_Datatype type, crn_contents *c)
{
    int combiner;
#if CRN_HAS_LARGE
    MPI_Count nints, naddrs, nlarge, ntypes;
    PMPI_Type_get_envelope_c(type, &nints, &naddrs, &nlarge, &ntypes, &combiner);
    if (nlarge > 0) {
        *c = (crn_contents){.combiner = CRN_COMBINER_OTHER};
        return combiner;
    }
#else
    int nints, naddrs, ntypes;
    PMPI_Type_get_envelope(type, &nints, &naddrs, &ntypes, &combiner);
#endif
    *c = (crn_contents){.combiner = combiner_of(combiner),
                        .nints = (uint32_t)nints,
                        .naddrs = (uint32_t)naddrs,
                        .ntypes = (uint32_t)ntypes};
    return combiner;
}

/* Types that MPI_Type_get_contents gives are ours to free, unless they are predefined. */
static void free_if_derived(MPI_Datatype type)
{
    crn_contents c;
    if (envelope(type, &c) != MPI_COMBINER_NAMED)
        PMPI_Type_free(&type);
}

/*
 * What a derived type is made of: the values of c, in value. MPI wants arrays of three kinds: where
 * they are many, they lie behind the values, in memory that has room for all of them twice.
 */
static void get_contents(MPI_Datatype type, crn_contents *c, int64_t *value)
{
    int few_ints[CONTENTS_FEW], *ints = few_ints;
    MPI_Aint few_addrs[CONTENTS_FEW], *addrs = few_addrs;
    MPI_Datatype few_types[CONTENTS_FEW], *types = few_types;
    int64_t *v = value, *behind = value + crn_contents_count(c);
    if (crn_contents_count(c) > CONTENTS_FEW) {
        ints = (int *)behind;
        addrs = (MPI_Aint *)(behind + c->nints);
        types = (MPI_Datatype *)(behind + c->nints + c->naddrs);
    }
    PMPI_Type_get_contents(type, (int)c->nints, (int)c->naddrs, (int)c->ntypes, ints, addrs, types);
    c->value = value;
    for (uint32_t i = 0; i < c->nints; i++)
        *v++ = ints[i];
    for (uint32_t i = 0; i < c->naddrs; i++)
        *v++ = addrs[i];
    for (uint32_t i = 0; i < c->ntypes; i++) {
        *v++ = look_up(types[i]);
        free_if_derived(types[i]);
    }
}

static crn_type measured(MPI_Datatype type)
{
    MPI_Count size = 0;
    MPI_Aint lb = 0, extent = 0;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent(type, &lb, &extent);
    return (crn_type){.nbytes = size > 0 ? (uint64_t)size : 0, .lb = lb, .extent = extent};
}

static cairn_status describe_named(MPI_Datatype type, uint32_t *ret)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int n;
    crn_type d = measured(type);
    PMPI_Type_get_name(type, name, &n);
    CRN_TRY(crn_tables_string(&crn_rec.tables, *name ? name : "unnamed", &d.name));
    return crn_tables_type(&crn_rec.tables, &d, ret);
}

static cairn_status describe_derived(MPI_Datatype type, crn_contents c, uint32_t *ret)
{
    crn_type d;
    int64_t few[CONTENTS_FEW], *value = few;
    size_t n = crn_contents_count(&c);
    cairn_status rc = CAIRN_OK;
    if (c.combiner == CRN_COMBINER_OTHER || n > CONTENTS_MAX ||
        (n > CONTENTS_FEW && crn_alloc(&value, 2 * n) < 0)) {
        d = measured(type);
        d.combiner = CRN_COMBINER_OTHER;
        return crn_tables_type(&crn_rec.tables, &d, ret);
    }
    get_contents(type, &c, value);
    if (!crn_tables_find_type(&crn_rec.tables, &c, ret)) {
        d = measured(type);
        rc = crn_tables_describe_type(&crn_rec.tables, &c, &d, ret);
    }
    if (value != few)
        free(value);
    return rc;
}

static void remember(MPI_Datatype type, uint32_t index)
{
    int64_t number = crn_handles_add(&handles, (uintptr_t)type);
    while (number >= 0 && index_of.n <= (size_t)number && crn_vec_push(&index_of, 0) == 0)
        ;
    if (number >= 0 && (size_t)number < index_of.n)
        index_of.at[number] = index;
}

/*
 * The index of a type's description. Predefined ones are remembered, they stay; of the others only
 * those that the program uses itself: it frees them, and parts of types we free. Recorder's lock
 * held.
 */
static uint32_t look_up(MPI_Datatype type)
{
    int64_t number = crn_handles_find(&handles, (uintptr_t)type);
    crn_contents c;
    uint32_t index = 0;
    if (number >= 0)
        return index_of.at[number];
    if (envelope(type, &c) == MPI_COMBINER_NAMED) {
        if (describe_named(type, &index) == CAIRN_OK)
            remember(type, index);
        return index;
    }
    (void)describe_derived(type, c, &index); /* or 0: it goes on without */
    return index;
}

static uint32_t look_up_used(MPI_Datatype type)
{
    crn_rec_lock();
    uint32_t index = look_up(type);
    if (crn_handles_find(&handles, (uintptr_t)type) < 0) {
        remember(type, index);
        crn_rec_grown();
    }
    crn_rec_unlock();
    return index;
}

static int64_t refresh(known_type *k, MPI_Datatype type, unsigned now) CRN_RARE;

static int64_t refresh(known_type *k, MPI_Datatype type, unsigned now)
{
    if (type == MPI_DATATYPE_NULL)
        return -1;
    *k = (known_type){.type = type, .index = look_up_used(type), .changes = now};
    return k->index;
}

static inline size_t place_of(MPI_Datatype type)
{
    return crn_handle_hash((uintptr_t)type) % CACHE;
}

int64_t crn_type_of(MPI_Datatype type)
{
    size_t i = place_of(type);
    known_type *k = &cache[i];
    unsigned now = atomic_load_explicit(&changes[i], memory_order_acquire) + 1;
    return k->type == type && k->changes == now ? k->index : refresh(k, type, now);
}

void crn_type_drop(MPI_Datatype type)
{
    crn_rec_lock();
    crn_handles_drop(&handles, (uintptr_t)type);
    atomic_fetch_add_explicit(&changes[place_of(type)], 1, memory_order_release);
    crn_rec_unlock();
}
