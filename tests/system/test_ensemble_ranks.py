# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""A server of several ranks of MPI, each with a slice of all members: what it computes is what one
process computes, bit for bit, with runners of any decomposition, whatever dies."""
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

from study import CAIRN, LORENZ, MPIRUN, PATIENCE, Study, until
from system import rank_of

MODEL = f"{LORENZ} --n 20000"  # slices have whole stretches of 4096 elements


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = Study(cls.dir, "plain", MODEL)
        plain.must("twin")
        cls.truth = plain.dir / "truth"
        shutil.copytree(cls.truth, cls.dir / "truth")
        shutil.rmtree(plain.dir)
        cls.truth = cls.dir / "truth"
        plain = cls.run_alone("plain", MODEL)
        cls.expected, cls.scores = plain.digests(), (plain.dir / "truth.csv").read_text()

    @classmethod
    def begin(cls, name, runner, ranks, **more):
        server = f"{MPIRUN} -n {ranks} {CAIRN}" if ranks > 1 else ""
        s = Study(cls.dir, name, runner, server_ranks=ranks, server_command=server, **more)
        if not s.dir.exists():
            s.dir.mkdir(mode=0o700)
            shutil.copytree(cls.truth, s.dir / "truth")
        return s

    @classmethod
    def run_alone(cls, name, runner, **more):
        s = cls.begin(name, runner, 1, **more)
        s.must("run")
        return s

    def study(self, ranks, runner=f"{MODEL} --pause 50000", **more):
        s = self.begin(self.id().split(".")[-1], runner, ranks, **more)
        self.addCleanup(lambda: [s.signal(job, signal.SIGKILL) for job in s.jobs()])
        return s

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        logs = "".join(log.read_text() for log in (s.dir / "log").iterdir())
        self.assertEqual(run.returncode, 0, out + err + logs)
        self.assertEqual(s.digests(), self.expected)
        s.must_be_gone()

    def kill_rank(self, s, job, rank):
        os.kill(next(pid for pid in s.processes(job) if rank_of(pid) == rank), signal.SIGKILL)

    def test_any_number_of_ranks_gives_the_same_bits(self):
        s = self.study(3, f"{MPIRUN} -n 2 {MODEL}", runners=1, products_every=2,
                       products_as="shelf")
        self.finish(s, s.start())
        self.assertEqual(s.events("registered")[0]["ranks"], 2)
        self.assertEqual((s.dir / "truth.csv").read_text(), self.scores)

    def test_a_rank_is_killed(self):
        s = self.study(3)
        run = s.start()
        for job, cycle, rank in ("s1", 2, 2), ("s2", 3, 0):
            until("it propagates", lambda c=cycle: [e for e in s.events("done")
                                                    if e["cycle"] == c])
            self.kill_rank(s, job, rank)
        self.finish(s, run)
        self.assertEqual(len(s.events("resumed")), 2)

    def test_other_numbers_of_ranks_go_on(self):
        s = self.study(2)
        for ranks, cycle in (2, 2), (3, 3), (1, 4):
            s = self.begin(s.dir.name, f"{MODEL} --pause 50000", ranks)
            run = s.start()
            until("it propagates", lambda c=cycle: [e for e in s.events("done")
                                                    if e["cycle"] == c])
            run.kill()
            run.communicate()
            for job in s.jobs():
                s.signal(job, signal.SIGKILL)
            until("all are gone", lambda: not any(s.processes(job) for job in s.jobs()))
        s = self.begin(s.dir.name, MODEL, 2)
        self.finish(s, s.start())
        self.assertEqual(len(s.events("resumed")), 3)

    PICKY = {"study_ranges": "x -13.5 99", "study_cycles": 2, "runner_attempts": 1,
             "runner_failing": "donor"}  # member 0 fails in the first cycle

    def test_a_background_that_nobody_has_judged(self):
        """The server dies between the runner's put and its own look at the state: as if it had
        died without any limits, and then there are some."""
        judged = self.begin("judged", MODEL, 1, **self.PICKY)
        judged.must("run")
        self.assertIn((1, 0), [(e["cycle"], e["member"]) for e in judged.events("failed")])
        for ranks in 1, 2:
            s = self.begin(f"unjudged{ranks}", f"{MODEL} --pause 300000", 1, study_cycles=2)
            run = s.start()
            until("it propagates", lambda s=s: [e for e in s.events("done") if e["member"] == 0])
            run.kill()
            run.communicate()
            for job in s.jobs():
                s.signal(job, signal.SIGKILL)
            s = self.begin(s.dir.name, MODEL, ranks, **self.PICKY)
            s.must("run")
            self.assertEqual(s.digests(), judged.digests())

    def test_failures_are_found_in_every_slice(self):
        found = []
        for ranks in 1, 3:
            s = self.begin(f"failures{ranks}", MODEL, ranks, **self.PICKY)
            s.must("run")
            failed = [(e["cycle"], e["member"], e["cause"]) for e in s.events("failed")]
            found.append((sorted(failed), (s.dir / "ledger").read_text(), s.digests()))
            self.assertEqual(len(s.events("recorded")), len(failed))
        self.assertTrue(found[0][0])
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
