/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server writes down, and how a new one goes on from it. The journal has one cycle: how it
 * began, and what has happened in it.
 *
 *     begin CYCLE MEMBERS SEED RESAMPLED       the cycle that is to be propagated
 *     parent MEMBER COUNT DIGEST               of the cycle before, with children
 *     carried MEMBER BITS                      its log-weight, where it is not 0
 *     normal MEMBER BITS                       its normalised weight, where copies are moved by it
 *     going                                    all that the beginning has is there
 *     task MEMBER ATTEMPT RUNNER
 *     weight MEMBER BITS DIGEST
 *     safe MEMBER DIGEST                       its state is on the shelf
 *     failed MEMBER BURNED LOSSES
 *     none MEMBER                              it has no state, and the weight 0
 */
#include "ensemble/ensemble_particle_server.h"

#include <inttypes.h>
#include <math.h>

bool crn_digest_parse_text(const char *text, crn_digest *ret)
{
    for (size_t i = 0; i < sizeof ret->b; i++) {
        unsigned v;
        if (sscanf(text + 2 * i, "%2x", &v) != 1 || !text[2 * i + 1])
            return false;
        ret->b[i] = (unsigned char)v;
    }
    return text[2 * sizeof ret->b] == 0;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double real_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* --- writing -------------------------------------------------------------------------------- */

cairn_status crn_particles_note_begin(crn_particles *p, uint32_t cycle)
{
    crn_buf b = {0};
    char digest[CRN_DIGEST_TEXT];
    const uint32_t n = p->s->nmembers;
    crn_journal_line(&b, "begin %u %u %" PRIu64 " %d", cycle, n, p->s->study->seed, p->resampled);
    for (uint32_t i = 0; i < n; i++) {
        if (p->count[i] > 0)
            crn_journal_line(&b, "parent %u %u %s", i, p->count[i],
                             p->had[i] ? crn_digest_format(&p->was[i], digest) : "-");
        if (p->carried[i] != 0)
            crn_journal_line(&b, "carried %u %016" PRIx64, i, bits_of(p->carried[i]));
        if (p->resampled && p->s->study->particle.jitter > 0 && p->weight[i] > 0)
            crn_journal_line(&b, "normal %u %016" PRIx64, i, bits_of(p->weight[i]));
    }
    crn_journal_line(&b, "going");
    cairn_status rc = crn_journal_replace(&p->journal, &b);
    crn_buf_done(&b);
    return rc;
}

cairn_status crn_particles_note_task(crn_particles *p, uint32_t member, uint32_t attempt,
                                     uint32_t runner)
{
    return crn_journal_add(&p->journal, "task %u %u %u", member, attempt, runner);
}

cairn_status crn_particles_note_weight(crn_particles *p, uint32_t member, double logw,
                                       const crn_digest *digest)
{
    char text[CRN_DIGEST_TEXT];
    return crn_journal_add(&p->journal, "weight %u %016" PRIx64 " %s", member, bits_of(logw),
                           crn_digest_format(digest, text));
}

cairn_status crn_particles_note_safe(crn_particles *p, uint32_t member, const crn_digest *digest)
{
    char text[CRN_DIGEST_TEXT];
    return crn_journal_add(&p->journal, "safe %u %s", member, crn_digest_format(digest, text));
}

cairn_status crn_particles_note_failed(crn_particles *p, uint32_t member)
{
    const crn_member_row *m = &p->s->member[member];
    return crn_journal_add(&p->journal, "failed %u %u %u", member, m->burned, m->losses);
}

cairn_status crn_particles_note_given_up(crn_particles *p, uint32_t member)
{
    return crn_journal_add(&p->journal, "none %u", member);
}

/* --- reading -------------------------------------------------------------------------------- */

/* What a line says, before there is a schedule: kept in the rows. */
typedef struct reading {
    crn_particles *p;
    uint64_t ntasks;
    bool begun, going;
} reading;

static cairn_status on_begin(reading *r, const char *line)
{
    unsigned cycle, n;
    int resampled;
    uint64_t seed;
    crn_server *s = r->p->s;
    CRN_FAIL_IF(sscanf(line, "begin %u %u %" SCNu64 " %d", &cycle, &n, &seed, &resampled) != 4,
                CAIRN_ECORRUPT, "the journal's beginning is not understood");
    CRN_FAIL_IF(n != s->nmembers || seed != s->study->seed, CAIRN_EMISMATCH,
                "the study was begun with %u members and seed %" PRIu64 ", and has %u and %" PRIu64
                " now: it is another one; remove '%s' to begin it",
                n, seed, s->nmembers, s->study->seed, s->study->dir);
    CRN_FAIL_IF(cycle == 0, CAIRN_ECORRUPT, "the journal begins with cycle 0: it has no parents");
    s->cycle = cycle;
    r->p->resampled = resampled != 0;
    r->begun = true;
    return CAIRN_OK;
}

static bool on_parent(reading *r, const char *line)
{
    unsigned member, count;
    char digest[CRN_DIGEST_TEXT];
    uint64_t bits;
    crn_particles *p = r->p;
    if (sscanf(line, "parent %u %u %32s", &member, &count, digest) == 3 &&
        member < p->s->nmembers) {
        p->count[member] = count;
        p->had[member] = crn_digest_parse_text(digest, &p->was[member]);
        return true;
    }
    if (sscanf(line, "carried %u %" SCNx64, &member, &bits) == 2 && member < p->s->nmembers) {
        p->carried[member] = real_of(bits);
        return true;
    }
    if (sscanf(line, "normal %u %" SCNx64, &member, &bits) == 2 && member < p->s->nmembers) {
        p->weight[member] = real_of(bits);
        return true;
    }
    if (strcmp(line, "going") == 0)
        r->going = true;
    return r->going;
}

static bool on_member(reading *r, const char *line)
{
    unsigned m, a, b;
    uint64_t bits;
    char digest[CRN_DIGEST_TEXT];
    crn_particles *p = r->p;
    if (sscanf(line, "%*[a-z] %u", &m) != 1 || m >= p->s->nmembers)
        return false;
    crn_particle_row *row = &p->row[m];
    if (sscanf(line, "task %u %u %u", &m, &a, &b) == 3) {
        p->s->member[m].attempt = a;
        row->assigned = b;
        row->order = ++r->ntasks;
    } else if (sscanf(line, "weight %u %" SCNx64 " %32s", &m, &bits, digest) == 3) {
        row->weight = real_of(bits);
        row->has_digest = crn_digest_parse_text(digest, &row->digest);
    } else if (sscanf(line, "safe %u %32s", &m, digest) == 2) {
        row->has_digest = crn_digest_parse_text(digest, &row->digest);
        row->was_safe = true;
    } else if (sscanf(line, "failed %u %u %u", &m, &a, &b) == 3) {
        p->s->member[m].burned = a;
        p->s->member[m].losses = b;
        row->assigned = 0;
    } else if (sscanf(line, "none %u", &m) == 1)
        row->gave_up = true;
    else
        return false;
    return true;
}

static cairn_status on_line(void *arg, const char *line)
{
    reading *r = arg;
    if (!r->begun)
        return on_begin(r, line);
    CRN_FAIL_IF(!(r->going ? on_member(r, line) : on_parent(r, line)), CAIRN_ECORRUPT,
                "the journal has a line that no server writes: '%.80s'", line);
    return CAIRN_OK;
}

cairn_status crn_particles_read_journal(crn_particles *p, FILE *f)
{
    reading r = {.p = p};
    for (uint32_t i = 0; i < p->s->nmembers; i++)
        p->row[i].weight = NAN;
    cairn_status rc;
    if (f)
        rc = crn_journal_read(&p->journal, f, on_line, &r);
    else
        rc = crn_journal_open(&p->journal, p->s->study, on_line, &r);
    CRN_TRY(rc);
    CRN_FAIL_IF(rc == CAIRN_OK && !r.going, CAIRN_ECORRUPT,
                "'%s' is cut in its beginning: the study cannot go on from here", p->journal.path);
    p->taken_up = r.going;
    return CAIRN_OK;
}

/* --- going on ------------------------------------------------------------------------------- */

static cairn_status restore_member(crn_particles *p, uint32_t m)
{
    crn_particle_row *row = &p->row[m];
    if (row->gave_up) {
        CRN_TRY(crn_sched_weight(p->sched, m, -INFINITY));
        CRN_TRY(crn_sched_safe(p->sched, m));
    } else if (!isnan(row->weight)) {
        CRN_TRY(crn_sched_weight(p->sched, m, row->weight));
        if (row->was_safe)
            CRN_TRY(crn_sched_safe(p->sched, m));
    }
    if (row->gave_up || (row->was_safe && !isnan(row->weight))) {
        p->s->member[m].state = CRN_MEMBER_DONE;
        p->s->ndone++;
        row->assigned = 0;
    }
    return CAIRN_OK;
}

typedef struct assignment {
    uint64_t order;
    uint32_t member;
} assignment;

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const assignment *)a)->order, y = ((const assignment *)b)->order;
    return (x > y) - (x < y);
}

/* Runners that have tasks of an earlier server are believed to be at them until they say so, are
 * gone, or too long away: the last one of each is under way, the others wait to be safe. */
static cairn_status restore_assignments(crn_particles *p)
{
    CRN_VEC(assignment) all = {0};
    cairn_status rc = CAIRN_OK;
    for (uint32_t m = 0; rc == CAIRN_OK && m < p->s->nmembers; m++)
        if (p->row[m].assigned > 0)
            rc = crn_vec_push(&all, (assignment){p->row[m].order, m});
    if (all.n > 0)
        qsort(all.at, all.n, sizeof *all.at, by_order);
    for (size_t i = 0; rc == CAIRN_OK && i < all.n; i++) {
        crn_peer *peer = NULL;
        rc = crn_particles_expect(p, p->row[all.at[i].member].assigned, &peer);
        if (rc == CAIRN_OK)
            rc = crn_vec_push(&peer->assigned, all.at[i].member);
    }
    crn_vec_done(&all);
    return rc;
}

static cairn_status resume_peer(crn_particles *p, const crn_peer *peer)
{
    for (size_t i = 0; i < peer->assigned.n; i++) {
        const uint32_t m = peer->assigned.at[i];
        p->s->member[m].state = CRN_MEMBER_RUNNING;
        p->s->member[m].copies = 1;
        CRN_TRY(i + 1 < peer->assigned.n ? crn_sched_finished(p->sched, peer->sched, m)
                                         : crn_sched_resume(p->sched, peer->sched, m));
    }
    return CAIRN_OK;
}

cairn_status crn_particles_take_up(crn_particles *p)
{
    crn_server *s = p->s;
    for (uint32_t m = 0; m < s->nmembers; m++)
        CRN_TRY(restore_member(p, m));
    CRN_TRY(restore_assignments(p));
    for (size_t i = 0; i < p->peer.n; i++)
        CRN_TRY(resume_peer(p, p->peer.at[i]));
    crn_study_event(s->study, "resumed", "{s:i,s:i,s:s}", "cycle", s->cycle, "members", s->ndone,
                    "from", "journal");
    return CAIRN_OK;
}
