# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke zfp
"""Ensembles side by side under a particle filter: the weights and the resampling of all are those
that the filter finds in an ordinary study, and the model is given the same member in each."""
import csv
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from study import BUILD, LORENZ, PATIENCE, Study, until

MEMBERS, CYCLES = 8, 5
LORENZ63 = BUILD / "tests" / "system" / "lorenz63"
FOUND = ("cycle", "ess", "evidence", "resampled", "parents")


def found(events):
    """By cycle; what was computed again must be the same."""
    rows = {}
    for e in events:
        row = tuple(e[k] for k in FOUND)
        assert rows.setdefault(e["cycle"], row) == row, e
    return rows


class ParticleValidation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.make("plain").must("twin")

    @classmethod
    def make(cls, name, runner=LORENZ, **more):
        return Study(cls.dir, name, runner, **{
            "study_members": MEMBERS, "study_cycles": CYCLES, "filter_name": "particle",
            "filter_inflation": 1, "filter_rotate": "no", "particle_perturb": 0.1,
            "particle_cache": cls.dir / "cache", "validate_settings": "f16 zfp:accuracy=1e-9",
            "validate_share": 1e9, **more})

    def validate(self, s):
        run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                             timeout=PATIENCE, check=False)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return self.tables(s)

    @staticmethod
    def tables(s):
        s.events_of = s.dir / "plain" / "events.jsonl"
        return (s.dir / "statistics.csv").read_bytes(), (s.dir / "verdicts.csv").read_bytes()

    @staticmethod
    def resamplings(s):
        inner = Study.__new__(Study)
        inner.dir = s.dir / "plain"
        return found(inner.events("resampling"))

    def ordinary(self, name, **more):
        s = self.make(name, **more)
        s.must("run")
        rows = found(s.events("analysis"))
        del rows[CYCLES]  # nothing is drawn after the last cycle of a validation
        return rows

    def test_weights_and_parents_are_the_filter_s(self):
        for name, more in (("always", {}), ("sometimes", {"particle_threshold": 0.3}),
                           ("jitter", {"particle_perturb": 0, "particle_jitter": 1}),
                           ("residual", {"particle_resampling": "residual"})):
            with self.subTest(name):
                s = self.make(f"{name}-side", **more)
                self.validate(s)
                wanted = self.ordinary(name, **more)
                self.assertEqual(self.resamplings(s), wanted)
                self.assertTrue(any(row[3] for row in wanted.values()))
                if name == "sometimes":
                    self.assertFalse(all(row[3] for row in wanted.values()), wanted)
                self.members_stay(s)

    def members_stay(self, s):
        """With resamplings of its own an ensemble of halves would have other members."""
        rows = [r for r in csv.DictReader((s.dir / "statistics.csv").read_text().splitlines())
                if r["setting"] == "f16"]
        self.assertEqual(len(rows), MEMBERS * CYCLES)
        self.assertLess(max(float(r["nrmse"]) for r in rows), 0.05)

    def test_a_server_goes_on_with_what_is_carried(self):
        more = {"particle_threshold": 0.3}
        expected = self.validate(self.make("undisturbed", **more))
        s = self.make("killed", runner=f"{LORENZ} --pause 20000", **more)
        inner = Study.__new__(Study)
        inner.dir = s.dir / "plain"
        with subprocess.Popen(s.command("validate"), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as run:
            for cycle, job in ((2, "s1"), (3, "s2"), (4, "s3")):
                until(f"cycle {cycle}", (inner.dir / f"c{cycle:06}.ready").exists)
                inner.signal(job, signal.SIGKILL)
            _, err = run.communicate(timeout=PATIENCE)
        self.assertIn(run.returncode, (0, 1), err)
        self.assertIn("'s3' has ended", err)
        self.assertEqual(self.tables(s), expected)

    def test_the_model_is_given_the_same_members(self):
        s = self.make("members", LORENZ63, filter_observations="", particle_resampling="residual")
        self.validate(s)
        told = [line.split() for path in (s.dir / "plain" / "log").glob("r*")
                for line in path.read_text().splitlines()]
        members = {int(words[2]) for words in told if words and words[0] == "before"}
        self.assertEqual(members, set(range(MEMBERS)))


if __name__ == "__main__":
    unittest.main()
