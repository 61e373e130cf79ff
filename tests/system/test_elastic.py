# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that are killed and go on with fewer or more ranks come to the same result."""
import unittest

import system


class Elastic(system.Case):
    """A field in slabs: pieces of a global array."""
    node_size = 8  # one node, whose storage every leg finds
    settings = {"level_partner": 0, "level_global": 3}

    def run_and_kill(self, ranks, kind="mark", count=2):
        """A leg that is killed after so many events; it is slow enough for that."""
        seen = len(self.events(kind))
        job = self.start("--pause", 200, ranks=ranks)
        self.wait_for(lambda: len(self.events(kind)) >= seen + count, job)
        job.kill(range(ranks))
        job.bury()

    def test_any_number_of_ranks_goes_on(self):
        for ranks in (4, 3, 5):
            self.run_and_kill(ranks)
        self.assertIn("resumed at step", self.must_run(ranks=2))
        self.assert_right()
        self.assertEqual([e["nranks"] for e in self.events("open")], [4, 3, 5, 2])

    def test_nodes_are_lost_between(self):
        self.run_and_kill(3, "raised", 1)
        self.lose_nodes([0])  # what the trail has is older, but whole
        self.must_run(ranks=4)
        self.assert_right()


class SameJob(system.Case):
    """A rank leaves, and the others go on with cairn_reopen."""
    node_size = 1
    settings = {"level_partner": 1, "level_global": 0}

    def test_the_others_go_on(self):
        self.assertIn("resumed at step 20", self.must_run("--leave", 22, ranks=3))
        self.assert_right()


class ElasticBodies(Elastic):
    """Bodies in strips: items in cells."""
    program = "nbody"
    work = ["--bodies", 120, "--steps", 40, "--every", 4]


if __name__ == "__main__":
    unittest.main()
