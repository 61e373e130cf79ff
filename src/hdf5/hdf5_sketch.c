/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that HDF5 writes to memory instead of a disk: a driver of its virtual file layer. The
 * library cannot live with a write that fails when it closes a file: it keeps the file open, and
 * crashes when the program ends. Here no write fails but for want of memory, and what is kept is
 * little: places that are reserved and never written to take none.
 */
#include "hdf5/hdf5.h"

#include <assert.h>

/* The driver's part of an open file; HDF5 knows it by the head. */
typedef struct sketch_file {
    H5FD_t head;
    crn_sketch *sketch;
    haddr_t end; /* of what was allocated */
} sketch_file;

static H5FD_t *sketch_open(const char *name, unsigned flags, hid_t access, haddr_t max)
{
    sketch_file *f;
    crn_sketch *const *sketch = crn_hdf5_held()->H5Pget_driver_info(access);
    (void)name, (void)flags, (void)max;
    if (!sketch || crn_alloc(&f, 1) < 0)
        return NULL;
    f->sketch = *sketch;
    return &f->head;
}

static herr_t sketch_close(H5FD_t *file)
{
    free(file);
    return 0;
}

static herr_t sketch_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t sketch_get_end(const H5FD_t *file, H5FD_mem_t kind)
{
    (void)kind;
    return ((const sketch_file *)file)->end;
}

static herr_t sketch_set_end(H5FD_t *file, H5FD_mem_t kind, haddr_t end)
{
    sketch_file *f = (sketch_file *)file;
    (void)kind;
    f->end = end;
    f->sketch->nbytes = end;
    return 0;
}

static haddr_t sketch_length(const H5FD_t *file, H5FD_mem_t kind)
{
    (void)kind;
    return ((const sketch_file *)file)->sketch->nbytes;
}

/* What was written last counts; what never was is zero. */
static herr_t sketch_read(H5FD_t *file, H5FD_mem_t kind, hid_t transfer, haddr_t at, size_t nbytes,
                          void *data)
{
    const crn_sketch *s = ((sketch_file *)file)->sketch;
    (void)kind, (void)transfer;
    memset(data, 0, nbytes);
    for (size_t i = 0; i < s->piece.n; i++) {
        const crn_sketch_piece *p = &s->piece.at[i];
        const uint64_t from = CRN_MAX(p->off, at), end = CRN_MIN(p->off + p->nbytes, at + nbytes);
        if (from < end)
            memcpy((unsigned char *)data + (from - at), p->data + (from - p->off), end - from);
    }
    return 0;
}

static herr_t sketch_write(H5FD_t *file, H5FD_mem_t kind, hid_t transfer, haddr_t at, size_t nbytes,
                           const void *data)
{
    crn_sketch *s = ((sketch_file *)file)->sketch;
    crn_sketch_piece p = {.off = at, .nbytes = nbytes};
    (void)kind, (void)transfer;
    if (crn_vec_reserve(&s->piece, 1) < 0 || crn_alloc(&p.data, nbytes) < 0)
        return -1;
    memcpy(p.data, data, nbytes);
    s->piece.at[s->piece.n++] = p;
    return 0;
}

const H5FD_class_t crn_sketch_driver = {
#ifdef H5FD_CLASS_VERSION /* since HDF5 1.14 */
    .version = H5FD_CLASS_VERSION,
    .value = 300, /* of the range for drivers that no file names */
#endif
    .name = "cairn sketch",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(crn_sketch *),
    .open = sketch_open,
    .close = sketch_close,
    .query = sketch_query,
    .get_eoa = sketch_get_end,
    .set_eoa = sketch_set_end,
    .get_eof = sketch_length,
    .read = sketch_read,
    .write = sketch_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

cairn_status crn_sketch_begin(const crn_h5 *h5, hid_t access, crn_sketch *s)
{
    *s = (crn_sketch){0};
    if (h5->H5Pset_driver(access, h5->sketch_driver, &s) < 0)
        return crn_hdf5_fail(h5, "HDF5 does not take a driver");
    return CAIRN_OK;
}

void crn_sketch_done(crn_sketch *s)
{
    for (size_t i = 0; i < s->piece.n; i++)
        free(s->piece.at[i].data);
    crn_vec_done(&s->piece);
}
