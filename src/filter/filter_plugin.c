/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters of shared objects (<cairn/filter_plugin.h>): loaded, and called with what they are
 * promised. A file that was loaded once stays.
 */
#include "filter/filter_ops.h"

#include <cairn/filter_plugin.h>
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

enum { NAME_MAX_TEXT = 31, OPTIONS_MAX = 256 };

struct crn_filter_foreign {
    crn_filter_ops ops; /* whose foreign is this */
    const cairn_filter_table *table;
    char *file, *options;
    crn_filter_foreign *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static crn_filter_foreign *all; /* guarded by mutex; entries do not change, and are never freed */

/* --- loading -------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    const size_t n = name ? strnlen(name, NAME_MAX_TEXT + 1) : 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return n > 0 && n <= NAME_MAX_TEXT;
}

/* A name without '/' is a file of the working directory, not one of the loader's. */
static void *open_file(const char *file)
{
    char *here;
    if (strchr(file, '/'))
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (asprintf(&here, "./%s", file) < 0)
        return NULL;
    void *handle = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    free(here);
    return handle;
}

static cairn_status load_table(const char *file, const cairn_filter_table **ret)
{
    void *handle = open_file(file);
    CRN_FAIL_IF(!handle, CAIRN_EINVAL, "cannot load filter '%s': %s", file, dlerror());
    const cairn_filter_table *t = dlsym(handle, "cairn_filter");
    CRN_FAIL_IF(!t, CAIRN_EINVAL, "'%s' has no table 'cairn_filter': it is no filter", file);
    CRN_FAIL_IF(t->version != CAIRN_FILTER_VERSION, CAIRN_EUNSUPPORTED,
                "filter '%s' has a table of version %u, this Cairn knows version %d", file,
                t->version, CAIRN_FILTER_VERSION);
    CRN_FAIL_IF(!is_name(t->name) || !t->weights, CAIRN_EINVAL,
                "the table of filter '%s' has no name, or lacks weights", file);
    *ret = t;
    return CAIRN_OK;
}

static cairn_status load(crn_filter_foreign *f, const char *file, const char *options)
{
    CRN_TRY(load_table(file, &f->table));
    CRN_TRY(crn_strdup(file, &f->file));
    CRN_TRY(crn_strdup(options, &f->options));
    CRN_FAIL_IF(f->table->check ? f->table->check(options) != 0 : options[0] != 0, CAIRN_EINVAL,
                "filter '%s' does not take '%s'", file, options);
    f->ops = (crn_filter_ops){.name = f->table->name,
                              .summary = f->table->summary ? f->table->summary : "",
                              .foreign = f};
    return CAIRN_OK;
}

/* With the mutex. */
static cairn_status find_or_load(const char *file, const char *options, const crn_filter_ops **ret)
{
    crn_filter_foreign *f;
    for (f = all; f; f = f->next)
        if (strcmp(f->file, file) == 0 && strcmp(f->options, options) == 0) {
            *ret = &f->ops;
            return CAIRN_OK;
        }
    CRN_TRY(crn_alloc(&f, 1));
    cairn_status rc = load(f, file, options);
    if (rc < 0) {
        free(f->file);
        free(f->options);
        free(f);
        return rc;
    }
    f->next = all;
    all = f;
    *ret = &f->ops;
    return CAIRN_OK;
}

/* Where the file's name ends: behind ".so"; NULL: it is none. */
static const char *end_of_file(const char *text)
{
    for (const char *at = text; (at = strstr(at, ".so")); at++)
        if (at[3] == 0 || at[3] == ':')
            return at + 3;
    return NULL;
}

bool crn_filter_is_file(const char *text)
{
    return end_of_file(text) != NULL;
}

cairn_status crn_filter_of_file(const char *text, const crn_filter_ops **ret)
{
    const char *end = end_of_file(text), *options;
    char *file;
    CRN_FAIL_IF(!end, CAIRN_EINVAL, "'%s' is no shared object: file.so or file.so:options", text);
    options = *end ? end + 1 : end;
    CRN_FAIL_IF(strlen(options) >= OPTIONS_MAX, CAIRN_EINVAL,
                "the options of filter '%s' are too long", text);
    CRN_TRY(crn_strdup(text, &file));
    file[end - text] = 0;
    pthread_mutex_lock(&mutex);
    cairn_status rc = find_or_load(file, options, ret);
    pthread_mutex_unlock(&mutex);
    free(file);
    return rc;
}

/* --- calling -------------------------------------------------------------------------------- */

static int eigen(size_t n, double *a, double *values)
{
    return crn_filter_eigen(n, a, values);
}

static int product(size_t n, size_t m, size_t k, const double *a, const double *b, int transposed,
                   double *c)
{
    return crn_filter_product(n, m, k, 1, a, b, transposed != 0, c);
}

static double normal(const cairn_filter_case *c, uint64_t number, size_t member)
{
    const crn_rng_key key = {c->study, CRN_FOR_PERTURBED, c->cycle, member};
    return crn_rng_normal_at(&key, number);
}

/* work: S, d, S^T S, S^T d, one behind the other. */
static cairn_status call(const crn_filter_foreign *f, const crn_filter_case *c, double *work,
                         const uint64_t *number, double *w)
{
    const size_t n = c->nmembers, p = c->nobs;
    double *s = work, *d = s + p * n, *gram = d + p, *right = gram + n * n;
    crn_filter_scale(c, s, d);
    CRN_TRY(crn_filter_gram(c, gram, right));
    const cairn_filter_case x = {sizeof x, n,     p,       s,      d,        gram,    right,
                                 number,   eigen, product, normal, c->study, c->cycle};
    int rc = f->table->weights(&x, f->options, w);
    CRN_FAIL_IF(rc < 0, rc >= CAIRN_ECANCELED ? (cairn_status)rc : CAIRN_EINVAL,
                "filter '%s' (%s) gives up with %d", f->table->name, f->file, rc);
    for (size_t i = 0; i < n * n; i++)
        CRN_FAIL_IF(!isfinite(w[i]), CAIRN_EINVAL,
                    "filter '%s' (%s) gives member %zu a weight that is not finite", f->table->name,
                    f->file, i / n);
    return CAIRN_OK;
}

cairn_status crn_filter_foreign_weights(const crn_filter_foreign *f, const crn_filter_case *c,
                                        double *w)
{
    const size_t n = c->nmembers, p = c->nobs;
    double *work = NULL;
    uint64_t *number = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&work, p * (n + 1) + n * (n + 1)));
    CRN_TRY_OUT(rc, crn_alloc(&number, p));
    for (size_t i = 0; i < p; i++)
        number[i] = c->number ? c->number[i] : i;
    CRN_TRY_OUT(rc, call(f, c, work, number, w));
out:
    free(work);
    free(number);
    return rc;
}
