# SPDX-License-Identifier: BSD-3-Clause
"""cairn run: whatever happens to the program, to its launcher or to cairn run itself, it takes the
right next step and says so."""
import json
import os
import signal
import time
import unittest

import system


class Supervised(system.Case):
    """Jobs under 'cairn run'; slow enough to be disturbed, when asked to be."""
    ranks = 4 if system.MPI == "openmpi" else 2 # MPICH's ranks do not let others use their core
    settings = {"level_partner": 0, "level_global": 0}
    work = ["--size", 96, "--steps", 60, "--every", 4]
    slow = ["--pause", 20]

    def supervise(self, *options, slow=True, **how):
        under = [system.BUILD / "bin" / "cairn", "run", "--pause", "0.1s", *options, "--"]
        return self.start(*(self.slow if slow else []), under=under, **how)

    def plain(self, *words, **settings):
        """A plain command under 'cairn run': (exit code, output)."""
        self.settings = {**self.settings, **settings}
        return self.cairn("run", "--pause", "0.1s", *words)

    def marked(self, job, n=2):
        """Wait until so many marks were taken."""
        self.assertTrue(self.wait_for(lambda: len(self.events("mark")) >= n, job), job.text())

    def launcher(self, job):
        """The child of 'cairn run'."""
        return next(pid for pid in system.descendants(job.process.pid)
                    if b"mpiexec" in system.pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())

    def ends(self):
        return [leg["end"] for leg in self.legs()]

    def legs(self):
        code, text = self.cairn("show", "--json", self.trail)
        self.assertEqual(code, 0, text)
        return json.loads(text)["legs"]

    def must_end_right(self, job):
        code = job.wait()
        self.assertEqual(code, 0, job.text())
        self.assert_right(job.text())


class Deaths(Supervised):
    def test_undisturbed(self):
        job = self.supervise(slow=False)
        self.must_end_right(job)
        self.assertEqual(self.ends(), ["finished"])
        ended, = self.events("ended")
        self.assertEqual((ended["why"], ended["code"], ended["signal"]), ("exit", 0, None))
        self.assertIn("done at step 60", ended["output"])
        self.assertEqual(ended["command"][-1], str(self.dir / "result"))

    def test_rank_is_killed(self):
        job = self.supervise()
        self.marked(job)
        killed_at = time.time()
        job.kill([self.random.randrange(self.ranks)])
        self.must_end_right(job)
        self.assertRegex(job.text(), r"try 1: killed by signal 9 \(KILL\); the newest mark is \d+")
        legs = self.legs()
        self.assertEqual(self.ends(), ["killed by signal 9 (KILL)", "finished"])
        self.assertEqual(legs[1]["resumed"] % 4, 0)
        # work is lost until the death: not until the last sign of life, nor until mpirun is done
        self.assertGreaterEqual(legs[0]["ended"], killed_at)
        ended = self.events("ended")[0]
        self.assertLess(legs[0]["ended"], ended["time"])
        marks = [m for m in self.events("mark") if m["time"] < ended["time"]]
        self.assertAlmostEqual(legs[0]["lost_seconds"], legs[0]["ended"] - marks[-1]["begun"], 3)
        self.assertGreater(legs[1]["restart_seconds"], 0)
        self.assertEqual([e["tries"] for e in self.events("launch")], [2])
        code, text = self.cairn("ls", self.trail)
        self.assertRegex(text, rf"leg 1 .* {self.ranks} ranks +\d+ marks +killed by signal 9 .*, "
                               r".* lost\n")
        self.assertRegex(text, rf"leg 2 .* {self.ranks} ranks +\d+ marks +after .* +finished\n")

    def test_launcher_is_killed(self):
        job = self.supervise()
        self.marked(job)
        os.kill(self.launcher(job), signal.SIGKILL)
        self.must_end_right(job)
        self.assertEqual(self.ends(), ["killed by signal 9 (KILL)", "finished"])

    def test_cairn_run_is_killed(self):
        job = self.supervise()
        self.marked(job)
        os.kill(job.process.pid, signal.SIGKILL)
        job.bury()
        job = self.supervise(slow=False)
        self.must_end_right(job)
        self.assertIn("resumed at step", job.text())

    def test_both_are_killed(self):
        job = self.supervise()
        self.marked(job)
        launcher = self.launcher(job)
        os.kill(job.process.pid, signal.SIGKILL)
        os.kill(launcher, signal.SIGKILL)
        job = self.supervise(slow=False) # at once: what is left of the old one is waited for
        self.must_end_right(job)
        self.assertIn("resumed at step", job.text())

    def test_rank_is_left_behind(self):
        """It is stopped when all that could end it is killed, and holds the run."""
        job = self.supervise()
        self.marked(job)
        os.kill(job.pids()[0], signal.SIGSTOP)
        others = (job.process.pid, *self.not_ranks(job))
        for number in (signal.SIGSTOP, signal.SIGKILL): # stopped first: none can end the ranks
            for pid in others:
                os.kill(pid, number)
        job.process.wait()
        job = self.supervise(slow=False)
        self.must_end_right(job)
        self.assertIn("ending what it has left behind", job.text())
        self.assertIn("resumed at step", job.text())

    def not_ranks(self, job):
        """The launcher, and what it has put between itself and the ranks."""
        return set(system.descendants(job.process.pid)) - set(job.pids().values())

    def test_finished_run(self):
        """A run that is named, and came to its end: nothing is started."""
        self.must_end_right(self.supervise(slow=False))
        self.assertEqual(self.plain("--", "false", run_name="run-1"),
                         (0, "cairn: run 'run-1' is finished: nothing is left to do\n"))

    def test_rank_hangs(self):
        job = self.supervise("--hang", "15s")
        self.marked(job)
        os.kill(job.pids()[1], signal.SIGSTOP)
        self.must_end_right(job)
        self.assertIn("no sign of life for 15 s", job.text())
        self.assertEqual(self.ends(), ["hung", "finished"])
        self.assertEqual(self.events("ended")[0]["why"], "hang")

    def test_slow_is_not_hung(self):
        """Without marks, the questions of the program are signs of life enough."""
        self.slow = ["--every", 1000, "--pause", 120]
        self.must_end_right(self.supervise("--hang", "15s"))
        self.assertEqual(self.ends(), ["finished"])
        self.assertEqual(self.events("mark"), [])


class FewerRanks(Supervised):
    """With the real launcher of either MPI; tests/system/test_run_elastic.py has the rest."""
    ranks = 3
    settings = {"level_partner": 0, "level_global": 1}

    def test_goes_on(self):
        job = self.supervise("--elastic", 2, "--ranks", "echo 2")
        self.assertTrue(self.wait_for(lambda: self.events("raised"), job), job.text())
        job.kill([2])
        self.must_end_right(job)
        self.assertIn("going on with 2 ranks instead of 3", job.text())
        self.assertEqual([leg["ranks"] for leg in self.legs()], [3, 2])


class Bugs(Supervised):
    """What starting again does not help against."""

    def test_crash_at_the_same_step(self):
        code, text = self.run_job(fault=(1, "store:4:kill"))
        self.assertNotEqual(code, 0, text)
        job = self.supervise(slow=False, fault=(1, "store:1:kill"))
        self.assertEqual(job.wait(), 2, job.text())
        self.assertIn("no mark was gained between 2 failures, so that this is a bug, not a fault",
                      job.text())
        self.assertEqual(len(self.events("ended")), 2)
        job = self.supervise(slow=False)
        self.must_end_right(job)
        self.assertIn("resumed at step 12\n", job.text())

    def test_limit_of_tries(self):
        job = self.supervise("--tries", 3, slow=False, fault=(1, "store:2:kill"))
        self.assertEqual(job.wait(), 2, job.text())
        self.assertIn("given up after 3 tries; start this again to go on", job.text())

    def test_no_launcher(self):
        code, text = self.plain("--", self.dir / "no-launcher", "-n", 4)
        self.assertEqual((code, text), (2, f"cairn: cannot start '{self.dir}/no-launcher': No such "
                                           "file or directory\n"))

    def test_no_cairn_in_it(self):
        code, text = self.plain("--", "sh", "-c", "echo hello; exit 3")
        self.assertEqual(code, 2)
        self.assertEqual(text.count("hello\n"), 2)
        self.assertIn("try 2: exit code 3; there is no mark\n", text)
        self.assertIn("does the program call cairn_open?", text)
        self.assertEqual(self.plain("--", "sh", "-c", "echo fine"), (0, "fine\n"))

    def test_launcher_does_not_notice(self):
        """As Open MPI's may when ranks die while it starts them."""
        launcher = self.dir / "mpirun"
        launcher.write_text("#!/bin/sh\ntrue &\nexec sleep 1000\n")
        launcher.chmod(0o700)
        code, text = self.plain("--tries", 1, "--", launcher, "-n", 4, "app")
        self.assertEqual(code, 2, text)
        self.assertIn("all ranks have ended, and the launcher does not notice", text)

    def test_nothing_is_left_behind(self):
        """Not even by a launcher that dies before its children, which are in other sessions."""
        pid = self.dir / "pid"
        code, text = self.plain("--tries", 1, "--", "sh", "-c",
                                f"setsid sleep 1000 & echo $! >{pid}; kill -9 $$")
        self.assertEqual(code, 2, text)
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    def test_full_disk(self):
        with system.small_disk(self, self.trail, 1 << 20):
            with (self.trail / "ballast").open("wb", buffering=0) as file:
                with system.contextlib.suppress(OSError):
                    while file.write(bytes(1 << 12)):
                        pass
            job = self.supervise(slow=False)
            self.assertEqual(job.wait(), 2, job.text())
            self.assertIn("there is no room where trail", job.text())
            (self.trail / "ballast").unlink()
            self.must_end_right(self.supervise(slow=False))


class Stops(Supervised):
    settings = {**Supervised.settings, "stop_margin": 1}

    def assert_stopped(self, job):
        self.assertEqual(job.wait(), 1, job.text())
        self.assertRegex(job.text(), r"stopped; run 'run-1' has mark \d+, start this again")
        newest = self.events("mark")[-1]["version"]
        self.assertEqual(self.ends()[-1], "stopped")
        job = self.supervise(slow=False)
        self.must_end_right(job)
        self.assertIn(f"resumed at step {newest}\n", job.text())

    def test_signal(self):
        job = self.supervise()
        self.marked(job)
        job.process.send_signal(self.random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]))
        self.assert_stopped(job)

    def test_time_limit(self):
        self.slow = ["--pause", 400]
        self.assert_stopped(self.supervise("--limit", "6s"))

    def test_signal_in_a_pause(self):
        job = self.supervise("--pause", "100s", slow=False, fault=(1, "store:4:kill"))
        self.assertTrue(self.wait_for(lambda: self.events("ended"), job), job.text())
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 1, job.text())
        self.assertIn("asked to stop; start this again to continue", job.text())
        self.must_end_right(self.supervise(slow=False))

    def test_a_second_signal_ends_it(self):
        """A program that does not leave."""
        ready = self.dir / "ready"
        self.program = "none"
        job = system.Job("none", 0, [], {**self.env()}, under=[
            system.BUILD / "bin" / "cairn", "run", "--", "sh", "-c",
            f"trap '' USR1; touch {ready}; while :; do sleep 0.05; done"])
        self.jobs.append(job)
        self.wait_for(ready.exists, job)
        job.process.send_signal(signal.SIGINT)
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 1, job.text())


class Options(Supervised):
    def fake(self, name):
        """A launcher that notes its ranks and always fails."""
        path = self.dir / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.dir}/lines\nexit 1\n')
        path.chmod(0o700)
        return path

    def lines(self):
        return (self.dir / "lines").read_text().split("\n")[:-1]

    def test_elastic_by_command(self):
        (self.dir / "counts").write_text("3\n2\n1\n")
        take = f"read n <{self.dir}/counts; sed -i 1d {self.dir}/counts; echo $n"
        code, text = self.plain("--elastic", 2, "--ranks", take, "--", self.fake("mpirun"),
                                "-n", 4, "app", "-n", 7)
        self.assertEqual(code, 2, text)
        self.assertIn("going on with 3 ranks instead of 4\n", text)
        self.assertEqual(self.lines(), [f"-n {n} app -n 7" for n in (4, 3, 2)])

    def test_elastic_by_itself(self):
        code, text = self.plain("--elastic", 3, "--", self.fake("srun"), "--ntasks=5", "app")
        self.assertEqual(code, 2, text)
        self.assertEqual(self.lines(), [f"--ntasks={n} app" for n in (5, 5, 4, 3)])

    def test_lines(self):
        """What is rewritten is the launcher's, in whatever form it is given."""
        for line, fewer in (("-np 4 app -n 7", "-np 3 app -n 7"),
                            ("--mca a b -n 4 ./app -n 7", "--mca a b -n 3 ./app -n 7"),
                            ("-genv A b -n4 app 4", "-genv A b -n3 app 4"),
                            ("--host a:2,b:2 --np=4 app", "--host a:2,b:2 --np=3 app"),
                            ("-N 2 --ntasks 4 app", "-N 2 --ntasks 3 app")):
            (self.dir / "lines").unlink(missing_ok=True)
            code, text = self.plain("--elastic", 1, "--ranks", "echo 3", "--tries", 2, "--",
                                    self.fake("mpiexec.hydra"), *line.split())
            self.assertEqual((code, self.lines()), (2, [line, fewer]), text)
        program = self.fake("app")
        for line in ("app -n 4", f"--oversubscribe {program} -n 4", "-n 2 a : -n 2 b", "-n x app"):
            code, text = self.plain("--elastic", 1, "--", self.fake("mpirun"), *line.split())
            self.assertEqual(code, 2)
            self.assertIn("--elastic needs a line of mpirun", text)

    def test_signal_while_a_command_hangs(self):
        """Nobody waits for what is to tell the number of ranks, or brings marks into the trail."""
        for i, option in enumerate(("--ranks", "--drain-with")):
            ready = self.dir / f"ready-{i}"
            job = system.Job("none", 0, [], {**self.env()}, under=[
                system.BUILD / "bin" / "cairn", "run", "--elastic", "1", option,
                f"touch {ready}; sleep 1000;", "--", self.fake("mpirun"),
                "-n", "2", "app"])
            self.jobs.append(job)
            self.assertTrue(self.wait_for(ready.exists, job), job.text())
            job.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 1, job.text())
            self.assertIn("asked to stop; start this again to continue", job.text())

    def test_no_folder_for_the_trail(self):
        """Said before anything is started."""
        code, text = self.plain("--trail", self.dir / "no" / "trail", "--", self.fake("app"))
        self.assertEqual(code, 2, text)
        self.assertIn(f"cannot make trail '{self.dir}/no/trail': '{self.dir}/no': No such", text)
        self.assertFalse((self.dir / "lines").exists())

    def test_drain(self):
        job = self.supervise("--drain")
        self.marked(job)
        job.kill([0])
        self.must_end_right(job)
        self.assertRegex(job.text(), r"drain: mark \d+ is in the trail now")
        self.assertTrue(self.events("drained"))

    def test_environment(self):
        """The program opens the run that was chosen, wherever it goes."""
        code, text = self.plain("--trail", "t", "--", "sh", "-c",
                                "echo $CAIRN_RUN_TRAIL $CAIRN_RUN_NAME $OMPI_MCA_mca_base_env_list")
        self.assertEqual(code, 0, text)
        trail, run, names = text.split()
        self.assertEqual((trail, run), (os.path.join(os.getcwd(), "t"), "run-1"))
        self.assertLessEqual({"CAIRN_RUN_TRAIL", "CAIRN_RUN_NAME"}, set(names.split(";")))


if __name__ == "__main__":
    unittest.main()
