# SPDX-License-Identifier: BSD-3-Clause
"""Who may read what Cairn writes: what a person asked for by name follows the umask, trails are
private unless run.mode says otherwise, and what lies on nodes always is."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

import system

SMALL_RUN = system.BUILD / "tests" / "cli" / "small_run"
OTHER = 65534  # nobody


def modes(folder):
    """{path: permission bits} of a folder and all in it."""
    return {str(p): stat.S_IMODE(p.stat().st_mode) for p in (folder, *folder.rglob("*"))}


class Modes(system.Case):
    def setUp(self):
        super().setUp()
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="cairn-modes-"))
        self.place.chmod(0o755)  # others can come here
        self.addCleanup(shutil.rmtree, self.place)

    def run_with(self, mask, *command, **env):
        done = subprocess.run([str(w) for w in command], cwd=self.place, check=False, text=True,
                              env={**os.environ, **env}, umask=mask, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def make_all(self, mask, **env):
        """A run of two marks, and everything that a person may ask for of it."""
        cairn = system.BUILD / "bin" / "cairn"
        shutil.rmtree(self.place / "t", ignore_errors=True)
        self.run_with(mask, SMALL_RUN, "t", "a", 0, 3, 1, **env)
        named = ["report.html", "a.h5", "a.golden"]
        for name in named:
            (self.place / name).unlink(missing_ok=True)
        self.run_with(mask, cairn, "report", "-o", "report.html", "t")
        self.run_with(mask, cairn, "export", "-o", "a.h5", "t")
        self.run_with(mask, cairn, "gate", "--bless", "a.golden", "t")
        return [self.place / name for name in named]

    def can_read(self, path):
        """Whether another user can; None where that cannot be tried."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            print("SKIPPED: another user only where root can become one by setpriv", flush=True)
            return None
        return subprocess.run(["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups",
                               "cat", str(path)], check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def check_trail(self, dirs, files):
        for path, mode in modes(self.place / "t").items():
            want = dirs if os.path.isdir(path) else files
            self.assertEqual(oct(mode), oct(want), path)

    def test_named_files_follow_the_umask(self):
        for mask in (0o022, 0o027, 0o077):
            for path in self.make_all(mask):
                mode = stat.S_IMODE(path.stat().st_mode)
                self.assertEqual(oct(mode), oct(0o666 & ~mask), f"{path} with umask {mask:o}")
                self.assertIn(self.can_read(path), (None, mask == 0o022), path)
            self.check_trail(0o700, 0o600)
            self.assertIn(self.can_read(self.place / "t" / "trail"), (None, False))

    def test_a_trail_for_the_group(self):
        for mask in (0o022, 0o077):
            self.make_all(mask, CAIRN_RUN_MODE="group")
            self.check_trail(0o2750, 0o640)

    def test_a_trail_by_the_umask(self):
        for mask in (0o022, 0o027):
            self.make_all(mask, CAIRN_RUN_MODE="umask")
            self.check_trail(0o777 & ~mask, 0o666 & ~mask)
            self.assertIn(self.can_read(self.place / "t" / "a" / "manifest"),
                          (None, mask == 0o022))

    def test_nodes_are_private(self):
        self.local.mkdir()
        self.local.chmod(0o755)
        self.must_run(run_mode="umask", keep_local="all", level_global=4)
        found = modes(self.local)
        del found[str(self.local)]
        self.assertTrue(any(m == 0o600 for m in found.values()), found)
        for path, mode in found.items():
            self.assertEqual(oct(mode), oct(0o700 if os.path.isdir(path) else 0o600), path)


if __name__ == "__main__":
    unittest.main()
