/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table: CRN_OPT_ROW(id, section, key, type, default, range, help). Included several
 * times with CRN_OPT_ROW defined in different ways, so it has no guard. Ranges: see base_opt.h.
 */
/*
 * The block size is a matter of measurement (bench_store, rows store.block). Smaller blocks follow
 * small changes more closely, but every mark that changes a variable writes its table anew, with 32
 * bytes for a block: 0.8% of the state at 4 KiB, where marks of 1% changes would nearly double, and
 * 0.05% at 64 KiB. Writing and reading were within the noise from 16 KiB to 1 MiB, and up to a
 * tenth slower at 4 KiB. So: the smallest size whose tables do not count.
 */
CRN_OPT_ROW(STORE_BLOCK, "store", "block", NBYTES, "64KiB", "1KiB..4MiB, a power of two",
            "block size: the unit of change, integrity and comparison")
CRN_OPT_ROW(STORE_KEEP, "store", "keep", COUNT, "2", "1..|all", "marks to retain")
CRN_OPT_ROW(IO_BACKEND, "io", "backend", WORD, "auto", "auto|uring|threads",
            "how files are read and written: io_uring, a pool of threads, or whichever works")
CRN_OPT_ROW(IO_DEPTH, "io", "depth", COUNT, "32", "1..1024", "operations in flight at once")
CRN_OPT_ROW(IO_DIRECT, "io", "direct", BOOL, "yes", "",
            "write and read past the page cache where the file system can")
