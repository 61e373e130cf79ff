/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests. Their handles are not unique (Open MPI gives one handle to all sends that are done at
 * once), and the order in which they complete must not scramble their numbers. So a request takes
 * the smallest free number of its pool, and a pool is for one call, peer, tag and communicator. A
 * handle leads to the requests that have it, oldest first; the program's variable distinguishes
 * them.
 *
 * Programs have 100,000 requests under way at once, all of one handle or set through one variable:
 * no step here may look at them all. Requests that a call has found are out of the chains until it
 * ends, so that the next one is always in front.
 */
#include "trace/trace.h"

enum { FIRST_BUCKETS = 1024, POOLS_MAX = 1 << 16, POOL_HASH = 4096 };

#define NO_POOL UINT32_MAX

typedef struct pool {
    crn_request_key key;
    uint32_t next; /* in the chain of its hash: index + 1 */
    size_t given;
    crn_ints free; /* a heap: the smallest is in front */
} pool;

enum way { BY_VARIABLE, BY_HANDLE, WAYS };

typedef struct chain {
    uint32_t first, last; /* slot + 1 */
} chain;

typedef struct chains {
    chain *at;
    size_t n; /* a power of two */
} chains;

crn_requests crn_reqs = {.lock = ATOMIC_FLAG_INIT};

/* All guarded by the requests' lock. */
static CRN_VEC(uint32_t) unused; /* slots that were given back */
static chains table[WAYS];
static uint64_t made; /* requests so far */
static CRN_VEC(pool) pools;
static uint32_t pool_chain[POOL_HASH]; /* index + 1 */
static int64_t numbers;                /* given so far */
static size_t free_nbytes;             /* of the heaps of all pools */
static size_t held;                    /* bytes of all this: its part of the recorder's */

/* What is here may have grown. */
static void grown(void)
{
    size_t now = crn_reqs.slot.cap * sizeof *crn_reqs.slot.at + unused.cap * sizeof *unused.at +
                 (table[BY_VARIABLE].n + table[BY_HANDLE].n) * sizeof(chain) +
                 pools.cap * sizeof *pools.at + free_nbytes;
    atomic_fetch_add_explicit(&crn_rec.held, now - held, memory_order_relaxed);
    held = now;
}

/* ---- numbers ---- */

static size_t key_hash(const crn_request_key *k)
{
    uint64_t h = crn_hash_mix((uint64_t)k->call, (uint64_t)k->peer);
    h = crn_hash_mix(crn_hash_mix(h, (uint64_t)k->tag), (uint64_t)k->comm);
    return (size_t)(h >> 40) % POOL_HASH;
}

static bool same_key(const crn_request_key *a, const crn_request_key *b)
{
    return a->call == b->call && a->peer == b->peer && a->tag == b->tag && a->comm == b->comm;
}

static uint32_t find_pool(const crn_request_key *key)
{
    uint32_t i = pool_chain[key_hash(key)];
    while (i > 0 && !same_key(&pools.at[i - 1].key, key))
        i = pools.at[i - 1].next;
    return i - 1;
}

static uint32_t new_pool(const crn_request_key *key) CRN_RARE;

static uint32_t new_pool(const crn_request_key *key)
{
    crn_request_key common = {.call = key->call};
    if (pools.n >= POOLS_MAX) { /* a program whose tags never repeat: one pool for each call */
        uint32_t known = find_pool(&common);
        if (known != NO_POOL)
            return known;
        key = &common;
    }
    uint32_t *head = &pool_chain[key_hash(key)];
    if (crn_vec_push(&pools, (pool){.key = *key, .next = *head}) < 0)
        return NO_POOL;
    *head = (uint32_t)pools.n;
    return *head - 1;
}

static uint32_t pool_of(const crn_request_key *key)
{
    uint32_t index = find_pool(key);
    return index == NO_POOL ? new_pool(key) : index;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t keep = *a;
    *a = *b;
    *b = keep;
}

static int64_t pop_smallest(crn_ints *heap)
{
    int64_t *v = heap->at, smallest = v[0];
    v[0] = v[--heap->n];
    for (size_t i = 0, child = 1; child < heap->n; i = child, child = 2 * i + 1) {
        if (child + 1 < heap->n && v[child + 1] < v[child])
            child++;
        if (v[i] <= v[child])
            break;
        swap(&v[i], &v[child]);
    }
    return smallest;
}

static int64_t take_number(uint32_t index)
{
    if (index == NO_POOL)
        return CRN_REQ_NULL;
    pool *p = &pools.at[index];
    if (p->free.n > 0)
        return pop_smallest(&p->free);
    free_nbytes -= p->free.cap * sizeof *p->free.at;
    cairn_status rc = crn_vec_reserve(&p->free, p->given + 1); /* for all, when they come back */
    free_nbytes += p->free.cap * sizeof *p->free.at;
    grown();
    if (rc < 0)
        return CRN_REQ_NULL;
    p->given++;
    return numbers++;
}

static void give_back(uint32_t index, int64_t number)
{
    if (number == CRN_REQ_NULL)
        return;
    crn_ints *heap = &pools.at[index].free;
    size_t i = heap->n++;
    heap->at[i] = number;
    for (; i > 0 && heap->at[i] < heap->at[(i - 1) / 2]; i = (i - 1) / 2)
        swap(&heap->at[i], &heap->at[(i - 1) / 2]);
}

/* ---- chains ---- */

static chain *chain_of(enum way way, const crn_request *r)
{
    uint64_t h = crn_hash_mix(0, (uintptr_t)r->handle);
    if (way == BY_VARIABLE)
        h = crn_hash_mix(h, (uintptr_t)r->var);
    return &table[way].at[(h >> 32) & (table[way].n - 1)];
}

/* What leads to the one behind prev, and to the one before next. */
static uint32_t *next_of(chain *c, enum way way, uint32_t prev)
{
    return prev > 0 ? &crn_request_at(prev - 1)->link[way].next : &c->first;
}

static uint32_t *prev_of(chain *c, enum way way, uint32_t next)
{
    return next > 0 ? &crn_request_at(next - 1)->link[way].prev : &c->last;
}

/* By age, so that the oldest is found first; the place is most often at the end. */
static void link_in(enum way way, uint32_t slot)
{
    crn_request *r = crn_request_at(slot);
    chain *c = chain_of(way, r);
    uint32_t prev = c->last, next = 0;
    while (prev > 0 && crn_request_at(prev - 1)->born > r->born) {
        next = prev;
        prev = crn_request_at(prev - 1)->link[way].prev;
    }
    r->link[way] = (crn_request_link){.prev = prev, .next = next};
    *next_of(c, way, prev) = *prev_of(c, way, next) = slot + 1;
}

static void link_out(enum way way, uint32_t slot)
{
    const crn_request *r = crn_request_at(slot);
    chain *c = chain_of(way, r);
    *next_of(c, way, r->link[way].prev) = r->link[way].next;
    *prev_of(c, way, r->link[way].next) = r->link[way].prev;
}

static cairn_status widen(enum way way) CRN_RARE;

/* Each chain becomes two, so that what is linked in comes in order of age again. */
static cairn_status widen(enum way way)
{
    chains old = table[way], new = {.n = old.n > 0 ? 2 * old.n : FIRST_BUCKETS};
    CRN_TRY(crn_alloc(&new.at, new.n));
    table[way] = new;
    for (size_t i = 0; i < old.n; i++) {
        for (uint32_t at = old.at[i].first, next; at > 0; at = next) {
            next = crn_request_at(at - 1)->link[way].next;
            link_in(way, at - 1);
        }
    }
    free(old.at);
    return CAIRN_OK;
}

/* Without memory for more chains they grow longer; without any there are no requests. */
static bool make_chains(void)
{
    for (enum way way = 0; way < WAYS; way++) {
        if (crn_reqs.slot.n >= table[way].n && widen(way) < 0 && table[way].n == 0)
            return false;
    }
    return true;
}

static uint32_t oldest(enum way way, const crn_request *like)
{
    for (uint32_t at = table[way].n > 0 ? chain_of(way, like)->first : 0; at > 0;) {
        const crn_request *r = crn_request_at(at - 1);
        if (r->handle == like->handle && (way == BY_HANDLE || r->var == like->var))
            return at - 1;
        at = r->link[way].next;
    }
    return CRN_NO_REQUEST;
}

/* ---- requests ---- */

static uint32_t take_slot(void)
{
    if (unused.n > 0)
        return unused.at[--unused.n];
    if (!make_chains() || crn_vec_push(&crn_reqs.slot, (crn_request){0}) < 0)
        return CRN_NO_REQUEST;
    return (uint32_t)crn_reqs.slot.n - 1;
}

int64_t crn_request_new(const MPI_Request *var, const crn_request_key *key, bool persistent,
                        bool wild)
{
    int64_t number = CRN_REQ_NULL;
    if (*var == MPI_REQUEST_NULL)
        return number;
    uint32_t slot = take_slot();
    if (slot != CRN_NO_REQUEST) {
        uint32_t index = pool_of(key);
        number = take_number(index);
        *crn_request_at(slot) = (crn_request){.handle = *var,
                                              .var = var,
                                              .number = number,
                                              .born = made++,
                                              .pool = index,
                                              .persistent = persistent,
                                              .wild = wild};
        link_in(BY_VARIABLE, slot);
        link_in(BY_HANDLE, slot);
    }
    return number;
}

uint32_t crn_request_find(const MPI_Request *var)
{
    const crn_request like = {.handle = *var, .var = var};
    if (*var == MPI_REQUEST_NULL)
        return CRN_NO_REQUEST;
    uint32_t slot = oldest(BY_VARIABLE, &like);
    if (slot == CRN_NO_REQUEST)
        slot = oldest(BY_HANDLE, &like);
    if (slot == CRN_NO_REQUEST)
        return slot;
    link_out(BY_VARIABLE, slot);
    link_out(BY_HANDLE, slot);
    crn_request_at(slot)->found = true;
    return slot;
}

void crn_request_put_back(uint32_t slot)
{
    crn_request *r = crn_request_at(slot);
    if (!r->found)
        return;
    r->found = false;
    link_in(BY_VARIABLE, slot);
    link_in(BY_HANDLE, slot);
}

void crn_request_drop(uint32_t slot)
{
    crn_request *r = crn_request_at(slot);
    if (!r->found)
        return;
    give_back(r->pool, r->number);
    *r = (crn_request){0};
    (void)crn_vec_push(&unused, slot); /* without memory the slot is lost, nothing else */
}
