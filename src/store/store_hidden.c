/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs that are made as a whole: in a directory that nobody takes for a run, which gets its name
 * when all is there. One that is given up, or whose process is killed, was never seen; the next
 * process that makes a run sweeps it away. Its lock tells whether somebody is still at it, and
 * since it is taken under the lock of the trail, a directory without one is nobody's.
 */
#include "store/store_trail.h"

#include <unistd.h>

enum { RUN_DEPTH = 3 }; /* of directories: the run, a series, a fan of parts */

/* Is name as crn_hidden_name makes it? */
static bool is_hidden(const char *name)
{
    const size_t nid = CRN_RUN_ID_TEXT - 1;
    return name[0] == '.' && strspn(name + 1, "0123456789abcdef") == nid &&
           strcmp(name + 1 + nid, ".tmp") == 0;
}

/* What cannot be opened or locked for another reason may be in use. */
static bool is_in_use(const crn_trail *t, const char *name)
{
    crn_file *lock;
    int fd;
    if (crn_dir_open(t->fd, name, false, &fd) < 0)
        return true;
    cairn_status rc = crn_file_open(fd, "lock", CRN_READ | CRN_WRITE, &lock);
    close(fd);
    if (rc < 0)
        return rc != CAIRN_ENOTFOUND;
    rc = crn_file_lock(lock);
    crn_file_close(lock);
    return rc < 0;
}

void crn_trail_sweep(crn_trail *t)
{
    char **names;
    size_t n;
    uint64_t nfiles = 0;
    if (crn_dir_list(t->fd, &names, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (is_hidden(names[i]) && !is_in_use(t, names[i]))
            (void)crn_tree_remove(t->fd, names[i], RUN_DEPTH, &nfiles);
        free(names[i]);
    }
    free(names);
}

cairn_status crn_run_prepare(crn_trail *t, const char *name, crn_run **ret)
{
    char chosen[PATH_TEXT];
    crn_file *lock;
    CRN_TRY(crn_trail_lock(t, &lock));
    if (lock)
        crn_trail_sweep(t);
    cairn_status rc = crn_trail_choose_name(t, name, chosen, &name);
    if (rc == CAIRN_OK)
        rc = crn_run_begin(t, name, true, ret);
    if (rc < 0 && lock) {
        const crn_err why = *crn_err_peek();
        crn_trail_sweep(t);
        (void)crn_err_give(&why);
    }
    crn_file_close(lock);
    return rc;
}

/* A run whose process was killed before it had begun is none, but its directory has the name. What
 * else is in there is not ours, and stays. */
static void make_room(const crn_trail *t, const char *name)
{
    int fd;
    if (crn_dir_open(t->fd, name, false, &fd) < 0)
        return;
    (void)crn_unlink(fd, "lock");
    (void)crn_unlink(fd, ".manifest.tmp");
    close(fd);
}

static cairn_status give_name(crn_trail *t, crn_run *run, const char *name)
{
    char chosen[PATH_TEXT], hidden[PATH_TEXT], *copy;
    CRN_TRY(crn_trail_choose_name(t, name, chosen, &name));
    CRN_TRY(crn_strdup(name, &copy));
    free(run->name);
    run->name = copy;
    make_room(t, name);
    CRN_TRY(crn_rename(t->fd, crn_hidden_name(run->manifest.run, hidden), name));
    run->hidden = false;
    return crn_dir_sync(t->fd);
}

cairn_status crn_run_present(crn_trail *t, crn_run *run, const char *name)
{
    crn_file *lock;
    CRN_TRY(crn_trail_lock(t, &lock));
    cairn_status rc = give_name(t, run, name);
    crn_file_close(lock);
    return rc;
}

void crn_run_withdraw(crn_trail *t, crn_run *run)
{
    char name[PATH_TEXT] = "";
    uint64_t nfiles = 0;
    if (run && run->hidden)
        crn_hidden_name(run->manifest.run, name);
    crn_run_close(run); /* first: network file systems keep what is open */
    if (*name) {
        const crn_err why = *crn_err_peek();
        if (crn_tree_remove(t->fd, name, RUN_DEPTH, &nfiles) < 0)
            (void)crn_err_give(&why); /* the next one sweeps it */
    }
}
