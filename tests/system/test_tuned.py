# SPDX-License-Identifier: BSD-3-Clause
"""A run that leaves everything to the planner, on two virtual nodes, killed again and again: it
comes to the right end, goes on with what it knew, and 'cairn plan' tells of it."""
import json
import unittest

import test_run


class Tuned(test_run.Supervised):
    program = "spmv"
    ranks = 2
    settings = {"plan_mtbf": 1, "plan_interval_min": 0.02}
    work = ["--kernel", "random", "--size", 4096, "--batch", 64, "--steps", 4000]
    slow = ["--pause", 1000]
    kills = 3

    def test_kills(self):
        job = self.supervise("--fruitless", 100, "--tries", 100, "--hang", "30s")
        for _ in range(self.kills):
            self.marked(job, len(self.events("mark")) + 2 * bool(self.events("resume")) + 1)
            legs = len(self.events("open"))
            job.kill([self.random.randrange(self.ranks)])
            self.assertTrue(self.wait_for(lambda: len(self.events("open")) > legs, job), job.text())
        self.must_end_right(job)
        self.assertEqual(self.ends()[-1], "finished")
        self.check_planner()
        self.check_plan()

    def check_planner(self):
        """A leg that came back has thought again before it took its first mark."""
        kinds = [e["event"] for e in self.events()
                 if e["event"] in ("open", "resume", "tuned", "mark")]
        for i, kind in enumerate(kinds):
            if kind == "resume":
                self.assertEqual(kinds[i - 1], "tuned", kinds)
        intervals = [e["interval"] for e in self.events("tuned")]
        self.assertLess(intervals[-1], 100)

    def check_plan(self):
        code, text = self.cairn("plan", "--json", "--trail", self.trail)
        # legs live for a fraction of a second here: that no schedule stands it may be the answer
        self.assertIn(code, (0, 1), text)
        plan = json.loads(text)
        self.assertEqual(plan["done"]["legs"], self.kills + 1)
        self.assertEqual(sum(plan["done"]["failures"].values()), self.kills)
        self.assertEqual(sum(plan["done"]["marks"].values()), len(self.events("mark")))
        self.assertTrue(plan["measured"]["tuned"])
        self.assertTrue(all(one["finished"] for one in plan["replayed"]), text)


if __name__ == "__main__":
    unittest.main()
