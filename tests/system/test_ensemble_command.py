# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Models that are run by command, with their state in files: the same bits as the model that is
linked, though written in another language by h5py; and states as HDF5 files."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import system
from study import LORENZ, PATIENCE, Study

SMALL = {"study_members": 3, "study_cycles": 3}
MODEL = pathlib.Path(__file__).resolve().parent / "command_model.py"


class Command(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)
        self.python = sys.executable
        if subprocess.run([self.python, "-c", "import h5py, numpy"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            system.skip_loudly(self, "no h5py")
        self.model("first", self.dir / "first.h5")

    def model(self, *words):
        return subprocess.run([self.python, MODEL, *map(str, words)], check=True, text=True,
                              capture_output=True).stdout

    def study(self, name, words, **more):
        return Study(self.dir, name, f"{self.python} {MODEL} {words}",
                     model_first=self.dir / "first.h5", model_assimilated="/ocean/x", **SMALL,
                     **more)

    def run_it(self, s):
        done = subprocess.run(s.command("run"), text=True, capture_output=True, timeout=PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def linked(self):
        """The study of the model that is linked, with states as HDF5."""
        s = Study(self.dir, "linked", LORENZ, study_hdf5="both", **SMALL)
        s.must("twin")
        text = s.observations.read_text().replace(" x ", " ocean.x ")
        s.must("run")
        s.observations.write_text(text)
        return s

    def test_another_language_gives_the_same_bits(self):
        linked = self.linked()
        for name, words in (("two", "{in} {out} {steps}"), ("one", "{in} {in} {steps}")):
            s = self.study(name, words, study_hdf5="analysis", model_carried="")
            code, text = self.run_it(s)
            self.assertEqual(code, 0, text)
            self.assertEqual(s.digests(), linked.digests())
            self.assertEqual(list((s.dir / "work").iterdir()), [])
        self.assertEqual(len(list((linked.dir / "hdf5").iterdir())), 7)
        one, two = (f"{self.dir}/{n}/hdf5/analysis-000003.h5" for n in ("one", "two"))
        self.assertEqual(self.model("compare", one, two), "member[3] ocean.x[3, 40]\n")

    def test_check_and_all_others_are_carried(self):
        s = self.study("checked", "{in} {out} {steps}", study_steps=2)
        s.observations.write_text("1 ocean.x 3 2.0 1.0\n")
        found = {row["what"]: row["ok"] for row in json.loads(s.must("check", "json"))}
        for what in ("there and back", "propagated twice", "after another member",
                     "on another runner"):
            self.assertIs(found[what], True, found)

    def test_a_model_that_refuses(self):
        s = self.study("refuses", "{in} {out} {steps} refuse", runner_attempts=2)
        s.observations.write_text("")
        code, text = self.run_it(s)
        self.assertEqual(code, 2, text)
        self.assertRegex(text, "member . failed 2 times in cycle 3: the model refuses: exit code 3")
        failed = sorted((s.dir / "failed").glob("*.h5"))
        self.assertRegex(failed[0].name, r"m00000.-3\.h5")
        self.assertIn(f"{failed[0]}", (s.dir / "failed" / "commands").read_text())
        self.model(failed[0], self.dir / "again.h5", 1)  # by hand, without what made it fail

    def test_a_model_that_is_killed(self):
        s = self.study("killed", "{in} {out} {steps} killed", runner_attempts=2)
        s.observations.write_text("")
        code, text = self.run_it(s)
        self.assertEqual(code, 2, text)
        self.assertRegex(text, "member . failed 2 times in cycle 3: lost process")

    def test_what_is_wrong_has_a_sentence(self):
        for more, why in (({"model_assimilated": "/ocean/z"}, "has no dataset 'ocean/z'"),
                          ({"model_assimilated": "clock"}, "'clock': .* of type int32"),
                          ({"model_carried": "note"}, "'note': .* no numbers")):
            s = Study(self.dir, "wrong", f"{MODEL} {{in}} {{out}} {{steps}}",
                      **{"model_first": self.dir / "first.h5", "model_assimilated": "/ocean/x",
                         **more})
            s.observations.write_text("")
            code, text = self.run_it(s)
            self.assertEqual(code, 2, text)
            self.assertRegex(text, why)


if __name__ == "__main__":
    unittest.main()
