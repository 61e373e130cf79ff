/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table: CRN_OPT_ROW(id, section, key, type, default, range, help). Included several
 * times with CRN_OPT_ROW defined in different ways, so it has no guard. Ranges: see base_opt.h.
 * Rows of a section stand together, what a user sets first comes first: so they are shown.
 */
CRN_OPT_ROW(RUN_TRAIL, "run", "trail", TEXT, "cairn.trail", "", "the directory of the trail")
CRN_OPT_ROW(RUN_NAME, "run", "name", TEXT, "", "",
            "the run to continue or begin; empty: the newest unfinished one, or a new one")
CRN_OPT_ROW(RUN_MODE, "run", "mode", WORD, "private", "private|group|umask",
            "who may read the trail: its owner, its group, or others as the umask allows")
CRN_OPT_ROW(MARK_MODE, "mark", "mode", WORD, "background", "background|synchronous",
            "whether a mark returns after copying, or when it is as safe as asked for")
CRN_OPT_ROW(MARK_BUSY, "mark", "busy", WORD, "wait", "wait|skip",
            "what a mark does while the one before it is not finished")
CRN_OPT_ROW(MARK_STAGING, "mark", "staging", NBYTES, "1GiB", "8MiB..",
            "memory of a rank for copies on their way to storage; a mark that needs more waits")
CRN_OPT_ROW(MARK_INTERVAL, "mark", "interval", SECONDS, "0", "0..",
            "time between marks; 0: by what marks cost and how often failures come")
CRN_OPT_ROW(LEVEL_LOCAL, "level", "local", TEXT, "auto", "",
            "node-local directory; auto: below $TMPDIR or /tmp; trail: none, all is in the trail")
#define CRN_OPT_NO_LEVEL(...)
#define CRN_OPT_LEVEL(id, word, survives, mtbf, keep, every, note)                                 \
    CRN_OPT_ROW(LEVEL_##id, "level", #word, COUNT, every, "0..",                                   \
                "every how many marks also " #word "; 0: none" note)
CRN_LEVELS(CRN_OPT_NO_LEVEL, CRN_OPT_LEVEL)
#undef CRN_OPT_NO_LEVEL
#undef CRN_OPT_LEVEL
CRN_OPT_ROW(LEVEL_GROUP, "level", "group", COUNT, "4", "2..200", "nodes of an encoded group")
CRN_OPT_ROW(LEVEL_PARITY, "level", "parity", COUNT, "1", "1..100",
            "nodes of a group that may vanish together")
CRN_OPT_ROW(LEVEL_NODE_SIZE, "level", "node_size", COUNT, "0", "0..1000000",
            "ranks of a virtual node, for tests on one machine; 0: nodes are real")
CRN_OPT_ROW(GLOBAL_FORMAT, "global", "format", WORD, "parts", "parts|hdf5|hdf5-virtual",
            "global marks as part files, one HDF5 file, or an HDF5 file of each rank and a master")
#define CRN_OPT_KEEP(id, word, survives, mtbf, keep, ...)                                          \
    CRN_OPT_ROW(KEEP_##id, "keep", #word, COUNT, keep, "1..|all", "marks to retain at level " #word)
#define CRN_OPT_KEEP_OWN(id, word, survives, mtbf, keep)                                           \
    CRN_OPT_KEEP(id, word, survives, mtbf, keep, )
CRN_LEVELS(CRN_OPT_KEEP_OWN, CRN_OPT_KEEP)
#undef CRN_OPT_KEEP
#undef CRN_OPT_KEEP_OWN
CRN_OPT_ROW(KEEP_ORPHANS, "keep", "orphans", SECONDS, "168h", "0..",
            "how long node-local files of finished or removed runs stay; 0: for ever")
CRN_OPT_ROW(
    PLAN_TUNE, "plan", "tune", WORD, "auto", "auto|frozen|off",
    "set the time between marks, and their levels, by what marks cost; only report it; neither")
CRN_OPT_ROW(PLAN_MTBF, "plan", "mtbf", SECONDS, "24h", "1..",
            "mean time between failures of a run that leave its nodes' storage intact")
CRN_OPT_ROW(PLAN_MTBF_NODE, "plan", "mtbf_node", SECONDS, "240h", "1..",
            "the same for failures that take one node with them")
CRN_OPT_ROW(PLAN_MTBF_GROUP, "plan", "mtbf_group", SECONDS, "2400h", "1..",
            "the same for several nodes of a group at once")
CRN_OPT_ROW(PLAN_MTBF_ALL, "plan", "mtbf_all", SECONDS, "2400h", "1..",
            "the same for the storage of all nodes")
CRN_OPT_ROW(PLAN_INTERVAL_MIN, "plan", "interval_min", SECONDS, "1", "0.001..",
            "no tuned interval is shorter")
CRN_OPT_ROW(PLAN_INTERVAL_MAX, "plan", "interval_max", SECONDS, "24h", "0.001..",
            "no tuned interval is longer")
CRN_OPT_ROW(PLAN_RATIO_MAX, "plan", "ratio_max", COUNT, "1000", "1..10000",
            "marks of a level to one of the next, at most")
/*
 * The block size is a matter of measurement (bench_store, rows store.block). Smaller blocks follow
 * small changes more closely, but every mark that changes a variable writes its table anew, with 32
 * bytes for a block: 0.8% of the state at 4 KiB, where marks of 1% changes would nearly double, and
 * 0.05% at 64 KiB. Writing and reading were within the noise from 16 KiB to 1 MiB, and up to a
 * tenth slower at 4 KiB. So: the smallest size whose tables do not count. 'auto' (ckpt_blocks.c) is
 * not the default: a change of size is a full write of the variable, which a run that ends before
 * 16 more marks may not get back.
 */
CRN_OPT_ROW(VARIABLE_BLOCK, "variable", "block", NBYTES, "64KiB", "1KiB..4MiB, a power of two|auto",
            "block size: the unit of change and integrity; auto: by what the first marks change")
CRN_OPT_ROW(
    VARIABLE_TRACK, "variable", "track", WORD, "auto", "auto|kernel|hash",
    "how to know what was written: by the kernel where that pays, wherever it can, or never")
CRN_OPT_ROW(VARIABLE_DIFFERENTIAL, "variable", "differential", WORD, "auto", "auto|always|never",
            "write blocks that changed; auto: digest them before or while copying; never: all")
CRN_OPT_ROW(VARIABLE_CODEC, "variable", "codec", TEXT, "none", "",
            "blocks in fewer bytes: none, lz4, zstd[:level=N], zfp, fpzip, auto[:space]; with loss "
            "zfp:accuracy=|precision=|rate=, fpzip:precision=, round:bits=, f32, f16; "
            "file.so[:options]: your own")
CRN_OPT_ROW(VARIABLE_LOSS, "variable", "loss", TEXT, "", "",
            "the largest error that a codec may make, checked for each value, as 'abs 1e-6', 'rel "
            "1e-4' or both; with zfp, fpzip, round or auto: as few bytes as it allows")
CRN_OPT_ROW(VARIABLE_SHAPE, "variable", "shape", BOOL, "on", "",
            "let zfp and fpzip see the dimensions of arrays; off: they are one row of values")
CRN_OPT_ROW(
    VARIABLE_BOUND, "variable", "bound", TEXT, "", "",
    "error bounds for comparing runs, as '1e-6', 'rel 1e-4' or several with commas, members of "
    "structures as 'x=1e-6'; empty: exact")
CRN_OPT_ROW(CODEC_THREADS, "codec", "threads", COUNT, "1", "1..64",
            "threads of a rank that encode blocks, each with memory for some blocks")
CRN_OPT_ROW(CODEC_PLUGINS, "codec", "plugins", TEXT, "", "",
            "shared objects with codecs of your own, for reading what these have stored")
CRN_OPT_ROW(STOP_SIGNALS, "stop", "signals", TEXT, "TERM USR1 INT", "",
            "signals that mean: leave with a mark; empty: none")
CRN_OPT_ROW(STOP_LIMIT, "stop", "limit", SECONDS, "0", "0..",
            "time that the program may take; 0: the job's own limit, if there is one")
CRN_OPT_ROW(STOP_MARGIN, "stop", "margin", SECONDS, "60", "0..",
            "time to keep for leaving, besides what a mark in the trail takes")
CRN_OPT_ROW(STOP_PATIENCE, "stop", "patience", SECONDS, "10", "0..",
            "after a signal, time that a program which calls nothing may have, besides ten times "
            "its usual, until the signal ends it")
CRN_OPT_ROW(RESUME_SUBSET, "resume", "subset", BOOL, "no", "",
            "let a program resume that protects only some of a mark's variables")
CRN_OPT_ROW(RESUME_IDENTITY, "resume", "identity", WORD, "same", "same|any",
            "whether a run may be resumed that says to be another experiment's (cairn_identify)")
CRN_OPT_ROW(COMPARE_TREES, "compare", "trees", BOOL, "yes", "",
            "keep hash trees of every mark in the trail, so that runs can be compared")
CRN_OPT_ROW(
    COMPARE_LEAF, "compare", "leaf", NBYTES, "64KiB", "1KiB..4MiB, a power of two",
    "bytes that a digest of the trees stands for; where a reference is named, its own count")
CRN_OPT_ROW(COMPARE_REFERENCE, "compare", "reference", TEXT, "", "",
            "a run, as TRAIL/RUN, or a golden file that each mark is compared with as it is taken; "
            "empty: none")
CRN_OPT_ROW(COMPARE_STOP, "compare", "stop", BOOL, "no", "",
            "tell the program to stop when a mark differs from that of the reference")
CRN_OPT_ROW(REGION_CHECK, "region", "check", BOOL, "no", "",
            "check what regions declare to read and write, and what marks leave out, at twice the "
            "memory and many times the time")
CRN_OPT_ROW(STATE_MAX_BYTES, "state", "max_bytes", NBYTES, "all", "1..|all",
            "bytes of all states of a shelf; a put that would need more is refused")
CRN_OPT_ROW(STATE_MAX_STATES, "state", "max_states", COUNT, "all", "1..|all",
            "states of a shelf; a put of one more is refused")
CRN_OPT_ROW(STATE_RECHECK, "state", "recheck", BOOL, "yes", "",
            "read again what a put shares with states that are there, and write anew what of it is "
            "damaged")
CRN_OPT_ROW(STATE_EVENTS, "state", "events", WORD, "notable", "none|notable|all",
            "what the log of a shelf has: failures, adopted parts and a lost index; or puts, "
            "copies and drops, too")
CRN_OPT_ROW(IO_BACKEND, "io", "backend", WORD, "auto", "auto|uring|threads",
            "how files are read and written: io_uring, a pool of threads, or whichever works")
CRN_OPT_ROW(IO_DEPTH, "io", "depth", COUNT, "32", "1..1024", "operations in flight at once")
CRN_OPT_ROW(IO_DIRECT, "io", "direct", BOOL, "yes", "",
            "write and read past the page cache where the file system can")
