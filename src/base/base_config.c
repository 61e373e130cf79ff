/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A configuration: one checked value per row of the option table, from the default, the INI file
 * and the environment, and the settings of single variables in [variable NAME] sections. inih knows
 * the syntax; it reads through next_line below, which adds what inih does not have: line numbers
 * for the handler, refusal of what is no text, section names of any length.
 */
#include "base/base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#if CRN_WITH_INIH
#include <ini.h>
#else
static int ini_parse_stream(char *(*reader)(char *, int, void *), void *stream,
                            int (*handler)(void *, const char *, const char *, const char *),
                            void *user)
{
    (void)reader, (void)stream, (void)handler, (void)user;
    return 0;
}
#endif

enum {
    FILE_MAX = 1 << 20, /* no configuration is as long; refuses what was named by mistake */
    LINE_ROOM = 256     /* more than inih's own limit, which next_line is given by inih */
};

typedef struct setting {
    char *text;
    crn_opt_value value;
    int line;   /* of the file, 0 when it comes from elsewhere */
    bool given; /* set by the user, perhaps to the default */
} setting;

typedef struct override {
    char *variable;
    size_t row;
    bool first; /* of its variable in this section */
    setting set;
} override;

struct crn_config {
    const crn_opt *rows;
    size_t nrows;
    setting *settings; /* one per row */
    CRN_VEC(override) overrides;
};

static cairn_status assign(const crn_opt *row, const char *text, setting *set)
{
    crn_opt_value value;
    char *copy;
    CRN_TRY(crn_opt_parse(row, text, &value));
    CRN_TRY(crn_strdup(text, &copy));
    free(set->text);
    *set = (setting){.text = copy, .value = value, .given = true};
    return CAIRN_OK;
}

void crn_config_free(crn_config *cfg)
{
    if (!cfg)
        return;
    for (size_t i = 0; cfg->settings && i < cfg->nrows; i++)
        free(cfg->settings[i].text);
    for (size_t i = 0; i < cfg->overrides.n; i++) {
        free(cfg->overrides.at[i].variable);
        free(cfg->overrides.at[i].set.text);
    }
    crn_vec_done(&cfg->overrides);
    free(cfg->settings);
    free(cfg);
}

static cairn_status set_defaults(crn_config *cfg)
{
    CRN_TRY(crn_alloc(&cfg->settings, cfg->nrows));
    for (size_t i = 0; i < cfg->nrows; i++) {
        CRN_TRY(assign(&cfg->rows[i], cfg->rows[i].def, &cfg->settings[i]));
        cfg->settings[i].given = false;
    }
    return CAIRN_OK;
}

static cairn_status create(const crn_opt *rows, size_t nrows, crn_config **ret)
{
    crn_config *cfg;
    CRN_TRY(crn_alloc(&cfg, 1));
    cfg->rows = rows;
    cfg->nrows = nrows;
    cairn_status rc = set_defaults(cfg);
    if (rc < 0)
        crn_config_free(cfg);
    else
        *ret = cfg;
    return rc;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/* Where the reader of a file stands. */
typedef struct source {
    crn_config *cfg;
    const char *at, *end;
    int line;
    char section[LINE_ROOM]; /* of the table; empty before the first */
    char variable[LINE_ROOM];
    cairn_status rc;
} source;

static cairn_status check_section(source *s)
{
    crn_nearest near = crn_nearest_to(s->section);
    for (size_t i = 0; i < s->cfg->nrows; i++) {
        if (strcmp(s->cfg->rows[i].section, s->section) == 0)
            return CAIRN_OK;
        crn_nearest_offer(&near, s->cfg->rows[i].section);
    }
    return crn_fail(CAIRN_EINVAL, "no section [%s]%s", s->section, near.hint);
}

/* Sections that may also be given for one of what they are about. */
static const char *const named[] = {"variable", "field", "observation", "region"};

/* "variable NAME" is the section "variable", of NAME. */
static void part_name(source *s)
{
    const size_t word = strcspn(s->section, " \t");
    s->variable[0] = 0;
    for (size_t i = 0; s->section[word] && i < sizeof named / sizeof *named; i++)
        if (strlen(named[i]) == word && strncmp(named[i], s->section, word) == 0) {
            snprintf(s->variable, sizeof s->variable, "%s", skip_blanks(s->section + word));
            s->section[word] = 0;
        }
}

/* "[section]" or "[variable NAME]" without the bracket at its start. */
static cairn_status open_section(source *s, const char *line)
{
    size_t n = strcspn(line, "]");
    CRN_FAIL_IF(!line[n], CAIRN_EINVAL, "a section without its ']'");
    const char *rest = skip_blanks(line + n + 1);
    CRN_FAIL_IF(*rest && !strchr(";#", *rest), CAIRN_EINVAL, "'%s' after a section's ']'", rest);
    while (n > 0 && is_blank(line[n - 1]))
        n--;
    snprintf(s->section, sizeof s->section, "%.*s", (int)n, line);
    part_name(s);
    return check_section(s);
}

/* Bytes that no text has: all controls but the tab. */
static bool is_text(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
            return false;
    return true;
}

static cairn_status take_line(source *s, char *dst, size_t cap)
{
    const char *end = memchr(s->at, '\n', (size_t)(s->end - s->at));
    const char *from = s->at, *to = end ? end : s->end;
    s->at = end ? end + 1 : s->end;
    s->line++;
    if (to > from && to[-1] == '\r')
        to--;
    /* An indented key is a key: without its blanks inih does not take it for a continuation. */
    while (from < to && is_blank(*from))
        from++;
    size_t n = (size_t)(to - from);
    CRN_FAIL_IF(n >= cap, CAIRN_EINVAL, "the line is longer than %zu bytes", cap - 1);
    CRN_FAIL_IF(!is_text(from, n), CAIRN_EINVAL, "control characters: this is not a text file");
    memcpy(dst, from, n);
    dst[n] = 0;
    return dst[0] == '[' ? open_section(s, dst + 1) : CAIRN_OK;
}

/* inih's reader: a line into dst, or NULL at the end and after the first mistake. */
static char *next_line(char *dst, int cap, void *arg)
{
    source *s = arg;
    if (s->rc < 0 || s->at == s->end)
        return NULL;
    s->rc = take_line(s, dst, CRN_MIN((size_t)cap, sizeof s->section));
    return s->rc < 0 ? NULL : dst;
}

static cairn_status find_key(source *s, const char *key, size_t *ret)
{
    crn_nearest near = crn_nearest_to(key);
    CRN_FAIL_IF(!s->section[0], CAIRN_EINVAL, "'%s' stands before the first [section]", key);
    for (size_t i = 0; i < s->cfg->nrows; i++) {
        const crn_opt *row = &s->cfg->rows[i];
        if (strcmp(row->section, s->section) != 0)
            continue;
        if (strcmp(row->key, key) == 0) {
            *ret = i;
            return CAIRN_OK;
        }
        crn_nearest_offer(&near, row->key);
    }
    return crn_fail(CAIRN_EINVAL, "no key '%s' in section [%s]%s", key, s->section, near.hint);
}

static override *find_override(const crn_config *cfg, size_t row, const char *variable)
{
    for (size_t i = 0; i < cfg->overrides.n; i++) {
        override *o = &cfg->overrides.at[i];
        if (o->row == row && strcmp(o->variable, variable) == 0)
            return o;
    }
    return NULL;
}

static bool is_named(const crn_config *cfg, const char *section, const char *variable)
{
    for (size_t i = 0; i < cfg->overrides.n; i++) {
        const override *o = &cfg->overrides.at[i];
        if (strcmp(cfg->rows[o->row].section, section) == 0 && strcmp(o->variable, variable) == 0)
            return true;
    }
    return false;
}

/* The place of row's value for the variable, made when it is not there yet. */
static cairn_status place_for(crn_config *cfg, size_t row, const char *variable, setting **ret)
{
    override *o = find_override(cfg, row, variable);
    if (!o) {
        char *copy;
        CRN_TRY(crn_strdup(variable, &copy));
        const override added = {.variable = copy,
                                .row = row,
                                .first = !is_named(cfg, cfg->rows[row].section, variable)};
        cairn_status rc = crn_vec_push(&cfg->overrides, added);
        if (rc < 0) {
            free(copy);
            return rc;
        }
        o = &cfg->overrides.at[cfg->overrides.n - 1];
    }
    *ret = &o->set;
    return CAIRN_OK;
}

static cairn_status take_value(source *s, const char *key, const char *text)
{
    size_t row = 0;
    CRN_TRY(find_key(s, key, &row));
    CRN_FAIL_IF(!text, CAIRN_EINVAL, "'%s' has no value", key);
    setting *set = &s->cfg->settings[row];
    if (s->variable[0])
        CRN_TRY(place_for(s->cfg, row, s->variable, &set));
    CRN_FAIL_IF(set->line, CAIRN_EINVAL, "'%s' was already set in line %d", key, set->line);
    cairn_status rc = assign(&s->cfg->rows[row], text, set);
    if (rc < 0)
        crn_err_prefix("'%s': ", key);
    set->line = s->line;
    return rc;
}

/* inih's handler. Its section name is not used: inih cuts long ones without a word. */
static int on_value(void *arg, const char *section, const char *key, const char *text)
{
    source *s = arg;
    (void)section;
    s->rc = take_value(s, key, text);
    return s->rc == CAIRN_OK;
}

static cairn_status parse_into(crn_config *cfg, const char *name, const char *text, size_t nbytes)
{
    static const char utf8_mark[] = "\xef\xbb\xbf";
    CRN_FAIL_IF(nbytes > FILE_MAX, CAIRN_EINVAL, "'%s': %zu bytes, a configuration has at most %d",
                name, nbytes, FILE_MAX);
    if (nbytes == 0)
        return CAIRN_OK;
    CRN_FAIL_IF(!CRN_WITH_INIH, CAIRN_EUNSUPPORTED,
                "'%s': this Cairn was built without inih, which reads configurations; options can "
                "be given in the environment, as CAIRN_<SECTION>_<KEY>",
                name);
    source s = {.cfg = cfg, .at = text, .end = text + nbytes};
    if (nbytes >= 3 && memcmp(text, utf8_mark, 3) == 0)
        s.at += 3;
    int wrong = ini_parse_stream(next_line, &s, on_value, &s);
    CRN_FAIL_IF(wrong < 0, CAIRN_ENOMEM, "cannot allocate a line of '%s'", name);
    /* inih reads on after what it does not understand; the first mistake is reported. */
    if (wrong > 0 && (s.rc == CAIRN_OK || wrong < s.line))
        return crn_fail(CAIRN_EINVAL, "%s:%d: neither a [section] nor 'key = value'", name, wrong);
    if (s.rc < 0 && s.rc != CAIRN_ENOMEM)
        crn_err_prefix("%s:%d: ", name, s.line);
    return s.rc;
}

cairn_status crn_config_parse_with(const crn_opt *rows, size_t nrows, const char *name,
                                   const char *text, size_t nbytes, crn_config **ret)
{
    crn_config *cfg;
    CRN_TRY(create(rows, nrows, &cfg));
    cairn_status rc = parse_into(cfg, name, text, nbytes);
    if (rc < 0)
        crn_config_free(cfg);
    else
        *ret = cfg;
    return rc;
}

cairn_status crn_config_parse(const char *name, const char *text, size_t nbytes, crn_config **ret)
{
    return crn_config_parse_with(crn_opt_table, CRN_OPT_COUNT_OF, name, text, nbytes, ret);
}

static cairn_status read_all(int fd, const char *path, char *text, size_t cap, size_t *ret)
{
    size_t n = 0;
    while (n < cap) {
        ssize_t got = read(fd, text + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return crn_fail_sys(errno, "cannot read '%s'", path);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret = n;
    return CAIRN_OK;
}

/* One byte more than allowed is read, so that a file that grows meanwhile is refused as well. */
static cairn_status read_open(int fd, const char *path, crn_config *cfg)
{
    struct stat st;
    char *text;
    size_t n = 0;
    if (fstat(fd, &st) < 0)
        return crn_fail_sys(errno, "cannot look at '%s'", path);
    CRN_FAIL_IF(!S_ISREG(st.st_mode), CAIRN_EINVAL, "'%s' is not a plain file", path);
    CRN_TRY(crn_alloc(&text, (size_t)FILE_MAX + 1));
    cairn_status rc = read_all(fd, path, text, (size_t)FILE_MAX + 1, &n);
    if (rc == CAIRN_OK)
        rc = parse_into(cfg, path, text, n);
    free(text);
    return rc;
}

static cairn_status read_file(const char *path, crn_config *cfg)
{
    /* Not blocking: opening a pipe without a writer must not hang. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open configuration '%s'", path);
    cairn_status rc = read_open(fd, path, cfg);
    close(fd);
    return rc;
}

/* Is name CAIRN_<SECTION>_... of a section of the table? Then it was meant for us. */
static bool names_section(const crn_opt *row, const char *name)
{
    char env[CRN_OPT_ENV];
    crn_opt_env(&(crn_opt){.section = row->section, .key = ""}, env);
    return strncmp(name, env, strlen(env)) == 0;
}

static cairn_status take_environment(crn_config *cfg, const char *name, const char *text)
{
    crn_nearest near = crn_nearest_to(name);
    bool ours = false;
    char env[CRN_OPT_ENV];
    for (size_t i = 0; i < cfg->nrows; i++) {
        if (strcmp(crn_opt_env(&cfg->rows[i], env), name) == 0) {
            cairn_status rc = assign(&cfg->rows[i], text, &cfg->settings[i]);
            if (rc < 0)
                crn_err_prefix("environment variable '%s': ", name);
            return rc;
        }
        ours = ours || names_section(&cfg->rows[i], name);
        crn_nearest_offer(&near, env);
    }
    CRN_FAIL_IF(ours, CAIRN_EINVAL, "environment variable '%s' names no option%s", name, near.hint);
    return CAIRN_OK;
}

static cairn_status read_environment(crn_config *cfg)
{
    for (char **e = environ; *e; e++) {
        const char *value = strchr(*e, '=');
        char *name;
        if (strncmp(*e, "CAIRN_", 6) != 0 || !value)
            continue;
        CRN_TRY(crn_strndup(*e, (size_t)(value - *e), &name));
        cairn_status rc = take_environment(cfg, name, value + 1);
        free(name);
        CRN_TRY(rc);
    }
    return CAIRN_OK;
}

cairn_status crn_config_load(const char *path, crn_config **ret)
{
    crn_config *cfg;
    cairn_status rc = CAIRN_OK;
    if (!path)
        path = getenv("CAIRN_CONFIG");
    CRN_TRY(create(crn_opt_table, CRN_OPT_COUNT_OF, &cfg));
    if (path && *path)
        CRN_TRY_OUT(rc, read_file(path, cfg));
    CRN_TRY_OUT(rc, read_environment(cfg));
    *ret = cfg;
    return CAIRN_OK;
out:
    crn_config_free(cfg);
    return rc;
}

bool crn_config_is_given(const crn_config *cfg, crn_opt_id id)
{
    return cfg->settings[id].given;
}

static const crn_opt_value *value_of(const crn_config *cfg, crn_opt_id id, crn_opt_type type)
{
    assert((size_t)id < cfg->nrows && cfg->rows[id].type == type);
    (void)type;
    return &cfg->settings[id].value;
}

bool crn_config_bool(const crn_config *cfg, crn_opt_id id)
{
    return value_of(cfg, id, CRN_OPT_BOOL)->yes;
}

uint64_t crn_config_count(const crn_config *cfg, crn_opt_id id)
{
    return value_of(cfg, id, CRN_OPT_COUNT)->n;
}

uint64_t crn_config_nbytes(const crn_config *cfg, crn_opt_id id)
{
    return value_of(cfg, id, CRN_OPT_NBYTES)->n;
}

double crn_config_seconds(const crn_config *cfg, crn_opt_id id)
{
    return value_of(cfg, id, CRN_OPT_SECONDS)->x;
}

int crn_config_word(const crn_config *cfg, crn_opt_id id)
{
    return value_of(cfg, id, CRN_OPT_WORD)->word;
}

const char *crn_config_text(const crn_config *cfg, crn_opt_id id)
{
    return cfg->settings[id].text;
}

static const setting *setting_for(const crn_config *cfg, crn_opt_id id, const char *variable)
{
    const override *o = find_override(cfg, id, variable);
    return o ? &o->set : &cfg->settings[id];
}

const char *crn_config_name_at(const crn_config *cfg, const char *section, size_t index)
{
    for (size_t i = 0; i < cfg->overrides.n; i++) {
        const override *o = &cfg->overrides.at[i];
        if (o->first && strcmp(cfg->rows[o->row].section, section) == 0 && index-- == 0)
            return o->variable;
    }
    return NULL;
}

bool crn_config_is_given_for(const crn_config *cfg, crn_opt_id id, const char *name)
{
    return find_override(cfg, id, name) || cfg->settings[id].given;
}

crn_opt_value crn_config_variable(const crn_config *cfg, crn_opt_id id, const char *name)
{
    return setting_for(cfg, id, name)->value;
}

const char *crn_config_for_variable(const crn_config *cfg, crn_opt_id id, const char *name)
{
    return setting_for(cfg, id, name)->text;
}

/* Overrides stand in the order of the file, which all who read the same file share. */
void crn_config_put(const crn_config *cfg, crn_buf *buf)
{
    for (size_t i = 0; i < cfg->nrows; i++) {
        crn_put_str(buf, cfg->settings[i].text);
        crn_put_u32(buf, cfg->settings[i].given);
    }
    for (size_t i = 0; i < cfg->overrides.n; i++) {
        const override *o = &cfg->overrides.at[i];
        crn_put_str(buf, cfg->rows[o->row].key);
        crn_put_str(buf, o->variable);
        crn_put_str(buf, o->set.text);
    }
}
