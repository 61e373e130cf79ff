# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke lz4 zstd zfp fpzip
"""The compression study of seed 003 with fewer variables and members, against its tables. The range
of few variables is smaller, and so is what errors are divided by; 'make study' has it whole."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (pathlib.Path(os.environ[k]) for k in ("CAIRN_SOURCE_DIR", "CAIRN_BUILD_DIR"))
SETTINGS = "fpzip:precision=32|40|48 zfp:precision=32|40|48 zfp:accuracy=1e-6|1e-8|1e-10 f32 f16"


class CompressionStudy(unittest.TestCase):
    def test_small(self):
        folder = tempfile.mkdtemp(prefix="scratch-", dir=".")
        self.addCleanup(shutil.rmtree, folder)
        run = subprocess.run(
            [sys.executable, SOURCE / "tools" / "study", BUILD, "--n", "20000", "--members", "5",
             "--cycles", "15", "--settings", SETTINGS, "--first", "1.3", "--later", "20", "--peak",
             "50", "--rho", "0.04", "--no-slopes", "--keep", folder],
            text=True, capture_output=True, timeout=600, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
