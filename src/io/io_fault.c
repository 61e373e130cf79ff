/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The gate that every operation passes once before it happens. It counts, calls the watcher, and
 * applies the armed plan. The plan is the process's, as the disk is: it must also reach
 * operations of objects that a test cannot get at. That makes this the module's only global state.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { SECTOR = 512, EXIT_CODE = 86 };

enum { UNREAD, IDLE, BUSY }; /* CAIRN_FAULT not looked at; nothing to do; plan or watcher there */

/* Read without the lock, and relaxed: a test arms before it starts what is to be hit. */
static _Atomic int mode = UNREAD;

/* All guarded by lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static crn_fault armed; /* where is CRN_FAULT_NONE when nothing is */
static uint64_t seen;
static crn_fault_watcher *watcher;
static void *watcher_arg;
static bool env_is_bad;

/* Take one of the words off *at: its index, or -1. */
static int take_word(const char **at, const char *const *words, int n)
{
    size_t len = strcspn(*at, ":");
    for (int i = 0; i < n; i++) {
        if (words[i] && strlen(words[i]) == len && memcmp(words[i], *at, len) == 0) {
            *at += len;
            return i;
        }
    }
    return -1;
}

static bool take_number(const char **at, uint64_t *ret)
{
    size_t len = strspn(*at, "0123456789");
    *ret = strtoull(*at, NULL, 10);
    *at += len;
    return len > 0;
}

static bool take_colon(const char **at)
{
    return **at == ':' && (*at)++;
}

#define NO_STAGE(...)
#define STAGE(id, word, ...) [CRN_FAULT_STAGES + CRN_STAGE_OF(CRN_LEVEL_##id)] = #word,

/* "<where>:<n>:<how>[:<count>]" */
static bool parse(const char *text, crn_fault *ret)
{
    static const char *const wheres[CRN_FAULT_WHERES] = {
        [CRN_FAULT_ANY] = "any",
        [CRN_FAULT_WRITE] = "write",
        [CRN_FAULT_SYNC] = "sync",
        [CRN_FAULT_RENAME] = "rename",
        [CRN_FAULT_READ] = "read",
        [CRN_FAULT_OPEN] = "open",
        [CRN_FAULT_STAGES + CRN_STAGE_CAPTURE] = "capture",
        [CRN_FAULT_STAGES + CRN_STAGE_STORE] = "store",
        CRN_LEVELS(NO_STAGE, STAGE)[CRN_FAULT_STAGES + CRN_STAGE_COMMIT] = "commit",
        [CRN_FAULT_STAGES + CRN_STAGE_RESUME] = "resume",
    };
    static const char *const hows[] = {
        [CRN_FAULT_EIO] = "eio",   [CRN_FAULT_ENOSPC] = "enospc", [CRN_FAULT_SHORT] = "short",
        [CRN_FAULT_TORN] = "torn", [CRN_FAULT_EXIT] = "exit",     [CRN_FAULT_KILL] = "kill",
        [CRN_FAULT_SLOW] = "slow",
    };
    uint64_t at, count = 1;
    int where = take_word(&text, wheres, CRN_FAULT_WHERES);
    if (where < 0 || !take_colon(&text) || !take_number(&text, &at) || !take_colon(&text))
        return false;
    int how = take_word(&text, hows, sizeof hows / sizeof *hows);
    if (how < 0 || (take_colon(&text) && !take_number(&text, &count)) || *text != '\0')
        return false;
    *ret = (crn_fault){(crn_fault_where)where, (crn_fault_how)how, at, count};
    return true;
}

static void update_mode(void)
{
    bool busy = armed.where != CRN_FAULT_NONE || watcher || env_is_bad;
    atomic_store_explicit(&mode, busy ? BUSY : IDLE, memory_order_relaxed); /* see mode */
}

/* With the lock held: take CAIRN_FAULT in, the first time. */
static void read_env(void)
{
    if (atomic_load_explicit(&mode, memory_order_relaxed) != UNREAD) /* only changed under lock */
        return;
    const char *text = getenv("CAIRN_FAULT");
    if (text && *text)
        env_is_bad = !parse(text, &armed);
    update_mode();
}

cairn_status crn_fault_ready(void)
{
    pthread_mutex_lock(&lock);
    read_env();
    bool bad = env_is_bad;
    pthread_mutex_unlock(&lock);
    CRN_FAIL_IF(bad, CAIRN_EINVAL,
                "CAIRN_FAULT: '%s' is not <where>:<n>:<how>, such as 'write:17:enospc'",
                getenv("CAIRN_FAULT"));
    return CAIRN_OK;
}

void crn_fault_arm(const crn_fault *plan)
{
    pthread_mutex_lock(&lock);
    read_env();
    armed = plan ? *plan : (crn_fault){.where = CRN_FAULT_NONE};
    seen = 0;
    update_mode();
    pthread_mutex_unlock(&lock);
}

uint64_t crn_fault_seen(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = seen;
    pthread_mutex_unlock(&lock);
    return n;
}

void crn_fault_watch(crn_fault_watcher *fn, void *arg)
{
    pthread_mutex_lock(&lock);
    read_env();
    watcher = fn;
    watcher_arg = arg;
    update_mode();
    pthread_mutex_unlock(&lock);
}

/* Copy the next len bytes of a vector whose pieces *piece and on, from *skip, are not copied yet.
 */
static void gather(const struct iovec *iov, int *piece, size_t *skip, char *dst, size_t len)
{
    while (len > 0) {
        size_t step = CRN_MIN(len, iov[*piece].iov_len - *skip);
        memcpy(dst, (char *)iov[*piece].iov_base + *skip, step);
        dst += step;
        len -= step;
        *skip += step;
        if (*skip == iov[*piece].iov_len) {
            ++*piece;
            *skip = 0;
        }
    }
}

/* Write each sector of the event with an even chance, the same ones for the same n. */
static void tear(const crn_fault_event *e, uint64_t n)
{
    crn_rng rng = crn_rng_of(n, 0);
    char sector[SECTOR];
    size_t skip = 0;
    int piece = 0;
    for (size_t at = 0, len; at < e->nbytes; at += len) {
        uint64_t off = e->off + at;
        len = CRN_MIN(SECTOR - off % SECTOR, e->nbytes - at);
        gather(e->iov, &piece, &skip, sector, len);
        if (crn_rng_u64(&rng) & 1 && pwrite(crn_file_fd(e->file), sector, len, (off_t)off) < 0)
            return; /* it is to fail anyway */
    }
}

static int strike(crn_fault_how how, uint64_t n, const crn_fault_event *event, bool *ret_cut)
{
    switch (how) {
    case CRN_FAULT_EIO:
        return EIO;
    case CRN_FAULT_ENOSPC:
        return ENOSPC;
    case CRN_FAULT_SHORT:
        if (ret_cut)
            *ret_cut = true;
        return 0;
    case CRN_FAULT_TORN:
        if (event && event->kind == CRN_SEEN_WRITE)
            tear(event, n);
        return EIO;
    case CRN_FAULT_EXIT:
        _exit(EXIT_CODE);
    case CRN_FAULT_SLOW:
        usleep(100000);
        return 0;
    case CRN_FAULT_KILL:
        kill(getpid(), SIGKILL);
        pause(); /* the signal may take a moment; nothing must happen after it */
    }
    return EIO;
}

/* With the lock held: count; does the plan strike at this one? */
static bool is_hit(crn_fault_where where)
{
    if (armed.where != where && (armed.where != CRN_FAULT_ANY || where >= CRN_FAULT_STAGES))
        return false;
    seen++;
    return armed.at > 0 && seen >= armed.at && (armed.count == 0 || seen - armed.at < armed.count);
}

int crn_fault_pass(crn_fault_where where, const crn_fault_event *event, bool *ret_cut)
{
    if (atomic_load_explicit(&mode, memory_order_relaxed) == IDLE) /* see mode */
        return 0;
    pthread_mutex_lock(&lock);
    read_env();
    bool hit = is_hit(where), bad = env_is_bad;
    crn_fault_how how = armed.how;
    uint64_t n = seen;
    crn_fault_watcher *call = watcher;
    void *arg = watcher_arg;
    pthread_mutex_unlock(&lock);

    int sys = bad ? EINVAL : hit ? strike(how, n, event, ret_cut) : 0;
    if (sys == 0 && call && event)
        call(arg, event); /* without the lock: a watcher may read files */
    return sys;
}

void crn_stage_enter(crn_stage stage)
{
    (void)crn_fault_pass((crn_fault_where)(CRN_FAULT_STAGES + stage), NULL, NULL);
}
