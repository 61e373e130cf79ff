# SPDX-License-Identifier: BSD-3-Clause
"""What tuning is worth in a real run: a simulation on two virtual nodes under 'cairn run', of which
ranks are killed at random, again and again, until it is done; with the tuner, and with a fixed
interval of a quarter, once and four times Young's. Failures come at the same times of every run's
legs. What computing and marks take is mostly sleep (a slow disk, by CAIRN_FAULT), so that other
work on the machine disturbs little.

Called by tools/bench through bench_tuned in the build tree; prints a table and lines of JSON."""
import contextlib
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "system"))
sys.dont_write_bytecode = True
import system
import test_run

MEAN = 5.0        # seconds of a leg until one of its ranks is killed
STEPS = 1200
SEED = 1
LIMIT = 120.0     # seconds for a run


class Run(test_run.Supervised):
    """One job to its end, through all that happens to it."""
    ranks = 2
    work = ["--size", 96, "--steps", STEPS, "--pause", 10]
    settings = {"mark_mode": "synchronous", "compare_trees": "no", "plan_mtbf": MEAN,
                "plan_interval_min": 0.02, "fault": "store:1:slow:0"}

    def runTest(self):
        pass

    def opened(self):
        return len(self.events("open"))

    def strike(self, job, gaps, legs):
        """Kill a rank when its leg has lived for as long as it may; False: the job ended before."""
        if not self.wait_for(lambda: self.opened() > legs and len(job.pids()) == self.ranks, job):
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.process.wait(gaps.expovariate(1 / MEAN))
        return job.kill([gaps.randrange(self.ranks)]) > 0

    def play(self, **settings):
        """Let it run through its failures: (seconds, number of kills)."""
        gaps = random.Random(SEED)
        begun = time.monotonic()
        job = self.supervise("--pause", "0s", "--fruitless", 1000, "--tries", 1000, slow=False,
                             **settings)
        kills = 0
        try:
            while time.monotonic() - begun < LIMIT and self.strike(job, gaps, kills):
                kills += 1
            self.assertEqual(job.wait(LIMIT), 0, job.text())
        finally:
            if job.process.poll() is None:  # leaves in order
                job.process.terminate()
        return time.monotonic() - begun, kills

    def quiet(self):
        """Undisturbed: the mean cost of a mark, and the time of computing alone."""
        self.must_run("--every", 50, plan_tune="off")
        held = [m["held"] for m in self.events("mark")]
        first, last = self.events("open")[0], self.events("close")[-1]
        return sum(held) / len(held), last["time"] - first["time"] - sum(held)


@contextlib.contextmanager
def a_run():
    run = Run()
    run.setUp()
    try:
        yield run
    finally:
        run.doCleanups()


def measure(name, **settings):
    with a_run() as run:
        took, kills = run.play(**settings)
        marks = run.events("mark")
        print(f"{name:<12} {marks[-1]['interval']:8.3f} s {len(marks):6} {kills:6} {took:8.1f} s",
              flush=True)
    return took


def main():
    folder = tempfile.TemporaryDirectory(prefix="tuned-", dir=".")
    with folder, contextlib.chdir(folder.name):
        with a_run() as run:
            cost, work = run.quiet()
        young = math.sqrt(2 * cost * MEAN)
        print(f"a mark costs {cost:.3f} s, computing {work:.1f} s, a failure every {MEAN:g} s: "
              f"Young's interval is {young:.3f} s")
        print("setting        interval  marks  kills       took")
        took = {"tuned": measure("tuned", plan_tune="auto")}
        for factor in (0.25, 1, 4):
            took[factor] = measure(f"young x{factor:g}", plan_tune="off",
                                   mark_interval=factor * young)
    for factor in (0.25, 1, 4):
        print(json.dumps({"name": f"plan.run.young-x{factor:g}", "ours": took["tuned"],
                          "peer": took[factor], "ratio": took["tuned"] / took[factor], "unit": "s",
                          "bar": None, "ok": True,
                          "note": f"a run on two virtual nodes through kills, work {work:.0f} s; "
                                  f"the peer marks every {factor * young:.2g} s"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
