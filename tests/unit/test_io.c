/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue, over every backend: random reads and writes in flight against a model in memory,
 * vectors, depth, ends of files, and what callers may rely on.
 *
 * NEEDS: liburing random123
 */
#include "harness/scratch.h"
#include "io/io.h"

#include <sys/resource.h>

enum { FILE_BYTES = 1 << 20, SLOTS = 24, ROUNDS = 400, SLOT_PIECES = 5 };

/* Run body once per backend; where the kernel refuses one, say so. */
static void for_each_backend(unsigned depth, void (*body)(crn_io *io))
{
    static const crn_io_backend kinds[] = {CRN_IO_URING, CRN_IO_THREADS};
    for (size_t i = 0; i < 2; i++) {
        crn_io *io;
        cairn_status rc = crn_io_create(kinds[i], depth, &io);
        if (rc == CAIRN_EUNSUPPORTED) {
            print_message("SKIPPED one backend: %s\n", crn_err_peek()->text);
            continue;
        }
        assert_ok(rc);
        body(io);
        crn_io_free(io);
    }
}

static crn_file *open_fresh(const char *name, int flags)
{
    crn_file *f;
    unlinkat(dir, name, 0);
    assert_ok(crn_file_open(dir, name, CRN_READ | CRN_WRITE | CRN_CREATE | flags, &f));
    return f;
}

static void fill_random(unsigned char *at, size_t n, crn_rng *rng)
{
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t v = crn_rng_u64(rng);
        memcpy(at + i, &v, CRN_MIN(sizeof v, n - i));
    }
}

/* --- random operations against a model --- */

typedef struct slot {
    crn_op op;
    struct iovec iov[SLOT_PIECES];
    unsigned char *data; /* SLOT_BYTES of it */
    uint64_t off;
    size_t nbytes;
    bool busy;
} slot;

enum { SLOT_BYTES = FILE_BYTES / SLOTS / 4096 * 4096 };

/* Cut data into pieces, some of them empty, some aligned. */
static int cut_pieces(slot *s, bool aligned, crn_rng *rng)
{
    size_t done = 0;
    int n = 1 + (int)crn_rng_below(rng, SLOT_PIECES);
    for (int i = 0; i < n; i++) {
        size_t left = s->nbytes - done;
        size_t len = i == n - 1 ? left : crn_rng_below(rng, left + 1);
        if (aligned)
            len = i == n - 1 ? left : len & ~(size_t)4095;
        s->iov[i] = (struct iovec){s->data + done, len};
        done += len;
    }
    return n;
}

/* Start a read or a write somewhere in the slot's own range of the file. */
static void start_random(crn_io *io, crn_file *f, slot *s, size_t index, unsigned char *model,
                         crn_rng *rng)
{
    bool aligned = crn_rng_below(rng, 2), is_write = crn_rng_below(rng, 2);
    uint64_t base = index * SLOT_BYTES, from = crn_rng_below(rng, SLOT_BYTES);
    size_t len = crn_rng_below(rng, SLOT_BYTES - from + 1);
    if (aligned)
        from &= ~(uint64_t)4095, len &= ~(size_t)4095;
    s->off = base + from;
    s->nbytes = len;
    s->op = (crn_op){.kind = is_write ? CRN_OP_WRITE : CRN_OP_READ,
                     .file = f,
                     .iov = s->iov,
                     .niov = cut_pieces(s, aligned, rng),
                     .off = s->off,
                     .user = s};
    if (is_write) {
        fill_random(s->data, len, rng);
        memcpy(model + s->off, s->data, len);
    } else {
        memset(s->data, 0xee, len);
    }
    s->busy = true;
    assert_ok(crn_io_submit(io, &s->op));
}

static void finish_one(crn_io *io, const unsigned char *model)
{
    crn_op *op;
    assert_ok(crn_io_wait(io, &op));
    assert_non_null(op);
    if (op->status < 0)
        fail_msg("%s", op->err.text);
    slot *s = op->user;
    assert_true(s->busy);
    s->busy = false;
    assert_memory_equal(s->data, model + s->off, s->nbytes);
}

static void run_model(crn_io *io, int flags)
{
    crn_rng rng = crn_rng_of(test_seed(), (uint64_t)flags);
    crn_file *f = open_fresh("model", flags);
    unsigned char *model, *back;
    slot *slots;
    assert_ok(crn_alloc(&model, FILE_BYTES));
    assert_ok(crn_alloc(&back, FILE_BYTES));
    assert_ok(crn_alloc(&slots, SLOTS));
    for (size_t i = 0; i < SLOTS; i++)
        assert_ok(crn_alloc_aligned(&slots[i].data, SLOT_BYTES, 4096));
    size_t align = crn_file_direct_align(f);
    fill_random(model, FILE_BYTES, &rng);
    assert_ok(crn_file_write(f, model, FILE_BYTES, 0));

    size_t nbusy = 0;
    for (int round = 0; round < ROUNDS;) {
        size_t i = crn_rng_below(&rng, SLOTS);
        if (slots[i].busy || nbusy == SLOTS) {
            finish_one(io, model);
            nbusy--;
        } else {
            start_random(io, f, &slots[i], i, model, &rng);
            nbusy++;
            round++;
        }
    }
    while (nbusy-- > 0)
        finish_one(io, model);
    crn_op *op;
    assert_ok(crn_io_wait(io, &op));
    assert_null(op);
    assert_ok(crn_file_read(f, back, FILE_BYTES, 0));
    assert_memory_equal(back, model, FILE_BYTES);
    assert_int_equal(crn_file_direct_align(f), align); /* the kernel had nothing to refuse */

    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i].data);
    free(slots);
    free(back);
    free(model);
    crn_file_close(f);
}

static void run_model_buffered(crn_io *io)
{
    run_model(io, 0);
}

static void run_model_direct(crn_io *io)
{
    run_model(io, CRN_DIRECT);
}

static void test_submit_random_equals_model(void **state)
{
    (void)state;
    for_each_backend(8, run_model_buffered); /* fewer than are submitted */
    for_each_backend(64, run_model_buffered);
    for_each_backend(1, run_model_direct);
    for_each_backend(16, run_model_direct);
}

/* --- single rules --- */

static crn_op *run_one(crn_io *io, crn_op *op)
{
    crn_op *done;
    assert_ok(crn_io_submit(io, op));
    assert_ok(crn_io_wait(io, &done));
    assert_ptr_equal(done, op);
    return done;
}

static void check_read_past_end(crn_io *io)
{
    static char data[8192] __attribute__((aligned(4096)));
    struct iovec iov = {data, sizeof data};
    crn_file *f = open_fresh("short", CRN_DIRECT);
    assert_ok(crn_file_write(f, data, 5000, 0));
    crn_op op = {.kind = CRN_OP_READ, .file = f, .iov = &iov, .niov = 1, .off = 0};
    run_one(io, &op);
    assert_int_equal(op.status, CAIRN_ECORRUPT);
    assert_non_null(strstr(op.err.text, "'short' ends at 5000"));
    assert_fails(crn_file_read(f, data, 8, 1 << 20), CAIRN_ECORRUPT, "'short' ends");
    crn_file_close(f);
}

static void test_read_past_end_is_damage(void **state)
{
    (void)state;
    for_each_backend(4, check_read_past_end);
}

static void check_failure_story(crn_io *io)
{
    static char data[16];
    struct iovec iov = {data, sizeof data};
    crn_file *f = open_fresh("ro", 0), *ro;
    assert_ok(crn_file_open(dir, "ro", CRN_READ, &ro));
    crn_op op = {.kind = CRN_OP_WRITE, .file = ro, .iov = &iov, .niov = 1, .off = 77};
    (void)crn_fail(CAIRN_EBUSY, "an older failure");
    run_one(io, &op);
    assert_int_equal(op.status, CAIRN_EIO);
    assert_string_equal(op.err.text,
                        "cannot write 16 bytes at 77 of 'ro' (0 done): Bad file descriptor");
    assert_string_equal(crn_err_peek()->text, "an older failure");
    crn_file_close(ro);
    crn_file_close(f);
}

static void test_failure_is_in_op_and_not_in_record(void **state)
{
    (void)state;
    for_each_backend(4, check_failure_story);
}

static void check_empty_and_sync(crn_io *io)
{
    struct iovec iov[2] = {{NULL, 0}, {NULL, 0}};
    crn_file *f = open_fresh("empty", 0);
    crn_op op = {.kind = CRN_OP_WRITE, .file = f, .iov = iov, .niov = 2, .off = 3};
    assert_int_equal(run_one(io, &op)->status, CAIRN_OK);
    op = (crn_op){.kind = CRN_OP_SYNC, .file = f};
    assert_int_equal(run_one(io, &op)->status, CAIRN_OK);
    op = (crn_op){.kind = CRN_OP_READ, .file = f, .iov = iov, .niov = 0};
    assert_fails(crn_io_submit(io, &op), CAIRN_EINVAL, "0 pieces");
    op = (crn_op){.kind = CRN_OP_READ, .file = f, .iov = iov, .niov = CRN_OP_IOV + 1};
    assert_fails(crn_io_submit(io, &op), CAIRN_EINVAL, "1025 pieces");
    iov[0].iov_len = 2;
    op = (crn_op){.kind = CRN_OP_READ, .file = f, .iov = iov, .niov = 1, .off = INT64_MAX};
    assert_fails(crn_io_submit(io, &op), CAIRN_EINVAL, "past all possible offsets");
    crn_file_close(f);
}

static void test_submit_empty_sync_and_misuse(void **state)
{
    (void)state;
    for_each_backend(2, check_empty_and_sync);
}

/* The most pieces that an operation may have, single bytes. */
static void check_many_pieces(crn_io *io)
{
    char data[CRN_OP_IOV], back[CRN_OP_IOV];
    struct iovec iov[CRN_OP_IOV];
    crn_file *f = open_fresh("pieces", 0);
    for (int i = 0; i < CRN_OP_IOV; i++) {
        data[i] = (char)i;
        iov[i] = (struct iovec){&data[CRN_OP_IOV - 1 - i], 1};
    }
    crn_op op = {.kind = CRN_OP_WRITE, .file = f, .iov = iov, .niov = CRN_OP_IOV};
    assert_int_equal(run_one(io, &op)->status, CAIRN_OK);
    assert_ok(crn_file_read(f, back, sizeof back, 0));
    for (int i = 0; i < CRN_OP_IOV; i++)
        assert_int_equal(back[i], data[CRN_OP_IOV - 1 - i]);
    crn_file_close(f);
}

static void test_submit_many_pieces(void **state)
{
    (void)state;
    for_each_backend(2, check_many_pieces);
}

/* Freeing a queue waits: the memory of its operations may be given back afterwards. */
static void check_free_waits(crn_io_backend kind)
{
    enum { N = 40, BYTES = 100000 };
    crn_io *io;
    static crn_op ops[N];
    if (crn_io_create(kind, 3, &io) == CAIRN_EUNSUPPORTED)
        return;
    crn_file *f = open_fresh("free", 0);
    char *data;
    assert_ok(crn_alloc(&data, BYTES));
    memset(data, 5, BYTES);
    struct iovec iov = {data, BYTES};
    for (int i = 0; i < N; i++) {
        ops[i] = (crn_op){
            .kind = CRN_OP_WRITE, .file = f, .iov = &iov, .niov = 1, .off = (uint64_t)i * BYTES};
        assert_ok(crn_io_submit(io, &ops[i]));
    }
    crn_io_free(io);
    free(data);
    uint64_t nbytes;
    assert_ok(crn_file_nbytes(f, &nbytes));
    assert_int_equal(nbytes, N * BYTES);
    crn_file_close(f);
}

static void test_free_waits(void **state)
{
    (void)state;
    check_free_waits(CRN_IO_URING);
    check_free_waits(CRN_IO_THREADS);
    crn_io_free(NULL);
}

static void test_create_auto(void **state)
{
    (void)state;
    crn_io *io;
    assert_fails(crn_io_create(CRN_IO_AUTO, 0, &io), CAIRN_EINVAL, "depth");
    assert_ok(crn_io_create(CRN_IO_AUTO, 1000000, &io));
    assert_true(strcmp(crn_io_name(io), "io_uring") == 0 ||
                strcmp(crn_io_name(io), "threads") == 0);
    crn_io_free(io);
}

/* Without a free descriptor there is no ring. */
static void test_create_without_io_uring(void **state)
{
    (void)state;
    struct rlimit old, none;
    crn_io *io = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){0, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    cairn_status refused = crn_io_create(CRN_IO_URING, 4, &io);
    cairn_status rc = crn_io_create(CRN_IO_AUTO, 4, &io);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(refused, CAIRN_EUNSUPPORTED);
    assert_ok(rc);
    assert_string_equal(crn_io_name(io), "threads");
    run_model_direct(io);
    crn_io_free(io);
}

static void test_create_without_memory(void **state)
{
    (void)state;
    static const crn_io_backend kinds[] = {CRN_IO_URING, CRN_IO_THREADS};
    for (size_t i = 0; i < 2; i++) {
        for (uint64_t n = 1; n <= 2; n++) {
            crn_io *io = NULL;
            crn_mem_fail_at(n);
            cairn_status rc = crn_io_create(kinds[i], 4, &io);
            crn_mem_fail_at(0);
            assert_int_equal(rc, CAIRN_ENOMEM);
            assert_null(io);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit_random_equals_model),
        cmocka_unit_test(test_read_past_end_is_damage),
        cmocka_unit_test(test_failure_is_in_op_and_not_in_record),
        cmocka_unit_test(test_submit_empty_sync_and_misuse),
        cmocka_unit_test(test_submit_many_pieces),
        cmocka_unit_test(test_free_waits),
        cmocka_unit_test(test_create_auto),
        cmocka_unit_test(test_create_without_io_uring),
        cmocka_unit_test(test_create_without_memory),
    };
    return cmocka_run_group_tests_name("io", tests, scratch_begin, scratch_end);
}
