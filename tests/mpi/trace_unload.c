/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loads each module that is named, calls it and unloads it, so that the next one comes to lie where
 * it was. One rank.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        void *module = dlopen(argv[i], RTLD_NOW);
        if (!module)
            return fprintf(stderr, "%s\n", dlerror()), 1;
        int (*call)(void) = (int (*)(void))dlsym(module, "module_call");
        printf("%s: %p, %d\n", argv[i], (void *)call, call());
        dlclose(module);
    }
    return MPI_Finalize();
}
