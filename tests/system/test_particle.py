# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Particle filters in studies of real processes: any number of runners, any caches and plans, and
whatever is killed, give the weights and parents of an undisturbed study, bit for bit.

CAIRN_CASES=all kills the server before and after every line of its journal, not at some."""
import collections
import json
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

from study import BUILD, LORENZ, MPIRUN, ODD, PATIENCE, Study, until

MEMBERS, CYCLES = 6, 4
LINES = 3 * MEMBERS + 1  # of the journal in a cycle
ODD_OPERATOR = BUILD / "tests" / "system" / "odd_operator.so"
LORENZ63 = BUILD / "tests" / "system" / "lorenz63"  # prints each task that it begins


class ParticleStudy(Study):
    def __init__(self, folder, name, runner=LORENZ, runners=2, **more):
        options = {"study_members": MEMBERS, "study_cycles": CYCLES, "filter_name": "particle",
                   "particle_perturb": 0.1, "particle_cache": folder / "cache"}
        options.update(more)
        super().__init__(folder, name, runner, runners, **options)


class Particle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = ParticleStudy(cls.dir, "plain")
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        cls.plain = plain
        cls.expected = plain.digests()
        assert len(cls.expected) == CYCLES, cls.expected

    def study(self, runner=f"{LORENZ} --pause 30000", name=None, **more):
        s = ParticleStudy(self.dir, name or self.id().split(".")[-1], runner, **more)
        self.addCleanup(self.clear, s)
        return s

    @staticmethod
    def clear(s):
        for job in s.jobs() if s.dir.exists() else []:
            s.signal(job, signal.SIGKILL)

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, out + err + (s.dir / "events.jsonl").read_text())
        self.assertEqual(s.digests(), self.expected)
        s.must_be_gone()
        weights = collections.Counter((e["cycle"], e["member"]) for e in s.events("weight"))
        self.assertEqual(set(weights),
                         {(c, m) for c in range(1, CYCLES + 1) for m in range(MEMBERS)})
        return err

    def wait_for(self, s, kind, cycle, n=1):
        until(f"{kind} in cycle {cycle}",
              lambda: len([e for e in s.events(kind) if e.get("cycle") == cycle]) >= n)

    def test_runners_caches_and_plans_change_nothing(self):
        cases = {"one": {"runners": 1},
                 "small": {"runners": 3, "particle_capacity": 3},
                 "early": {"runners": 3, "particle_early": "yes"},
                 "strict": {"runners": 3, "particle_strict": "yes"},
                 "peers": {"runners": 3, "particle_peers": "yes", "particle_capacity": 4},
                 "ranks": {"runner": f"{MPIRUN} -n 3 {LORENZ}", "runners": 2},
                 "nodes": {"runner": f"{MPIRUN} -n 3 {LORENZ}", "runners": 1,
                           "particle_node_size": 2}}
        for name, options in cases.items():
            with self.subTest(name):
                s = self.study(name=name, **{"runner": LORENZ, **options})
                self.finish(s, s.start())
                loads = [e for e in s.events("schedule") if e["loads"] > 0]
                if name == "peers" and loads:
                    self.assertTrue(any(e["from_peers"] for e in loads))

    def test_loads_are_within_their_bounds(self):
        for e in self.plain.events("schedule"):
            self.assertLessEqual(e["bound"], e["planned"])
            self.assertLessEqual(e["planned"], max(e["supplies"] + e["deficits"] - 1, 0))
            if e["plans"] == 1:  # nobody joined or left: cycle 1 may begin with one runner
                self.assertLessEqual(e["loads"], e["planned"] + e["steals"])
            self.assertEqual(e["tasks"], MEMBERS)
        self.assertIn(1, {e["plans"] for e in self.plain.events("schedule")})

    def test_a_runner_is_killed(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "task", 2, 2)
        s.signal(s.events("task")[-1]["runner"], signal.SIGKILL)
        self.finish(s, run)
        self.assertTrue(s.events("ended"))

    def test_a_runner_is_killed_with_the_only_copy(self):
        s = self.study(particle_early="yes", particle_limit="1KiB")
        run = s.start()
        self.wait_for(s, "weight", 2, 2)
        s.signal(s.events("done")[-1]["runner"], signal.SIGKILL)
        self.finish(s, run)

    def test_the_server_is_killed(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "weight", 3, 2)
        s.signal("s1", signal.SIGKILL)
        self.finish(s, run)
        resumed = s.events("resumed")[0]
        self.assertEqual((resumed["cycle"], resumed["from"]), (3, "journal"))
        tasks = collections.Counter(e["member"] for e in s.events("task") if e["cycle"] == 3)
        self.assertEqual(max(tasks.values()), 1, "what was assigned or acknowledged was repeated")

    def test_the_launcher_is_killed_and_started_again(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "task", 2)
        run.kill()
        run.communicate()
        self.finish(s, s.start())

    def test_all_are_killed_and_caches_are_offered(self):
        s = self.study()
        run = s.start()
        self.wait_for(s, "weight", 3, 3)
        run.kill()
        run.communicate()
        for job in s.jobs():
            s.signal(job, signal.SIGKILL)
        until("all are gone", lambda: not any(s.processes(job) for job in s.jobs()))
        self.finish(s, s.start())
        again = [e for e in s.events("task") if e["cycle"] == 3]
        self.assertTrue(any(e["from"] == "cache" for e in again[-MEMBERS:]))

    def test_runners_are_stopped(self):
        s = self.study(runner_due="1s")
        run = s.start()
        self.wait_for(s, "task", 2)
        for runner in {e["runner"] for e in s.events("registered")}:
            s.signal(runner, signal.SIGSTOP)
        self.finish(s, run)
        self.assertIn("hang", {e["cause"] for e in s.events("failed")})

    def test_a_damaged_cache_is_loaded_again(self):
        s = self.study(particle_cache=self.dir / "damaged", runners=1)
        run = s.start()
        self.wait_for(s, "done", 2, 3)
        for part in (self.dir / "damaged").rglob("*"):
            if part.is_file() and part.stat().st_size > 8192:
                with open(part, "r+b") as f:
                    f.seek(4096)
                    f.write(b"\xff" * 64)
        self.finish(s, run)


class Journalled(unittest.TestCase):
    """What the journal has is not done again: each member of each cycle is propagated once, though
    servers die. The model prints what it begins."""

    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        (cls.dir / "observations").write_text(
            "".join(f"{c} x {i} {5 - i} 40\n" for c in range(1, CYCLES + 1) for i in range(3)))
        plain = cls.study("plain")
        plain.must("run")
        cls.expected = plain.digests()
        assert len(cls.expected) == CYCLES and cls.begun(plain) == cls.once(), cls.begun(plain)

    @classmethod
    def study(cls, name, **more):
        return ParticleStudy(cls.dir, name, LORENZ63, study_spin=0, study_steps=5, **more)

    @staticmethod
    def once():
        return {(c, m): 1 for c in range(1, CYCLES + 1) for m in range(MEMBERS)}

    @staticmethod
    def begun(s):
        """How often the model has begun which member of which cycle."""
        found = collections.Counter()
        for log in (s.dir / "log").glob("r*"):
            for line in log.read_text().splitlines():
                word = line.split()
                if word and word[0] == "before":
                    found[int(word[1]), int(word[2])] += 1
        return {key: n for key, n in found.items() if key[0] > 0}

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, out + err + (s.dir / "events.jsonl").read_text())
        self.assertEqual(s.digests(), self.expected)

    def play(self, name, fault):
        with self.subTest(fault=fault):
            s = self.study(name)
            self.finish(s, s.start(CAIRN_ENSEMBLE_FAULT=fault))
            self.assertIn("s2", s.jobs())
            self.assertEqual(self.begun(s), self.once())
            shutil.rmtree(s.dir)

    def test_the_server_is_killed_at_lines_of_its_journal(self):
        """Each server dies, the later ones after some lines: 7, so that cycles are reached."""
        everything = os.environ.get("CAIRN_CASES") == "all"
        for first in range(1, 8) if everything else (2, 5):
            for when in ("before", "after"):
                self.play(f"many{first}{when}", f"journal:{first}:7:{when}")
        for line in range(1, LINES * CYCLES + 2) if everything else ():
            for when in ("before", "after"):
                self.play(f"line{line}{when}", f"journal:{line}:0:{when}")

    def test_who_was_assigned_what(self):
        """A runner that is silent when the new server comes keeps the task that it was given,
        though another one asks for work."""
        for attempt in range(5):
            s = self.study(f"silent{attempt}")
            text = s.file.read_text().replace(str(LORENZ63), f"{LORENZ63} 50000")
            s.file.write_text(text)
            run = s.start()
            until("two tasks in cycle 3",
                  lambda: len([e for e in s.events("task") if e["cycle"] == 3]) >= 2)
            silent = s.events("task")[-1]["runner"]
            s.signal(silent, signal.SIGSTOP)
            s.signal("s1", signal.SIGKILL)
            mine = {e["member"] for e in s.events("task")
                    if e["cycle"] == 3 and e["runner"] == silent}
            others = set(range(MEMBERS)) - mine
            until("the other members are done or the runner is given up", lambda: s.events(
                "failed") or others <= {e["member"] for e in s.events("done") if e["cycle"] == 3})
            given_up = bool(s.events("failed"))
            s.signal(silent, signal.SIGCONT)
            self.finish(s, run)
            if not given_up:  # the machine was fast enough for the server's five seconds
                self.assertEqual(self.begun(s), self.once())
                self.assertEqual(s.events("resumed")[0]["from"], "journal")
                return
        self.fail("the machine is too slow to see what the journal is for")


class Failing(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)

    def run_odd(self, how, **more):
        s = ParticleStudy(self.dir, how or "well", ODD, study_cycles=3, study_members=4,
                          study_spin=0, **more)
        (self.dir / "observations").write_text("1 x 0 2.0 1.0\n2 x 4 3 0.5 # comment\n")
        run = s.start(ODD=how)
        out, err = run.communicate(timeout=PATIENCE)
        return s, run.returncode, out + err

    def test_lost_once_is_no_failure(self):
        well, code, text = self.run_odd("")
        self.assertEqual(code, 0, text)
        once, code, text = self.run_odd("once")
        self.assertEqual(code, 0, text)
        self.assertEqual(well.digests(), once.digests())

    def test_a_member_that_keeps_failing_stops_the_study(self):
        for how, why in (("nan", "element 3 of field 'x' is not finite"),
                         ("refuse", 'the model refuses: too "hot"'), ("exit", "lost process")):
            s, code, text = self.run_odd(how)
            self.assertEqual(code, 2, text)
            self.assertRegex(text, f"member 2 failed 3 times in cycle 2: .*{why}")

    def test_or_has_no_children(self):
        s, code, text = self.run_odd("nan", runner_failing="drop")
        self.assertEqual(code, 0, text)
        self.assertEqual([e["zero"] for e in s.events("analysis")], [0, 1, 0])
        self.assertNotIn(2, {e["parent"] for e in s.events("task") if e["cycle"] == 3})

    def test_copies_of_a_model_without_noise(self):
        s, code, text = self.run_odd("", particle_perturb=0)
        self.assertEqual(code, 2, text)
        self.assertRegex(text, "have the same parent and the same state: the model has no noise")

    def test_states_that_cannot_be_weighed(self):
        """A weight that is no number is a failure of its member, never a weight."""
        s, code, text = self.run_unweighed("stops")
        self.assertEqual(code, 2, text)
        self.assertRegex(text, "failed 3 times in cycle 1: its log-weight is not a number")
        s, code, text = self.run_unweighed("drops", runner_failing="drop")
        self.assertEqual(code, 0, text)
        for e in s.events("analysis"):
            lost = {g["member"] for g in s.events("given_up") if g["cycle"] == e["cycle"]}
            kept = {w["member"] for w in s.events("weight") if w["cycle"] == e["cycle"]}
            self.assertEqual((e["zero"], kept), (len(lost), set(range(12)) - lost))
            self.assertTrue(lost.isdisjoint(
                t["parent"] for t in s.events("task") if t["cycle"] == e["cycle"] + 1))
        self.assertTrue(s.events("given_up"))

    def run_unweighed(self, name, **more):
        s = ParticleStudy(self.dir, name, LORENZ63, study_cycles=2, study_members=12, study_spin=0,
                          **more)
        with s.file.open("a") as f:
            f.write(f"[observation odd]\nplugin = {ODD_OPERATOR}:odd\n")
        s.observations.write_text("1 odd 0 1.5 4\n2 odd 0 1.5 4\n")
        run = s.start()
        out, err = run.communicate(timeout=PATIENCE)
        return s, run.returncode, out + err

    def test_observations_that_no_member_can_have_made(self):
        s = ParticleStudy(self.dir, "zero", ODD, study_cycles=2, study_members=4, study_spin=0)
        s.observations.write_text("1 x 0 1e300 1e-300\n")
        run = s.start()
        _, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 2, err)
        self.assertRegex(err, "cycle 1: no member can have made the observations")


if __name__ == "__main__":
    unittest.main()
