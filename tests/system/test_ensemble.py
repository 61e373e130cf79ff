# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Studies of real processes that are killed, stopped and started again: each ends with the analysis
of an undisturbed study, bit for bit."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from study import CYCLES, LORENZ, MEMBERS, MPIRUN, ODD, PATIENCE, Study, until


class Ensemble(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = Study(cls.dir, "plain", LORENZ)
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        cls.expected = plain.digests()
        assert len(cls.expected) == CYCLES, cls.expected

    def study(self, runner=f"{LORENZ} --pause 50000", **more):
        s = Study(self.dir, self.id().split(".")[-1], runner, **more)
        self.addCleanup(self.clear, s)
        return s

    @staticmethod
    def clear(s):
        for job in s.jobs() if s.dir.exists() else []:
            s.signal(job, signal.SIGKILL)

    def finish(self, s, run):
        """The study ends well, as the undisturbed one did, and leaves no process behind."""
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, out + err + (s.dir / "events.jsonl").read_text())
        self.assertEqual(s.digests(), self.expected)
        s.must_be_gone()
        return err

    def wait_for(self, s, kind, cycle, n=1):
        until(f"{kind} in cycle {cycle}",
              lambda: len([e for e in s.events(kind) if e.get("cycle") == cycle]) >= n)

    def test_other_decompositions_give_the_same_bits(self):
        s = self.study(f"{MPIRUN} -n 3 {LORENZ}", runners=1)
        self.finish(s, s.start())
        self.assertEqual(s.events("registered")[0]["ranks"], 3)
        status = json.loads(s.must("status", "json"))
        self.assertEqual((status["running"], status["cycle"], status["digest"]),
                         (False, CYCLES, self.expected[CYCLES]))

    def test_a_runner_is_killed(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "task", 2)
        s.signal(s.events("task")[-1]["runner"], signal.SIGKILL)
        self.finish(s, run)
        self.assertTrue(s.events("ended"))
        self.assertLessEqual(s.events("over")[-1]["repeated"], 2)

    def test_the_server_is_killed_while_members_propagate(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "done", 3, 2)
        self.wait_for(s, "kept", 2)
        s.signal("s1", signal.SIGKILL)
        self.finish(s, run)
        resumed = s.events("resumed")[0]
        tasks = len([e for e in s.events("task") if e["cycle"] == 3])
        self.assertEqual(resumed["cycle"], 3)
        self.assertGreaterEqual(resumed["members"], 2)
        revival = s.events("revival")[-1]  # of the second server: model and measurement
        self.assertGreater(revival["measured"], 0)
        self.assertGreater(revival["model"], 0)
        self.assertIn(revival["best"], ("both", "analysis", "background"))
        self.assertEqual(set(revival["mean"]), {"both", "analysis", "background"})
        self.assertIn("s measured", (s.dir / "log" / "s2").read_text())
        self.assertLessEqual(tasks, MEMBERS + 2)  # those in flight, at most

    def test_the_server_is_killed_in_an_update(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "update", 3)
        s.signal("s1", signal.SIGKILL)
        self.finish(s, run)

    def test_only_the_analysis_is_kept(self):
        s = self.study(study_keep="analysis")
        run = s.start()
        self.wait_for(s, "done", 3, 2)
        s.signal("s1", signal.SIGKILL)
        self.finish(s, run)

    def test_only_the_background_is_kept(self):
        s = self.study(study_keep="background")
        run = s.start()
        self.wait_for(s, "done", 3, 2)
        s.signal("s1", signal.SIGKILL)
        self.finish(s, run)
        self.assertEqual(s.events("resumed")[0]["from"], "background")

    def test_the_launcher_is_killed_and_started_again(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "task", 2)
        run.kill()
        run.communicate()
        err = self.finish(s, s.start())
        self.assertRegex(err, "going on with [23] jobs")

    def test_all_are_killed(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "done", 3)
        run.kill()
        run.communicate()
        for job in s.jobs():
            s.signal(job, signal.SIGKILL)
        until("all are gone", lambda: not any(s.processes(job) for job in s.jobs()))
        self.finish(s, s.start())

    def test_runners_are_stopped(self):
        s = self.study(runner_due="1s")
        run = s.start()
        self.wait_for(s, "task", 2)
        # all of them: with one left, the study might end before the other counts as hung
        for runner in {e["runner"] for e in s.events("registered")}:
            s.signal(runner, signal.SIGSTOP)
        self.finish(s, run)
        self.assertIn("hang", {e["cause"] for e in s.events("failed")})

    def test_orders(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "task", 2)
        self.assertTrue(json.loads(s.must("status", "json"))["running"])
        self.assertEqual(s.must("scale", 3), "3 runners\n")
        self.assertRegex(s.must("kill", s.events("registered")[0]["runner"]), "killed r")
        self.assertEqual(s.must("kill", 4), "killing the runners of member 4\n")
        self.assertEqual(s.must("stop"), "stopping\n")
        out, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual((run.returncode, out), (1, "stopped; run it again to go on\n"))
        self.finish(s, s.start())

    def test_runners_that_die_before_they_register(self):
        s = self.study("echo no such model && exit 7")
        _, err = s.start().communicate(timeout=PATIENCE)
        self.assertRegex(err, "ended before they said hello, the last with exit code 7: "
                              "'no such model'")

    def test_a_runner_that_never_registers(self):
        script = self.dir / "sleepy"
        script.write_text(f"test -e {self.dir}/slept || {{ touch {self.dir}/slept; sleep 1000; }}\n"
                          f"exec {LORENZ}\n")
        s = self.study(f"sh {script}", runners=1, runner_register="4s")
        self.finish(s, s.start())
        self.assertGreaterEqual(len([job for job in s.jobs() if job[0] == "r"]), 2)


class OddModel(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)

    def run_odd(self, how, **more):
        s = Study(self.dir, how or "well", ODD, study_cycles=3, study_members=4, study_spin=0,
                  **more)
        (self.dir / "observations").write_text("1 x 0 2.0 1.0\n2 x 4 3 0.5 # comment\n")
        run = s.start(ODD=how)
        out, err = run.communicate(timeout=PATIENCE)
        return s, run.returncode, out + err

    def test_carried_fields_go_with_their_member(self):
        s, code, text = self.run_odd("")
        self.assertEqual(code, 0, text)
        self.assertEqual([e["observations"] for e in s.events("analysis")], [1, 1, 0])

    def test_lost_once_is_no_failure(self):
        well, _, _ = self.run_odd("")
        once, code, text = self.run_odd("once")
        self.assertEqual(code, 0, text)
        self.assertEqual(well.digests(), once.digests())

    def test_a_member_that_keeps_failing_stops_the_study(self):
        for how, why in (("nan", "element 3 of field 'x' is not finite"),
                         ("refuse", 'the model refuses: too "hot"'), ("exit", "lost process")):
            s, code, text = self.run_odd(how)
            self.assertEqual(code, 2, text)
            self.assertRegex(text, f"member 2 failed 3 times in cycle 2: {why}")
            self.assertEqual({e["cause"] for e in s.events("failed")}, {why})

    def test_each_failure_has_its_kind_and_its_state(self):
        s, code, text = self.run_odd("range", study_ranges="x -100 100, y -999 999")
        self.assertEqual(code, 2, text)
        self.assertRegex(text, "element 4 of field 'x' is 1234, out of its range -100 to 100; "
                               f"'cairn ensemble try {s.file} 2'")
        self.assertEqual({(e["kind"], e["burned"]) for e in s.events("failed")},
                         {("state", 1), ("state", 2), ("state", 3)})
        self.assertEqual([e["member"] for e in s.events("recorded")], [2])
        again = subprocess.run(s.command("try", 2), text=True, capture_output=True,
                               timeout=PATIENCE, env=dict(os.environ, ODD="other"))
        self.assertEqual((again.returncode, again.stdout.split("(")[0]),
                         (0, "member 2 of cycle 2: done "), again.stderr)
        none = subprocess.run(s.command("try", 1), text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(none.returncode, 2)
        self.assertRegex(none.stderr, "member 1 has not failed")

    def test_time_limits_burn_no_attempt(self):
        well, _, _ = self.run_odd("")
        s, code, text = self.run_odd("long", runner_limit="2s", runner_attempts=1)
        self.assertEqual(code, 0, text)
        self.assertEqual(well.digests(), s.digests())
        self.assertLessEqual({e["kind"] for e in s.events("failed")}, {"limit"})
        self.assertTrue(s.events("retired") or s.events("failed"), text)
        self.assertEqual({e["burned"] for e in s.events("failed")} | {0}, {0})

    def test_limits_that_are_too_short(self):
        s, code, text = self.run_odd("slow", runner_limit="3s", runners=1)
        self.assertEqual(code, 0, text)  # the second attempt is quick
        self.assertEqual([(e["kind"], e["burned"]) for e in s.events("failed")], [("limit", 0)])

    def test_an_overdue_member_is_started_a_second_time(self):
        well, _, _ = self.run_odd("")
        s, code, text = self.run_odd("slow", runner_due="2s")
        self.assertEqual(code, 0, text)
        self.assertEqual(well.digests(), s.digests())
        tasks = [e["attempt"] for e in s.events("task") if (e["cycle"], e["member"]) == (2, 2)]
        self.assertEqual((tasks, s.events("failed")), ([1, 2], []))

    def test_or_is_dropped(self):
        s, code, text = self.run_odd("nan", runner_failing="drop")
        self.assertEqual(code, 0, text)
        self.assertEqual([e["members"] for e in s.events("analysis")], [4, 3, 3])
        self.assertEqual(s.events("dropped")[0]["member"], 2)

    def test_or_has_a_donor(self):
        s, code, text = self.run_odd("refuse", runner_failing="donor")
        self.assertEqual(code, 0, text)
        self.assertEqual([e["members"] for e in s.events("analysis")], [4, 4, 4])

    def test_too_few_members_by_share(self):
        _, code, text = self.run_odd("nan", runner_failing="drop", runner_min_members="76%")
        self.assertEqual(code, 2, text)
        self.assertIn("fewer than min_members (4)", text)

    def test_too_few_members(self):
        _, code, text = self.run_odd("nan", runner_failing="drop", runner_min_members=4)
        self.assertEqual(code, 2, text)
        self.assertIn("fewer than min_members (4)", text)


if __name__ == "__main__":
    unittest.main()
