# SPDX-License-Identifier: BSD-3-Clause
"""Disks that are full or read-only: marks fail with a sentence, the program goes on, and marks
succeed again once there is room."""
import subprocess
import unittest

import system

FULL = 64 << 10


class Disks(system.Case):
    ranks = 2
    work = ["--size", 96, "--steps", 40, "--every", 4]
    settings = {"level_partner": 0, "level_global": 0}

    def fill(self, path, leave=FULL):
        """Take all room of a small disk but a little."""
        ballast = path / "ballast"
        with ballast.open("wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass
        with ballast.open("r+b") as file:
            file.truncate(max(ballast.stat().st_size - leave, 0))
        return ballast

    def assert_said(self, text, pattern):
        """Every failure is in the log and reaches the program."""
        self.assertRegex(text, pattern)
        self.assertTrue(self.events("failed"))

    def test_full_local_disk(self):
        with system.small_disk(self, self.local, 1 << 20):
            ballast = self.fill(self.local)
            text = self.must_run(log="warn")
            self.assert_said(text, r"(No space|no room).*marks go to the trail alone")
            self.assertTrue(self.events("mark"))
            self.assert_right()
            ballast.unlink()
            self.assertNotIn("No space", self.must_run())
            self.assertTrue(self.events("mark", run="run-2"))

    def test_full_global_disk(self):
        """Local marks go on and can be resumed from."""
        with system.small_disk(self, self.trail, 1 << 20):
            self.settings = {**self.settings, "level_global": 1}
            code, text = self.run_job(fault=(1, "store:2:kill"))
            self.assertNotEqual(code, 0, text)
            ballast = self.fill(self.trail, 32 << 10)
            code, text = self.run_job(fault=(1, "store:6:kill"))
            self.assertNotEqual(code, 0, text)
            self.assertRegex(text, r"mark \d+, level global: .*(No space|no room)")
            ballast.unlink()
            self.assertIn("resumed at step", self.must_run())
            self.assert_right()

    def test_read_only_trail(self):
        """Refused at once, in a sentence; afterwards all goes on as if nothing had been."""
        with system.small_disk(self, self.trail, 4 << 20):
            code, text = self.run_job(fault=(1, "store:4:kill"))
            self.assertNotEqual(code, 0, text)
            self.remount("ro")
            code, text = self.run_job()
            self.assertNotEqual(code, 0, text)
            self.assertRegex(text, r"heat2d: .*[Rr]ead-only file system")
            self.remount("rw")
            self.assertIn("resumed at step 12\n", self.must_run())
            self.assert_right()

    def test_manifest_cannot_be_written(self):
        """From some time on: no mark counts any more, the program still comes to its end, and the
        marks that did count are there."""
        text = self.must_run(fault=(0, "rename:9:eio:0"))
        self.assertRegex(text, r"mark \d+, level local: .*Input/output error")
        self.assert_right()
        step = self.events("mark")[-1]["version"]
        self.assertIn(f"resumed at step {step}\n", self.must_run())
        self.assert_right()

    def remount(self, mode):
        done = subprocess.run(["mount", "-o", f"remount,{mode}", str(self.trail)], check=False,
                              capture_output=True, text=True)
        if done.returncode:
            system.skip_loudly(self, f"cannot remount: {done.stderr.strip()}")


if __name__ == "__main__":
    unittest.main()
