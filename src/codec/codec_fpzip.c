/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fpzip over one-dimensional data, all bits of each value: its stream. The library's decoder has no
 * notion of the end of its input.
 */
#include <fpzip.h>

#include "codec/codec_ops.h"

#include <limits.h>

/* In the decoder's own process they are linked; elsewhere they are loaded. */
#define FPZIP_CALLS(X)                                                                             \
    X(fpzip_write_to_buffer)                                                                       \
    X(fpzip_write) X(fpzip_write_close) X(fpzip_read_from_buffer) X(fpzip_read) X(fpzip_read_close)
#define MEMBER(name) __typeof__(name) *name;
static struct {
    FPZIP_CALLS(MEMBER)
} lib
#ifdef CRN_CODEC_LINKED
#define ADDRESS(name) name,
    = {FPZIP_CALLS(ADDRESS)};
#define READY NULL
#else
    ;
#define NAME(name) #name,
static const char *const names[] = {FPZIP_CALLS(NAME) NULL};
static crn_library library = {CRN_FPZIP_LIBRARY, names, (void **)&lib, PTHREAD_MUTEX_INITIALIZER,
                              false};

static cairn_status ready(void)
{
    return crn_library_load(&library);
}
#define READY      ready
#endif

static void describe(FPZ *fpz, crn_elem elem, size_t nbytes)
{
    fpz->type = elem == CRN_ELEM_F64 ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = 0; /* all */
    fpz->nx = (int)(nbytes / crn_elem_nbytes(elem));
    fpz->ny = fpz->nz = fpz->nf = 1;
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)work;
    if (nbytes > INT_MAX)
        return CAIRN_NOTHING;
    FPZ *fpz = lib.fpzip_write_to_buffer(dst, cap);
    CRN_FAIL_IF(!fpz, CAIRN_ENOMEM, "no memory for fpzip");
    describe(fpz, elem, nbytes);
    size_t n = lib.fpzip_write(fpz, src);
    lib.fpzip_write_close(fpz);
    if (n == 0) /* most likely more than cap */
        return CAIRN_NOTHING;
    *ret_n = n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    if (nbytes > INT_MAX)
        return false;
    FPZ *fpz = lib.fpzip_read_from_buffer(src);
    if (!fpz)
        return false;
    describe(fpz, elem, nbytes);
    bool good = lib.fpzip_read(fpz, dst) == n;
    lib.fpzip_read_close(fpz);
    return good;
}

const crn_codec_ops crn_codec_fpzip = {
    .name = "fpzip",
    .id = 4,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .ready = READY,
    .encode = encode,
    .decode = decode,
};
