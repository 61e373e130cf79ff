/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_dynamic.h"
#include "ensemble/ensemble_study.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ensemble/ensemble_dynamic.h"

#define CRN_STUDY_ROW(id, section, key, type, def, range, help)                                    \
    [CRN_STUDY_##id] = {section, key, CRN_OPT_##type, def, range, help},
const crn_opt crn_study_table[CRN_STUDY_COUNT_OF] = {
#include "ensemble/ensemble_study_table.h"
};
#undef CRN_STUDY_ROW

enum { FILE_MAX = 1 << 20, TAIL_MAX = 1 << 17 };

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status read_whole(const char *path, char **ret)
{
    char *text;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", path);
    cairn_status rc = fstat(fd, &st) < 0 ? crn_fail_sys(errno, "cannot read '%s'", path) : CAIRN_OK;
    if (rc == CAIRN_OK && st.st_size > FILE_MAX)
        rc = crn_fail(CAIRN_EINVAL, "'%s' is too long", path);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&text, (size_t)st.st_size + 1);
    if (rc == CAIRN_OK) {
        ssize_t n = read(fd, text, (size_t)st.st_size);
        text[n > 0 ? n : 0] = 0;
        *ret = text;
    }
    close(fd);
    return rc;
}

static cairn_status join(const char *dir, const char *name, char **ret)
{
    CRN_FAIL_IF(asprintf(ret, "%s/%s", dir, name) < 0, CAIRN_ENOMEM, "no memory for a path");
    return CAIRN_OK;
}

cairn_status crn_study_path(const crn_study *s, const char *name, char **ret)
{
    return join(s->dir, name, ret);
}

cairn_status crn_study_read(const char *dir, const char *name, char **ret)
{
    char *path;
    CRN_TRY(join(dir, name, &path));
    cairn_status rc = read_whole(path, ret);
    free(path);
    return rc;
}

cairn_status crn_study_read_tail(const crn_study *s, const char *name, char **ret)
{
    char *path, *text = NULL;
    CRN_TRY(join(s->dir, name, &path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cairn_status rc = fd < 0 ? crn_fail_sys(errno, "cannot open '%s'", path) : CAIRN_OK;
    free(path);
    CRN_TRY(rc);
    const off_t end = lseek(fd, 0, SEEK_END), from = end > TAIL_MAX ? end - TAIL_MAX : 0;
    rc = crn_alloc(&text, TAIL_MAX + 1);
    ssize_t n = rc == CAIRN_OK ? pread(fd, text, TAIL_MAX, from) : 0;
    close(fd);
    CRN_TRY(rc);
    text[n > 0 ? n : 0] = 0;
    *ret = text;
    return CAIRN_OK;
}

cairn_status crn_study_beside(const crn_study *s, const char *name, char **ret)
{
    int n = name[0] == '/'
                ? asprintf(ret, "%s", name)
                : asprintf(ret, "%.*s/%s", (int)(strrchr(s->path, '/') - s->path), s->path, name);
    CRN_FAIL_IF(n < 0, CAIRN_ENOMEM, "no memory for a path");
    return CAIRN_OK;
}

cairn_status crn_study_write(const crn_study *s, const char *name, const char *text)
{
    char *path;
    if (s->quiet)
        return CAIRN_OK;
    CRN_TRY(join(s->dir, name, &path));
    cairn_status rc = crn_output_write(path, text, strlen(text));
    if (rc == CAIRN_OK && chmod(path, 0600) < 0)
        rc = crn_fail_sys(errno, "cannot protect '%s'", path);
    free(path);
    return rc;
}

cairn_status crn_study_write_buf(const crn_study *s, const char *name, crn_buf *b)
{
    const char *text = crn_buf_text(b);
    cairn_status rc = text ? crn_study_write(s, name, text) : crn_buf_status(b);
    crn_buf_done(b);
    return rc;
}

/* Lines that do not fit a full disk leave nothing: their beginning would spoil the next ones. */
static bool write_lines(int fd, const char *line)
{
    const size_t n = strlen(line);
    struct stat st;
    const ssize_t done = write(fd, line, n);
    if (done == (ssize_t)n)
        return true;
    const int sys = done < 0 ? errno : ENOSPC;
    const off_t end = lseek(fd, 0, SEEK_CUR); /* of what was written */
    if (done > 0 && fstat(fd, &st) == 0 && st.st_size == end)
        (void)!ftruncate(fd, end - done);
    errno = sys;
    return false;
}

static cairn_status append(const crn_study *s, const char *name, const char *line, bool durable)
{
    char *path;
    cairn_status rc = CAIRN_OK;
    if (s->quiet)
        return CAIRN_OK;
    CRN_TRY(join(s->dir, name, &path));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || !write_lines(fd, line) || (durable && fdatasync(fd) < 0))
        rc = crn_fail_sys(errno, "cannot add to '%s'", path);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

cairn_status crn_study_note(const crn_study *s, const char *name, const char *lines)
{
    return append(s, name, lines, false);
}

cairn_status crn_study_append(const crn_study *s, const char *name, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    CRN_FAIL_IF(n < 0 || n >= (int)sizeof line - 1, CAIRN_EINTERNAL, "a line of '%s' is too long",
                name);
    line[n] = '\n';
    line[n + 1] = 0;
    return append(s, name, line, true);
}

json_t *crn_study_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Texts that are not UTF-8 cannot be packed: such an event has its kind alone. */
static void write_event(const crn_study *s, const char *kind, json_t *members)
{
    json_t *event = json_pack("{s:I,s:s}", "at", (json_int_t)crn_wall_ns(), "event", kind);
    char *text = NULL, *line = NULL;
    if (event && members)
        (void)json_object_update(event, members);
    if (event)
        text = json_dumps(event, JSON_COMPACT | JSON_PRESERVE_ORDER);
    if (text && asprintf(&line, "%s\n", text) >= 0 && append(s, "events.jsonl", line, false) < 0)
        crn_err_take(&(crn_err){0}); /* what happened counts, not that it was written down */
    free(line);
    free(text);
    json_decref(event);
}

void crn_study_event(const crn_study *s, const char *kind, const char *members, ...)
{
    va_list ap;
    va_start(ap, members);
    json_t *packed = json_vpack_ex(NULL, 0, members, ap);
    va_end(ap);
    write_event(s, kind, packed);
    json_decref(packed);
}

/* --- addresses ------------------------------------------------------------------------------ */

/* The first address of this machine that others reach. */
static bool own_address(char *text, size_t cap)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) != 0 &&
            (i->ifa_flags & IFF_LOOPBACK) == 0)
            found = getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), text, (socklen_t)cap, NULL,
                                0, NI_NUMERICHOST) == 0;
    freeifaddrs(all);
    return found;
}

void crn_study_address(const crn_study *s, char *text, size_t cap)
{
    const bool here = s->runner_place == CRN_JOB_LOCAL && s->server_place == CRN_JOB_LOCAL;
    if (s->address[0])
        snprintf(text, cap, "%s", s->address);
    else if (here || !own_address(text, cap))
        snprintf(text, cap, "127.0.0.1");
}

/* --- keys ----------------------------------------------------------------------------------- */

cairn_status crn_keys_read(const char *dir, crn_keys *ret, uint64_t *ret_id)
{
    char *text;
    CRN_TRY(crn_study_read(dir, "keys", &text));
    int n = sscanf(text, "%40s %40s %40s %40s", ret->hub_public, ret->hub_secret, ret->spoke_public,
                   ret->spoke_secret);
    free(text);
    CRN_FAIL_IF(n != 4 || strlen(ret->hub_public) != 40 || strlen(ret->hub_secret) != 40 ||
                    strlen(ret->spoke_public) != 40 || strlen(ret->spoke_secret) != 40,
                CAIRN_ECORRUPT, "'%s/keys' is damaged; a study with other keys is another one",
                dir);
    *ret_id = crn_hash_text(ret->hub_public);
    return CAIRN_OK;
}

static cairn_status make_dir(crn_study *s)
{
    struct stat st;
    char text[256];
    if (mkdir(s->dir, 0700) < 0 && errno != EEXIST)
        return crn_fail_sys(errno, "cannot make '%s'", s->dir);
    if (lstat(s->dir, &st) < 0)
        return crn_fail_sys(errno, "cannot look at '%s'", s->dir);
    CRN_FAIL_IF(!S_ISDIR(st.st_mode) || st.st_uid != geteuid(), CAIRN_EINVAL,
                "'%s' is no directory of this user", s->dir);
    CRN_FAIL_IF((st.st_mode & 077) != 0, CAIRN_EINVAL,
                "'%s' is open to others, and has the keys of the study; chmod 700", s->dir);
    cairn_status rc = crn_keys_read(s->dir, &s->keys, &s->id);
    if (rc != CAIRN_ENOTFOUND)
        return rc;
    CRN_TRY(crn_keys_make(&s->keys));
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n", s->keys.hub_public, s->keys.hub_secret,
             s->keys.spoke_public, s->keys.spoke_secret);
    CRN_TRY(crn_study_write(s, "keys", text));
    s->id = crn_hash_text(s->keys.hub_public);
    return CAIRN_OK;
}

/* --- configuration -------------------------------------------------------------------------- */

static cairn_status take_real(const crn_study *s, crn_study_opt id, double low, double *ret)
{
    const crn_opt *row = &crn_study_table[id];
    const char *text = crn_config_text(s->config, (crn_opt_id)id);
    if (crn_parse_real(text, ret) < 0 || *ret < low)
        return crn_fail(CAIRN_EINVAL, "'%s': %s.%s is '%s', not a number from %g on", s->file,
                        row->section, row->key, text, low);
    return CAIRN_OK;
}

static uint64_t count_of(const crn_study *s, crn_study_opt id)
{
    return crn_config_count(s->config, (crn_opt_id)id);
}

static const char *text_of(const crn_study *s, crn_study_opt id)
{
    return crn_config_text(s->config, (crn_opt_id)id);
}

/* A number, or a share of the members, rounded up. */
static cairn_status take_min_members(crn_study *s)
{
    const char *text = text_of(s, CRN_STUDY_MIN_MEMBERS);
    const size_t n = strlen(text);
    char number[32] = "";
    double x;
    snprintf(number, sizeof number, "%.*s", (int)(n > 0 && text[n - 1] == '%' ? n - 1 : n), text);
    const bool share = strlen(number) < n;
    if (crn_parse_real(number, &x) < 0 || x < (share ? 0 : 2) || x > (share ? 100 : 65536) ||
        (!share && x != floor(x)))
        return crn_fail(CAIRN_EINVAL,
                        "'%s': runner.min_members is '%s', not a number from 2 on or a share as "
                        "'75%%'",
                        s->file, text);
    s->min_members = (uint32_t)(share ? ceil(x / 100 * s->members) : x);
    s->min_members = CRN_MAX(s->min_members, 2u);
    return CAIRN_OK;
}

static cairn_status take_numbers(crn_study *s)
{
    s->seed = count_of(s, CRN_STUDY_SEED);
    s->members = (uint32_t)count_of(s, CRN_STUDY_MEMBERS);
    s->cycles = (uint32_t)count_of(s, CRN_STUDY_CYCLES);
    s->steps = count_of(s, CRN_STUDY_STEPS);
    s->runners = (uint32_t)count_of(s, CRN_STUDY_RUNNERS);
    s->server_ranks = (uint32_t)count_of(s, CRN_STUDY_SERVER_RANKS);
    s->attempts = (uint32_t)count_of(s, CRN_STUDY_ATTEMPTS);
    s->twin_every = count_of(s, CRN_STUDY_TWIN_EVERY);
    s->spin = count_of(s, CRN_STUDY_SPIN);
    s->register_s = crn_config_seconds(s->config, (crn_opt_id)CRN_STUDY_REGISTER);
    s->due_s = crn_config_seconds(s->config, (crn_opt_id)CRN_STUDY_DUE);
    s->server_s = crn_config_seconds(s->config, (crn_opt_id)CRN_STUDY_SERVER_TIMEOUT);
    s->rotate = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_ROTATE);
    s->keep = (crn_keep)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_KEEP);
    s->limit_s = crn_config_seconds(s->config, (crn_opt_id)CRN_STUDY_LIMIT);
    s->runner_place = (crn_job_place)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_RUNNER_JOBS);
    s->server_place = (crn_job_place)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_SERVER_JOBS);
    s->failing = (crn_failing)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_FAILING);
    CRN_TRY(take_min_members(s));
    CRN_TRY(take_real(s, CRN_STUDY_SPREAD, 0, &s->spread));
    CRN_TRY(take_real(s, CRN_STUDY_INFLATION, 1e-6, &s->inflation));
    CRN_TRY(take_real(s, CRN_STUDY_TWIN_VARIANCE, 1e-300, &s->twin_variance));
    return CAIRN_OK;
}

static cairn_status take_filter(crn_study *s)
{
    s->local = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_LOCAL);
    s->adaptive = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_ADAPTIVE);
    s->stop_diverged = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_STOP_DIVERGED);
    s->diverged_cycles = (uint32_t)count_of(s, CRN_STUDY_DIVERGED_CYCLES);
    s->twin_places = count_of(s, CRN_STUDY_TWIN_PLACES);
    s->asynchronous = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_ASYNCHRONOUS);
    CRN_FAIL_IF(
        s->asynchronous && s->keep == CRN_KEEP_BACKGROUND, CAIRN_EINVAL,
        "'%s': filter.asynchronous needs study.keep = both or analysis: what members showed "
        "before the end of a cycle is in no background",
        s->file);
    s->products_every = count_of(s, CRN_STUDY_PRODUCTS);
    s->products_as = (crn_products_as)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_PRODUCTS_AS);
    CRN_TRY(take_real(s, CRN_STUDY_RTPP, 0, &s->rtpp));
    CRN_TRY(take_real(s, CRN_STUDY_RTPS, 0, &s->rtps));
    CRN_TRY(take_real(s, CRN_STUDY_FAR, 0, &s->far));
    CRN_TRY(take_real(s, CRN_STUDY_DIVERGED, 0, &s->diverged));
    CRN_FAIL_IF(s->rtpp > 1 || s->rtps > 1, CAIRN_EINVAL,
                "'%s': filter.rtpp and filter.rtps are shares, from 0 to 1", s->file);
    return CAIRN_OK;
}

static cairn_status take_particle(crn_study *s)
{
    crn_study_particle *p = &s->particle;
    p->on = strcmp(text_of(s, CRN_STUDY_FILTER), "particle") == 0;
    p->resampling = (crn_resampling)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_RESAMPLING);
    p->cache = text_of(s, CRN_STUDY_CACHE);
    p->capacity = (uint32_t)count_of(s, CRN_STUDY_CAPACITY);
    p->node_size = (uint32_t)count_of(s, CRN_STUDY_NODE_SIZE);
    p->limit = crn_config_nbytes(s->config, (crn_opt_id)CRN_STUDY_CACHE_LIMIT);
    p->early = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_EARLY);
    p->strict = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_STRICT);
    p->ahead = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_AHEAD);
    p->peers = crn_config_bool(s->config, (crn_opt_id)CRN_STUDY_PEERS);
    CRN_TRY(take_real(s, CRN_STUDY_THRESHOLD, 0, &p->threshold));
    CRN_TRY(take_real(s, CRN_STUDY_JITTER, 0, &p->jitter));
    return take_real(s, CRN_STUDY_COPY_PERTURB, 0, &p->perturb);
}

static cairn_status take_filter_name(crn_study *s, const char *name)
{
    if (crn_filter_is_file(name)) {
        cairn_status rc = crn_filter_of_file(name, &s->filter);
        if (rc < 0)
            crn_err_prefix("'%s': filter.name: ", s->file);
        return rc;
    }
    s->filter = crn_filter_of_name(s->particle.on ? "none" : name);
    if (s->filter)
        return CAIRN_OK;
    crn_nearest near = crn_nearest_to(name);
    for (size_t i = 0; crn_filter_at(i); i++)
        crn_nearest_offer(&near, crn_filter_name(crn_filter_at(i)));
    crn_nearest_offer(&near, "particle");
    return crn_fail(CAIRN_EINVAL, "'%s': filter.name '%s' is no filter%s", s->file, name,
                    near.hint);
}

static cairn_status take_texts(crn_study *s)
{
    const char *filter = text_of(s, CRN_STUDY_FILTER);
    s->observations = text_of(s, CRN_STUDY_OBSERVATIONS);
    s->runner = text_of(s, CRN_STUDY_RUNNER);
    s->server = text_of(s, CRN_STUDY_SERVER);
    s->address = text_of(s, CRN_STUDY_ADDRESS);
    s->check_command = text_of(s, CRN_STUDY_CHECK);
    s->runner_submit = text_of(s, CRN_STUDY_RUNNER_SUBMIT);
    s->server_submit = text_of(s, CRN_STUDY_SERVER_SUBMIT);
    s->ranges = text_of(s, CRN_STUDY_RANGES);
    s->model_first = text_of(s, CRN_STUDY_MODEL_FIRST);
    s->model_assimilated = text_of(s, CRN_STUDY_MODEL_ASSIMILATED);
    s->model_carried = text_of(s, CRN_STUDY_MODEL_CARRIED);
    s->model_parameter = text_of(s, CRN_STUDY_MODEL_PARAMETER);
    s->hdf5 = (crn_hdf5_kept)crn_config_word(s->config, (crn_opt_id)CRN_STUDY_HDF5);
    CRN_FAIL_IF(!s->runner[0], CAIRN_EINVAL,
                "'%s': runner.command is missing: how is the model started?", s->file);
    CRN_TRY(take_particle(s));
    CRN_TRY(take_filter_name(s, filter));
    s->local = s->local || crn_filter_is_local(s->filter);
    return CAIRN_OK;
}

/* As given, from where the file is; or beside it, by its name without ".ini". */
static cairn_status choose_dir(crn_study *s)
{
    const char *given = text_of(s, CRN_STUDY_DIR);
    int n;
    s->path = realpath(s->file, NULL);
    if (!s->path)
        return crn_fail_sys(errno, "cannot find '%s'", s->file);
    size_t stem = strlen(s->path);
    const bool ini = stem > 4 && strcmp(s->path + stem - 4, ".ini") == 0;
    if (given[0] == '/')
        n = asprintf(&s->dir, "%s", given);
    else if (given[0])
        n = asprintf(&s->dir, "%.*s/%s", (int)(strrchr(s->path, '/') - s->path), s->path, given);
    else if (ini)
        n = asprintf(&s->dir, "%.*s", (int)(stem - 4), s->path);
    else
        n = asprintf(&s->dir, "%s.study", s->path);
    CRN_FAIL_IF(n < 0, CAIRN_ENOMEM, "no memory for a path");
    return CAIRN_OK;
}

static cairn_status load(crn_study *s)
{
    char *text;
    CRN_TRY(read_whole(s->file, &text));
    cairn_status rc = crn_config_parse_with(crn_study_table, CRN_STUDY_COUNT_OF, s->file, text,
                                            strlen(text), &s->config);
    free(text);
    CRN_TRY(rc);
    CRN_TRY(choose_dir(s));
    CRN_TRY(take_numbers(s));
    CRN_TRY(take_filter(s));
    CRN_TRY(take_texts(s));
    CRN_TRY(crn_dynamic_read(s, &s->dynamic));
    return make_dir(s);
}

cairn_status crn_study_enter(crn_study *s, const char *name)
{
    char *dir;
    CRN_TRY(crn_study_path(s, name, &dir));
    free(s->dir);
    s->dir = dir;
    return make_dir(s);
}

cairn_status crn_study_open(const char *file, crn_study **ret)
{
    crn_study *s;
    CRN_TRY(crn_rng_present("a study"));
    CRN_TRY(crn_json_present("a study"));
    CRN_TRY(crn_alloc(&s, 1));
    cairn_status rc = crn_strdup(file, &s->file);
    if (rc == CAIRN_OK)
        rc = load(s);
    if (rc < 0) {
        crn_study_free(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

void crn_study_free(crn_study *s)
{
    if (!s)
        return;
    crn_side_free(s->side);
    crn_dynamic_free(s->dynamic);
    crn_config_free(s->config);
    free(s->file);
    free(s->path);
    free(s->dir);
    free(s);
}
