# SPDX-License-Identifier: BSD-3-Clause
"""cairn run --elastic with real ranks: nodes die with their storage and stay away, or come back;
the run goes on with the ranks that can be had, and the field is the same, bit for bit."""
import os
import shutil
import signal
import unittest

import system
import test_run


class Nodes(test_run.Supervised):
    def lose(self, job, node):
        """A node goes away with its ranks and its storage."""
        self.assertTrue(self.wait_for(lambda: self.events("raised"), job), job.text())
        pids = [pid for rank, pid in job.pids().items() if rank // self.node_size == node]
        for pid in pids: # they must not go on while their storage goes
            os.kill(pid, signal.SIGSTOP)
        self.lose_nodes([node])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def ranks_of_legs(self):
        return [leg["ranks"] for leg in self.legs()]


class Setback(Nodes):
    """A node takes the newest marks with it. What is gained after coming back to an older one
    counts, though the marks that were lost are not reached again before the next failure."""
    ranks = 2
    settings = {"level_partner": 0, "level_global": 6}

    def test_failure_after_it(self):
        job = self.supervise()
        self.marked(job, 9) # three after the one that is safe
        self.lose(job, 1)
        self.assertTrue(self.wait_for(lambda: self.events("resume"), job), job.text())
        self.marked(job, len(self.events("mark")) + 1)
        job.kill([0])
        self.must_end_right(job)
        self.assertEqual(self.ends()[-1], "finished")


class Counted(Nodes):
    """A command knows how many ranks there can be; what a lost node had its partner has, too."""
    ranks = 3
    settings = {"level_partner": 1, "level_global": 0}

    def begin(self):
        self.say(3)
        return self.supervise("--drain", "--elastic", 2, "--ranks", f"cat {self.dir}/count")

    def say(self, ranks):
        (self.dir / "count").write_text(f"{ranks}\n")

    def test_node_stays_away(self):
        job = self.begin()
        self.marked(job)
        self.say(2)
        self.lose(job, 1)
        self.must_end_right(job)
        self.assertIn("going on with 2 ranks instead of 3", job.text())
        self.assertEqual(self.ranks_of_legs(), [3, 2])
        self.assertGreater(self.legs()[1]["resumed"], 0)

    def test_node_comes_back(self):
        job = self.begin()
        self.marked(job)
        self.say(2)
        self.lose(job, 1)
        self.assertTrue(self.wait_for(lambda: self.events("resume"), job), job.text())
        self.marked(job, len(self.events("mark")) + 2)
        self.say(9) # more than are wanted
        job.kill([0])
        self.must_end_right(job)
        self.assertIn("going on with 3 ranks instead of 2", job.text())
        self.assertEqual(self.ranks_of_legs(), [3, 2, 3])


class Guessed(Nodes):
    """Starts that come to nothing are taken for a node, here of two ranks, that stays away."""
    ranks = 4
    node_size = 2
    settings = {"level_partner": 0, "level_global": 1}

    def setUp(self):
        super().setUp()
        name = f"mpiexec.{system.MPI}"
        launcher = self.dir / "bin" / name
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\nif [ -e {self.dir}/away ] && [ "$2" -gt 2 ]; then\n'
                            '    echo "node-1 does not answer"; exit 1\nfi\n'
                            f'exec {shutil.which(name)} "$@"\n')
        launcher.chmod(0o700)

    def env(self, **more):
        return {**super().env(**more), "PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}"}

    def test_node_stays_away(self):
        self.undisturbed() # while all nodes are there
        job = self.supervise("--elastic", 1)
        self.marked(job)
        (self.dir / "away").touch()
        self.lose(job, 1)
        self.must_end_right(job)
        self.assertIn("going on with 2 ranks instead of 4", job.text())
        self.assertEqual(self.ranks_of_legs(), [4, 4, 2])
        failed = self.legs()[1]
        self.assertEqual((failed["end"], failed["output"]),
                         ("exit code 1", "node-1 does not answer"))

    def test_too_few_are_left(self):
        job = self.supervise("--elastic", 3)
        self.marked(job)
        (self.dir / "away").touch()
        self.lose(job, 1)
        self.assertEqual(job.wait(), 2, job.text())
        self.assertIn("going on with 3 ranks instead of 4", job.text())
        self.assertIn("the program ended before it opened run 'run-1'", job.text())


if __name__ == "__main__":
    unittest.main()
