/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One file of another program: which arrays it has, and how they are read.
 */
#include "diff/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

cairn_status crn_diff_open_plain(diff_file *f, const char *path, uint64_t *ret_nbytes)
{
    CRN_TRY(crn_file_open(AT_FDCWD, path, CRN_READ, &f->file));
    CRN_TRY(crn_file_nbytes(f->file, ret_nbytes));
    if (crn_file_is_cached(f->file, 0, *ret_nbytes))
        return CAIRN_OK;
    crn_file_close(f->file);
    f->file = NULL;
    return crn_file_open(AT_FDCWD, path, CRN_READ | CRN_DIRECT, &f->file);
}

/* --- raw values ----------------------------------------------------------------------------- */

static cairn_status open_raw(diff_file *f, const char *path, const char *type, uint32_t ndims,
                             const uint64_t *shape)
{
    crn_type_tree *tree;
    diff_array a = {.plain = true, .ndims = CRN_MAX(ndims, 1)};
    uint64_t nbytes, wanted = 1;
    CRN_FAIL_IF(ndims > CRN_DIMS_MAX, CAIRN_EINVAL, "%u dimensions, at most %d are possible", ndims,
                CRN_DIMS_MAX);
    CRN_TRY(crn_type_parse(type, &tree));
    a.item = tree->nbytes;
    crn_type_free(tree);
    CRN_TRY(crn_diff_open_plain(f, path, &nbytes));
    CRN_FAIL_IF(nbytes % a.item != 0, CAIRN_EINVAL,
                "'%s' has %" PRIu64 " bytes, which are no whole number of %s values", f->name,
                nbytes, type);
    a.nvalues = a.shape[0] = nbytes / a.item;
    for (uint32_t d = 0; d < a.ndims; d++) {
        a.shape[d] = ndims > 0 ? shape[d] : a.nvalues;
        a.chunk[d] = 1;
        CRN_FAIL_IF(__builtin_mul_overflow(wanted, a.shape[d], &wanted), CAIRN_EINVAL,
                    "there are no arrays of that shape");
    }
    CRN_FAIL_IF(wanted != a.nvalues, CAIRN_EINVAL,
                "'%s' has %" PRIu64 " values, and an array of that shape %" PRIu64, f->name,
                a.nvalues, wanted);
    CRN_TRY(crn_strdup("values", &a.name));
    cairn_status rc = crn_strdup(type, &a.type);
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&f->array, a);
    if (rc < 0)
        crn_diff_array_done(&a);
    return rc;
}

/* --- both ----------------------------------------------------------------------------------- */

cairn_status crn_diff_file_open(diff_file *f, const char *name, const cairn_comparison_options *how)
{
    struct stat st;
    char *path = realpath(name, NULL);
    if (!path || stat(path, &st) < 0) {
        free(path);
        return crn_fail_sys(errno, "cannot open '%s'", name);
    }
    if (!S_ISREG(st.st_mode)) {
        free(path);
        return crn_fail(CAIRN_EINVAL, "'%s' is not a file", name);
    }
    cairn_status rc = crn_strdup(name, &f->name);
    if (rc == CAIRN_OK && how->raw)
        rc = open_raw(f, path, how->raw, how->raw_ndims, how->raw_shape);
    else if (rc == CAIRN_OK)
        rc = crn_diff_open_hdf5(f, path, how->follow);
    free(path);
    return rc;
}

void crn_diff_file_close(diff_file *f)
{
    if (f->hdf5 > 0)
        crn_diff_close_hdf5(f);
    for (size_t i = 0; i < f->array.n; i++)
        crn_diff_array_done(&f->array.at[i]);
    crn_vec_done(&f->array);
    crn_file_close(f->file);
    free(f->name);
}

void crn_diff_array_done(diff_array *a)
{
    free(a->name);
    free(a->type);
    free(a->why);
    free(a->fill);
}
