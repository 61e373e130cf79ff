# SPDX-License-Identifier: BSD-3-Clause
"""One job under 'cairn run' through many deaths at random times: of one rank, of several, of the
launcher, of 'cairn run' itself, which is then started again, and of both."""
import contextlib
import os
import signal
import time
import unittest

import system
import test_run


class RunKills(test_run.Supervised):
    kills = 5
    work = ["--size", 96, "--every", 4]
    slow = ["--pause", 10]

    def setUp(self):
        super().setUp()
        self.work = [*self.work, "--steps", 100 * self.kills]

    def begin(self):
        # launchers may hang when ranks are killed while they start them
        return self.supervise("--pause", "0s", "--fruitless", 1000, "--tries", 1000,
                              "--hang", "30s")

    def kill_processes(self, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def strike(self, job):
        """Kill something; the job that goes on, perhaps a new one."""
        kind = self.random.choice(["rank", "ranks", "launcher", "run", "both"])
        ranks, launcher = job.pids(), self.launcher_of(job)
        if kind == "rank":
            job.kill([self.random.randrange(self.ranks)])
        elif kind == "ranks":
            job.kill(self.random.sample(range(self.ranks), self.random.randint(2, self.ranks)))
        elif kind == "launcher":
            self.kill_processes(launcher)
        else:
            self.kill_processes([job.process.pid, *(launcher if kind == "both" else [])])
            job.process.wait()
            return bool(ranks), self.begin()
        return bool(ranks), job

    def launcher_of(self, job):
        with contextlib.suppress(StopIteration, OSError):
            return [self.launcher(job)]
        return []

    def rest(self, job):
        """A random while after the run has got a step further, or sooner."""
        seen = len(self.events())
        if self.random.random() < 0.8:
            self.wait_for(lambda: len(self.events()) > seen + 2, job)
        time.sleep(self.random.uniform(0, 0.3))

    def test_random_kills(self):
        job = self.begin()
        struck = 0
        while struck < self.kills:
            self.rest(job)
            if job.process.poll() is not None:
                break
            hit, job = self.strike(job)
            struck += hit
        self.must_end_right(job)
        self.assertEqual(struck, self.kills, job.text())
        self.assertGreater(len(self.legs()), 1)


if __name__ == "__main__":
    unittest.main()
