# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Studies whose directory is on a disk that is full: each ends with a sentence, or goes on; and
with room it is taken up, and has the analysis of an undisturbed study, bit for bit."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import system
from study import LORENZ, PATIENCE, Study

MODEL = f"{LORENZ} --n 50000"  # 0.4 MB a state


class FullDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "TEST_DISK_ALONE" not in os.environ:
            system.skip_loudly(cls, "not root, or no unshare")
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = Study(cls.dir, "plain", MODEL)
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        cls.expected = plain.digests()

    def mount(self, *options):
        return subprocess.run(["mount", "-o", *options], check=False,
                              capture_output=True).returncode == 0

    def play(self, size, **more):
        disk = self.dir / f"disk{size}"
        disk.mkdir()
        if not self.mount(f"size={size}k", "-t", "tmpfs", "none", str(disk)):
            system.skip_loudly(self, "no mounts here")
        self.addCleanup(subprocess.run, ["umount", str(disk)], check=True)
        s = Study(self.dir, f"full{size}", MODEL, study_dir=disk / "study", **more)
        s.dir = disk / "study"
        out, err = s.start().communicate(timeout=PATIENCE)
        self.assertEqual({c: self.expected[c] for c in s.digests()}, s.digests())
        self.assertTrue(s.events("not_kept"))
        s.must_be_gone()
        self.assertTrue(self.mount("remount,size=64m", str(disk)))
        again, problem = s.start().communicate(timeout=PATIENCE)
        self.assertIn("5 cycles are done", again, problem)
        self.assertEqual(s.digests(), self.expected)
        return out, err

    def test_no_room_for_any_state(self):
        out, err = self.play(64)
        self.assertIn("No space left on device", err)
        self.assertEqual(out, "")

    def test_no_room_for_all_states(self):
        out, err = self.play(2000)
        self.assertRegex(err, "the last analysis was not kept: shelf .*No space left on device.*; "
                              "mend that, and run the study again")
        self.assertEqual(out, "")


def alone():
    """Go on with mounts of its own."""
    if os.geteuid() == 0 and shutil.which("unshare") and "TEST_DISK_ALONE" not in os.environ:
        os.environ["TEST_DISK_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])


if __name__ == "__main__":
    alone()
    unittest.main()
