/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The HDF5 library: loaded when it is needed, used by one thread at a time.
 */
#include "hdf5/hdf5.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>

/*
 * The library is one for the process, however many sessions there are; so is this. All of it is
 * guarded by the mutex, which whoever calls HDF5 holds.
 */
static pthread_mutex_t h5_mutex = PTHREAD_MUTEX_INITIALIZER;
static crn_h5 h5_table;
static bool h5_loaded;

static void *open_library(void)
{
    /* shared with the program it would be called by two threads at once */
    void *theirs = dlopen(CRN_HDF5_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (!theirs)
        return dlopen(CRN_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    dlclose(theirs);
    return dlmopen(LM_ID_NEWLM, CRN_HDF5_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

/* Find a symbol; the place that it goes to has the size of a pointer. */
static cairn_status find(void *library, const char *name, void *ret)
{
    void *symbol = dlsym(library, name);
    CRN_FAIL_IF(!symbol, CAIRN_EUNSUPPORTED, "library '%s' has no %s", CRN_HDF5_LIBRARY, name);
    memcpy(ret, &symbol, sizeof symbol);
    return CAIRN_OK;
}

static cairn_status fill(void *library, crn_h5 *t)
{
    hid_t *number;
    /* headers of HDF5 1.12 and later make macros of some names */
#define TEXT(name)          #name
#define FIND_FUNCTION(name) CRN_TRY(find(library, TEXT(name), &t->name));
    CRN_H5_FUNCTIONS(FIND_FUNCTION)
    CRN_FAIL_IF(t->H5open() < 0, CAIRN_EUNSUPPORTED, "library '%s' refuses to start",
                CRN_HDF5_LIBRARY);
    /* numbers have their values only now */
#define FIND_NUMBER(name)                                                                          \
    CRN_TRY(find(library, #name, &number));                                                        \
    t->name = *number;
    CRN_H5_NUMBERS(FIND_NUMBER)
    t->sketch_driver = t->H5FDregister(&crn_sketch_driver);
    CRN_FAIL_IF(t->sketch_driver < 0, CAIRN_EUNSUPPORTED, "library '%s' takes no driver",
                CRN_HDF5_LIBRARY);
    return CAIRN_OK;
}

static cairn_status load(void)
{
    void *library = open_library();
    CRN_FAIL_IF(!library, CAIRN_EUNSUPPORTED, "cannot load the HDF5 library: %s", dlerror());
    cairn_status rc = fill(library, &h5_table);
    h5_loaded = rc == CAIRN_OK;
    if (rc < 0)
        dlclose(library);
    return rc;
}

cairn_status crn_hdf5_lock(const crn_h5 **ret)
{
    pthread_mutex_lock(&h5_mutex);
    cairn_status rc = h5_loaded ? CAIRN_OK : load();
    if (rc < 0) {
        pthread_mutex_unlock(&h5_mutex);
        return rc;
    }
    h5_table.H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* it would print; each thread has its own */
    *ret = &h5_table;
    return CAIRN_OK;
}

const crn_h5 *crn_hdf5_held(void)
{
    return &h5_table;
}

void crn_hdf5_unlock(void)
{
    pthread_mutex_unlock(&h5_mutex);
}

/* The innermost entry says most, and comes first. */
static herr_t keep_first(unsigned n, const H5E_error2_t *e, void *arg)
{
    char *text = arg;
    if (n == 0 && e->desc)
        snprintf(text, 256, ": %s", e->desc);
    return 0;
}

cairn_status crn_hdf5_fail(const crn_h5 *h5, const char *fmt, ...)
{
    char ours[256], theirs[256] = "";
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ours, sizeof ours, fmt, ap);
    va_end(ap);
    h5->H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, theirs);
    h5->H5Eclear2(H5E_DEFAULT);
    return crn_fail(CAIRN_EIO, "%s%s", ours, theirs);
}
