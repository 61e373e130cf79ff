/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which run of a trail it is: the one that is named, the one to continue, or a new one.
 */
#include "ckpt/ckpt_holding.h"

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
static cairn_status consider(crn_holding *h, const char *name, candidate *best)
{
    crn_run *run;
    char *copy;
    cairn_status rc = crn_run_open(h->trail, name, false, &run);
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
static cairn_status name_newest(crn_holding *h, char **ret)
{
    char **names;
    size_t n;
    candidate best = {0};
    crn_job_task task;
    const bool any = !crn_job_task_find(&task);
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_trail_runs(h->trail, &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && (any || crn_job_task_fits(&task, names[i])))
            rc = consider(h, names[i], &best);
        free(names[i]);
    }
    free(names);
    if (rc == CAIRN_OK)
        *ret = best.name;
    else
        free(best.name);
    return rc;
}

static cairn_status open_newest(crn_holding *h, crn_run **ret)
{
    for (;;) {
        char *name = NULL;
        crn_run *run = NULL;
        CRN_TRY(name_newest(h, &name));
        cairn_status rc = name ? crn_run_open(h->trail, name, true, &run) : CAIRN_OK;
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
static cairn_status begin_run(crn_holding *h)
{
    char name[CRN_JOB_NAME];
    crn_job_task task;
    crn_run *there;
    if (!crn_job_task_find(&task))
        return crn_run_create(h->trail, NULL, &h->run);
    for (unsigned n = 1;; n++) {
        cairn_status rc = crn_run_open(h->trail, crn_job_task_name(&task, n, name), false, &there);
        if (rc == CAIRN_ENOTFOUND)
            return crn_run_create(h->trail, name, &h->run);
        CRN_TRY(rc);
        crn_run_close(there);
    }
}

/* On rank 0: continue a run, or begin one. */
static cairn_status find_or_begin(crn_holding *h)
{
    const char *name = crn_config_text(h->cfg, CRN_OPT_RUN_NAME);
    if (*name == 0) {
        CRN_TRY(open_newest(h, &h->run));
        return h->run ? CAIRN_OK : begin_run(h);
    }
    cairn_status rc = crn_run_open(h->trail, name, true, &h->run);
    if (rc == CAIRN_ENOTFOUND)
        return crn_run_create(h->trail, name, &h->run);
    CRN_TRY(rc);
    CRN_FAIL_IF(crn_run_manifest(h->run)->finished, CAIRN_EINVAL,
                "run '%s' came to its end: choose another name, or none", name);
    return CAIRN_OK;
}

/* Of two programs that start at the same time, the second must see the run that the first begins.
 */
cairn_status crn_find_or_begin(crn_holding *h)
{
    crn_file *lock;
    CRN_TRY(crn_trail_open(crn_config_text(h->cfg, CRN_OPT_RUN_TRAIL), true, &h->trail));
    /* the words stand in the order of crn_share */
    CRN_TRY(crn_trail_share(h->trail, (crn_share)crn_config_word(h->cfg, CRN_OPT_RUN_MODE)));
    CRN_TRY(crn_trail_lock(h->trail, &lock));
    if (lock)
        crn_trail_sweep(h->trail);
    cairn_status rc = find_or_begin(h);
    crn_file_close(lock);
    return rc;
}

cairn_status crn_find_existing(crn_holding *h)
{
    const char *name = crn_config_text(h->cfg, CRN_OPT_RUN_NAME);
    const char *trail = crn_config_text(h->cfg, CRN_OPT_RUN_TRAIL);
    CRN_TRY(crn_trail_open(trail, false, &h->trail));
    if (*name)
        return crn_run_open(h->trail, name, true, &h->run);
    CRN_TRY(open_newest(h, &h->run));
    CRN_FAIL_IF(!h->run, CAIRN_ENOTFOUND, "trail '%s' has no unfinished run: name one", trail);
    return CAIRN_OK;
}

cairn_status crn_find_again(crn_holding *h)
{
    return crn_run_open(h->trail, h->name, true, &h->run);
}
