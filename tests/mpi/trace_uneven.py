#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank that computes for a fifth longer than the others is named, with the site; where all are
alike, none is.

trace_uneven.py MPI RANKS RECORDER CAIRN PROGRAM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def slow(mpi, ranks, recorder, cairn, program, trace):
    """What 'cairn trace stat' names of a run of the program."""
    subprocess.run([TOP / "tools" / "mpi-test", mpi, ranks, "env", f"LD_PRELOAD={recorder}",
                    f"CAIRN_TRACE_OUT={trace}", *program], check=True, stdout=subprocess.DEVNULL)
    sums = json.loads(subprocess.run([cairn, "trace", "stat", "--json", trace], check=True,
                                     stdout=subprocess.PIPE).stdout)
    return sums["slow_ranks"], sums["slow_sites"]


def main():
    mpi, ranks, recorder, cairn, program = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=".") as scratch:
        trace = os.path.join(os.path.realpath(scratch), "run.ctr")
        for rank in range(int(ranks)):
            named, sites = slow(mpi, ranks, recorder, cairn, [program, str(rank)], trace)
            if len(named) != 1 or named[0]["rank"] != rank or named[0]["confidence"] < 0.99:
                sys.exit(f"rank {rank} is slow, and these are named: {named}")
            if (len(sites) != 1 or sites[0]["ranks"] != str(rank) or sites[0]["n"] != 59 or
                    sites[0]["to"] != "MPI_Sendrecv" or abs(sites[0]["ratio"] - 1.2) > 0.01):
                sys.exit(f"rank {rank} is slow at one site, and these are named: {sites}")
        named, sites = slow(mpi, ranks, recorder, cairn, [program], trace)
        if named or sites:
            sys.exit(f"all ranks are alike, and these are named: {named}, {sites}")


main()
