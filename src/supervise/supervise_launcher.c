/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The launcher's line: which word says how many ranks to start, and how it can be made to hand our
 * environment on. mpirun, mpiexec and orterun of any MPI (mpiexec.hydra, mpirun.openmpi ...), and
 * srun.
 */
#include "supervise/supervise.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* Options that are followed by the number, or end in '=' and it; -n may also stand before it. */
static const char *const rank_options[] = {"-n", "-np", "--n", "--np", "--ntasks"};

static bool is_launcher(const char *word)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "srun", "prterun"};
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (name[n] == 0 || name[n] == '.'))
            return true;
    }
    return false;
}

/* How many letters of word come before the number that it ends in: "--ntasks=8", "-n8". 0: it is no
 * such word. */
static size_t lead_of(const char *word)
{
    for (size_t i = 0; i < sizeof rank_options / sizeof *rank_options; i++) {
        const char *option = rank_options[i];
        size_t n = strlen(option);
        if (strncmp(word, option, n) == 0 && word[n] == '=')
            return n + 1;
    }
    return strncmp(word, "-n", 2) == 0 && word[2] >= '1' && word[2] <= '9' ? 2 : 0;
}

static bool is_rank_option(const char *word)
{
    for (size_t i = 0; i < sizeof rank_options / sizeof *rank_options; i++)
        if (strcmp(word, rank_options[i]) == 0)
            return true;
    return false;
}

/* How many words may belong to an option, behind it. */
static size_t nwords_of(const char *option)
{
    static const char *const names[] = {"mca", "gmca", "prtemca", "pmixmca", "env", "genv"};
    const char *name = option + strspn(option, "-");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return 2;
    return strchr(option, '=') ? 0 : 1;
}

static bool is_program(const char *word)
{
    struct stat st;
    return strchr(word, '/') && stat(word, &st) == 0 && S_ISREG(st.st_mode) &&
           access(word, X_OK) == 0;
}

/* Where the options of the launcher end: at a word that belongs to no option before it, or is a
 * program that is there. Which options take a word only the launcher knows; a program without a
 * folder behind one that takes none is not recognized. */
static size_t count_own_words(char **words)
{
    size_t n = 1, args = 0;
    for (; words[n]; n++) {
        if (words[n][0] == '-')
            args = nwords_of(words[n]);
        else if (args == 0 || is_program(words[n]))
            break;
        else
            args--;
    }
    return n;
}

/* A line of several programs has no one number. */
static void find_ranks(crn_launcher *l)
{
    if (!l->known)
        return;
    for (size_t i = 1; l->words[i]; i++)
        if (strcmp(l->words[i], ":") == 0)
            return;
    const size_t n = count_own_words(l->words);
    for (size_t i = 1; i < n; i++) {
        const bool next = is_rank_option(l->words[i]) && i + 1 < n;
        const size_t lead = next ? 0 : lead_of(l->words[i]);
        if (!next && lead == 0)
            continue;
        l->at = i + next;
        if (crn_parse_count(l->words[l->at] + lead, &l->nranks) < 0)
            l->nranks = 0;
        return;
    }
}

cairn_status crn_launcher_init(crn_launcher *l, char **words, size_t nwords)
{
    *l = (crn_launcher){0};
    CRN_TRY(crn_alloc(&l->words, nwords + 1));
    memcpy(l->words, words, nwords * sizeof *words);
    l->known = is_launcher(words[0]);
    find_ranks(l);
    return CAIRN_OK;
}

void crn_launcher_done(crn_launcher *l)
{
    free(l->number);
    free(l->words);
}

cairn_status crn_launcher_set_ranks(crn_launcher *l, uint64_t nranks)
{
    const char *word = l->words[l->at];
    const int lead = (int)(word[0] == '-' ? lead_of(word) : 0);
    char *text;
    if (asprintf(&text, "%.*s%" PRIu64, lead, word, nranks) < 0)
        return crn_fail(CAIRN_ENOMEM, "no memory");
    free(l->number);
    l->words[l->at] = l->number = text;
    l->nranks = nranks;
    return CAIRN_OK;
}

/* MPICH's launcher ends with the number of the signal as its exit code, and says so in words. */
int crn_launcher_signal(int code, const char *output)
{
    const char *found = strstr(output, "TERMINATED WITH THE EXIT STRING: ");
    const char *number = found ? strstr(found, "(signal ") : NULL;
    return number && strtol(number + strlen("(signal "), NULL, 10) == code ? code : 0;
}

/* --- handing on --------------------------------------------------------------------------- */

/* What was there, and the names of our variables; NULL without memory. */
static char *join_names(const char *there)
{
    crn_buf b = {0};
    crn_put_bytes(&b, there, strlen(there));
    for (char **v = environ; *v; v++) {
        if (strncmp(*v, "CAIRN_", 6) != 0)
            continue;
        crn_put_bytes(&b, ";", b.n > 0);
        crn_put_bytes(&b, *v, strcspn(*v, "="));
    }
    crn_put_u8(&b, 0);
    if (crn_buf_status(&b) == CAIRN_OK)
        return (char *)b.at;
    crn_buf_done(&b);
    return NULL;
}

cairn_status crn_launcher_hand_on(const crn_launcher *l)
{
    static const char list[] = "OMPI_MCA_mca_base_env_list";
    const char *there = getenv(list);
    for (char **word = l->words; *word; word++)
        if (strcmp(*word, "-x") == 0) /* Open MPI takes names by that or by the list, not by both */
            return CAIRN_OK;
    char *names = join_names(there ? there : "");
    int failed = !names || setenv(list, names, 1) != 0;
    free(names);
    return failed ? crn_fail(CAIRN_ENOMEM, "no memory for the environment") : CAIRN_OK;
}
