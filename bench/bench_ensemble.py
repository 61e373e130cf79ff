# SPDX-License-Identifier: BSD-3-Clause
"""What a study costs beside its model, with real jobs: a model that sleeps for stated seconds and
has states of a stated size (examples/lorenz96 --n --pause), so that other work on the machine
disturbs little. Keeping states against not keeping them, cycles in turns; a server that is killed;
how busy runners are with five members each; what a request takes of the server.

Called by tools/bench through bench_ensemble in the build tree; prints lines of JSON."""
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "system"))
sys.dont_write_bytecode = True
from study import CAIRN, LORENZ, PATIENCE, Study, until

TURNS = 3
SLEEP = 0.5           # seconds of a task
ELEMENTS = 1 << 17    # of a state: 1 MiB


def show(name, ours, peer, bar, limit, unit, note):
    ok = ours / peer >= limit if bar == "at least" else ours / peer <= limit
    print(json.dumps({"name": name, "ours": ours, "peer": peer, "ratio": ours / peer, "unit": unit,
                      "bar": limit, "ok": ok, "note": note}), flush=True)


def make(folder, name, **more):
    options = {"study_members": 10, "study_cycles": 6, "study_spin": 0, "runner_due": "30s", **more}
    return Study(folder, name, f"{LORENZ} --n {ELEMENTS} --pause {int(SLEEP * 1e6)}", runners=2,
                 **options)


def propagation(s):
    """Seconds from the first task of each cycle but the first to its last result."""
    seconds = []
    for cycle in range(2, 7):
        at = {kind: [e["at"] for e in s.events(kind) if e["cycle"] == cycle]
              for kind in ("task", "done")}
        seconds.append((max(at["done"]) - min(at["task"])) / 1e9)
    return statistics.median(seconds)


def keep(folder):
    """Each turn a study that keeps both, and one that keeps nothing."""
    took = {"both": [], "none": []}
    for turn in range(TURNS):
        for how in took:
            s = make(folder, f"keep-{how}-{turn}", study_keep=how)
            s.observations.write_text("")
            s.must("run")
            took[how].append(propagation(s))
            shutil.rmtree(s.dir)
    show("ensemble.keep", statistics.median(took["both"]), statistics.median(took["none"]),
         "at most", 1.02, "s", "propagation of a cycle, analysis and background kept, against "
         f"nothing kept: 10 members of 1 MiB, {SLEEP} s each, on 2 runners")


def busy(folder):
    s = make(folder, "busy")
    s.observations.write_text("")
    s.must("run")
    tasks = s.events("done")
    spent = sum(e["seconds"] for e in tasks)
    first, last = min(e["at"] for e in s.events("task")), max(e["at"] for e in tasks)
    show("ensemble.busy", spent, 2 * (last - first) / 1e9, "at least", 0.93, "s",
         f"propagating against all time of the runners, 5 members of {SLEEP} s each, updates "
         "included")


def recovery(folder):
    s = make(folder, "recovery")
    s.observations.write_text("")
    run = subprocess.Popen(s.command("run"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until("tasks", lambda: any(e["cycle"] == 2 for e in s.events("done")))
    died = time.time_ns()
    s.signal("s1", signal.SIGKILL)
    run.wait(PATIENCE)
    back = min(e["at"] for e in s.events("task") if e["at"] > died)
    show("ensemble.recovery", (back - died) / 1e9, 1.0, "at most", 2.0, "s",
         "from SIGKILL of the server to the first task that the next one gives, runners having "
         "ended theirs and registered again; against a second")


def request(folder):
    """64 runners on one machine, with a state of 40 numbers."""
    s = Study(folder, "request", LORENZ, runners=64, study_members=640, study_cycles=3,
              study_spin=0)
    s.observations.write_text("")
    s.must("run")
    took = s.events("over")[-1]["request_s"]
    show("ensemble.request", took * 1e6, 1.0, "at most", 30.0, "us",
         "processor time of the server's thread from a request received to its reply queued, "
         "median; 64 runners; against a microsecond")


def main():
    only = os.environ.get("BENCH_ENSEMBLE", "keep busy recovery request").split()
    with tempfile.TemporaryDirectory(prefix="bench-ensemble-", dir=".") as name:
        folder = pathlib.Path(name).resolve()
        for row in (keep, busy, recovery, request):
            if row.__name__ in only:
                row(folder)


if not CAIRN.exists() or not LORENZ.exists():
    sys.exit("bench_ensemble: build cairn and lorenz96 first")
main()
