/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace export: all events of all ranks for other tools. A folded trace has statistics of
 * times, not each time, so events are placed by mean times (cairn_trace_timeline): the order within
 * a rank is real, the moments are expected ones.
 */
#include "cmd/cmd_trace.h"

#include <errno.h>

static const char usage[] = "cairn trace export [--format FORMAT] [--where TERMS] [-o FILE] FILE";

typedef struct exporter exporter;

typedef struct format {
    const char *name;
    void (*begin)(exporter *x);
    void (*event)(exporter *x, const cairn_trace_moment *m);
    void (*end)(exporter *x);
} format;

struct exporter {
    cairn_trace *t;
    const cairn_trace_info *info;
    FILE *to;
    const format *format;
    uint64_t n; /* events so far */
};

/* The rank that is sent to, else received from; -1 without. */
static int64_t peer_of(const cairn_trace_event *e)
{
    return e->nmessages > 0 ? e->message[0].peer : -1;
}

/* As a string of JSON or, with quotes doubled, of CSV. */
static void put_text(FILE *to, const char *s, bool csv)
{
    fputc('"', to);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (csv && c == '"')
            fputs("\"\"", to);
        else if (!csv && (c == '"' || c == '\\'))
            fprintf(to, "\\%c", c);
        else if (c < ' ' || c >= 0x7f)
            fputc('?', to);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

static void csv_begin(exporter *x)
{
    fputs("rank,thread,call,layer,within,start,seconds,nbytes,peer,file,site\n", x->to);
}

static void csv_event(exporter *x, const cairn_trace_moment *m)
{
    const cairn_trace_event *e = m->event;
    fprintf(x->to, "%" PRIu32 ",%" PRIu32 ",%s,%s,%s,%.9f,%.9f,%" PRIu64 ",%" PRId64 ",", e->rank,
            e->thread, e->call, e->layer, e->within ? e->within : "", m->start, m->seconds,
            e->nbytes, peer_of(e));
    put_text(x->to, e->file ? e->file : "", true);
    fputc(',', x->to);
    put_text(x->to, cmd_trace_site(x->t, e->site), true);
    fputc('\n', x->to);
}

static void csv_end(exporter *x)
{
    (void)x;
}

/* A name that the viewer shows for a rank, or a thread of one. */
static void chrome_name(exporter *x, const char *kind, uint32_t rank, uint32_t thread,
                        const char *what, uint32_t number)
{
    fprintf(x->to,
            "%s\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"args\":{\"name\":\"%s %" PRIu32 "\"}}",
            x->n > 0 ? "," : "", kind, rank, thread, what, number);
    x->n++;
}

static void chrome_begin(exporter *x)
{
    fputs(
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"times\":\"expected: means of each call site, "
        "of the ranks that are alike\"},\"traceEvents\":[",
        x->to);
    for (uint32_t r = 0; r < x->info->nranks; r++) {
        chrome_name(x, "process_name", r, 0, "rank", r);
        for (uint32_t thread = 0; thread < x->info->nthreads; thread++)
            chrome_name(x, "thread_name", r, thread, "thread", thread);
    }
}

/* The parameters that people look for, the first one of each kind. */
static void chrome_values(exporter *x, const cairn_trace_event *e)
{
    static const char *const kinds[] = {"tag", "root", "comm"};
    bool drawn = false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t i = 0;
        while (i < e->nvalues && strcmp(e->value[i].kind, kinds[k]) != 0)
            i++;
        if (i < e->nvalues)
            fprintf(x->to, ",\"%s\":%" PRId64, kinds[k], e->value[i].value);
    }
    for (size_t i = 0; i < e->nvalues; i++)
        drawn |= e->value[i].drawn;
    if (drawn)
        fputs(",\"expected\":true", x->to);
}

/* An arrow from the middle of the event that sends a message to the middle of the one that has it.
 */
static void chrome_flow(exporter *x, const cairn_trace_moment *m, const cairn_trace_flow *f)
{
    fprintf(x->to,
            ",\n{\"name\":\"message\",\"cat\":\"message\",\"ph\":\"%s\",\"id\":\"%016" PRIx64
            "\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%.3f}",
            f->leaves ? "s" : "f\",\"bp\":\"e", f->id, m->event->rank, m->event->thread,
            (m->start + m->seconds / 2) * 1e6);
}

/* Microseconds; a rank is a process. */
static void chrome_event(exporter *x, const cairn_trace_moment *m)
{
    const cairn_trace_event *e = m->event;
    fprintf(x->to,
            "%s\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"nbytes\":%" PRIu64,
            x->n > 0 ? "," : "", e->call, e->layer, e->rank, e->thread, m->start * 1e6,
            m->seconds * 1e6, e->nbytes);
    if (e->nmessages > 0)
        fprintf(x->to, ",\"peer\":%" PRId64, peer_of(e));
    if (e->file) {
        fputs(",\"file\":", x->to);
        put_text(x->to, e->file, false);
    }
    if (e->site > 0) {
        fputs(",\"site\":", x->to);
        put_text(x->to, cmd_trace_site(x->t, e->site), false);
    }
    chrome_values(x, e);
    fputs("}}", x->to);
    for (size_t i = 0; i < m->nflows; i++)
        chrome_flow(x, m, &m->flow[i]);
}

static void chrome_end(exporter *x)
{
    fputs("\n]}\n", x->to);
}

static const format formats[] = {{"chrome", chrome_begin, chrome_event, chrome_end},
                                 {"csv", csv_begin, csv_event, csv_end}};

enum { NFORMATS = sizeof formats / sizeof *formats };

static int on_moment(void *arg, const cairn_trace_moment *m)
{
    exporter *x = arg;
    x->format->event(x, m);
    x->n++;
    return ferror(x->to);
}

static int export_all(exporter *x, const cairn_trace_info *info, const char *path)
{
    x->info = info;
    x->format->begin(x);
    if (cairn_trace_timeline(x->t, on_moment, x) < 0)
        return cmd_fail("'%s': %s", path, cairn_error_text());
    x->format->end(x);
    return CMD_YES;
}

static int export_to(exporter *x, const cairn_trace_info *info, const char *path, const char *out)
{
    x->to = out ? fopen(out, "w") : stdout;
    if (!x->to)
        return cmd_fail("cannot write '%s': %s", out, strerror(errno));
    int code = export_all(x, info, path);
    bool bad = ferror(x->to) != 0;
    if (out && (fclose(x->to) != 0 || bad))
        return cmd_fail("cannot write '%s': %s", out, strerror(errno));
    return code;
}

static const format *find_format(const char *name)
{
    crn_nearest near = crn_nearest_to(name);
    for (size_t i = 0; i < NFORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
        crn_nearest_offer(&near, formats[i].name);
    }
    cmd_fail("--format: no format '%s'%s", name,
             near.hint[0] ? near.hint : "; there are chrome and csv");
    return NULL;
}

int cmd_trace_export(int argc, char **argv)
{
    exporter x = {.n = 0};
    cairn_trace_info info;
    cmd_trace_look look = {0};
    const char *out = NULL, *name = "chrome";
    int code;
    const cmd_option options[] = {
        CMD_TEXT('f', "format", "FORMAT", &name, "chrome (for Perfetto, too) or csv"),
        CMD_TEXT('o', "output", "FILE", &out, "write there, not to standard output"),
        CMD_TRACE_LOOK(&look), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one trace must be named");
    x.format = find_format(name);
    if (!x.format || cmd_trace_look_at(argv[0], &look, &x.t, &info) != CMD_YES)
        return CMD_UNKNOWN;
    code = export_to(&x, &info, argv[0], out);
    cmd_trace_done(x.t);
    return code;
}
