/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In place of what reads HDF5 files, where HDF5 was not there when Cairn was built. No such file is
 * ever open.
 */
#include "diff/diff.h"

static cairn_status refuse(const char *name)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "'%s': this Cairn was built without HDF5", name);
}

cairn_status crn_diff_open_hdf5(diff_file *f, const char *path, bool follow)
{
    (void)path, (void)follow;
    return refuse(f->name);
}

void crn_diff_close_hdf5(diff_file *f)
{
    (void)f;
}

bool crn_diff_forms_like(const diff_array *a, const diff_array *b)
{
    (void)a, (void)b;
    return false;
}

bool crn_diff_form_is_variable(const diff_array *a)
{
    (void)a;
    return false;
}

bool crn_diff_same_types(const diff_array *a, const diff_array *b)
{
    (void)a, (void)b;
    return false;
}

cairn_status crn_diff_file_read(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst)
{
    (void)a, (void)slab, (void)dst;
    return refuse(f->name);
}

cairn_status crn_diff_forms(diff_worker *w, const diff_file file[2], const diff_array *const a[2],
                            const diff_slab *slab, const crn_var_spec *spec, diff_row *row)
{
    (void)w, (void)a, (void)slab, (void)spec, (void)row;
    return refuse(file[0].name);
}
