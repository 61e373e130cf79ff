/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening and closing a session. Rank 0 opens the trail, finds or makes the run and holds its lock;
 * the others learn from it which run it is.
 */
#include <mpi.h>

#include "ckpt/ckpt_session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

void crn_ckpt_free(cairn *c)
{
    if (!c)
        return;
    crn_finale_free(c->finale);
    crn_signals_done(c);
    crn_engine_stop(c);
    crn_ckpt_trees_free(c->trees);
    crn_reference_free(c->reference);
    pthread_mutex_destroy(&c->events_mutex);
    crn_vault_free(c->vault);
    crn_run_close(c->run);
    crn_trail_close(c->trail);
    while (c->var.n > 0)
        crn_ckpt_undeclare(c, &c->var.at[c->var.n - 1]);
    crn_vec_done(&c->var);
    crn_index_done(&c->var_name);
    crn_tracker_free(c->tracker);
    crn_tally_reset(c);
    for (size_t i = 0; i < c->type.n; i++)
        free(c->type.at[i].text);
    crn_vec_done(&c->type);
    crn_vec_done(&c->mark);
    crn_comm_free(c->engine_comm);
    crn_comm_free(c->comm);
    crn_config_free(c->cfg);
    free(c->local);
    free(c->name);
    free(c->identity);
    free(c);
}

/* --- configuration ------------------------------------------------------------------------ */

/* Ranks with different settings would wait for each other for ever: refuse them here. */
static cairn_status check_same_config(cairn *c)
{
    crn_buf b = {0};
    crn_config_put(c->cfg, &b);
    crn_digest mine = crn_digest_of(b.at, b.n), first = mine;
    cairn_status rc = crn_buf_status(&b);
    crn_buf_done(&b);
    CRN_TRY(crn_comm_agree(c->comm, rc));
    CRN_TRY(crn_comm_bcast(c->comm, &first, sizeof first, 0));
    if (!crn_digest_equal(&mine, &first))
        rc = crn_fail(CAIRN_EINVAL,
                      "rank %d has another configuration than rank 0: give all ranks the same file "
                      "and the same CAIRN_* variables",
                      crn_comm_rank(c->comm));
    return crn_comm_agree(c->comm, rc);
}

static cairn_status read_config(cairn *c, const char *path)
{
    cairn_status rc = crn_config_load(path, &c->cfg);
    if (rc == CAIRN_OK)
        rc = crn_log_init(&c->log, crn_comm_rank(c->comm));
    CRN_TRY(crn_comm_agree(c->comm, rc));
    return check_same_config(c);
}

/* The program may go to another directory, and the path must still mean the same. */
static cairn_status make_absolute(const char *path, char **ret)
{
    char here[PATH_MAX] = "", whole[2 * PATH_MAX];
    const bool relative = *path != '/';
    if (relative && !getcwd(here, sizeof here))
        return crn_fail_sys(errno, "level.local: cannot tell which directory '%s' lies in", path);
    snprintf(whole, sizeof whole, "%s%s%s", here, relative ? "/" : "", path);
    return crn_strdup(whole, ret);
}

/*
 * The k-th directory below base that this user's files may lie in. All ranks of a node, and those
 * that restart the run, choose the same: one that is there and private, before one that is to be
 * made. CAIRN_EMISMATCH: another user has taken the name, or base is not fit.
 */
static cairn_status try_local(const char *base, int k, bool make, char *path, size_t cap)
{
    char own[32];
    int fd;
    snprintf(own, sizeof own, k > 0 ? "cairn-%ld-%d" : "cairn-%ld", (long)geteuid(), k);
    int n = snprintf(path, cap, "%s/%s", base, own);
    CRN_FAIL_IF(n < 0 || (size_t)n >= cap, CAIRN_EINVAL, "'%s' is too long", base);
    cairn_status rc = crn_dir_check_private(path);
    if (rc != CAIRN_ENOTFOUND || !make)
        return rc;
    CRN_TRY(crn_dir_open(AT_FDCWD, path, true, &fd));
    close(fd);
    return crn_dir_check_private(path);
}

static cairn_status choose_below(cairn *c, const char *base)
{
    enum { NTRIES = 8 };
    char path[PATH_MAX];
    cairn_status rc = CAIRN_ENOTFOUND;
    crn_err first = {0};
    for (int k = 0; k < 2 * NTRIES; k++) {
        rc = try_local(base, k % NTRIES, k >= NTRIES, path, sizeof path);
        if (rc == CAIRN_EMISMATCH && !first.code)
            first = *crn_err_peek();
        if (rc == CAIRN_OK) {
            if (first.code)
                crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_EACH,
                              "%s: node-local files go to '%s' instead", first.text, path);
            return crn_strdup(path, &c->local);
        }
        if (rc != CAIRN_ENOTFOUND && rc != CAIRN_EMISMATCH)
            return rc;
    }
    return first.code ? crn_err_give(&first) : rc;
}

/* Below $TMPDIR, or /tmp where that will not do. Links in the name of $TMPDIR are its owner's. */
static cairn_status choose_local(cairn *c)
{
    const char *tmp = getenv("TMPDIR");
    char base[PATH_MAX];
    if (tmp && *tmp && realpath(tmp, base)) {
        if (choose_below(c, base) == CAIRN_OK)
            return CAIRN_OK;
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_EACH,
                      "TMPDIR: %s: node-local files go below '/tmp' instead", crn_err_peek()->text);
    }
    cairn_status rc = realpath("/tmp", base) ? choose_below(c, base) : CAIRN_ENOTFOUND;
    if (rc < 0)
        crn_err_prefix("no node-local directory (name one by level.local, or say 'trail'): ");
    return rc;
}

/* Where this node's storage is, as the configuration says. */
static cairn_status find_local(cairn *c)
{
    const char *text = crn_config_text(c->cfg, CRN_OPT_LEVEL_LOCAL);
    if (strcmp(text, "trail") == 0)
        return CAIRN_OK;
    if (strcmp(text, "auto") != 0) {
        /* what a person names may be a link, as scratch directories often are; what we choose
         * ourselves, below a directory that all may write to, may not */
        c->local = realpath(text, NULL);
        return c->local ? CAIRN_OK : make_absolute(text, &c->local);
    }
    return choose_local(c);
}

/* --- the run ------------------------------------------------------------------------------ */

/* A run that may be the one to continue. */
typedef struct candidate {
    bool marked;
    uint64_t created_ns;
    char *name; /* NULL: none so far */
} candidate;

/*
 * Take a run into *best if it is not finished and better than that one. A run that cannot be read
 * is not passed over: the program would begin anew, and nobody would know why. One that is not
 * found was never begun.
 */
static cairn_status consider(cairn *c, const char *name, candidate *best)
{
    crn_run *run;
    char *copy;
    cairn_status rc = crn_run_open(c->trail, name, false, &run);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    if (rc < 0) {
        crn_err_prefix("run '%s' may be the one to continue; set run.name if not: ", name);
        return rc;
    }
    const crn_manifest *m = crn_run_manifest(run);
    const candidate this = {m->mark.n > 0, m->created_ns, NULL};
    const bool better =
        this.marked != best->marked ? this.marked : this.created_ns >= best->created_ns;
    if (!m->finished && better && (rc = crn_strdup(name, &copy)) == CAIRN_OK) {
        free(best->name);
        *best = this;
        best->name = copy;
    }
    crn_run_close(run);
    return rc;
}

/* The name of the run that was begun last and is not finished, or NULL. One without marks, as a
 * program leaves that was killed early, does not hide one that has some. Tasks of a job array look
 * at their own. */
static cairn_status name_newest(cairn *c, char **ret)
{
    char **names;
    size_t n;
    candidate best = {0};
    crn_job_task task;
    const bool any = !crn_job_task_find(&task);
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trail_runs(c->trail, &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && (any || crn_job_task_fits(&task, names[i])))
            rc = consider(c, names[i], &best);
        free(names[i]);
    }
    free(names);
    if (rc == CAIRN_OK)
        *ret = best.name;
    else
        free(best.name);
    return rc;
}

cairn_status crn_ckpt_newest_unfinished(cairn *c, crn_run **ret)
{
    for (;;) {
        char *name = NULL;
        crn_run *run = NULL;
        CRN_TRY(name_newest(c, &name));
        cairn_status rc = name ? crn_run_open(c->trail, name, true, &run) : CAIRN_OK;
        free(name);
        CRN_TRY(rc);
        if (!run || !crn_run_manifest(run)->finished) {
            *ret = run;
            return CAIRN_OK;
        }
        crn_run_close(run); /* its program came to its end before we had the lock */
    }
}

/* A task of a job array gives its run a name by which it finds it again. */
static cairn_status begin_run(cairn *c)
{
    char name[CRN_JOB_NAME];
    crn_job_task task;
    crn_run *there;
    if (!crn_job_task_find(&task))
        return crn_run_create(c->trail, NULL, &c->run);
    for (unsigned n = 1;; n++) {
        cairn_status rc = crn_run_open(c->trail, crn_job_task_name(&task, n, name), false, &there);
        if (rc == CAIRN_ENOTFOUND)
            return crn_run_create(c->trail, name, &c->run);
        CRN_TRY(rc);
        crn_run_close(there);
    }
}

/* On rank 0: continue a run, or begin one. */
static cairn_status find_or_begin(cairn *c)
{
    const char *name = crn_config_text(c->cfg, CRN_OPT_RUN_NAME);
    if (*name == 0) {
        CRN_TRY(crn_ckpt_newest_unfinished(c, &c->run));
        return c->run ? CAIRN_OK : begin_run(c);
    }
    cairn_status rc = crn_run_open(c->trail, name, true, &c->run);
    if (rc == CAIRN_ENOTFOUND)
        return crn_run_create(c->trail, name, &c->run);
    CRN_TRY(rc);
    CRN_FAIL_IF(crn_run_manifest(c->run)->finished, CAIRN_EINVAL,
                "run '%s' came to its end: choose another name, or none", name);
    return CAIRN_OK;
}

/* Of two programs that start at the same time, the second must see the run that the first begins.
 */
static cairn_status find_run(cairn *c)
{
    crn_file *lock;
    CRN_TRY(crn_trail_open(crn_config_text(c->cfg, CRN_OPT_RUN_TRAIL), true, &c->trail));
    /* the words stand in the order of crn_share */
    CRN_TRY(crn_trail_share(c->trail, (crn_share)crn_config_word(c->cfg, CRN_OPT_RUN_MODE)));
    CRN_TRY(crn_trail_lock(c->trail, &lock));
    if (lock)
        crn_trail_sweep(c->trail);
    cairn_status rc = find_or_begin(c);
    crn_file_close(lock);
    return rc;
}

/* Open the run that rank 0 has described, without a lock. */
static cairn_status attach_run(cairn *c, const crn_buf *b)
{
    char name[CRN_VAR_NAME + 1];
    crn_manifest m = {0};
    crn_cursor cur = crn_cursor_of(b->at, b->n);
    crn_get_str(&cur, name, sizeof name - 1);
    CRN_TRY(crn_manifest_parse(cur.at, cur.n, &m));
    const char *trail = crn_config_text(c->cfg, CRN_OPT_RUN_TRAIL);
    cairn_status rc = c->trail ? CAIRN_OK : crn_trail_open(trail, false, &c->trail);
    if (rc == CAIRN_OK)
        rc = crn_run_attach(c->trail, name, &m, &c->run);
    crn_manifest_done(&m);
    return rc;
}

/* Tell the other ranks the run's name and manifest. */
static cairn_status share_run(cairn *c)
{
    crn_buf b = {0};
    uint64_t nbytes = 0;
    cairn_status rc = CAIRN_OK;
    const bool root = crn_comm_rank(c->comm) == 0;
    if (root) {
        crn_put_str(&b, crn_run_name(c->run));
        crn_manifest_put(crn_run_manifest(c->run), &b);
        rc = crn_buf_status(&b);
        nbytes = b.n;
    }
    CRN_TRY_OUT(rc, crn_comm_agree(c->comm, rc));
    CRN_TRY_OUT(rc, crn_comm_bcast(c->comm, &nbytes, sizeof nbytes, 0));
    if (!root)
        rc = crn_vec_reserve(&b, nbytes);
    CRN_TRY_OUT(rc, crn_comm_agree(c->comm, rc));
    b.n = nbytes;
    CRN_TRY_OUT(rc, crn_comm_bcast(c->comm, b.at, nbytes, 0));
    rc = crn_comm_agree(c->comm, root ? CAIRN_OK : attach_run(c, &b));
out:
    crn_buf_done(&b);
    return rc;
}

void crn_ckpt_choose_series(cairn *c)
{
    const crn_manifest_mark *newest = c->mark.n > 0 ? &c->mark.at[c->mark.n - 1] : NULL;
    c->series = 0;
    for (size_t i = 0; i < c->mark.n; i++)
        c->series = CRN_MAX(c->series, c->mark.at[i].series);
    if (newest && newest->nranks == (uint32_t)crn_comm_size(c->comm))
        c->series = newest->series;
    else
        c->series++;
}

/* The marks of the run, and where this leg writes to. */
static cairn_status take_over(cairn *c)
{
    const crn_manifest *m = crn_run_manifest(c->run);
    CRN_TRY(crn_vec_reserve(&c->mark, m->mark.n));
    for (size_t i = 0; i < m->mark.n; i++)
        c->mark.at[c->mark.n++] = m->mark.at[i];
    crn_ckpt_choose_series(c);
    return CAIRN_OK;
}

/* --- levels ------------------------------------------------------------------------------- */

/* A level that the user asked for must be possible; one that is only a default may be missing. */
static cairn_status check_levels(cairn *c)
{
    c->usable = 1u << CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++) {
        cairn_status rc = crn_vault_check(c->vault, l);
        if (rc == CAIRN_OK)
            c->usable |= 1u << l;
        else if (crn_tune_is_configured(c, l) && crn_tune_every(c, l) > 0)
            return rc;
    }
    /* whoever asks for a form wants it, however often */
    if (crn_config_word(c->cfg, CRN_OPT_GLOBAL_FORMAT) != 0)
        CRN_TRY(crn_vault_check(c->vault, CRN_LEVEL_GLOBAL));
    return CAIRN_OK;
}

static cairn_status open_vault(cairn *c)
{
    const crn_vault_options opt = {
        .run = c->run,
        .series = c->series,
        .local = c->local,
        .node_size = (int)crn_config_count(c->cfg, CRN_OPT_LEVEL_NODE_SIZE),
        .home = c->home,
        .group = (int)crn_config_count(c->cfg, CRN_OPT_LEVEL_GROUP),
        .nparity = (int)crn_config_count(c->cfg, CRN_OPT_LEVEL_PARITY),
        .form = (crn_form)crn_config_word(c->cfg, CRN_OPT_GLOBAL_FORMAT),
        .frame = crn_ckpt_frame,
        .part = {.backend = (crn_io_backend)crn_config_word(c->cfg, CRN_OPT_IO_BACKEND),
                 .depth = (unsigned)crn_config_count(c->cfg, CRN_OPT_IO_DEPTH),
                 .direct = crn_config_bool(c->cfg, CRN_OPT_IO_DIRECT)},
        .codec = crn_ckpt_codec,
        .codec_arg = c->cfg,
    };
    return crn_vault_create(c->comm, &opt, &c->vault);
}

/* --- opening and closing ------------------------------------------------------------------ */

cairn_status crn_ckpt_configure(cairn *c, const char *config)
{
    CRN_TRY(read_config(c, config));
    return crn_comm_agree(c->comm, find_local(c));
}

cairn_status crn_ckpt_join(cairn *c, const char *config, cairn_status (*find)(cairn *c))
{
    CRN_TRY(crn_ckpt_configure(c, config));
    return crn_ckpt_enter(c, find);
}

cairn_status crn_ckpt_enter(cairn *c, cairn_status (*find)(cairn *c))
{
    cairn_status rc = CAIRN_OK;
    if (crn_comm_rank(c->comm) == 0)
        rc = find(c);
    CRN_TRY(crn_comm_agree(c->comm, rc));
    CRN_TRY(share_run(c));
    CRN_TRY(crn_comm_agree(c->comm, take_over(c)));
    CRN_TRY(open_vault(c));
    return crn_ckpt_recover(c, find == find_run);
}

/* A place that cannot be used is better refused now than at the first mark; one that is only full
 * may have room by then. */
static cairn_status prepare_local(cairn *c)
{
    cairn_status rc = crn_vault_prepare(c->vault);
    if (rc < 0 && rc != CAIRN_ENOSPC)
        crn_err_prefix("level.local: ");
    return crn_comm_agree(c->comm, rc == CAIRN_ENOSPC ? CAIRN_OK : rc);
}

cairn_status crn_ckpt_start(cairn *c)
{
    CRN_TRY(prepare_local(c));
    crn_ckpt_clean_node(c);
    CRN_TRY(check_levels(c));
    CRN_TRY(crn_tune_init(c));
    CRN_TRY(crn_reference_open(c));
    if (crn_comm_is_threaded(c->comm)) {
        CRN_TRY(crn_comm_dup(c->comm, &c->engine_comm));
        crn_comm_set_patient(c->engine_comm, true);
    }
    cairn_status rc = crn_stop_init(c);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_trees_create(c->cfg, &c->trees);
    if (rc == CAIRN_OK)
        rc = crn_engine_start(c);
    CRN_TRY(crn_comm_agree(c->comm, rc));
    char id[CRN_RUN_ID_TEXT];
    crn_ckpt_event(
        c, &(crn_event){.kind = CRN_EVENT_OPEN,
                        .open = {.nranks = (uint64_t)crn_comm_size(c->comm),
                                 .nnodes = (uint64_t)crn_vault_nodes(c->vault)->nnodes,
                                 .seen = (double)crn_run_seen(c->run) * 1e-9,
                                 .id = crn_run_id_format(crn_run_manifest(c->run)->run, id)}});
    crn_ckpt_tell(c);
    return CAIRN_OK;
}

cairn_status crn_ckpt_create(cairn **ret)
{
    cairn *c;
    CRN_TRY(crn_alloc(&c, 1));
    crn_engine_init(&c->engine);
    pthread_mutex_init(&c->events_mutex, NULL);
    c->rewind = true;
    c->oldest_series = 1;
    c->resumed_from = c->lost_from = CRN_NO_VERSION;
    *ret = c;
    return CAIRN_OK;
}

int cairn_open(MPI_Comm comm, const char *config, cairn **ret)
{
    cairn *c;
    CRN_FAIL_IF(!ret, CAIRN_EINVAL, "cairn_open: nowhere to put the session");
    *ret = NULL;
    CRN_TRY(crn_ckpt_create(&c));
    cairn_status rc = crn_comm_create(comm, &c->comm);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_join(c, config, find_run);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_start(c);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_await_finalize(c);
    if (rc < 0) {
        crn_err why = *crn_err_peek();
        crn_ckpt_free(c);
        return crn_err_give(&why);
    }
    *ret = c;
    return CAIRN_OK;
}

int cairn_reopen(cairn *c, MPI_Comm comm)
{
    CKPT_NEEDS(c);
    crn_comm *next;
    cairn_status rc = crn_comm_create(comm, &next);
    if (rc == CAIRN_OK)
        rc = crn_ckpt_reopen(c, next);
    return crn_ckpt_result(c, rc);
}

/* Did the program come to its end? Not if it was told to stop, nor if there are marks that it never
 * came back to: it has seen that they do not fit, say, and given up. */
static bool is_finished(const cairn *c)
{
    const bool untouched = c->rewind && c->resumed_from == CRN_NO_VERSION && c->mark.n > 0;
    return !c->stopping && !untouched;
}

/*
 * Nobody resumes a finished run: when its last mark is in the trail, what is on the nodes, which
 * may be their memory, is of no use any more. Unless all marks are to be kept, wherever they are.
 */
static bool leaves_nodes(const cairn *c)
{
    for (crn_level l = CRN_LEVEL_LOCAL; l < CRN_LEVEL_GLOBAL; l++)
        if (crn_ckpt_keep(c, l) == CRN_KEEP_ALL)
            return false;
    return c->local && (c->mark.n == 0 || c->mark.at[c->mark.n - 1].levels & CRN_IN_TRAIL);
}

/* Let the manifest say that the run came to its end; only then may files go that it named before.
 * What cannot be removed is only in the way: 'cairn prune --local'. */
static cairn_status finish_run(cairn *c)
{
    const bool leaves = leaves_nodes(c);
    uint64_t nfiles = 0;
    if (leaves)
        crn_ckpt_forget_nodes(c);
    CRN_TRY(crn_ckpt_publish(c, c->comm, true));
    if (leaves && crn_vault_remove(c->vault, &nfiles) < 0)
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_EACH, "%s", crn_err_peek()->text);
    return CAIRN_OK;
}

int cairn_close(cairn *c)
{
    if (!c)
        return CAIRN_OK;
    if (!c->vault) { /* it was not reopened, or MPI has ended */
        crn_ckpt_free(c);
        return CAIRN_OK;
    }
    if (c->open)
        (void)cairn_cancel(c);
    cairn_status rc = crn_ckpt_catch_up(c);
    crn_err why = *crn_err_peek();
    crn_stop_ask(c);
    cairn_status ended = is_finished(c) ? finish_run(c) : CAIRN_NOTHING;
    if (ended < 0 && rc == CAIRN_OK) {
        rc = ended;
        why = *crn_err_peek();
    }
    crn_ckpt_event(c,
                   &(crn_event){.kind = CRN_EVENT_CLOSE, .close = {.finished = ended == CAIRN_OK}});
    crn_ckpt_free(c);
    return rc < 0 ? crn_err_give(&why) : rc;
}

const char *cairn_last_error(const cairn *c)
{
    return c && c->err.code < 0 ? c->err.text : cairn_error_text();
}
