# SPDX-License-Identifier: BSD-3-Clause
"""After a program has died or ended: drain and prune."""
import json
import unittest

import system


class After(system.Case):
    settings = {"level_partner": 1, "level_global": 0}
    work = ["--size", 96, "--steps", 18, "--every", 3]

    def die(self, **settings):
        self.settings = {**self.settings, **settings}
        code, text = self.run_job(fault=(1, "store:5:kill"))
        self.assertNotEqual(code, 0, text)

    def must_cairn(self, *args):
        code, text = self.cairn(*args)
        self.assertEqual(code, 0, text)
        return text

    def versions(self, run="run-1"):
        marks = json.loads(self.must_cairn("show", "--json", self.trail / run))["marks"]
        return {m["version"]: m["levels"] for m in marks}

    def test_drain(self):
        """With one node gone; then all the others go, and the program comes back."""
        self.die()
        code, text = self.cairn("verify", self.trail)
        self.assertEqual(code, 2, text)
        self.assertIn("0 B read: nothing is known; 2 marks are on the nodes, not read", text)
        self.lose_nodes([2])
        self.assertIn("mark 12 is in the trail now", self.must_cairn("drain", self.trail))
        self.assertIn("mark 12 is in the trail already", self.must_cairn("drain", self.trail))
        self.assertIn("sound", self.must_cairn("verify", self.trail))
        self.assertIn("global", self.versions()[12])
        self.lose_nodes(range(self.ranks))
        self.assertIn("resumed at step 12\n", self.must_run())
        self.assert_right()

    def test_drain_older(self):
        """What cannot be brought any more is said, and an older mark comes instead."""
        self.die(level_partner=3)
        self.lose_nodes([2])
        told = json.loads(self.must_cairn("drain", "--json", self.trail / "run-1"))
        self.assertEqual((told["mark"], told["brought"], told["lost"]), (9, True, 1))

    def test_drain_nothing_left(self):
        self.die()
        self.lose_nodes(range(self.ranks))
        code, text = self.cairn("drain", self.trail)
        self.assertEqual(code, 1, text)
        self.assertIn("none of", text)
        self.assertIn("the share of rank 0", text)

    def test_drain_while_running(self):
        job = self.start("--pause", 100)
        self.wait_for(lambda: self.events("mark"), job)
        code, text = self.cairn("drain", self.trail)
        self.assertEqual(code, 2, text)
        self.assertIn("is being written by process", text)
        self.assertEqual(job.wait(), 0, job.text())

    def test_prune(self):
        """An unfinished run keeps what it needs; a finished one may lose everything."""
        self.die(level_global=1, keep_global="all")
        self.assertEqual(len(self.versions()), 4)
        self.assertIn("2 marks would be dropped",
                      self.must_cairn("prune", "-n", "--keep", 2, self.trail))
        self.must_cairn("prune", "--keep", 1, self.trail)
        self.assertIn("global", self.versions()[12])
        self.assertIn("sound", self.must_cairn("verify", self.trail))
        code, text = self.cairn("prune", "--keep", 0, self.trail)
        self.assertEqual(code, 2, text)
        self.lose_nodes(range(self.ranks))
        self.assertIn("resumed at step 12\n", self.must_run())
        self.must_cairn("prune", "--keep", 0, "--local", self.trail / "run-1")
        self.assertEqual(self.versions(), {})
        self.assertEqual(self.local_files(), [])
        self.assertEqual(list(self.trail.rglob("part-*")), [])

    def local_files(self):
        return [p for p in self.local.rglob("*") if p.is_file()]

    def test_prune_by_all_nodes(self):
        """A finished run whose last mark is not in the trail leaves its files: a job prunes."""
        self.must_run()
        self.assertNotEqual(self.local_files(), [])
        code, text = self.cairn("prune", "--local", self.trail / "run-1")
        self.assertEqual(code, 2, text)
        self.assertIn("mark 15, its last one, is on the nodes only", text)
        code, text = self.cairn("prune", "--local", "--keep", 0, self.trail / "run-1",
                                ranks=self.ranks)
        self.assertEqual(code, 0, text)
        self.assertIn("2 marks dropped, ", text)
        self.assertEqual(self.local_files(), [])


class AfterEncoded(After):
    settings = {"level_partner": 0, "level_encoded": 1, "level_group": 4, "level_parity": 1,
                "level_global": 0}

    def test_drain_older(self):
        self.skipTest("as with a partner")

    test_drain_while_running = test_prune = test_drain_nothing_left = test_drain_older
    test_prune_by_all_nodes = test_drain_older


if __name__ == "__main__":
    unittest.main()
