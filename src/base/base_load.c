/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <dlfcn.h>
#include <stdatomic.h>

static cairn_status load(crn_library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    CRN_FAIL_IF(!handle, CAIRN_EUNSUPPORTED, "cannot load a library: %s", dlerror());
    for (size_t i = 0; library->names[i]; i++) {
        library->calls[i] = dlsym(handle, library->names[i]);
        CRN_FAIL_IF(!library->calls[i], CAIRN_EUNSUPPORTED, "library '%s' has no %s", library->file,
                    library->names[i]);
    }
    atomic_store(&library->loaded, true);
    return CAIRN_OK;
}

cairn_status crn_library_load(crn_library *library)
{
    if (atomic_load_explicit(&library->loaded, memory_order_acquire))
        return CAIRN_OK;
    pthread_mutex_lock(&library->mutex);
    cairn_status rc = atomic_load(&library->loaded) ? CAIRN_OK : load(library);
    pthread_mutex_unlock(&library->mutex);
    return rc;
}
