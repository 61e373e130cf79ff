/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the accesses of a rank to its files go, one after the other: on where the one before
 * ended, by the same distance as before, or elsewhere. Positions follow from what is opened,
 * sought, read and written, whether a call says its offset or goes by the file's pointer.
 */
#include "traceview/traceview.h"

enum { FILES_MAX = 1 << 20, WHENCE_SET = 0, WHENCE_CUR = 1 };

void crn_positions_done(crn_positions *p)
{
    crn_vec_done(&p->fd);
    crn_vec_done(&p->file);
}

/* The state of the file that a column names; NULL if there is no memory, or no such column. */
static crn_position *position_at(crn_positions *p, const crn_traced_event *e, int fd, int file)
{
    crn_position_list *list = file >= 0 ? &p->file : &p->fd;
    const int64_t number = file >= 0 ? e->value[file] : fd >= 0 ? e->value[fd] : -1;
    if (number < 0 || number >= FILES_MAX)
        return NULL;
    while (list->n <= (size_t)number) {
        if (crn_vec_push(list, (crn_position){.unit = 1}) < 0)
            return NULL;
    }
    return &list->at[number];
}

/* The last offset of a call is the one that it results in. */
static int last_offset(const crn_traced_event *e)
{
    int at = -1;
    for (int i = crn_event_find(e, CRN_KIND_OFFSET, 0); i >= 0;
         i = crn_event_find(e, CRN_KIND_OFFSET, i + 1))
        at = i;
    return at;
}

/* A damaged trace may have any numbers: they wrap. */
static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t in_bytes(const crn_position *x, int64_t off)
{
    return (int64_t)((uint64_t)off * (uint64_t)x->unit);
}

static void seek(crn_position *x, const crn_traced_event *e)
{
    const int at = last_offset(e), whence = crn_event_find(e, CRN_KIND_INT, 0);
    if (e->place->call == CRN_CALL_lseek)
        x->pointer = e->value[at];
    else if (whence >= 0 && e->value[whence] == WHENCE_SET)
        x->pointer = in_bytes(x, e->value[at]);
    else if (whence >= 0 && e->value[whence] == WHENCE_CUR && x->pointer >= 0)
        x->pointer = sum(x->pointer, in_bytes(x, e->value[at]));
    else
        x->pointer = -1; /* from the end, which nobody knows */
}

/* Offsets of MPI count elementary types of the view, which starts again at its first byte. */
static void set_view(const crn_trace *t, crn_position *x, const crn_traced_event *e)
{
    const int type = crn_event_find(e, CRN_KIND_TYPE, 0);
    const bool known = type >= 0 && (uint64_t)e->value[type] < t->ntypes;
    *x = (crn_position){.unit = known ? (int64_t)t->type[e->value[type]].nbytes : 1};
}

static crn_step access_step(crn_position *x, int64_t off, int64_t nbytes)
{
    const int64_t step = (int64_t)((uint64_t)off - (uint64_t)x->off);
    crn_step s = CRN_STEP_NONE;
    if (x->naccesses > 0)
        s = off == x->end                              ? CRN_STEP_CONSECUTIVE
            : x->naccesses > 1 && step == x->last_step ? CRN_STEP_STRIDED
                                                       : CRN_STEP_OTHER;
    if (x->naccesses == 1 && s == CRN_STEP_OTHER)
        s = CRN_STEP_STRIDED; /* the first of a series, or the only one */
    x->last_step = step;
    x->off = off;
    x->end = sum(off, nbytes);
    x->naccesses++;
    return s;
}

crn_step crn_positions_next(crn_positions *p, const crn_trace *t, const crn_view *v)
{
    const crn_traced_event *e = v->e;
    const int fd = crn_event_find(e, CRN_KIND_FD, 0), file = crn_event_find(e, CRN_KIND_FILE, 0);
    const int new_fd = crn_event_find(e, CRN_KIND_FD_NEW, 0);
    const int new_file = crn_event_find(e, CRN_KIND_FILE_NEW, 0);
    crn_position *x;
    if ((new_fd >= 0 || new_file >= 0) && (x = position_at(p, e, new_fd, new_file)))
        *x = (crn_position){.unit = 1};
    if ((fd < 0 && file < 0) || !(x = position_at(p, e, fd, file)))
        return CRN_STEP_NONE;
    const uint32_t call = e->place->call;
    if (call == CRN_CALL_lseek || call == CRN_CALL_MPI_File_seek)
        seek(x, e);
    else if (call == CRN_CALL_MPI_File_set_view)
        set_view(t, x, e);
    if (!crn_call_has(call, CRN_TRAIT_READS | CRN_TRAIT_WRITES) || v->event->nbytes == 0 ||
        crn_call_has(call, CRN_TRAIT_SHARED))
        return CRN_STEP_NONE;
    const int at = crn_event_find(e, CRN_KIND_OFFSET, 0);
    const int64_t nbytes = (int64_t)v->event->nbytes;
    if (at >= 0)
        return access_step(x, in_bytes(x, e->value[at]), nbytes);
    if (x->pointer < 0)
        return CRN_STEP_NONE;
    const int64_t off = x->pointer;
    x->pointer = sum(off, nbytes);
    return access_step(x, off, nbytes);
}
