/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The readers of part files. Digests would stop nearly every input at the door, so what is long
 * enough for a file is also tried with its digests made right, and what is shorter goes straight to
 * the decoder that its first byte names. Whatever opens can be read, and written to: a new mark
 * comes back as it was.
 */
#include "harness/heal.h"
#include "store/store_part.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static const crn_part_options options = {CRN_IO_THREADS, 1, false};

static void must_refuse_well(cairn_status rc)
{
    assert(rc == CAIRN_ECORRUPT || rc == CAIRN_EUNSUPPORTED);
    assert(crn_err_peek()->text[0]);
}

/* --- decoders ------------------------------------------------------------------------------- */

static void try_catalogue(const uint8_t *data, size_t nbytes)
{
    part_catalogue cat;
    if (crn_format_get_catalogue(data, nbytes, UINT32_MAX, &cat) == CAIRN_OK)
        crn_vec_done(&cat);
}

static void try_list(const uint8_t *data, size_t nbytes)
{
    part_list list;
    crn_buf buf = {0};
    if (crn_format_get_list(data, nbytes, UINT32_MAX, &list) < 0)
        return;
    crn_format_put_list(&list, &buf);
    assert(buf.n == nbytes && memcmp(buf.at, data, nbytes) == 0);
    crn_buf_done(&buf);
    crn_vec_done(&list);
}

static void try_list_page(const uint8_t *data, size_t nbytes)
{
    part_catalogue cat = {0};
    crn_buf buf = {0};
    const uint32_t n = nbytes < 8 ? 0 : data[4];
    if (crn_format_get_list_page(data, nbytes, UINT32_MAX, n, nbytes % 2, &cat) == CAIRN_OK) {
        crn_format_put_list_page(cat.at, cat.n, &buf);
        assert(buf.n == nbytes && memcmp(buf.at, data, nbytes) == 0);
    }
    crn_buf_done(&buf);
    crn_vec_done(&cat);
}

static void try_mark(const uint8_t *data, size_t nbytes)
{
    crn_mark *m;
    if (crn_format_get_mark(data, nbytes, UINT32_MAX, &m) < 0)
        return;
    for (size_t i = 0; i < m->nvars; i++)
        assert(crn_mark_find(m, m->var[i].spec.name));
    crn_mark_free(m);
}

static void try_root(const uint8_t *data, size_t nbytes)
{
    crn_mark *m;
    crn_buf buf = {0};
    if (crn_format_get_root(data, nbytes, UINT32_MAX, &m) < 0)
        return;
    crn_format_put_root(m, &buf);
    assert(buf.n == nbytes && memcmp(buf.at, data, nbytes) == 0);
    crn_buf_done(&buf);
    crn_mark_free(m);
}

/* A page of a mark that has no more variables than it. */
static void try_page(const uint8_t *data, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_mark *m = calloc(1, sizeof *m);
    crn_buf buf = {0};
    (void)crn_get_u32(&c);
    const uint32_t nvars = crn_get_u32(&c);
    m->nvars = CRN_MIN(nvars, (uint32_t)PAGE_VARS);
    m->seq = crn_get_u64(&c);
    m->var = calloc(m->nvars + 1, sizeof *m->var);
    if (crn_format_get_page(data, nbytes, UINT32_MAX, m, 0) == CAIRN_OK) {
        crn_format_put_page(m, 0, &buf);
        assert(buf.n == nbytes && memcmp(buf.at, data, nbytes) == 0);
    }
    crn_buf_done(&buf);
    crn_mark_free(m);
}

static void try_wire(const uint8_t *data, size_t nbytes)
{
    crn_mark *m;
    crn_buf buf = {0};
    crn_cursor c = crn_cursor_of(data, nbytes);
    if (crn_mark_get(&c, &m) < 0)
        return;
    crn_mark_put(m, &buf);
    assert(buf.n == nbytes - c.n && memcmp(buf.at, data, buf.n) == 0);
    crn_buf_done(&buf);
    crn_mark_free(m);
}

static void try_table(const uint8_t *data, size_t nbytes)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    crn_var v = {.spec = {.name = "v", .type = "bytes", .item = 1, .block = 1024}};
    crn_buf buf = {0};
    v.spec.nbytes = crn_get_u32(&c);
    v.nblocks = v.spec.nbytes / 1024 + (v.spec.nbytes % 1024 != 0);
    v.has_stored = c.n == v.nblocks * LONG_ENTRY_BYTES;
    v.entry_bytes = v.has_stored ? LONG_ENTRY_BYTES : ENTRY_BYTES;
    const crn_cursor all = c;
    if (c.n != v.nblocks * v.entry_bytes || crn_format_get_table(&c, UINT32_MAX, &v) < 0)
        return;
    crn_format_put_table(&v, &buf);
    assert(buf.n == all.n && (all.n == 0 || memcmp(buf.at, all.at, all.n) == 0));
    crn_buf_done(&buf);
    free(v.table);
}

static void try_super(const uint8_t *data, size_t nbytes)
{
    unsigned char copy[SUPER_BYTES] = "CAIRNPT\n", slot[SLOT_BYTES];
    part_super s;
    memcpy(copy + 8, data, CRN_MIN(nbytes, (size_t)HEAL_SUPER_DIGEST - 8));
    crn_digest d = crn_digest_of(copy, HEAL_SUPER_DIGEST);
    memcpy(copy + HEAL_SUPER_DIGEST, d.b, sizeof d.b);
    if (crn_format_get_super(copy, &s) == CAIRN_OK)
        crn_format_put_super(&s, slot);
}

/* --- files ---------------------------------------------------------------------------------- */

static char place[64]; /* of the files, in memory where that is possible */

static void leave(void)
{
    rmdir(place);
}

static int scratch(void)
{
    static int fd = -1;
    if (fd >= 0)
        return fd;
    snprintf(place, sizeof place, "/dev/shm/cairn-fuzz-XXXXXX");
    if (!mkdtemp(place)) {
        snprintf(place, sizeof place, "cairn-fuzz-XXXXXX");
        if (!mkdtemp(place))
            abort();
    }
    atexit(leave);
    fd = open(place, O_RDONLY | O_DIRECTORY);
    return fd;
}

static void write_out(const unsigned char *data, size_t nbytes)
{
    int fd = openat(scratch(), "part", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, nbytes) != (ssize_t)nbytes)
        abort();
    close(fd);
}

static void read_mark(crn_part *part, uint64_t version)
{
    crn_mark *m;
    if (crn_part_load(part, version, &m) < 0)
        return;
    for (size_t i = 0; i < m->nvars; i++) {
        crn_var *v = &m->var[i];
        unsigned char *data;
        crn_bad_blocks bad = {0};
        if (crn_mark_table(part, m, v) < 0 || v->spec.nbytes > 1 << 24)
            continue;
        if (crn_alloc(&data, v->spec.nbytes) == CAIRN_OK) {
            cairn_status rc = crn_mark_read(part, m, v, 0, v->nblocks, data, &bad);
            assert(rc == CAIRN_OK);
            free(data);
        }
        crn_vec_done(&bad);
    }
    crn_mark_free(m);
}

/* A mark of two blocks behind whatever is there. */
static void write_mark(crn_part *part, uint64_t version)
{
    unsigned char data[1500], back[1500];
    crn_var_spec spec = {
        .name = "new", .type = "bytes", .item = 1, .block = 1024, .nbytes = sizeof data};
    crn_draft *d;
    crn_mark *m;
    size_t v;
    memset(data, 'x', sizeof data);
    if (crn_draft_begin(part, version, &d) < 0)
        return;
    cairn_status rc = crn_draft_add(d, &spec, &v);
    assert(rc == CAIRN_OK);
    rc = crn_draft_put_all(d, v, data);
    assert(rc == CAIRN_OK);
    if (crn_draft_commit(d, 2, NULL) < 0)
        return; /* offsets near the end of all numbers */
    rc = crn_part_load(part, version, &m);
    assert(rc == CAIRN_OK);
    rc = crn_mark_read(part, m, &m->var[0], 0, 2, back, NULL);
    assert(rc == CAIRN_OK && memcmp(data, back, sizeof data) == 0);
    crn_mark_free(m);
}

static void try_file(const unsigned char *data, size_t nbytes)
{
    crn_part *part;
    crn_part_info info;
    write_out(data, nbytes);
    cairn_status rc = crn_part_open(scratch(), "part", NULL, false, &options, &part);
    if (rc < 0) {
        must_refuse_well(rc);
        return;
    }
    crn_part_distrust(part);
    crn_part_describe(part, &info);
    for (size_t i = 0; i < CRN_MIN(info.nmarks, 8); i++)
        read_mark(part, crn_part_version(part, i));
    crn_part_close(part);
    rc = crn_part_open(scratch(), "part", NULL, true, &options, &part);
    if (rc < 0)
        return;
    write_mark(part, UINT64_MAX);
    crn_part_close(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static void (*const decoder[])(const uint8_t *, size_t) = {try_catalogue, try_mark,  try_wire,
                                                               try_table,     try_super, try_list,
                                                               try_list_page, try_root,  try_page};
    if (nbytes == 0)
        return 0;
    if (nbytes < DATA_START) {
        decoder[data[0] % (sizeof decoder / sizeof *decoder)](data + 1, nbytes - 1);
        return 0;
    }
    unsigned char *copy;
    if (crn_alloc(&copy, nbytes) < 0)
        return 0;
    memcpy(copy, data, nbytes);
    try_file(copy, nbytes);
    memcpy(copy, data, nbytes);
    heal_part(copy, nbytes);
    try_file(copy, nbytes);
    unlinkat(scratch(), "part", 0);
    free(copy);
    return 0;
}
