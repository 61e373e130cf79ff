/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a thread of a trace did between two marks that depends on an order: the senders that
 * wildcard receives got, and which files were read.
 *
 * A mark lies in every thread of its rank. In the one that took it that is a place of the program,
 * the same in all runs; in the others wherever they just were. So what a thread did can also be had
 * by number, counted from its start, which no other thread has a part in.
 *
 * A mark may be there twice in a row: it was begun at the first place and committed at the second,
 * and the program went on in between. The stretch holds what was done during both its marks.
 *
 * When a thread ends the next one to begin may have its number: a remark says so, and parts them.
 */
#include "cause/cause.h"

#include <fcntl.h>

typedef struct walker {
    crn_story *side;
    const crn_mark_interval *stretch; /* NULL: by the spans of the lane, of this life only */
    crn_acts *lanes;                  /* that were ended within the stretch; of this number */
    size_t first;                     /*   from here on */
    crn_passing_by *passing;
    crn_act now;                /* the thread whose events come */
    uint64_t life;              /* its ordinal */
    const char *call;           /* the newest one that is no remark */
    uint64_t nreceipts, nfiles; /* from the thread's start on */
    uint32_t file;              /* the newest one, + 1 */
    uint64_t received, read;    /* digests of those before the spans */
    crn_receipt probed;         /* what a probe found, as long as nothing was received since */
    bool pending;               /* there is such a thing */
    bool within, ended;         /* the first mark was met; the second one, too */
    uint64_t version;           /* of the newest mark */
    bool marked;                /* there was one */
    size_t receipts, files;     /* of the thread, at the end of the second mark */
    bool failed;
} walker;

/* ---- names ---- */

static bool number_of(crn_names *n, const char *text, uint32_t *ret)
{
    const uint64_t hash = crn_hash_text(text);
    size_t probe = 0;
    while (crn_index_next(&n->number, hash, &probe, ret))
        if (strcmp(n->text.at[*ret], text) == 0)
            return true;
    *ret = (uint32_t)n->text.n;
    if (crn_vec_reserve(&n->text, 1) < 0 || crn_strdup(text, &n->text.at[n->text.n]) < 0)
        return false;
    n->text.n++;
    return crn_index_add(&n->number, hash, *ret) == CAIRN_OK;
}

/* Is a frame of the stack "module+0x1f3c < module+0x20aa" in libcairn? */
static bool is_own(const char *stack)
{
    static const char library[] = "libcairn.so";
    for (const char *at = stack; (at = strstr(at, library)); at++)
        if (at == stack || at[-1] == ' ')
            return true;
    return false;
}

/* NULL without memory. */
static const crn_place *place_of(crn_story *s, uint32_t site)
{
    uint32_t number;
    while (s->site.n <= site)
        if (crn_vec_push(&s->site, (crn_place){0}) < 0)
            return NULL;
    crn_place *place = &s->site.at[site];
    if (place->number == 0) {
        const char *stack = cairn_trace_stack(s->t, site);
        if (!stack || !number_of(s->names, stack, &number))
            return NULL;
        *place = (crn_place){.number = number + 1, .own = is_own(stack)};
    }
    return place;
}

/* ---- receipts and files ---- */

static bool lies_in(crn_span span, uint64_t i)
{
    return i >= span.first && i < span.end;
}

static bool ends_with(const char *call, const char *end)
{
    const size_t n = strlen(call), k = strlen(end);
    return n >= k && strcmp(call + n - k, end) == 0;
}

/* Not those that take the message out, which they find once. */
static bool is_probe(const char *call)
{
    return ends_with(call, "_Probe") || ends_with(call, "_Iprobe");
}

/* A program that asks again before it receives finds the same message again: how often it does is
 * a matter of time. */
static bool is_found_again(walker *w, const crn_receipt *r)
{
    const bool again = w->pending && w->probed.site == r->site && w->probed.source == r->source &&
                       w->probed.tag == r->tag;
    w->pending = r->call && is_probe(r->call);
    w->probed = *r;
    return again;
}

static bool keep_receipt(walker *w, const cairn_trace_event *e)
{
    const crn_place *place = place_of(w->side, e->site);
    if (!place)
        return false;
    const crn_receipt r = {.site = place->number - 1,
                           .call = w->call,
                           .source = e->value[0].value,
                           .tag = e->value[1].value};
    if (is_found_again(w, &r))
        return true;
    const uint64_t i = w->nreceipts++;
    if (i == 0) {
        w->now.began[0] = crn_hash_mix(w->now.began[0], place->number);
        w->now.began[0] = crn_hash_mix(w->now.began[0], (uint64_t)r.tag);
    }
    if (i < w->now.receipts.first) {
        w->received = crn_hash_mix(w->received, (uint64_t)r.source);
        w->received = crn_hash_mix(w->received, (uint64_t)r.tag);
    }
    if (w->stretch ? !w->within : !lies_in(w->now.receipts, i))
        return true;
    return crn_vec_push(&w->now.receipt, r) == CAIRN_OK;
}

/*
 * What MPI-IO reads below itself follows from what it is asked for. Of stdio only blocks are
 * recorded, not lines and words: a stream that is opened for reading is taken to be read.
 */
static bool is_read(const cairn_trace_event *e)
{
    if (e->within || (strcmp(e->layer, "posix") != 0 && strcmp(e->layer, "mpiio") != 0))
        return false;
    if (strcmp(e->call, "fopen") == 0)
        return (e->value[0].value & (O_ACCMODE | O_CREAT)) == O_RDONLY;
    return strstr(e->call, "read") || strcmp(e->call, "mmap") == 0;
}

/* Reads that follow each other are one, across the first mark, too. */
static bool keep_file(walker *w, uint32_t file)
{
    const bool goes_on = w->file == file + 1;
    crn_act *l = &w->now;
    w->nfiles += !goes_on;
    w->file = file + 1;
    if (l->began[1] == 0)
        l->began[1] = file + 1;
    if (goes_on && (!w->stretch || l->file.n > 0))
        return true;
    if (!goes_on && w->nfiles <= l->files.first)
        w->read = crn_hash_mix(w->read, file);
    if (w->stretch ? !w->within : !lies_in(l->files, w->nfiles - 1))
        return true;
    if (goes_on)
        l->files.first = w->nfiles - 1;
    return crn_vec_push(&l->file, file) == CAIRN_OK;
}

static bool keep_read(walker *w, const cairn_trace_event *e)
{
    uint32_t file;
    const crn_place *place = place_of(w->side, e->site);
    if (!place || place->own)
        return place != NULL;
    if (!e->file) {
        w->passing->nnameless += w->within;
        return true;
    }
    return number_of(w->side->names, e->file, &file) && keep_file(w, file);
}

/* Who opens a file again reads it again. */
static bool end_reading(walker *w, const cairn_trace_event *e)
{
    uint32_t file;
    if (!e->file)
        return true;
    if (!number_of(w->side->names, e->file, &file))
        return false;
    if (w->file == file + 1)
        w->file = 0;
    return true;
}

/* ---- threads and marks ---- */

/* A thread has ended, or the stretch. */
static bool end_thread(walker *w)
{
    const bool counts = w->stretch && w->within;
    w->now.receipts.end = w->now.receipts.first + w->now.receipt.n;
    w->now.files.end = w->now.files.first + w->now.file.n;
    if (counts && crn_vec_push(w->lanes, w->now) == CAIRN_OK)
        return true;
    crn_act_done(&w->now);
    return !counts;
}

/* Another one has its number. Nonzero: nobody is interested any more. */
static int begin_thread(walker *w)
{
    if (w->ended || (!w->stretch && w->life == w->now.life))
        return 1;
    w->life++;
    w->nreceipts = w->nfiles = 0;
    w->file = 0;
    w->pending = false;
    if (!w->stretch)
        return 0;
    w->failed = !end_thread(w);
    w->now = (crn_act){.thread = w->now.thread, .life = w->life};
    return w->failed;
}

/*
 * A run that is resumed passes a mark again, and a thread is taken to have begun within the stretch
 * until it passes the first mark: what was before no longer counts.
 */
static void begin_stretch(walker *w)
{
    w->within = w->passing->has_from = true;
    w->passing->nnameless = 0;
    crn_acts_cut(w->lanes, w->first);
    w->now.receipt.n = w->now.file.n = 0;
    w->now.receipts.first = w->nreceipts;
    w->now.files.first = w->nfiles;
}

static void end_stretch(walker *w, bool here)
{
    w->ended = true;
    w->now.marks |= here;
    w->receipts = w->now.receipt.n;
    w->files = w->now.file.n;
}

/* Nonzero: the end of the second mark was passed. */
static int at_mark(walker *w, const cairn_trace_event *e)
{
    const uint64_t version = (uint64_t)e->value[0].value;
    const bool commits = w->marked && version == w->version;
    if (!w->marked)
        w->passing->first_mark = version;
    w->marked = true;
    w->version = version;
    if (w->ended && !commits)
        return 1;
    if (version == w->stretch->from && !w->stretch->from_start && !commits)
        begin_stretch(w);
    w->passing->has_to |= version == w->stretch->to;
    if (w->within && version == w->stretch->to)
        end_stretch(w, e->site >
                           0); /* a thread that did not take the mark itself has no place for it */
    return 0;
}

/* ---- walking ---- */

static bool is_over(const walker *w)
{
    return !w->stretch && w->nreceipts >= w->now.receipts.end && w->nfiles >= w->now.files.end;
}

static bool learn_start(walker *w, const cairn_trace_event *e)
{
    if (e->rank > 0 || w->side->start > 0 || strcmp(e->layer, "env") != 0)
        return true;
    const crn_place *place = place_of(w->side, e->site);
    w->side->start = place ? place->number : 0;
    return place != NULL;
}

static int on_event(void *arg, const cairn_trace_event *e)
{
    walker *w = arg;
    bool kept = true;
    if (strcmp(e->call, "@thread") == 0)
        return begin_thread(w);
    if (strcmp(e->call, "@mark") == 0)
        return w->stretch ? at_mark(w, e) : 0;
    if (w->life != w->now.life)
        return 0;
    if (strcmp(e->call, "@match") == 0) {
        kept = keep_receipt(w, e);
    } else {
        w->call = e->call;
        w->pending &= strcmp(e->layer, "p2p") != 0 || is_probe(e->call);
    }
    if (is_read(e))
        kept &= keep_read(w, e);
    else if (ends_with(e->call, "close"))
        kept &= end_reading(w, e);
    w->failed = !kept || !learn_start(w, e);
    return w->failed || is_over(w);
}

static cairn_status walk(walker *w, uint32_t rank)
{
    if (cairn_trace_walk(w->side->t, rank, w->now.thread, on_event, w) < 0)
        return crn_err_peek()->code;
    CRN_FAIL_IF(w->failed, CAIRN_ENOMEM, "no memory for the contents of '%s'", w->side->path);
    return CAIRN_OK;
}

/*
 * The second mark was not met. A thread that began after it has nothing in the stretch, where its
 * counterpart may have been earlier; the first thread of all has no such excuse.
 */
static void forget_later(walker *w)
{
    crn_acts_cut(w->lanes, w->first + (w->now.thread > 0));
    if (w->lanes->n == w->first)
        return;
    crn_act *l = &w->lanes->at[w->first];
    l->receipt.n = l->file.n = 0;
    l->receipts = l->files = (crn_span){0};
}

cairn_status crn_act_collect(crn_story *s, uint32_t rank, uint32_t thread,
                             const crn_mark_interval *stretch, crn_acts *to, crn_passing_by *ret)
{
    walker w = {.side = s, .stretch = stretch, .lanes = to, .first = to->n, .passing = ret};
    *ret = (crn_passing_by){0};
    w.now.thread = thread;
    w.within = stretch->from_start || thread > 0; /* the first one begins with the run */
    cairn_status code = walk(&w, rank);
    ret->whole = w.ended;
    w.now.receipt.n = w.receipts; /* none if it has not ended */
    w.now.file.n = w.files;
    if (!end_thread(&w) && code == CAIRN_OK)
        code = crn_fail(CAIRN_ENOMEM, "no memory for the contents of '%s'", s->path);
    if (!w.ended)
        forget_later(&w);
    return code;
}

cairn_status crn_act_collect_spans(crn_story *s, uint32_t rank, const crn_act *which,
                                   crn_span receipts, crn_span files, crn_act *ret)
{
    crn_passing_by passing = {0};
    walker w = {.side = s, .passing = &passing};
    w.now = (crn_act){
        .thread = which->thread, .life = which->life, .receipts = receipts, .files = files};
    const cairn_status rc = walk(&w, rank);
    if (rc < 0) {
        crn_act_done(&w.now);
        return rc;
    }
    w.now.history = w.received;
    w.now.history = crn_hash_mix(w.now.history, w.read);
    *ret = w.now;
    return CAIRN_OK;
}

void crn_act_done(crn_act *l)
{
    crn_vec_done(&l->receipt);
    crn_vec_done(&l->file);
}

void crn_acts_cut(crn_acts *l, size_t n)
{
    while (l->n > n)
        crn_act_done(&l->at[--l->n]);
}
