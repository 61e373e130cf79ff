# SPDX-License-Identifier: BSD-3-Clause
"""Who may go on with a run: one program at a time, with the variables and settings that fit; and
programs that are told to stop."""
import os
import pathlib
import re
import signal
import subprocess
import unittest

import system


class Entry(system.Case):
    ranks = 2
    work = ["--size", 64, "--steps", 15, "--every", 3]
    settings = {"level_partner": 0, "level_global": 0}

    def die(self, **settings):
        code, text = self.run_job(fault=(1, "store:4:kill"), **settings)
        self.assertNotEqual(code, 0, text)

    def refused(self, pattern, *args, **how):
        """A start that is refused, and harms nothing."""
        code, text = self.run_job(*args, **how)
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, pattern)
        self.assertIn("resumed at step 9\n", self.must_run())
        self.assert_right()

    def test_second_program(self):
        job = self.start("--pause", 100)
        self.wait_for(lambda: self.events("mark"), job)
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"run 'run-1' is being written by process \d+ on '.+'")
        self.assertEqual(job.wait(), 0, job.text())
        self.assert_right()

    def test_leftover_lock(self):
        """The file is still there, its process is not."""
        self.die()
        lock = self.trail / "run-1" / "lock"
        self.assertRegex(lock.read_text(), r"process \d+")
        self.assertIn("resumed at step 9\n", self.must_run())
        self.assert_right()

    def test_other_shape(self):
        self.die()
        self.refused(r"rank 0: variable 'field' is float64\[16 x 32 of 32 x 32 at 0 x 0\], "
                     r"but in mark 9 it is float64\[32 x 64 of 64 x 64 at 0 x 0\]", "--size", 32)

    def test_other_variables(self):
        self.die()
        self.program = "nbody"
        self.work = ["--bodies", 50, "--steps", 5]
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"mark 9 has no items in cells called 'bodies'")
        self.program, self.work = Entry.program, Entry.work
        self.assertIn("resumed at step 9\n", self.must_run())

    def test_other_number_of_ranks(self):
        self.die()
        self.assertIn("resumed at step 9\n", self.must_run(ranks=3))
        self.assert_right()

    def test_bad_setting(self):
        self.die()
        self.refused(r"CAIRN_KEEP_LOCAL.*'none'", keep_local="none")

    def test_impossible_level(self):
        self.die()
        self.refused(r"partner", level_partner=2, level_node_size=2)

    def stop(self, send):
        job = self.start("--pause", 50)
        self.wait_for(lambda: self.events("mark"), job)
        send(job)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertTrue(self.events("stop"))
        step = re.search(r"stopped at step (\d+)\n", job.text())[1]
        self.lose_nodes(range(self.ranks))  # the last mark is in the trail
        self.assertIn(f"resumed at step {step}\n", self.must_run())
        self.assert_right()

    def test_signal_to_one_rank(self):
        def send(job):
            os.kill(job.pids()[1], signal.SIGUSR1)
        self.stop(send)

    def test_time_limit(self):
        """A second is left when the job starts, and the margin is longer than that."""
        code, text = self.run_job("--pause", 20, stop_limit="1s", stop_margin="0.8s")
        self.assertEqual(code, 0, text)
        self.assertIn("stopped at step", text)
        self.assertIn("resumed at step", self.must_run())
        self.assert_right()

    def test_plain_program_without_mpiexec(self):
        """A single process needs no launcher."""
        self.ranks = 1
        out = pathlib.Path(self.dir / "single")
        command = [system.BUILD / "examples" / "heat2d", *self.work, "--output", out]
        env = {**self.env(), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run([str(w) for w in command], check=False, env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(out.read_bytes(), self.undisturbed())


if __name__ == "__main__":
    unittest.main()
