/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decoding in a process of its own: forged blocks, decoders that misbehave (bad_decoder.c), and
 * what the calling program notices of it all, which is nothing.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "codec/codec_worker.h"
#include "harness/harness.h"
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xxhash.h>

enum { N = 512, NBYTES = N * sizeof(double), ROOM = 2 * NBYTES };

static _Alignas(CRN_CODEC_ALIGN) unsigned char scratch[4 << 20];

static size_t encode(const char *name, const crn_codec_ops **ret, double *data, unsigned char *dst)
{
    size_t n = 0;
    *ret = crn_codec_of_name(name);
    for (size_t i = 0; i < N; i++)
        data[i] = floor(sin((double)i / 40) * 64) / 64;
    assert_ok(crn_codec_encode(*ret, CRN_ELEM_F64, data, NBYTES, dst, scratch, &n));
    return n;
}

/* Make the guard right, as a forger would. */
static void forge(unsigned char *block, size_t n)
{
    uint64_t guard = XXH3_64bits_withSeed(block + 8, n - 8, (uint64_t)NBYTES << 8 | CRN_ELEM_F64);
    memcpy(block, &guard, 8);
}

static void test_same_as_in_process(void **state)
{
    (void)state;
    for (size_t i = 0; crn_codec_at(i); i++) {
        if (strcmp(crn_codec_name(crn_codec_at(i)), "foreign") == 0)
            continue; /* needs a shared object: test_codec_foreign */
        const crn_codec_ops *codec;
        double data[N], back[N] = {0};
        unsigned char block[ROOM];
        size_t n = encode(crn_codec_name(crn_codec_at(i)), &codec, data, block);
        assert_ok(crn_codec_decode_apart(codec, CRN_ELEM_F64, block, n, back, NBYTES, scratch));
        assert_memory_equal(data, back, NBYTES);
        block[n / 2] ^= 1;
        if (codec->trusting)
            assert_int_equal(
                crn_codec_decode_apart(codec, CRN_ELEM_F64, block, n, back, NBYTES, scratch),
                CAIRN_ECORRUPT);
    }
}

/* Whatever a forger makes of a block: it is refused or gives other values, and the next one that is
 * sound comes back. */
static void test_forged(void **state)
{
    static const char *const names[] = {"fpzip", "zfp"};
    crn_rng r = crn_rng_of(test_seed(), 0);
    (void)state;
    for (size_t k = 0; k < 2 * 150; k++) {
        const crn_codec_ops *codec;
        double data[N], back[N];
        unsigned char block[ROOM], bad[ROOM];
        size_t n = encode(names[k % 2], &codec, data, block);
        memcpy(bad, block, n);
        for (size_t i = 0; i < 16; i++)
            bad[8 + crn_rng_below(&r, n - 8)] = (unsigned char)crn_rng_below(&r, 256);
        forge(bad, n);
        cairn_status rc =
            crn_codec_decode_apart(codec, CRN_ELEM_F64, bad, n, back, NBYTES, scratch);
        assert_true(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
        assert_ok(crn_codec_decode_apart(codec, CRN_ELEM_F64, block, n, back, NBYTES, scratch));
        assert_memory_equal(data, back, NBYTES);
    }
}

/* --- decoders that misbehave ------------------------------------------------------------------ */

static crn_program load_bad(void)
{
    void *at;
    crn_program p;
    assert_ok(crn_file_slurp(AT_FDCWD, "bad_decoder", 1 << 24, &at, &p.nbytes));
    p.at = at;
    return p;
}

static crn_worker_answer try_one(const crn_program *program, char what)
{
    const crn_worker_limits limits = {
        .cap = 1 << 16, .cpu_seconds = 2, .wait_seconds = what == 'w' ? 1 : 200};
    const crn_worker_request request = {.codec = 1, .elem = 0, .n = 4, .nbytes = 4};
    const char src[4] = {what, 'a', 'b', 'c'};
    char dst[4];
    bool usable;
    crn_worker *w;
    assert_ok(crn_worker_start(program, &limits, &w));
    crn_worker_answer answer = crn_worker_ask(w, &request, src, dst, &usable);
    assert_int_equal(usable, answer == CRN_WORKER_GOOD || answer == CRN_WORKER_REFUSES);
    if (answer == CRN_WORKER_GOOD)
        assert_memory_equal(src, dst, sizeof src);
    crn_worker_end(w);
    return answer;
}

static void test_misbehaving(void **state)
{
    static const char forbidden[] = "shopfkxm";
    crn_program program = load_bad();
    (void)state;
    assert_int_equal(try_one(&program, 'c'), CRN_WORKER_GOOD);
    assert_int_equal(try_one(&program, 'r'), CRN_WORKER_REFUSES);
    assert_int_equal(try_one(&program, 'w'), CRN_WORKER_HANGS);
    for (const char *c = forbidden; *c; c++)
        if (try_one(&program, *c) != CRN_WORKER_DIED)
            fail_msg("'%c' was allowed", *c);
    free((void *)program.at);
}

static void test_not_a_program(void **state)
{
    const crn_worker_limits limits = {.cap = 1 << 16, .cpu_seconds = 2, .wait_seconds = 3};
    const crn_program text = {(const unsigned char *)"no program", 10};
    crn_worker *w;
    (void)state;
    assert_int_equal(crn_worker_start(&text, &limits, &w), CAIRN_EIO);
    assert_non_null(strstr(crn_err_peek()->text, "cannot start"));
}

/* --- what the program notices ------------------------------------------------------------------
 */

static volatile sig_atomic_t nsignals;

static void on_child(int sig)
{
    (void)sig;
    nsignals++;
}

static size_t count_descriptors(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void decode_once(void)
{
    const crn_codec_ops *codec;
    double data[N], back[N];
    unsigned char block[ROOM];
    size_t n = encode("fpzip", &codec, data, block);
    assert_ok(crn_codec_decode_apart(codec, CRN_ELEM_F64, block, n, back, NBYTES, scratch));
    assert_memory_equal(data, back, NBYTES);
}

/* No signal, no child to wait for, no mask or descriptor left behind, whether processes end well or
 * not. */
static void test_unnoticed(void **state)
{
    struct sigaction act = {.sa_handler = on_child}, old;
    sigset_t before, after;
    crn_program program = load_bad();
    (void)state;
    sigaction(SIGCHLD, &act, &old);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    const size_t ndescriptors = count_descriptors();
    for (size_t i = 0; i < 5; i++)
        (void)try_one(&program, "csrco"[i]);
    assert_int_equal(count_descriptors(), ndescriptors);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int sig = 1; sig < SIGRTMIN; sig++)
        assert_int_equal(sigismember(&before, sig), sigismember(&after, sig));
    assert_int_equal(nsignals, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
    sigaction(SIGCHLD, &old, NULL);
    free((void *)program.at);
}

/* A child of fork has processes of its own, and the parent keeps its own. */
static void test_fork(void **state)
{
    int status;
    (void)state;
    decode_once();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 20; i++)
            decode_once();
        _exit(0);
    }
    for (int i = 0; i < 20; i++)
        decode_once();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *decode_often(void *arg)
{
    unsigned char *block = arg;
    const crn_codec_ops *codec = crn_codec_of_name("fpzip");
    size_t n, bad = 0;
    memcpy(&n, block, sizeof n);
    for (int i = 0; i < 50; i++) {
        double back[N];
        if (crn_codec_decode_apart(codec, CRN_ELEM_F64, block + sizeof n, n, back, NBYTES, NULL) <
            0)
            bad++;
    }
    return (void *)bad;
}

static void test_threads(void **state)
{
    static unsigned char block[sizeof(size_t) + ROOM];
    enum { NTHREADS = 12 }; /* more than processes are kept */
    const crn_codec_ops *codec;
    double data[N];
    pthread_t thread[NTHREADS];
    size_t n = encode("fpzip", &codec, data, block + sizeof n);
    (void)state;
    memcpy(block, &n, sizeof n);
    for (size_t i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, decode_often, block), 0);
    for (size_t i = 0; i < NTHREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_in_process),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_misbehaving),
        cmocka_unit_test(test_not_a_program),
        cmocka_unit_test(test_unnoticed),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
