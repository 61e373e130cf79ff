# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""A study whose jobs are killed or stopped at random times, again and again: launcher, server,
runners, several at once, or all. 'make soak' plays it with many kills and all that may be kept."""
import pathlib
import random
import shutil
import signal
import tempfile
import time
import unittest

import system
from study import LORENZ, PATIENCE, Study, until


class RandomKills(unittest.TestCase):
    kills, keep = 4, "both"

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.random = random.Random(system.SEED)
        self.run_ = None
        plain = Study(self.dir, "plain", LORENZ)
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        self.expected = plain.digests()
        self.study = Study(self.dir, "storm", f"{LORENZ} --pause 30000", runner_due="3s",
                           study_keep=self.keep)
        self.addCleanup(self.clear)

    def clear(self):
        if self.run_:
            self.run_.kill()
            self.run_.communicate()
        for job in self.study.jobs():
            self.study.signal(job, signal.SIGKILL)

    def living(self, kind):
        return [job for job in self.study.jobs() if job[0] in kind and self.study.processes(job)]

    def strike(self):
        """Kill or stop something; in words what it was."""
        what = self.random.choice(["runner", "runner", "server", "launcher", "runners", "stop",
                                   "all"])
        jobs = self.living({"runner": "r", "stop": "r", "runners": "r", "server": "s",
                            "launcher": "", "all": "rs"}[what])
        if what in ("runner", "stop") and jobs:
            jobs = [self.random.choice(jobs)]
        if what in ("launcher", "all"):
            self.run_.kill()
            self.run_.communicate()
        for job in jobs:
            self.study.signal(job, signal.SIGSTOP if what == "stop" else signal.SIGKILL)
        return f"{what}: {jobs}"

    def test_random_kills(self):
        self.run_ = self.study.start()
        history = []
        until("it begins", lambda: self.study.events("done"))
        for _ in range(self.kills):
            time.sleep(self.random.uniform(0, 0.8))
            if self.run_.poll() is not None and self.run_.returncode == 0:
                break
            history.append(self.strike())
            if self.run_.poll() is not None:
                self.run_ = self.study.start()
        out, err = self.run_.communicate(timeout=PATIENCE)
        self.assertEqual(self.run_.returncode, 0, f"seed {system.SEED}: {history}\n{out}{err}")
        self.assertEqual(self.study.digests(), self.expected, f"seed {system.SEED}: {history}")
        self.assertEqual(self.living("rs"), [], f"seed {system.SEED}: {history}")


if __name__ == "__main__":
    unittest.main()
