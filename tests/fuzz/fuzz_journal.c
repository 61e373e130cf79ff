/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes as the journal of a particle filter's server: refused with a sentence, or taken such
 * that a cycle can go on from it. The first byte says whether lines have digests of their own, or
 * get right ones here: what is behind a digest is to be looked at, too.
 */
#include "ensemble/ensemble_particle_server.h"

#include <assert.h>

enum { MEMBERS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void put_lines(crn_buf *b, const uint8_t *data, size_t nbytes)
{
    for (size_t at = 0, n; at < nbytes; at += n + 1) {
        for (n = 0; at + n < nbytes && data[at + n] != '\n';)
            n++;
        crn_journal_line(b, "%.*s", (int)CRN_MIN(n, 200), (const char *)data + at);
    }
}

/* What a server does that goes on from it. */
static void go_on(crn_server *s, crn_particles *p)
{
    const crn_sched_options o = {.capacity = 4, .cycle = s->cycle - 1};
    uint32_t ndone = 0;
    if (crn_sched_create(s->nmembers, &o, &p->sched) < 0 || crn_sched_begin(p->sched, p->count) < 0)
        return;
    crn_particles_name_parents(p);
    for (uint32_t i = 0; i < MEMBERS; i++)
        assert(p->parent[i] < MEMBERS);
    if (crn_particles_take_up(p) < 0)
        return;
    for (uint32_t i = 0; i < MEMBERS; i++)
        ndone += s->member[i].state == CRN_MEMBER_DONE;
    assert(ndone == s->ndone && crn_sched_complete(p->sched) == (ndone == MEMBERS));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char dir[] = "/nonexistent";
    crn_study study = {.dir = dir, .seed = 1};
    crn_member_row member[MEMBERS] = {0};
    crn_server s = {.study = &study, .nmembers = MEMBERS, .member = member};
    crn_buf b = {0};
    if (nbytes < 2)
        return 0;
    if (data[0] & 1)
        put_lines(&b, data + 1, nbytes - 1);
    else
        crn_put_bytes(&b, data + 1, nbytes - 1);
    FILE *f = crn_buf_status(&b) == CAIRN_OK && b.n > 0 ? fmemopen(b.at, b.n, "r") : NULL;
    if (f && crn_particles_create(&s) == CAIRN_OK) {
        crn_particles *p = crn_particles_of(&s);
        p->journal = (crn_journal){.fd = -1};
        if (crn_particles_read_journal(p, f) == CAIRN_OK && p->taken_up)
            go_on(&s, p);
        else
            assert(p->taken_up || crn_err_peek()->text[0]);
        crn_method_particle.free(&s);
    }
    if (f)
        fclose(f);
    crn_buf_done(&b);
    return 0;
}
