# SPDX-License-Identifier: BSD-3-Clause
"""A rank is ended at every named stage, and at its n-th operation on files, for n = 1, 2, ... until
a job gets through; after each the job is started again, and the result must be right.

The sweep over all n takes about an hour: a few of them, drawn by the seed, are tried (make soak
goes from seed to seed), or all of them with CAIRN_CASES=all.
"""
import os
import unittest

import system

ALL = os.environ.get("CAIRN_CASES") == "all"


class Stages(system.Case):
    settings = {"level_partner": 1, "level_global": 2}
    work = ["--size", 64, "--steps", 15, "--every", 3]
    stages = ["capture", "store", "commit", "partner", "global"]

    def strike(self, fault, rank=None):
        """A job that dies by the fault, and one that goes on; False when the fault hit nothing."""
        rank = self.random.randrange(self.ranks) if rank is None else rank
        code, _ = self.run_job(fault=(rank, fault))
        if code == 0:
            return False
        if any("level" in e and e["event"] == "raised" for e in self.events(run=self.last_run())):
            self.lose_nodes([self.random.randrange(self.nnodes())])
        self.must_run()
        self.assert_right(f"after '{fault}' on rank {rank}")
        return True

    def last_run(self):
        """Every pair of jobs makes a run of its own."""
        runs = [p.name for p in self.trail.glob("run-*")]
        return max(runs, key=lambda name: int(name[4:]), default="run-1")

    def test_named_stages(self):
        for stage in self.stages:
            for at in (1, 2) if ALL else (self.random.randint(1, 2),):
                with self.subTest(stage=stage, at=at):
                    self.assertTrue(self.strike(f"{stage}:{at}:kill"), "was not reached")

    def test_resume(self):
        """Killed in a mark, then killed while coming back, then left alone."""
        code, text = self.run_job(fault=(1, "commit:4:kill"))
        self.assertNotEqual(code, 0, text)
        for rank in (0, self.ranks - 1):
            code, text = self.run_job(fault=(rank, "resume:1:kill"))
            self.assertNotEqual(code, 0, text)
        self.assertIn("resumed at step", self.must_run())
        self.assert_right()

    def test_operations(self):
        """any:n:kill for n = 1, 2, ... on rank 0, which also writes the manifest, and another."""
        tried = 0
        for rank in (0, self.ranks - 1):
            at = 1 if ALL else self.random.randint(1, 12)
            while self.strike(f"any:{at}:kill", rank):
                tried += 1
                at += 1 if ALL else self.random.randint(50, 130)
        print(f"{tried} operations at which a rank was killed", flush=True)
        self.assertGreater(tried, 3)


class StagesEncoded(Stages):
    settings = {"level_partner": 0, "level_global": 0, "level_encoded": 1, "level_group": 4,
                "level_parity": 1}
    stages = ["commit", "encoded"]

    def test_resume(self):
        self.skipTest("as without parity")


class StagesSynchronous(Stages):
    """Everything on the program's own thread."""
    settings = {"level_partner": 1, "level_global": 2, "mark_mode": "synchronous"}
    stages = ["store", "commit", "global"]

    def test_resume(self):
        self.skipTest("as in the background")

    test_operations = test_resume


class StagesCodecs(Stages):
    """With blocks that codecs store: two threads encode, and copies move what is stored."""
    settings = {"level_partner": 1, "level_global": 2, "variable_codec": "auto:space",
                "codec_threads": 2}
    stages = ["store", "commit", "partner", "global"]

    test_operations = StagesSynchronous.test_resume


if __name__ == "__main__":
    unittest.main()
