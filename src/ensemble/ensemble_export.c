/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States of a study as HDF5 files, for other programs: hdf5/analysis-<cycle>.h5, written by the
 * keeper while members propagate, and hdf5/background-<cycle>.h5. Backgrounds change with the first
 * result of the next cycle, so the keeper has a copy of them. Of several ranks, each writes what is
 * at home there, one after the other: the first makes the file, the last gives it its name.
 */
#include "ensemble/ensemble_server.h"

#include <errno.h>
#include <sys/stat.h>

#include "ensemble/ensemble_hdf5.h"

static bool has_background(const crn_server *s)
{
    return s->study->hdf5 == CRN_HDF5_BOTH && s->keeper.cycle > 0;
}

static cairn_status gather_copies(crn_server *s, cairn_status rc)
{
    uint8_t *active = NULL;
    if (rc == CAIRN_OK)
        rc = crn_alloc(&active, s->nmembers);
    rc = crn_comm_agree(s->ranks.comm, rc);
    for (uint32_t m = 0; rc == CAIRN_OK && m < s->nmembers; m++)
        active[m] = s->member[m].state != CRN_MEMBER_DROPPED;
    if (rc == CAIRN_OK)
        rc = crn_ranks_gather(s, active, s->background, s->keeper.copy);
    free(active);
    return rc;
}

cairn_status crn_export_prepare(crn_server *s)
{
    crn_keeper *k = &s->keeper;
    if (!has_background(s))
        return CAIRN_OK;
    cairn_status rc = CAIRN_OK;
    if (!k->copy)
        rc = crn_alloc(&k->copy, s->nmembers);
    for (uint32_t m = 0; rc == CAIRN_OK && m < s->nmembers; m++) {
        if (!k->copy[m] && crn_ranks_has_home(&s->ranks, m))
            rc = crn_alloc(&k->copy[m], s->layout.nbytes);
        if (rc == CAIRN_OK && s->ranks.size == 1)
            memcpy(k->copy[m], s->background[m], s->layout.nbytes);
    }
    return s->ranks.size > 1 ? gather_copies(s, rc) : rc;
}

void crn_export_done(crn_server *s)
{
    for (uint32_t m = 0; s->keeper.copy && m < s->nmembers; m++)
        free(s->keeper.copy[m]);
    free(s->keeper.copy);
}

static cairn_status write_one(crn_server *s, const char *what, unsigned char *const *state)
{
    char name[64], *path;
    uint32_t *member, n = 0;
    unsigned char **active;
    snprintf(name, sizeof name, "hdf5/%s-%06u.h5", what, s->keeper.cycle);
    CRN_TRY(crn_alloc(&member, s->nmembers));
    cairn_status rc = crn_alloc(&active, s->nmembers);
    if (rc == CAIRN_OK)
        rc = crn_study_path(s->study, name, &path);
    if (rc == CAIRN_OK) {
        for (uint32_t m = 0; m < s->nmembers; m++)
            if (s->member[m].state != CRN_MEMBER_DROPPED) {
                member[n] = m;
                active[n++] = crn_ranks_has_home(&s->ranks, m) ? state[m] : NULL;
            }
        const crn_ensemble_turn turn = {s->ranks.rank == 0, s->ranks.rank + 1 == s->ranks.size};
        rc = crn_ensemble_write(path, &s->layout, active, member, n, turn);
        free(path);
        free(active);
    }
    free(member);
    return rc;
}

cairn_status crn_export_write(crn_server *s)
{
    char *folder;
    if (s->study->hdf5 == CRN_HDF5_NONE)
        return CAIRN_OK;
    CRN_TRY(crn_study_path(s->study, "hdf5", &folder));
    int made = mkdir(folder, 0700) == 0 || errno == EEXIST;
    cairn_status rc = made ? CAIRN_OK : crn_fail_sys(errno, "cannot make '%s'", folder);
    free(folder);
    if (rc == CAIRN_OK && has_background(s))
        rc = write_one(s, "background", s->keeper.copy);
    return rc < 0 ? rc : write_one(s, "analysis", s->whole);
}
