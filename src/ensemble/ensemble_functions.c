/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DESIGN: each call forks a child, which loads the shared objects and works through the functions
 * in their order; where it is and what it found is in memory that both see. The parent waits; a
 * child that has died, or stays too long with one function, is ended, and the next one goes on
 * behind that function. Numbers count only of functions that the child went beyond.
 */
#include "ensemble/ensemble_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 2000000, WORDS = 200 };

/* What parent and child see. */
typedef struct shared {
    _Atomic uint32_t next; /* the function that the child is at */
    uint32_t n;            /* of a first look: functions, */
    crn_function at[CRN_FUNCTIONS];
    char why[WORDS]; /* or why there are none */
    double value[];
} shared;

typedef struct work {
    const crn_functions *f;
    const crn_function_case *c; /* NULL: join */
    uint32_t from, to, nstates;
    const double *const *part; /* to be joined: n of them */
    size_t n;
    shared *s;
} work;

typedef void work_fn(const work *w);

/* --- in the child --------------------------------------------------------------------------- */

static const cairn_validator_table *load(const char *file, char why[WORDS])
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const cairn_validator_table *t = handle ? dlsym(handle, "cairn_validator") : NULL;
    if (!handle)
        snprintf(why, WORDS, "%s", dlerror());
    else if (!t)
        snprintf(why, WORDS, "'%s' has no table 'cairn_validator'", file);
    else if (t->version != CAIRN_VALIDATOR_VERSION || (t->n > 0 && !t->function)) {
        snprintf(why, WORDS, "'%s' has a table of version %u, not %u", file, t->version,
                 CAIRN_VALIDATOR_VERSION);
        return NULL;
    }
    return t;
}

static bool is_name(const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    return n > 0 && n < CRN_FUNCTION_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

static bool take_function(shared *s, uint32_t file, uint32_t index,
                          const cairn_validator_function *x)
{
    const bool good = is_name(x->name) && (x->evaluate != NULL) != (x->compare != NULL) &&
                      (unsigned)x->how <= CAIRN_JOIN_OWN &&
                      (x->how == CAIRN_JOIN_OWN) == (x->join != NULL);
    if (!good || s->n == CRN_FUNCTIONS) {
        snprintf(s->why, WORDS,
                 good ? "there are more than %d functions"
                      : "function %u needs a name, a join, and either evaluate or compare",
                 good ? (uint32_t)CRN_FUNCTIONS : index + 1);
        return false;
    }
    s->at[s->n] =
        (crn_function){.file = file, .index = index, .how = x->how, .compares = x->compare != NULL};
    memcpy(s->at[s->n++].name, x->name, strlen(x->name));
    return true;
}

/* A first look: which functions are there? */
static void look(const work *w)
{
    for (uint32_t i = 0; i < w->f->nfiles; i++) {
        const cairn_validator_table *t = load(w->f->file[i], w->s->why);
        for (uint32_t k = 0; t && k < t->n; k++)
            if (!take_function(w->s, i, k, &t->function[k]))
                return;
        if (!t)
            return;
    }
}

static const cairn_validator_function *function_of(const crn_functions *f, uint32_t number)
{
    char why[WORDS];
    const cairn_validator_table *t = load(f->file[f->at[number].file], why);
    return t && f->at[number].index < t->n ? &t->function[f->at[number].index] : NULL;
}

static double call_one(const crn_function_case *c, const cairn_validator_function *x,
                       uint32_t state)
{
    cairn_stretch s = c->stretch;
    s.member = state % c->nmembers;
    s.setting = c->setting[state / c->nmembers];
    if (x->evaluate)
        return x->evaluate(&s, c->value[state]);
    return state < c->nmembers ? NAN : x->compare(&s, c->value[s.member], c->value[state]);
}

static void call_all(const work *w)
{
    for (uint32_t q = w->from; q < w->to; q++) {
        const cairn_validator_function *x = function_of(w->f, q);
        atomic_store(&w->s->next, q);
        for (uint32_t m = 0; m < w->nstates; m++)
            w->s->value[(size_t)q * w->nstates + m] = x ? call_one(w->c, x, m) : NAN;
    }
}

static void join_own(const work *w)
{
    const cairn_validator_function *x = function_of(w->f, w->from);
    for (uint32_t m = 0; x && m < w->nstates; m++) {
        double v = w->part[0][m];
        for (size_t i = 1; i < w->n; i++)
            v = x->join(v, w->part[i][m]);
        w->s->value[m] = v;
    }
}

/* --- in the parent -------------------------------------------------------------------------- */

/* How the child ended; CRN_FUNCTION_LATE: it had to be. */
static int32_t await_child(const work *w, pid_t child)
{
    const struct timespec pause = {0, PAUSE_NS};
    uint32_t at = atomic_load(&w->s->next);
    uint64_t since = crn_now_ns();
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        const uint32_t now = atomic_load(&w->s->next);
        since = now != at ? crn_now_ns() : since;
        at = now;
        if ((double)(crn_now_ns() - since) / 1e9 > w->f->patience_s) {
            kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
            return CRN_FUNCTION_LATE;
        }
        if (w->c && w->c->beat)
            w->c->beat(w->c->arg);
        nanosleep(&pause, NULL);
    }
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WEXITSTATUS(status) == 0 ? CRN_FUNCTION_WELL : CRN_FUNCTION_LEFT + WEXITSTATUS(status);
}

static cairn_status run_child(const work *w, work_fn *fn, int32_t *ret)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        fn(w);
        _exit(0);
    }
    if (child < 0)
        return crn_fail_sys(errno, "cannot start a process for functions of a plug-in");
    *ret = await_child(w, child);
    return CAIRN_OK;
}

static cairn_status map(size_t nvalues, shared **ret, size_t *ret_nbytes)
{
    *ret_nbytes = sizeof **ret + nvalues * sizeof(double);
    *ret = mmap(NULL, *ret_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (*ret == MAP_FAILED)
        return crn_fail_sys(errno, "no memory for functions of a plug-in");
    return CAIRN_OK;
}

cairn_status crn_functions_call(const crn_functions *f, const crn_function_case *c, double *value,
                                int32_t *why)
{
    const uint32_t nstates = c->nensembles * c->nmembers;
    work w = {.f = f, .c = c, .to = f->n, .nstates = nstates};
    size_t nbytes;
    cairn_status rc = CAIRN_OK;
    memset(why, 0, f->n * sizeof *why);
    CRN_TRY(map((size_t)f->n * nstates, &w.s, &nbytes));
    while (rc == CAIRN_OK && w.from < f->n) {
        int32_t how = 0;
        atomic_store(&w.s->next, w.from);
        rc = run_child(&w, call_all, &how);
        if (rc == CAIRN_OK && how == CRN_FUNCTION_WELL)
            break;
        w.from = atomic_load(&w.s->next) + 1;
        if (w.from <= f->n)
            why[w.from - 1] = how;
    }
    if (rc == CAIRN_OK)
        memcpy(value, w.s->value, (size_t)f->n * nstates * sizeof *value);
    munmap(w.s, nbytes);
    return rc;
}

static double join(cairn_join how, double a, double b)
{
    return how == CAIRN_JOIN_SUM ? a + b : how == CAIRN_JOIN_MIN ? fmin(a, b) : fmax(a, b);
}

cairn_status crn_functions_join(const crn_functions *f, uint32_t function,
                                const double *const *value, size_t n, uint32_t nstates, double *ret,
                                int32_t *why)
{
    work w = {.f = f, .from = function, .nstates = nstates, .part = value, .n = n};
    const cairn_join how = f->at[function].how;
    size_t nbytes;
    *why = CRN_FUNCTION_WELL;
    for (uint32_t m = 0; m < nstates && how != CAIRN_JOIN_OWN; m++) {
        ret[m] = value[0][m];
        for (size_t i = 1; i < n; i++)
            ret[m] = isnan(ret[m]) || isnan(value[i][m]) ? NAN : join(how, ret[m], value[i][m]);
    }
    if (how != CAIRN_JOIN_OWN)
        return CAIRN_OK;
    CRN_TRY(map(nstates, &w.s, &nbytes));
    cairn_status rc = run_child(&w, join_own, why);
    memcpy(ret, w.s->value, nstates * sizeof *ret);
    munmap(w.s, nbytes);
    return rc;
}

/* --- opening -------------------------------------------------------------------------------- */

static cairn_status name_files(const crn_study *s, crn_functions *f)
{
    char *text, *rest = NULL;
    CRN_TRY(crn_strdup(crn_config_text(s->config, (crn_opt_id)CRN_STUDY_FUNCTIONS), &text));
    cairn_status rc = crn_alloc(&f->file, strlen(text) / 2 + 1);
    for (char *w = strtok_r(text, " \t", &rest); rc == CAIRN_OK && w;
         w = strtok_r(NULL, " \t", &rest)) {
        rc = crn_study_beside(s, w, &f->file[f->nfiles]);
        f->nfiles += rc == CAIRN_OK;
    }
    free(text);
    return rc;
}

cairn_status crn_functions_open(const crn_study *s, crn_functions *ret)
{
    crn_functions f = {.patience_s = crn_config_seconds(s->config, (crn_opt_id)CRN_STUDY_PATIENCE)};
    work w = {.f = &f};
    size_t nbytes;
    int32_t how;
    cairn_status rc = name_files(s, &f);
    if (rc == CAIRN_OK && f.nfiles > 0 && (rc = map(0, &w.s, &nbytes)) == CAIRN_OK) {
        rc = run_child(&w, look, &how);
        if (rc == CAIRN_OK && (how != CRN_FUNCTION_WELL || w.s->why[0]))
            rc = crn_fail(CAIRN_EINVAL, "'%s': validate.functions: %s", s->file,
                          w.s->why[0] ? w.s->why : "it crashes when it is loaded");
        f.n = w.s->n;
        memcpy(f.at, w.s->at, sizeof f.at);
        munmap(w.s, nbytes);
    }
    if (rc < 0)
        crn_functions_done(&f);
    else
        *ret = f;
    return rc;
}

void crn_functions_done(crn_functions *f)
{
    while (f->nfiles > 0)
        free(f->file[--f->nfiles]);
    free(f->file);
    *f = (crn_functions){0};
}
