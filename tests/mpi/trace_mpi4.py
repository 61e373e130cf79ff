#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The calls of trace_mpi4.c by number and bytes, as the program makes them; what no replay knows is
named and refused; counts beyond an int are replayed, and traced again:
trace_mpi4.py MPI VERSION RECORDER CAIRN PROGRAM"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MPI, VERSION, RECORDER, CAIRN, PROGRAM = sys.argv[1:]
RANKS, TURNS, N = 4, 5, 64
PAIRS = RANKS // 2 * TURNS

LARGE = {  # call: events, bytes
    "MPI_Irecv_c": (RANKS * TURNS, RANKS * TURNS * N * 4),
    "MPI_Isend_c": (RANKS * TURNS, RANKS * TURNS * N * 4),
    "MPI_Bcast_c": (RANKS * TURNS, RANKS * TURNS * N * 4),
    "MPI_Allgatherv_c": (RANKS * TURNS, TURNS * 4 * sum(range(1, RANKS + 1))),
    "MPI_Send_c": (PAIRS, RANKS // 2 * 4 * sum(range(1, TURNS + 1))),
    "MPI_Recv_c": (PAIRS, PAIRS * N * 4),
    "@match": (PAIRS, 0)}
STARTED = RANKS * TURNS * ((N + 2) * 4 + N * 4)  # collectives give, of partitions the sender
ALL = {
    "MPI_Bcast_init": (RANKS, 0), "MPI_Allreduce_init_c": (RANKS, 0),
    "MPI_Psend_init": (RANKS, 0), "MPI_Precv_init": (RANKS, 0),
    "MPI_Startall": (2 * RANKS * TURNS, STARTED),
    "MPI_Pready": (RANKS * TURNS, 0), "MPI_Pready_range": (RANKS * TURNS, 0),
    "MPI_Pready_list": (RANKS * TURNS, 0), "MPI_Parrived": (RANKS * TURNS, 0),
    "MPI_Isendrecv": (RANKS * TURNS, RANKS * TURNS * N * 4),
    "MPI_Wait": (RANKS * TURNS, 0),
    "MPI_Comm_create_from_group": (RANKS, 0), "MPI_Allreduce": (RANKS, RANKS * 4),
    "@match": (PAIRS + RANKS * TURNS, 0)}


def start(ranks, *command, **env):
    words = ["env"] + [f"{k}={v}" for k, v in env.items()]
    return subprocess.run([f"{TOP}/tools/mpi-test", MPI, str(ranks), *words, *command],
                          capture_output=True, text=True, check=False)


def record(folder, what, ranks=RANKS):
    trace = f"{folder}/{what}.ctr"
    done = start(ranks, PROGRAM, what, LD_PRELOAD=RECORDER, CAIRN_TRACE_OUT=trace)
    if done.returncode:
        sys.exit(f"{what}: {done.stdout}{done.stderr}")
    return trace, done.stderr + done.stdout


def record_spawn(folder):
    """Parent and child talk by the loopback, which other tests leave alone."""
    trace = f"{folder}/spawn.ctr"
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_btl_tcp_if_include": "lo",
            "OMPI_MCA_oob_tcp_if_include": "lo", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(["mpiexec.openmpi", "-n", "1", "env", f"LD_PRELOAD={RECORDER}",
                           f"CAIRN_TRACE_OUT={trace}", PROGRAM, "spawn"],
                          env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"spawn: {done.stdout}{done.stderr}")
    return trace


def calls(trace):
    done = subprocess.run([CAIRN, "trace", "stat", "--own", "--json", trace], capture_output=True,
                          text=True, check=True)
    return {c["call"]: c for c in json.loads(done.stdout)["calls"]}


def expect(truth, what):
    if not truth:
        sys.exit(f"not so: {what}")


def check_calls(trace, wanted):
    found = calls(trace)
    for call, (events, nbytes) in wanted.items():
        got = found.get(call, {"events": 0, "nbytes": 0})
        expect((got["events"], got["nbytes"]) == (events, nbytes) or call == "@match" and
               got["events"] == events, f"{call}: {got}, wanted {events}, {nbytes}")
    return found


def check_refused(trace, ranks, *names):
    text = subprocess.run([CAIRN, "trace", "stat", trace], capture_output=True, text=True,
                          check=True).stdout
    line = [t for t in text.split("\n") if t.startswith("recorded, but not replayed:")]
    expect(line and all(name in line[0] for name in names), line or text)
    done = start(ranks, CAIRN, "trace", "replay", "--scratch", os.path.dirname(trace), trace)
    expect(done.returncode and "which cannot be replayed" in done.stderr + done.stdout,
           done.stderr + done.stdout)


def check_all(folder):
    if MPI == "openmpi":  # MPICH's launcher starts nothing more without a network
        trace = record_spawn(folder)
        check_calls(trace, {"MPI_Comm_spawn": (1, 0), "MPI_Recv": (1, 4)})
        check_refused(trace, 1, "MPI_Comm_spawn (1)")
    if int(VERSION) < 4:
        return
    trace, _ = record(folder, "all")
    check_calls(trace, {**LARGE, **ALL})
    check_refused(trace, RANKS, "MPI_Isendrecv (20)", "MPI_Psend_init (4)", "MPI_Bcast_init (4)",
                  "MPI_Allreduce_init_c (4)", "MPI_Comm_create_from_group (4)")
    trace, _ = record(folder, "large")
    check_calls(trace, LARGE)
    again = f"{folder}/again.ctr"
    done = start(RANKS, CAIRN, "trace", "replay", "--no-delay", "--scratch", folder, trace,
                 LD_PRELOAD=RECORDER, CAIRN_TRACE_OUT=again)
    expect(done.returncode == 0, done.stderr)
    found = calls(again)
    wanted = LARGE["MPI_Isend_c"][1] + LARGE["MPI_Send_c"][1]
    got = sum(c["nbytes"] for name, c in found.items() if name == "MPI_Isend")
    expect(got == wanted, f"replayed {got} bytes of messages, not {wanted}")
    expect(found["MPI_Bcast"]["nbytes"] >= LARGE["MPI_Bcast_c"][1], found["MPI_Bcast"])
    expect(found["MPI_Allgatherv"]["nbytes"] == LARGE["MPI_Allgatherv_c"][1],
           found["MPI_Allgatherv"])
    _, said = record(folder, "sessions", 2)
    expect("sessions alone" in said, said)


def main():
    folder = os.path.abspath(tempfile.mkdtemp(prefix="scratch-mpi4-", dir="."))
    try:
        check_all(folder)
    finally:
        shutil.rmtree(folder)


main()
