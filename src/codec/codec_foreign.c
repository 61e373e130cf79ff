/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs of shared objects (<cairn/codec_plugin.h>). Files have their names; where they lie is for
 * the reader's configuration to tell. What was loaded once stays, as blocks may come at any time.
 *
 * The encoded form, little-endian:
 *
 *     32 name, ended by zeros | u32 values aside | u32 bytes of options | u32 dimensions, u32 0
 *     4 u64 extents | u64 first | f64 absolute, relative
 *     positions of the values aside, u32 each | to a multiple of 8 | their bits | to a multiple of
 * 8 options | to a multiple of 8 | what the codec made
 */
#include "codec/codec_ops.h"

#include <cairn/codec_plugin.h>
#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>

enum { NAME = 32, HEAD = NAME + 16 + 32 + 8 + 16, OPTIONS_MAX = 256 };

/* A file that was loaded, with options that were named for it. Never freed. */
struct crn_foreign {
    const cairn_codec_table *table;
    char *file, *options;
    crn_foreign *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static crn_foreign *all; /* guarded by mutex; entries do not change */
static bool looked;      /* at the environment; guarded by mutex */

/* --- loading -------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    const size_t n = name ? strnlen(name, NAME) : 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return n > 0 && n < NAME;
}

static cairn_status load_table(const char *file, const cairn_codec_table **ret)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    CRN_FAIL_IF(!handle, CAIRN_EINVAL, "cannot load codec '%s': %s", file, dlerror());
    const cairn_codec_table *t = dlsym(handle, "cairn_codec");
    CRN_FAIL_IF(!t, CAIRN_EINVAL, "'%s' has no table 'cairn_codec': it is no codec", file);
    CRN_FAIL_IF(t->version != CAIRN_CODEC_VERSION, CAIRN_EUNSUPPORTED,
                "codec '%s' has a table of version %u, this Cairn knows version %d", file,
                t->version, CAIRN_CODEC_VERSION);
    CRN_FAIL_IF(!is_name(t->name) || !t->encode || !t->decode, CAIRN_EINVAL,
                "the table of codec '%s' has no name, or lacks encode or decode", file);
    *ret = t;
    return CAIRN_OK;
}

/* With the mutex. */
static cairn_status find_or_load(const char *file, const char *options, const crn_foreign **ret)
{
    crn_foreign *f;
    for (f = all; f; f = f->next)
        if (strcmp(f->file, file) == 0 && strcmp(f->options, options) == 0) {
            *ret = f;
            return CAIRN_OK;
        }
    CRN_TRY(crn_alloc(&f, 1));
    cairn_status rc = load_table(file, &f->table);
    if (rc == CAIRN_OK)
        rc = crn_strdup(file, &f->file);
    if (rc == CAIRN_OK)
        rc = crn_strdup(options, &f->options);
    if (rc == CAIRN_OK && (f->table->check ? f->table->check(options) != 0 : options[0] != 0))
        rc = crn_fail(CAIRN_EINVAL, "codec '%s' does not take '%s'", file, options);
    if (rc < 0) {
        free(f->file);
        free(f->options);
        free(f);
        return rc;
    }
    f->next = all;
    all = f;
    *ret = f;
    return CAIRN_OK;
}

cairn_status crn_foreign_find(const char *file, const char *options, const crn_foreign **ret)
{
    CRN_FAIL_IF(strlen(options) >= OPTIONS_MAX, CAIRN_EINVAL,
                "the options of codec '%s' are too long", file);
    pthread_mutex_lock(&mutex);
    cairn_status rc = find_or_load(file, options, ret);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* With the mutex: each file of a list with blanks or colons between. */
static cairn_status load_list(const char *list)
{
    cairn_status rc = CAIRN_OK;
    char *copy;
    CRN_TRY(crn_strdup(list, &copy));
    for (char *save = NULL, *file = strtok_r(copy, " :", &save); file && rc == CAIRN_OK;
         file = strtok_r(NULL, " :", &save)) {
        const crn_foreign *f;
        rc = find_or_load(file, "", &f);
    }
    free(copy);
    return rc;
}

cairn_status crn_foreign_load(const char *list)
{
    pthread_mutex_lock(&mutex);
    cairn_status rc = load_list(list);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* The table of a name in a file; a command has no configuration but for its environment. */
static const cairn_codec_table *table_of(const char *name)
{
    const cairn_codec_table *found = NULL;
    pthread_mutex_lock(&mutex);
    for (int again = 0; again < 2 && !found; again++) {
        for (const crn_foreign *f = all; f && !found; f = f->next)
            found = strcmp(f->table->name, name) == 0 ? f->table : NULL;
        const char *list = looked ? NULL : secure_getenv("CAIRN_CODEC_PLUGINS");
        looked = true;
        if (found || !list || load_list(list) < 0)
            break;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

const char *crn_foreign_text(const crn_foreign *f, const char **ret_options)
{
    const char *slash = strrchr(f->file, '/');
    *ret_options = f->options;
    return slash ? slash + 1 : f->file;
}

/* --- the encoded form ----------------------------------------------------------------------- */

typedef struct layout {
    size_t aside, bits, options, own;
} layout;

static layout lay_out(size_t naside, size_t width, size_t noptions)
{
    layout l = {.aside = HEAD};
    l.bits = l.aside + CRN_ROUND_UP(naside * sizeof(uint32_t), (size_t)8);
    l.options = l.bits + CRN_ROUND_UP(naside * width, (size_t)8);
    l.own = l.options + CRN_ROUND_UP(noptions, (size_t)8);
    return l;
}

static cairn_codec_block block_of(crn_elem elem, const crn_codec_shape *shape, size_t nbytes,
                                  const crn_loss *loss)
{
    cairn_codec_block b = {.bits = (uint32_t)(8 * crn_elem_nbytes(elem)),
                           .ndims = CRN_MAX(shape->ndims, 1),
                           .first = shape->ndims > 1 ? shape->first : 0,
                           .nvalues = nbytes / crn_elem_nbytes(elem),
                           .absolute = loss->absolute,
                           .relative = loss->relative};
    memcpy(b.extent, shape->extent, sizeof b.extent);
    if (b.ndims == 1)
        b.extent[0] = b.nvalues;
    return b;
}

static void put_head(unsigned char *to, const char *name, const cairn_codec_block *b,
                     uint32_t naside, uint32_t noptions)
{
    memset(to, 0, HEAD);
    memcpy(to, name, strlen(name));
    memcpy(to + 32, &naside, 4);
    memcpy(to + 36, &noptions, 4);
    memcpy(to + 40, &b->ndims, 4);
    memcpy(to + 48, b->extent, 32);
    memcpy(to + 80, &b->first, 8);
    memcpy(to + 88, &b->absolute, 8);
    memcpy(to + 96, &b->relative, 8);
}

cairn_status crn_foreign_encode(const crn_foreign *f, crn_elem elem, const crn_boxed *what,
                                const crn_loss *loss, const void *src, size_t nbytes, void *dst,
                                size_t cap, size_t *ret_n)
{
    const size_t width = crn_elem_nbytes(elem), noptions = strlen(f->options);
    const cairn_codec_block b = block_of(elem, &what->shape, nbytes, loss);
    const layout l = lay_out(what->naside, width, noptions);
    unsigned char *to = dst;
    if (l.own >= cap)
        return CAIRN_NOTHING;
    memset(to, 0, l.own);
    put_head(to, f->table->name, &b, (uint32_t)what->naside, (uint32_t)noptions);
    for (size_t i = 0; i < what->naside; i++) {
        memcpy(to + l.aside + i * 4, &what->aside[i], 4);
        memcpy(to + l.bits + i * width,
               (const unsigned char *)what->original + what->aside[i] * width, width);
    }
    memcpy(to + l.options, f->options, noptions);
    const size_t n = f->table->encode(&b, f->options, src, to + l.own, cap - l.own);
    if (n == 0 || n > cap - l.own)
        return CAIRN_NOTHING;
    *ret_n = l.own + n;
    return CAIRN_OK;
}

/* What stands before the codec's own bytes; false: no writer makes that. */
static bool get_head(crn_elem elem, const unsigned char *from, size_t n, size_t nbytes,
                     cairn_codec_block *b, uint32_t *ret_naside, char *options, layout *ret)
{
    crn_codec_shape shape = {0};
    crn_loss loss;
    uint32_t noptions;
    if (n < HEAD || memchr(from, 0, NAME) == NULL)
        return false;
    memcpy(ret_naside, from + 32, 4);
    memcpy(&noptions, from + 36, 4);
    memcpy(&shape.ndims, from + 40, 4);
    memcpy(shape.extent, from + 48, 32);
    memcpy(&shape.first, from + 80, 8);
    memcpy(&loss.absolute, from + 88, 8);
    memcpy(&loss.relative, from + 96, 8);
    if (*ret_naside > nbytes / crn_elem_nbytes(elem) || noptions >= OPTIONS_MAX ||
        shape.ndims < 1 || shape.ndims > CRN_CODEC_DIMS)
        return false;
    *ret = lay_out(*ret_naside, crn_elem_nbytes(elem), noptions);
    if (ret->own > n)
        return false;
    memcpy(options, from + ret->options, noptions);
    options[noptions] = 0;
    *b = block_of(elem, &shape, nbytes, &loss);
    return true;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    const size_t width = crn_elem_nbytes(elem);
    const unsigned char *from = src;
    char options[OPTIONS_MAX];
    cairn_codec_block b;
    uint32_t naside, at;
    layout l;
    (void)work;
    if (!get_head(elem, from, n, nbytes, &b, &naside, options, &l))
        return false;
    const cairn_codec_table *t = table_of((const char *)from);
    if (!t || t->decode(&b, options, from + l.own, n - l.own, dst) != 0)
        return false;
    for (uint32_t i = 0; i < naside; i++) {
        memcpy(&at, from + l.aside + i * 4, 4);
        if (at >= b.nvalues)
            return false;
        memcpy((unsigned char *)dst + at * width, from + l.bits + i * width, width);
    }
    return true;
}

/* Whose name nobody has told the file of: that is no damage. */
static cairn_status known(const void *own, size_t n)
{
    char name[NAME] = "";
    memcpy(name, own, CRN_MIN(n, sizeof name));
    name[NAME - 1] = 0;
    CRN_FAIL_IF(is_name(name) && !table_of(name), CAIRN_EUNSUPPORTED,
                "values were stored by a codec '%s' of a shared object: name its file in "
                "codec.plugins, or in CAIRN_CODEC_PLUGINS",
                name);
    return CAIRN_OK;
}

const crn_codec_ops crn_codec_foreign = {
    .name = "foreign",
    .id = 10,
    .elems = CRN_ELEMS_ALL,
    .trusting = true,
    .known = known,
    .decode = decode,
};
