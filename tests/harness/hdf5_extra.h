/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of HDF5 that Cairn itself has no use for, from the library that it has loaded:
 *
 *     w->library = hdf5_library();
 *     EXTRA(w, H5Pset_chunk)(properties, 1, &chunk);
 *     dlclose(w->library);
 */
#ifndef CAIRN_TESTS_HARNESS_HDF5_EXTRA_H
#define CAIRN_TESTS_HARNESS_HDF5_EXTRA_H

#include <dlfcn.h>

#include "harness/harness.h"

#include "hdf5/hdf5.h"

#define EXTRA(w, name) ((__typeof__(name) *)hdf5_symbol((w)->library, #name))

/* Cairn must have loaded it. */
static inline void *hdf5_library(void)
{
    void *library = dlopen(CRN_HDF5_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    return library;
}

static inline void *hdf5_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    return symbol;
}

#endif
