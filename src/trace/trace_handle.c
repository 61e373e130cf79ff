/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles to numbers, for what has few handles that live long. Numbers of freed handles are used
 * again, so that a loop that makes and frees gets the same number in each turn.
 */
#include "trace/trace.h"

/* A slot, and what is kept of a number; there are never more numbers than slots. */
enum { SLOT_NBYTES = sizeof(struct crn_handle) + sizeof(bool) + sizeof(crn_comm_info) };

static size_t home(const crn_handles *h, uintptr_t handle)
{
    return crn_handle_hash(handle) & (h->nslots - 1);
}

/* The slot that holds the handle, or the free one where it would be. nslots > 0. */
static struct crn_handle *find_slot(const crn_handles *h, uintptr_t handle)
{
    size_t i = home(h, handle);
    while (h->slot[i].number >= 0 && h->slot[i].handle != handle)
        i = (i + 1) & (h->nslots - 1);
    return &h->slot[i];
}

int64_t crn_handles_find(const crn_handles *h, uintptr_t handle)
{
    return h->nslots > 0 ? find_slot(h, handle)->number : -1;
}

static cairn_status grow(crn_handles *h)
{
    if ((h->n + 1) * 2 <= h->nslots)
        return CAIRN_OK;
    crn_handles bigger = {.nslots = CRN_MAX(h->nslots * 2, 32)};
    CRN_TRY(crn_alloc(&bigger.slot, bigger.nslots));
    for (size_t i = 0; i < bigger.nslots; i++)
        bigger.slot[i].number = -1;
    for (size_t i = 0; i < h->nslots; i++) {
        if (h->slot[i].number >= 0)
            *find_slot(&bigger, h->slot[i].handle) = h->slot[i];
    }
    free(h->slot);
    crn_rec.handles_nbytes += (bigger.nslots - h->nslots) * SLOT_NBYTES;
    crn_rec_grown();
    h->slot = bigger.slot;
    h->nslots = bigger.nslots;
    return CAIRN_OK;
}

static int64_t take_number(crn_handles *h)
{
    size_t i = 0;
    while (i < h->taken.n && h->taken.at[i])
        i++;
    if (i == h->taken.n && crn_vec_push(&h->taken, false) < 0)
        return -1;
    h->taken.at[i] = true;
    return (int64_t)i;
}

int64_t crn_handles_add(crn_handles *h, uintptr_t handle)
{
    if (grow(h) < 0)
        return -1;
    struct crn_handle *s = find_slot(h, handle);
    if (s->number < 0) {
        int64_t number = take_number(h);
        if (number < 0)
            return -1;
        *s = (struct crn_handle){.handle = handle, .number = number};
        h->n++;
    }
    return s->number;
}

void crn_handles_drop(crn_handles *h, uintptr_t handle)
{
    if (crn_handles_find(h, handle) < 0)
        return;
    struct crn_handle *s = find_slot(h, handle);
    h->taken.at[s->number] = false;
    h->n--;
    /* close the gap: those that follow may have been pushed on by the one that goes */
    size_t gap = (size_t)(s - h->slot);
    for (size_t i = (gap + 1) & (h->nslots - 1); h->slot[i].number >= 0;
         i = (i + 1) & (h->nslots - 1)) {
        size_t want = home(h, h->slot[i].handle);
        if (((i - want) & (h->nslots - 1)) >= ((i - gap) & (h->nslots - 1))) {
            h->slot[gap] = h->slot[i];
            gap = i;
        }
    }
    h->slot[gap].number = -1;
}
