#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The export for Perfetto: an arrow from each message's send to its receive, as many between two
ranks as the sums have messages; collectives of all ranks end at one time; calls begin in order; a
limit leaves the rest where it was: trace_arrows.py MPI RANKS RECORDER CAIRN PROGRAM [ARGUMENTS]"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MPI, RANKS, RECORDER, CAIRN, PROGRAM, *ARGUMENTS = sys.argv[1:]
MEETINGS = ("MPI_Barrier", "MPI_Bcast", "MPI_Allreduce", "MPI_Reduce", "MPI_Allgather",
            "MPI_Alltoall", "MPI_Gather", "MPI_Scatter", "MPI_Scan")
CLOSE = 0.003  # microseconds: the export has nanoseconds


def cairn(*words):
    done = subprocess.run([CAIRN, "trace", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")
    return json.loads(done.stdout)


def expect(truth, what):
    if not truth:
        sys.exit(f"not so: {what}")


def check_arrows(events, trace):
    ends = {"s": {}, "f": {}}
    for e in events:
        if e["ph"] in ends:
            expect(e["id"] not in ends[e["ph"]], f"two ends of {e['id']}")
            ends[e["ph"]][e["id"]] = e["pid"]
    expect(ends["s"].keys() == ends["f"].keys(),
           f"{len(ends['s'])} sends, {len(ends['f'])} receives, of which "
           f"{len(ends['s'].keys() & ends['f'].keys())} meet")
    found = collections.Counter((ends["s"][i], ends["f"][i]) for i in ends["s"])
    pairs = cairn("stat", "--own", "--json", trace)["pairs"]
    wanted = {(p["rank"], p["peer"]): p["events"] for p in pairs}
    expect(dict(found) == wanted, f"{dict(found)} against {wanted}")
    expect(len(ends["s"]) > 50, "hardly any message")


def check_times(events):
    met = collections.defaultdict(list)
    last = collections.defaultdict(float)
    for e in events:
        if e["ph"] != "X":
            continue
        if e["cat"] != "posix":
            expect(e["ts"] >= last[e["pid"]] - CLOSE, f"{e} begins before {last[e['pid']]}")
            last[e["pid"]] = e["ts"]
        if e["name"] in MEETINGS and e["args"].get("comm") == 0:
            met[e["pid"]].append(e["ts"] + e["dur"])
    ranks = list(met.values())
    expect(all(len(r) == len(ranks[0]) for r in ranks), "other numbers of collectives")
    for moments in zip(*ranks):
        expect(max(moments) - min(moments) <= CLOSE, f"a collective ends at {moments}")


def check_limit(events, trace):
    some = cairn("export", "--where", "rank=1 call=MPI_Waitall", trace)["traceEvents"]
    wanted = [(e["ts"], e["dur"]) for e in events
              if e["ph"] == "X" and e["pid"] == 1 and e["name"] == "MPI_Waitall"]
    expect([(e["ts"], e["dur"]) for e in some if e["ph"] == "X"] == wanted, "the limit")


def main():
    folder = os.path.abspath(tempfile.mkdtemp(prefix="scratch-arrows-", dir="."))
    trace = f"{folder}/run.ctr"
    try:
        done = subprocess.run([f"{TOP}/tools/mpi-test", MPI, RANKS, "env",
                               f"LD_PRELOAD={RECORDER}", f"CAIRN_TRACE_OUT={trace}", PROGRAM,
                               *ARGUMENTS], cwd=folder, capture_output=True, text=True, check=False)
        expect(done.returncode == 0, done.stderr)
        events = cairn("export", trace)["traceEvents"]
        check_arrows(events, trace)
        check_times(events)
        check_limit(events, trace)
    finally:
        shutil.rmtree(folder)


main()
