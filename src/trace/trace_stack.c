/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Call sites. Walking the stack takes microseconds, so a walk is remembered together with the stack
 * slots in which it found the return addresses. The next call with the same return address at the
 * same depth takes the remembered site if all those slots still hold what they held: then walking
 * would find the same. A few walks are remembered for each: a function that is called from two
 * places in turn would otherwise be walked from each time.
 *
 * When a module is unloaded all walks are forgotten: another one may come to lie where it was.
 *
 * Addresses are kept relative to their module, so that sites are the same for each process and run.
 * A stack ends where libc begins: what is beyond main, or the start of a thread, is of no interest.
 */
#include "trace/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

#if CRN_WITH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

enum { DEPTH = 24, SETS = 64, WAYS = 8, OWN_FRAMES = 8 };

typedef struct walk {
    const void *ret, *frame; /* of the wrapper: the key */
    uint32_t site;
    bool sound; /* all slots are known */
    int n;
    struct {
        const uintptr_t *slot;
        uintptr_t value;
    } at[DEPTH];
} walk;

static _Atomic unsigned unloads; /* times that a module may have gone */

struct crn_frame_cache {
    unsigned unloads; /* as of when its walks were made */
    walk way[SETS][WAYS];
    uint8_t next[SETS]; /* the way that is given up for a new walk, modulo WAYS */
};

void crn_stack_free(crn_frame_cache *c)
{
    free(c);
}

size_t crn_stack_nbytes(const crn_frame_cache *c)
{
    return c ? sizeof *c : 0;
}

static bool still_true(const walk *w)
{
    if (!w->sound)
        return false;
    for (int i = 0; i < w->n; i++) {
        if (*w->at[i].slot != w->at[i].value)
            return false;
    }
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_libc(const char *module)
{
    return strncmp(module, "libc.so", 7) == 0 || strncmp(module, "libpthread", 10) == 0 ||
           strncmp(module, "libc-", 5) == 0;
}

/* An address as a place in its module, which lies from start to end. */
typedef struct place {
    const char *module;
    uintptr_t off, start, end;
} place;

typedef struct search {
    uintptr_t pc;
    place *ret;
} search;

/* dl_iterate_phdr's: is it this module? */
static int look_in(struct dl_phdr_info *info, size_t nbytes, void *arg)
{
    const uintptr_t page = 4096;
    const search *s = arg;
    uintptr_t start = UINTPTR_MAX, end = 0;
    (void)nbytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD)
            continue;
        start = CRN_MIN(start, (info->dlpi_addr + h->p_vaddr) & ~(page - 1));
        end = CRN_MAX(end, info->dlpi_addr + h->p_vaddr + h->p_memsz);
    }
    if (s->pc < start || s->pc >= end)
        return 0;
    const char *path = *info->dlpi_name ? info->dlpi_name : program_invocation_name;
    *s->ret = (place){.module = base_name(path), .start = start, .end = end};
    return 1;
}

/*
 * Most often the module is that of the frame before (NULL: there is none). Not by dladdr: that
 * reads the module's whole symbol table; nor by _dl_find_object, which glibc has only since 2.35.
 */
static bool find_module(uintptr_t pc, const place *before, place *ret)
{
    search s = {.pc = pc - 1, .ret = ret}; /* - 1: a call may be its module's last word */
    if (before && s.pc >= before->start && s.pc < before->end)
        *ret = *before;
    else if (!dl_iterate_phdr(look_in, &s))
        return false;
    ret->off = pc - ret->start;
    return true;
}

#if CRN_WITH_LIBUNWIND

/* The frame of the wrapper's caller, skipping our own. */
static bool to_caller(unw_cursor_t *c, const void *ret)
{
    unw_word_t ip = 0;
    for (int i = 0; i < OWN_FRAMES; i++) {
        if (unw_get_reg(c, UNW_REG_IP, &ip) == 0 && ip == (unw_word_t)(uintptr_t)ret)
            return true;
        if (unw_step(c) <= 0)
            return false;
    }
    return false;
}

/* Where the current frame's address was found; NULL where that is not memory. */
static const uintptr_t *return_slot(unw_cursor_t *c)
{
    unw_save_loc_t loc;
    if (unw_get_save_loc(c, UNW_REG_IP, &loc) != 0 || loc.type != UNW_SLT_MEMORY)
        return NULL;
    return (const uintptr_t *)(uintptr_t)loc.u.addr;
}

static void note_slot(walk *w, unw_cursor_t *c, uintptr_t pc)
{
    const uintptr_t *slot = return_slot(c);
    if (slot && *slot == pc) {
        w->at[w->n].slot = slot;
        w->at[w->n++].value = pc;
    } else {
        w->sound = false;
    }
}

/*
 * Walk outwards from the caller: places into ret, of which there is one already, innermost first;
 * slots into w. The slot that leads into libc is the last: what comes after it has no part in the
 * site.
 */
static int walk_outwards(walk *w, place ret[DEPTH])
{
    unw_context_t context;
    unw_cursor_t c;
    unw_word_t ip;
    int n = 1;
    if (unw_getcontext(&context) != 0 || unw_init_local(&c, &context) != 0 ||
        !to_caller(&c, w->ret))
        return n;
    while (n < DEPTH && unw_step(&c) > 0 && unw_get_reg(&c, UNW_REG_IP, &ip) == 0 && ip != 0) {
        note_slot(w, &c, (uintptr_t)ip);
        if (!find_module((uintptr_t)ip, &ret[n - 1], &ret[n]) || is_libc(ret[n].module))
            break;
        n++;
    }
    return n;
}

#else

/* Without libunwind a site is where the call itself was made. */
static int walk_outwards(walk *w, place ret[DEPTH])
{
    (void)w, (void)ret;
    return 1;
}

#endif

static int walk_stack(walk *w, place ret[DEPTH])
{
    w->n = 0;
    w->sound = true;
    return find_module((uintptr_t)w->ret, NULL, &ret[0]) ? walk_outwards(w, ret) : 0;
}

/* The number of the innermost site of a stack; outer frames are entered first. */
static uint32_t intern(const place *at, int n)
{
    uint32_t number = 0;
    crn_rec_lock();
    while (n-- > 0) {
        crn_site site = {.outer = number, .off = at[n].off};
        if (crn_tables_string(&crn_rec.tables, at[n].module, &site.module) < 0 ||
            crn_tables_site(&crn_rec.tables, site, &number) < 0)
            break;
    }
    crn_rec_grown();
    crn_rec_unlock();
    return number;
}

static uint32_t remember(crn_thread *t, size_t set, const void *ret, const void *frame) CRN_RARE;

static uint32_t remember(crn_thread *t, size_t set, const void *ret, const void *frame)
{
    place at[DEPTH];
    if (!t->stack && crn_alloc(&t->stack, 1) < 0)
        return 0;
    walk *w = &t->stack->way[set][t->stack->next[set]++ % WAYS];
    w->ret = ret;
    w->frame = frame;
    const int n = walk_stack(w, at);
    w->site = intern(at, n);
    for (int i = 0; i < n; i++)
        if (i == 0 || at[i].start != at[i - 1].start)
            crn_module_note(at[i].module, at[i].start);
    return w->site;
}

/* relaxed: who comes to the next module's code has synchronized with who loaded it */
static void forget_unloaded(crn_frame_cache *c)
{
    unsigned now = atomic_load_explicit(&unloads, memory_order_relaxed);
    if (c->unloads != now) {
        memset(c, 0, sizeof *c);
        c->unloads = now;
    }
}

CRN_EXPORT int dlclose(void *handle)
{
    static _Atomic(void *) at;
    int (*next)(void *) = (int (*)(void *))crn_next(&at, "dlclose");
    int rc = next(handle);
    atomic_fetch_add_explicit(&unloads, 1, memory_order_relaxed);
    return rc;
}

uint32_t crn_stack_site(crn_thread *t, const void *ret, const void *frame)
{
    size_t set = crn_hash_mix((uintptr_t)ret, (uintptr_t)frame) % SETS;
    if (t->stack)
        forget_unloaded(t->stack);
    for (int i = 0; t->stack && i < WAYS; i++) {
        const walk *w = &t->stack->way[set][i];
        if (w->ret == ret && w->frame == frame && still_true(w))
            return w->site;
    }
    return remember(t, set, ret, frame);
}
