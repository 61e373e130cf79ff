/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between ranks: parcels and flows in random patterns arrive whole and never block each other.
 *
 * TEST: ranks self 1 2 3 5 8
 * NEEDS: random123
 */
#include "harness/mpi.h"
#include "level/level_ops.h"

/* A random number that all ranks agree on: of a pair of ranks, for a purpose. */
static uint64_t draw(uint64_t round, int from, int to, uint64_t k, uint64_t below)
{
    crn_rng rng = crn_rng_of(test_seed() + round, (uint64_t)from << 40 | (uint64_t)to << 20 | k);
    return crn_rng_below(&rng, below);
}

static unsigned char byte_of(int from, int to, uint64_t k, size_t i)
{
    return (unsigned char)((uint64_t)from * 31 + (uint64_t)to * 7 + k * 13 + i * 3 + i / 251);
}

/* --- parcels -------------------------------------------------------------------------------- */

static size_t parcel_bytes(uint64_t round, int from, int to)
{
    return draw(round, from, to, 1, 3) == 0 ? 0 : draw(round, from, to, 2, 40000);
}

static bool has_parcel(uint64_t round, int from, int to)
{
    return draw(round, from, to, 0, 3) > 0; /* for itself, too */
}

static void check_parcels(uint64_t round, int rank, int size, const crn_parcels *got)
{
    size_t at = 0;
    for (int from = 0; from < size; from++) {
        if (!has_parcel(round, from, rank))
            continue;
        assert_true(at < got->in.n);
        const crn_parcel *p = &got->in.at[at++];
        assert_int_equal(p->peer, from);
        assert_int_equal(p->n, parcel_bytes(round, from, rank));
        for (size_t i = 0; i < p->n; i++)
            assert_int_equal(p->data[i], byte_of(from, rank, round, i));
    }
    assert_int_equal(at, got->in.n);
}

static void test_parcels_find_their_receivers(void **state)
{
    crn_comm *c = *state;
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    for (uint64_t round = 0; round < 6; round++) {
        crn_outbox box = {0};
        crn_parcels got = {0};
        for (int to = size; to-- > 0;) {
            crn_buf *buf;
            if (!has_parcel(round, rank, to))
                continue;
            assert_ok(crn_outbox_for(&box, to, &buf));
            for (size_t i = 0; i < parcel_bytes(round, rank, to); i++)
                crn_put_u8(buf, byte_of(rank, to, round, i));
        }
        assert_ok(crn_outbox_swap(&box, c, CAIRN_OK, &got));
        check_parcels(round, rank, size, &got);
        crn_parcels_done(&got);
        crn_outbox_done(&box);
    }
}

static void test_parcels_are_kept_back_when_a_rank_failed(void **state)
{
    crn_comm *c = *state;
    crn_parcels got = {0};
    bool last = crn_comm_rank(c) == crn_comm_size(c) - 1;
    cairn_status rc = last ? crn_fail(CAIRN_ENOSPC, "no room on the last one") : CAIRN_OK;
    assert_fails(crn_parcels_swap(c, rc, NULL, 0, &got), CAIRN_ENOSPC, "no room on the last one");
    assert_null(got.data);
}

/* --- flows ---------------------------------------------------------------------------------- */

enum { CAP = 30000 };

typedef struct channel {
    uint64_t round;
    int from, to;
    uint64_t asked, moved; /* pieces */
} channel;

static uint64_t npieces(const channel *ch)
{
    return draw(ch->round, ch->from, ch->to, 0, 2) ? draw(ch->round, ch->from, ch->to, 1, 12) : 0;
}

static size_t piece_bytes(const channel *ch, uint64_t k)
{
    return k < npieces(ch) ? 1 + draw(ch->round, ch->from, ch->to, 2 + k, CAP) : 0;
}

static size_t channel_next(void *arg)
{
    channel *ch = arg;
    return piece_bytes(ch, ch->asked++);
}

static void channel_fill(void *arg, unsigned char *piece, size_t nbytes)
{
    channel *ch = arg;
    assert_int_equal(nbytes, piece_bytes(ch, ch->moved));
    for (size_t i = 0; i < nbytes; i++)
        piece[i] = byte_of(ch->from, ch->to, ch->moved, i);
    ch->moved++;
}

static void channel_take(void *arg, unsigned char *piece, size_t nbytes)
{
    channel *ch = arg;
    assert_int_equal(nbytes, piece_bytes(ch, ch->moved));
    for (size_t i = 0; i < nbytes; i++)
        assert_int_equal(piece[i], byte_of(ch->from, ch->to, ch->moved, i));
    ch->moved++;
}

static crn_flow flow_of(int peer, void (*move)(void *, unsigned char *, size_t), channel *ch)
{
    return (crn_flow){.peer = peer, .cap = CAP, .next = channel_next, .move = move, .arg = ch};
}

/* All pairs at once, in both directions, some of them empty. */
static void test_flows_of_any_pattern_come_to_an_end(void **state)
{
    crn_comm *c = *state;
    enum { MOST = 8 };
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    for (uint64_t round = 0; round < 12; round++) {
        channel out_ch[MOST], in_ch[MOST];
        crn_flow out[MOST] = {0}, in[MOST] = {0};
        size_t n = 0;
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank)
                continue;
            out_ch[n] = (channel){.round = round, .from = rank, .to = peer};
            in_ch[n] = (channel){.round = round, .from = peer, .to = rank};
            out[n] = flow_of(peer, channel_fill, &out_ch[n]);
            in[n] = flow_of(peer, channel_take, &in_ch[n]);
            n++;
        }
        assert_ok(crn_flows_prepare(out, n));
        assert_ok(crn_flows_prepare(in, n));
        assert_ok(crn_flows_run(c, out, n, in, n));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(out_ch[i].moved, npieces(&out_ch[i]));
            assert_int_equal(in_ch[i].moved, npieces(&in_ch[i]));
        }
        crn_flows_done(out, n);
        crn_flows_done(in, n);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parcels_find_their_receivers),
        cmocka_unit_test(test_parcels_are_kept_back_when_a_rank_failed),
        cmocka_unit_test(test_flows_of_any_pattern_come_to_an_end),
    };
    return run_mpi_tests(argc, argv, tests);
}
