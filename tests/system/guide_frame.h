/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What fragments of programs in the guides take for granted.
 */
#include <cairn/cairn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct particle {
    uint64_t id;
    double x;
} particle;

typedef struct simulation {
    MPI_Comm comm;
    cairn *c;
} simulation;

extern cairn *c;
extern cairn_shelf *s;
extern uint64_t step, nsteps, first, global, cell[], nitems[];
extern double *field, *data, viscosity;
extern size_t n, ncells;
extern int argc, given;
extern char **argv;
extern cairn_type particle_type;
extern cairn_var species;
extern double *table, *species_data;
void fail(const char *why);
void give_up(const char *why);
void advance(double *field);
void prepare(double *table);
void react(double *species);
size_t sum(const uint64_t *of);
void decompose(simulation *s);
void protect(simulation *s);
int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *ret);
