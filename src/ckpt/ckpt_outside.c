/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Global marks as HDF5: what a session adds to the files that the level makes.
 */
#include "exchange/exchange.h"
#include "ckpt/ckpt_holding.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

static const char series_name[] = "run.xmf"; /* the run as a time series, in its directory */

static char *xdmf_name(uint64_t version, char buf[CRN_OUTSIDE_NAME])
{
    snprintf(buf, CRN_OUTSIDE_NAME, "mark-%" PRIu64 ".xmf", version);
    return buf;
}

cairn_status crn_ckpt_frame(int dirfd, const char *name, crn_frame *f, bool pieces)
{
    char xdmf[CRN_OUTSIDE_NAME], h5[CRN_OUTSIDE_NAME];
    CRN_TRY(crn_hdf5_frame(dirfd, name, f, pieces));
    if (f->nranks == 0) /* a rank's own: the master's fields are those to look at */
        return CAIRN_OK;
    crn_outside_name(f->version, CRN_ALL_RANKS, h5);
    return crn_xdmf_write(dirfd, xdmf_name(f->version, xdmf), f, h5);
}

/* The moment of one mark; one without fields, or in part files, has none, and one that a loss of
 * power emptied is none. */
static cairn_status add_moment(crn_holding *h, const crn_manifest_mark *mark, crn_buf *b,
                               uint64_t *n)
{
    char name[CRN_OUTSIDE_NAME], before[32];
    int dir;
    cairn_status rc = crn_run_series_dir(h->run, mark->series, false, &dir);
    if (rc == CAIRN_OK) {
        snprintf(before, sizeof before, "series-%" PRIu32 "/", mark->series);
        rc = crn_xdmf_add(b, dir, xdmf_name(mark->version, name), before);
        *n += rc == CAIRN_OK;
        close(dir);
    }
    return rc == CAIRN_ENOTFOUND || rc == CAIRN_ECORRUPT ? CAIRN_OK : rc;
}

/* A series without moments is none: viewers would stumble over it. */
static cairn_status write_series(crn_holding *h)
{
    crn_buf b = {0};
    uint64_t n = 0;
    cairn_status rc = CAIRN_OK;
    crn_xdmf_begin(&b);
    for (size_t i = 0; i < h->mark.n && rc == CAIRN_OK; i++)
        if (h->mark.at[i].levels & CRN_IN_TRAIL)
            rc = add_moment(h, &h->mark.at[i], &b, &n);
    if (rc == CAIRN_OK && n > 0)
        rc = crn_xdmf_end(&b, crn_run_fd(h->run), series_name);
    else if (rc == CAIRN_OK && crn_unlink(crn_run_fd(h->run), series_name) < 0)
        rc = crn_err_peek()->code == CAIRN_ENOTFOUND ? CAIRN_OK : crn_err_peek()->code;
    crn_buf_done(&b);
    return rc;
}

void crn_holding_tell_viewers(crn_holding *h)
{
    if (crn_comm_rank(h->comm) != 0)
        return;
    /* a run that had marks as HDF5 before has a series, too */
    if (crn_config_word(h->cfg, CRN_OPT_GLOBAL_FORMAT) == CRN_FORM_PARTS &&
        faccessat(crn_run_fd(h->run), series_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    const crn_err before = *crn_err_peek();
    if (write_series(h) < 0) { /* the marks are there all the same */
        crn_log_write(&h->log, CRN_LOG_WARN, CRN_LOG_EACH, "%s", crn_err_peek()->text);
        (void)crn_err_give(&before);
    }
}
