# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""cairn ensemble check: hidden state of a model is found, and the field that shows it is named."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

from study import MPIRUN, ODD, PATIENCE, Study


class Check(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)

    def check(self, how, runner=ODD, limit=None, **more):
        """What a check finds: the sentences about faults, and what was tried."""
        s = Study(self.dir, f"check-{how}", runner, study_cycles=3, study_members=4, study_spin=2,
                  study_steps=4, **more)
        (self.dir / "observations").write_text("1 x 0 2.0 1.0\n2 x 4 3 0.5 # comment\n")
        done = subprocess.run(s.command("check", "json"), text=True, capture_output=True,
                              timeout=PATIENCE, env=dict(os.environ, ODD=how),
                              preexec_fn=limit and (lambda: resource.setrlimit(
                                  resource.RLIMIT_NOFILE, (limit, limit))))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = json.loads(done.stdout)
        for job in s.jobs():
            self.assertEqual(s.processes(job), [])
        self.assertFalse((s.dir / "shelf").exists())
        faults = {row["what"]: row["found"] for row in found if row["ok"] is False}
        self.assertEqual(done.returncode, 1 if faults else 0)
        return faults, {row["what"]: row["ok"] for row in found}

    def test_check_of_a_good_model(self):
        faults, tried = self.check("", f"{MPIRUN} -n 2 {ODD}")
        self.assertEqual(faults, {})
        for what in ("there and back", "propagated twice", "after another member",
                     "on another runner", "on another number of ranks", "observations", "memory",
                     "room", "files", "jobs"):
            self.assertIs(tried[what], True, what)

    def test_check_without_other_ranks(self):
        faults, tried = self.check("")
        self.assertEqual((faults, tried["on another number of ranks"]), ({}, None))

    def test_check_names_the_field_that_hidden_state_changes(self):
        faults, _ = self.check("hidden")
        self.assertEqual(set(faults), {"propagated twice", "after another member",
                                       "on another runner"})
        for text in faults.values():
            self.assertRegex(text, "^field 'y' differs in 1 of 2 elements, first 1: .* "
                                   "after 1 step$")

    def test_check_names_the_field_that_depends_on_the_ranks(self):
        faults, _ = self.check("layout", f"{MPIRUN} -n 3 {ODD}")
        self.assertEqual(set(faults), {"on another number of ranks"})
        self.assertRegex(faults["on another number of ranks"], "^field 'y' .*, first 0: ")

    def test_check_of_parameters_and_idle_changes(self):
        self.assertRegex(self.check("parameter")[0]["parameters"], "field 'k' is a parameter")
        self.assertRegex(self.check("idle")[0]["there and back"], "field 'x' differs in 1 of 5")

    def test_check_finds_what_does_not_fit(self):
        faults, _ = self.check("", limit=256, runners=300)
        self.assertRegex(faults["files"], "up to 365 .* 256 are allowed here")


if __name__ == "__main__":
    unittest.main()
