/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking hold of a run, and letting go of it. Rank 0 opens the trail, finds or makes the run and
 * holds its lock; the others learn from it which run it is.
 */
#include "ckpt/ckpt_holding.h"

void crn_holding_init(crn_holding *h)
{
    *h = (crn_holding){.oldest_series = 1};
    pthread_mutex_init(&h->events_mutex, NULL);
}

void crn_holding_done(crn_holding *h)
{
    const crn_err why = *crn_err_peek();
    crn_vault_free(h->vault);
    crn_run_close(h->run);
    crn_trail_close(h->trail);
    crn_comm_free(h->comm);
    crn_vec_done(&h->mark);
    crn_config_free(h->cfg);
    pthread_mutex_destroy(&h->events_mutex);
    free(h->local);
    free(h->name);
    (void)crn_err_give(&why);
}

void crn_holding_leave(crn_holding *h, void (*drop)(crn_comm *comm))
{
    h->home = crn_vault_home(h->vault);
    crn_vault_free(h->vault);
    crn_run_close(h->run);
    drop(h->comm);
    h->vault = NULL;
    h->run = NULL;
    h->comm = NULL;
    h->mark.n = 0;
    crn_holding_touch(h, 0);
    h->retained = false;
    h->series = 0;
}

/* --- configuration ------------------------------------------------------------------------ */

/* Ranks with different settings would wait for each other for ever: refuse them here. */
static cairn_status check_same_config(crn_holding *h)
{
    crn_buf b = {0};
    crn_config_put(h->cfg, &b);
    crn_digest mine = crn_digest_of(b.at, b.n), first = mine;
    cairn_status rc = crn_buf_status(&b);
    crn_buf_done(&b);
    CRN_TRY(crn_comm_agree(h->comm, rc));
    CRN_TRY(crn_comm_bcast(h->comm, &first, sizeof first, 0));
    if (!crn_digest_equal(&mine, &first))
        rc = crn_fail(CAIRN_EINVAL,
                      "rank %d has another configuration than rank 0: give all ranks the same file "
                      "and the same CAIRN_* variables",
                      crn_comm_rank(h->comm));
    return crn_comm_agree(h->comm, rc);
}

static cairn_status read_config(crn_holding *h, const char *path)
{
    cairn_status rc = crn_config_load(path, &h->cfg);
    if (rc == CAIRN_OK)
        rc = crn_codec_check_configured(h->cfg);
    if (rc == CAIRN_OK)
        rc = crn_log_init(&h->log, crn_comm_rank(h->comm));
    CRN_TRY(crn_comm_agree(h->comm, rc));
    return check_same_config(h);
}

/* --- the run ------------------------------------------------------------------------------ */

/* Open the run that rank 0 has described, without a lock. */
static cairn_status attach_run(crn_holding *h, const crn_buf *b)
{
    char name[CRN_VAR_NAME + 1];
    crn_manifest m = {0};
    crn_cursor cur = crn_cursor_of(b->at, b->n);
    crn_get_str(&cur, name, sizeof name - 1);
    CRN_TRY(crn_manifest_parse(cur.at, cur.n, &m));
    const char *trail = crn_config_text(h->cfg, CRN_OPT_RUN_TRAIL);
    cairn_status rc = h->trail ? CAIRN_OK : crn_trail_open(trail, false, &h->trail);
    if (rc == CAIRN_OK)
        rc = crn_run_attach(h->trail, name, &m, &h->run);
    crn_manifest_done(&m);
    return rc;
}

/* Tell the other ranks the run's name and manifest. */
static cairn_status share_run(crn_holding *h)
{
    crn_buf b = {0};
    uint64_t nbytes = 0;
    cairn_status rc = CAIRN_OK;
    const bool root = crn_comm_rank(h->comm) == 0;
    if (root) {
        crn_put_str(&b, crn_run_name(h->run));
        crn_manifest_put(crn_run_manifest(h->run), &b);
        rc = crn_buf_status(&b);
        nbytes = b.n;
    }
    CRN_TRY_OUT(rc, crn_comm_agree(h->comm, rc));
    CRN_TRY_OUT(rc, crn_comm_bcast(h->comm, &nbytes, sizeof nbytes, 0));
    if (!root)
        rc = crn_vec_reserve(&b, nbytes);
    CRN_TRY_OUT(rc, crn_comm_agree(h->comm, rc));
    b.n = nbytes;
    CRN_TRY_OUT(rc, crn_comm_bcast(h->comm, b.at, nbytes, 0));
    rc = crn_comm_agree(h->comm, root ? CAIRN_OK : attach_run(h, &b));
out:
    crn_buf_done(&b);
    return rc;
}

void crn_holding_choose_series(crn_holding *h)
{
    const crn_manifest_mark *newest = h->mark.n > 0 ? &h->mark.at[h->mark.n - 1] : NULL;
    h->series = 0;
    for (size_t i = 0; i < h->mark.n; i++)
        h->series = CRN_MAX(h->series, h->mark.at[i].series);
    if (newest && newest->nranks == (uint32_t)crn_comm_size(h->comm))
        h->series = newest->series;
    else
        h->series++;
}

/* The marks of the run, and where this leg writes to. */
static cairn_status take_over(crn_holding *h)
{
    const crn_manifest *m = crn_run_manifest(h->run);
    CRN_TRY(crn_vec_reserve(&h->mark, m->mark.n));
    for (size_t i = 0; i < m->mark.n; i++)
        h->mark.at[h->mark.n++] = m->mark.at[i];
    crn_holding_choose_series(h);
    return CAIRN_OK;
}

static cairn_status open_vault(crn_holding *h)
{
    const crn_vault_options opt = {
        .run = h->run,
        .series = h->series,
        .local = h->local,
        .node_size = (int)crn_config_count(h->cfg, CRN_OPT_LEVEL_NODE_SIZE),
        .home = h->home,
        .group = (int)crn_config_count(h->cfg, CRN_OPT_LEVEL_GROUP),
        .nparity = (int)crn_config_count(h->cfg, CRN_OPT_LEVEL_PARITY),
        .form = (crn_form)crn_config_word(h->cfg, CRN_OPT_GLOBAL_FORMAT),
        .frame = crn_ckpt_frame,
        .part = {.backend = (crn_io_backend)crn_config_word(h->cfg, CRN_OPT_IO_BACKEND),
                 .depth = (unsigned)crn_config_count(h->cfg, CRN_OPT_IO_DEPTH),
                 .direct = crn_config_bool(h->cfg, CRN_OPT_IO_DIRECT)},
        .codec = crn_ckpt_codec,
        .codec_arg = h->cfg,
    };
    return crn_vault_create(h->comm, &opt, &h->vault);
}

cairn_status crn_holding_configure(crn_holding *h, const char *config)
{
    CRN_TRY(read_config(h, config));
    return crn_comm_agree(h->comm, crn_holding_find_local(h));
}

cairn_status crn_holding_join(crn_holding *h, const char *config, crn_find_fn *find)
{
    CRN_TRY(crn_holding_configure(h, config));
    return crn_holding_enter(h, find);
}

cairn_status crn_holding_enter(crn_holding *h, crn_find_fn *find)
{
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(h->comm) == 0)
        rc = find(h);
    CRN_TRY(crn_comm_agree(h->comm, rc));
    CRN_TRY(share_run(h));
    CRN_TRY(crn_comm_agree(h->comm, take_over(h)));
    CRN_TRY(open_vault(h));
    return crn_holding_recover(h, find == crn_find_or_begin);
}
