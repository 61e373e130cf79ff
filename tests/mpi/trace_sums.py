#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sums of calls and bytes at each call site: of a trace, lossless and at 0 per cent, against the
log that a tool of its own wrote of another run of the same program, which does the same every time.

trace_sums.py MPI RANKS RECORDER LOGGER CAIRN PROGRAM [ARGUMENTS]
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
# What histograms may be wrong by: their means are exact, but turns are drawn, and sums rounded.
EVENTS, NBYTES = 0.005, 0.01


def run(mpi, ranks, preload, settings, program):
    assignments = [f"{key}={value}" for key, value in settings.items()]
    subprocess.run([TOP / "tools" / "mpi-test", mpi, ranks, "env", f"LD_PRELOAD={preload}",
                    *assignments, *program], check=True, stdout=subprocess.DEVNULL)


def logged(folder):
    """Calls and bytes by call and site, over all ranks."""
    sums = collections.defaultdict(lambda: [0, 0])
    for path in pathlib.Path(folder).iterdir():
        for line in path.read_text(encoding="ascii").splitlines():
            call, site, nbytes = line.split()
            sums[call, site][0] += 1
            sums[call, site][1] += int(nbytes)
    return sums


def traced(cairn, trace, calls):
    """The same of a trace; a call stack counts for its innermost frame."""
    text = subprocess.run([cairn, "trace", "stat", "--addresses", "--json", trace], check=True,
                          stdout=subprocess.PIPE).stdout
    sums = collections.defaultdict(lambda: [0, 0])
    for row in json.loads(text)["sites"]:
        if row["call"] in calls:
            site = row["site"].split(" < ")[0].split("+")[1]
            sums[row["call"], site][0] += row["events"]
            sums[row["call"], site][1] += row["nbytes"]
    return sums


def compare(want, have, margins):
    if want.keys() != have.keys():
        sys.exit(f"sites differ: {sorted(want.keys() ^ have.keys())}")
    for key, sums in want.items():
        for what, a, b, margin in zip(("calls", "bytes"), sums, have[key], margins):
            if abs(a - b) > a * margin + (margin > 0):
                sys.exit(f"{' at '.join(key)}: {a} {what} in the log, {b} in the trace")


def main():
    mpi, ranks, recorder, logger, cairn, *program = sys.argv[1:]
    program[0] = os.path.realpath(program[0])
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        scratch = os.path.realpath(scratch)
        logs = os.path.join(scratch, "logs")
        os.mkdir(logs)
        run(mpi, ranks, logger, {"LOGGER_DIR": logs}, program)
        want = logged(logs)
        if not want:
            sys.exit("nothing was logged")
        for precision, margins in ((100, (0, 0)), (0, (EVENTS, NBYTES))):
            trace = os.path.join(scratch, f"{precision}.ctr")
            run(mpi, ranks, recorder,
                {"CAIRN_TRACE_OUT": trace, "CAIRN_TRACE_PRECISION": precision}, program)
            compare(want, traced(cairn, trace, {call for call, _ in want}), margins)
    print(f"{len(want)} call sites, {sum(n for n, _ in want.values())} calls")


main()
