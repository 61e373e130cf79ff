/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datatypes: described once by what they are made of, so that a type that is made anew in each turn
 * of a loop is the same type, and the replay can make it.
 */
#include "trace/trace.h"

enum { CACHE = 64 };

static crn_handles handles;        /* guarded by the recorder's lock */
static CRN_VEC(uint32_t) index_of; /* by number: index into the table; same lock */
static _Atomic unsigned changes;

typedef struct known_type {
    MPI_Datatype type;
    uint32_t index;
    unsigned changes; /* + 1, so that 0 is empty */
} known_type;

static _Thread_local known_type cache[CACHE] __attribute__((tls_model("initial-exec")));

static uint32_t describe(MPI_Datatype type);

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
enum { CONTENTS_MAX = 1 << 16 };

typedef struct contents {
    int nints, naddrs, ntypes;
    int *ints;
    MPI_Aint *addrs;
    MPI_Datatype *types;
} contents;

static cairn_status get_contents(MPI_Datatype type, contents *c)
{
    CRN_TRY(crn_alloc(&c->ints, (size_t)c->nints));
    CRN_TRY(crn_alloc(&c->addrs, (size_t)c->naddrs));
    CRN_TRY(crn_alloc(&c->types, (size_t)c->ntypes));
    PMPI_Type_get_contents(type, c->nints, c->naddrs, c->ntypes, c->ints, c->addrs, c->types);
    return CAIRN_OK;
}

/* Types that MPI_Type_get_contents gives are ours to free, unless they are predefined. */
static void free_if_derived(MPI_Datatype type)
{
    int ni, na, nd, combiner;
    PMPI_Type_get_envelope(type, &ni, &na, &nd, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(&type);
}

static cairn_status encode_contents(const contents *c, crn_type *d)
{
    crn_seq_build b = {0};
    cairn_status rc;
    for (int i = 0; i < c->nints; i++)
        crn_seq_add(&b, c->ints[i]);
    CRN_TRY_OUT(rc, crn_seq_encode(&b, NULL, false, &d->ints));
    crn_seq_build_done(&b);
    for (int i = 0; i < c->naddrs; i++)
        crn_seq_add(&b, c->addrs[i]);
    CRN_TRY_OUT(rc, crn_seq_encode(&b, NULL, false, &d->addrs));
    crn_seq_build_done(&b);
    for (int i = 0; i < c->ntypes; i++)
        crn_seq_add(&b, describe(c->types[i]));
    CRN_TRY_OUT(rc, crn_seq_encode(&b, NULL, false, &d->types));
    d->nints = (uint32_t)c->nints;
    d->naddrs = (uint32_t)c->naddrs;
    d->ntypes = (uint32_t)c->ntypes;
out:
    crn_seq_build_done(&b);
    return rc;
}

static void describe_derived(MPI_Datatype type, int combiner, contents *c, crn_type *d)
{
    d->combiner = combiner_of(combiner);
    if (d->combiner == CRN_COMBINER_OTHER || c->nints + c->naddrs + c->ntypes > CONTENTS_MAX) {
        d->combiner = CRN_COMBINER_OTHER;
        return;
    }
    cairn_status rc = get_contents(type, c);
    if (rc == CAIRN_OK)
        rc = encode_contents(c, d);
    if (rc < 0)
        d->combiner = CRN_COMBINER_OTHER;
    for (int i = 0; c->types && i < c->ntypes; i++)
        free_if_derived(c->types[i]);
    free(c->ints);
    free(c->addrs);
    free(c->types);
}

/* The index of a type's description. Recorder's lock held. */
static uint32_t describe(MPI_Datatype type)
{
    crn_type d = {0};
    contents c = {0};
    char name[MPI_MAX_OBJECT_NAME] = "";
    int combiner, size = 0, n;
    uint32_t index = 0;
    MPI_Aint lb = 0, extent = 0;
    PMPI_Type_get_envelope(type, &c.nints, &c.naddrs, &c.ntypes, &combiner);
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lb, &extent);
    d.nbytes = size > 0 ? (uint64_t)size : 0;
    d.lb = lb;
    d.extent = extent;
    if (combiner == MPI_COMBINER_NAMED) {
        PMPI_Type_get_name(type, name, &n);
        if (crn_tables_string(&crn_rec.tables, *name ? name : "unnamed", &d.name) < 0)
            return 0;
    } else {
        describe_derived(type, combiner, &c, &d);
    }
    return crn_tables_type(&crn_rec.tables, &d, &index) < 0 ? 0 : index;
}

static uint32_t look_up(MPI_Datatype type)
{
    crn_rec_lock();
    uint32_t index;
    int64_t number = crn_handles_find(&handles, (uintptr_t)type);
    if (number >= 0) {
        index = index_of.at[number];
    } else {
        index = describe(type);
        number = crn_handles_add(&handles, (uintptr_t)type);
        while (number >= 0 && index_of.n <= (size_t)number && crn_vec_push(&index_of, 0) == 0)
            ;
        if (number >= 0 && (size_t)number < index_of.n)
            index_of.at[number] = index;
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
    *k = (known_type){.type = type, .index = look_up(type), .changes = now};
    return k->index;
}

int64_t crn_type_of(MPI_Datatype type)
{
    known_type *k = &cache[((uintptr_t)type >> 4 ^ (uintptr_t)type) % CACHE];
    unsigned now = atomic_load_explicit(&changes, memory_order_acquire) + 1;
    return k->type == type && k->changes == now ? k->index : refresh(k, type, now);
}

void crn_type_drop(MPI_Datatype type)
{
    crn_rec_lock();
    crn_handles_drop(&handles, (uintptr_t)type);
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    crn_rec_unlock();
}
