/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests. Their handles are not unique (Open MPI gives one handle to all sends that are done at
 * once), and the order in which they complete must not scramble their numbers. So a request takes
 * the smallest free number of its pool, and a pool is for one call, peer, tag and communicator. A
 * handle leads to the requests that have it, oldest first; the program's variable tells them apart.
 */
#include "trace/trace.h"

enum { HASH = 1024, POOLS_MAX = 1 << 16, POOL_HASH = 4096 };

#define NO_POOL UINT32_MAX

typedef struct pool {
    crn_request_key key;
    uint32_t next; /* in the chain of its hash: index + 1 */
    CRN_VEC(int64_t) number;
    CRN_VEC(bool) taken;
} pool;

crn_requests crn_reqs = {.lock = ATOMIC_FLAG_INIT};

/* All guarded by the requests' lock. */
static CRN_VEC(uint32_t) unused; /* slots that were given back */
static uint32_t chain[HASH];     /* slot + 1 */
static CRN_VEC(pool) pools;
static uint32_t pool_chain[POOL_HASH]; /* index + 1 */
static int64_t numbers;                /* given so far */

static size_t hash_of(MPI_Request handle)
{
    return (size_t)(((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u) >> 32) % HASH;
}

static size_t key_hash(const crn_request_key *k)
{
    uint64_t h = (uint64_t)k->call * 0x9e3779b97f4a7c15u ^ (uint64_t)k->peer * 0xd6e8feb86659fd93u ^
                 (uint64_t)k->tag * 0xa0761d6478bd642fu ^ (uint64_t)k->comm * 0xe7037ed1a0b428dbu;
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

static int64_t take_number(uint32_t index)
{
    if (index == NO_POOL)
        return CRN_REQ_NULL;
    pool *p = &pools.at[index];
    size_t i = 0;
    while (i < p->taken.n && p->taken.at[i])
        i++;
    if (i == p->taken.n &&
        (crn_vec_push(&p->taken, false) < 0 || crn_vec_push(&p->number, numbers++) < 0))
        return CRN_REQ_NULL;
    p->taken.at[i] = true;
    return p->number.at[i];
}

static void give_back(uint32_t index, int64_t number)
{
    pool *p = index == NO_POOL ? NULL : &pools.at[index];
    for (size_t i = 0; p && i < p->number.n; i++) {
        if (p->number.at[i] == number)
            p->taken.at[i] = false;
    }
}

static uint32_t take_slot(void)
{
    if (unused.n > 0)
        return unused.at[--unused.n];
    if (crn_vec_push(&crn_reqs.slot, (crn_request){0}) < 0)
        return CRN_NO_REQUEST;
    return (uint32_t)crn_reqs.slot.n - 1;
}

/* At the end of its chain, so that the oldest of equal handles is found first. */
static void link_in(uint32_t slot)
{
    uint32_t *at = &chain[hash_of(crn_reqs.slot.at[slot].handle)];
    while (*at > 0)
        at = &crn_reqs.slot.at[*at - 1].next;
    *at = slot + 1;
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
        crn_reqs.slot.at[slot] = (crn_request){.handle = *var,
                                               .var = var,
                                               .number = number,
                                               .pool = index,
                                               .live = true,
                                               .persistent = persistent,
                                               .wild = wild};
        link_in(slot);
    }
    return number;
}

uint32_t crn_request_find(const MPI_Request *var)
{
    uint32_t found = CRN_NO_REQUEST;
    if (*var == MPI_REQUEST_NULL)
        return found;
    for (uint32_t i = chain[hash_of(*var)]; i > 0; i = crn_reqs.slot.at[i - 1].next) {
        const crn_request *r = &crn_reqs.slot.at[i - 1];
        if (r->handle != *var || r->seen)
            continue;
        if (found == CRN_NO_REQUEST || r->var == var)
            found = i - 1;
        if (r->var == var)
            break;
    }
    if (found != CRN_NO_REQUEST)
        crn_reqs.slot.at[found].seen = true;
    return found;
}

void crn_request_drop(uint32_t slot)
{
    crn_request *r = &crn_reqs.slot.at[slot];
    if (!r->live)
        return;
    uint32_t *at = &chain[hash_of(r->handle)];
    while (*at > 0 && *at != slot + 1)
        at = &crn_reqs.slot.at[*at - 1].next;
    *at = r->next;
    give_back(r->pool, r->number);
    *r = (crn_request){0};
    if (crn_vec_push(&unused, slot) < 0)
        r->next = 0; /* the slot is lost, nothing else */
}
