/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ensembles: the model's side. A model says once which fields make its state, and then advances
 * whatever it is given:
 *
 *     cairn_ensemble *e;
 *     if (cairn_member_open(MPI_COMM_WORLD, nsteps, &e) < 0)
 *         fail(cairn_member_error());
 *     cairn_member_field(e, CAIRN_ASSIMILATED, &(cairn_field){.name = "x", .data = x,
 *         .type = CAIRN_FLOAT64, .ndims = 1, .global = {n}, .offset = {first}, .count = {mine}});
 *     cairn_task task = {.struct_bytes = sizeof task};
 *     while (cairn_member_next(e, &task) > 0)
 *         advance(task.nsteps);
 *     cairn_member_close(e);
 *
 * Started alone, the program runs alone: it gets one task of nsteps steps, from the state that its
 * fields hold. Started by a study, cairn_member_next sends the state that was reached, fills the
 * fields with that of another member, and says how far to advance it.
 *
 * These calls are in libcairn-ensemble (-lcairn-ensemble, Cairn::ensemble). It loads ZeroMQ only in
 * a program that a study has started. All calls are collective over the communicator, and return
 * the same result on all ranks; cairn_member_error() has the sentence about a failure.
 */
#ifndef CAIRN_ENSEMBLE_H
#define CAIRN_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <cairn/error.h>
#include <cairn/state.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_ensemble cairn_ensemble;

/* What a field is to an ensemble. */
typedef enum cairn_role {
    CAIRN_ASSIMILATED = 1, /* part of the state that observations change: float32 or float64 */
    CAIRN_CARRIED = 2,     /* part of the state that goes with its member unchanged; any type */
    CAIRN_PARAMETER = 3    /* changed by observations, left alone by the model; as assimilated */
} cairn_role;

/* What to do next. */
typedef struct cairn_task {
    size_t struct_bytes; /* <cairn/version.h> */
    uint64_t nsteps;     /* to advance the state by */
    uint64_t step;       /* that the state has reached, counted from the study's start */
    uint64_t cycle;      /* from 1 on; 0 when alone */
    uint32_t member;     /* from 0 on */
    uint32_t attempt;    /* from 1 on; 0 when alone */
} cairn_task;

/*
 * Join the ensemble, or notice that there is none.
 *   comm    [in]  the model's processes; duplicated
 *   nsteps  [in]  steps of the one task that it gets when started alone; 0: none
 *   ret     [out] to be closed with cairn_member_close
 * CAIRN_EINVAL, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_member_open(MPI_Comm comm, uint64_t nsteps, cairn_ensemble **ret);

/*
 * Add a field, before the first cairn_member_next, in the same order on all ranks. Its data stays
 * the program's, at the same place until the end. A field with ndims 0 is of a model of one process
 * only, or, with count 0 on all ranks but the first, that rank's own. CAIRN_EINVAL: a name that is
 * taken or not 1 to 63 letters, digits, '.', '_', '-'; a type that the role does not allow; a piece
 * outside of its array; too late. CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_member_field(cairn_ensemble *e, cairn_role role,
                                             const cairn_field *field);

/*
 * Hand over the state that was reached, if there was a task, and get the next: 1 and *task is
 * filled, as are the fields; 0: there is nothing more to do; or a failure. CAIRN_EINVAL,
 * CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_member_next(cairn_ensemble *e, cairn_task *task);

/*
 * The model could not advance the state that it was given: say why, instead of handing over what it
 * has reached. The member is tried again on another runner, and in the end dealt with as the study
 * says. Alone it does nothing. CAIRN_EINVAL.
 */
CAIRN_API CAIRN_CHECK int cairn_member_refuse(cairn_ensemble *e, const char *why);

/* Is there no study, and this a program that runs alone? Not collective. */
CAIRN_API bool cairn_member_is_alone(const cairn_ensemble *e);

/* Leave. NULL is allowed. */
CAIRN_API void cairn_member_close(cairn_ensemble *e);

/* The sentence about the last of these calls that failed on the calling thread. Valid until the
 * thread's next failure. Not collective. Never NULL. */
CAIRN_API const char *cairn_member_error(void);

#ifdef __cplusplus
}
#endif
#endif
