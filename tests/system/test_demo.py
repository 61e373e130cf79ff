# SPDX-License-Identifier: BSD-3-Clause
"""The demo is interrupted: nothing that it started is left. That it comes to its end is a test of
its own, cli/demo."""
import os
import signal
import subprocess
import time
import unittest

import system


class Demo(system.Case):
    def setUp(self):
        super().setUp()
        for name in ("bin", "examples"): # a build folder of its own: the demo works in that
            (self.dir / name).symlink_to(system.BUILD / name)

    def test_interrupted(self):
        demo = subprocess.Popen([system.SOURCE / "examples" / "demo", self.dir], env=self.env(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                start_new_session=True)
        self.addCleanup(self.kill_group, demo)
        log = self.dir / "demo" / "cairn.trail" / "run-1" / "events"
        deadline = time.monotonic() + system.PATIENCE
        while not (log.exists() and '"version":40' in log.read_text()):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(demo.poll())
            time.sleep(0.02)
        started = system.descendants(demo.pid)
        os.killpg(demo.pid, signal.SIGINT)
        self.assertEqual(demo.wait(system.PATIENCE), 130)
        left = [pid for pid in started if os.path.exists(f"/proc/{pid}/exe")]
        self.assertEqual(left, [])

    def kill_group(self, demo):
        with system.contextlib.suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
        demo.wait()

    def env(self, **more):
        """As a person has it, without what cases set for their jobs."""
        return {k: v for k, v in super().env(**more).items() if not k.startswith("CAIRN_")}


if __name__ == "__main__":
    unittest.main()
