# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Studies whose runners and server are jobs of a real Slurm on this machine alone: killed
launchers and servers, a node that fails; each ends with the analysis of an undisturbed study."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import system
import test_slurm
from study import CAIRN, LORENZ, PATIENCE, Study, until

ALL = os.environ.get("CAIRN_CASES") == "all"
NODES = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SlurmdTimeout=5
AuthInfo=socket={dir}/munge/socket,cred_expire=5
SlurmdSpoolDir={dir}/spool/%n
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmdLogFile={dir}/slurmd-%n.log
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{low}-{high}] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP
"""


class Nodes(test_slurm.Cluster):
    """Three nodes on one machine."""

    def __init__(self):
        super().__init__()
        host = socket.gethostname().split(".")[0]
        low = test_slurm.free_ports(1)[0]
        drop = ("SelectType", "SchedulerType", "AuthInfo", "SlurmdSpoolDir", "SlurmdPidFile",
                "SlurmdLogFile", "SlurmdPort", "NodeName", "PartitionName")
        conf = self.dir / "slurm.conf"
        kept = [line for line in conf.read_text().splitlines() if not line.startswith(drop)]
        conf.write_text("\n".join(kept) + NODES.format(dir=self.dir, host=host, low=low,
                                                       high=low + 2))
        self.slurmd = {}

    def daemon(self, *command):
        if command[0] != "slurmd":
            super().daemon(*command)
            return
        for node in ("n1", "n2", "n3"):
            super().daemon("slurmd", "-D", "-N", node)
            self.slurmd[node] = self.daemons[-1]

    def jobs(self):
        self.say("squeue", "-h", "-o", "%i|%j|%T")
        return [line.split("|") for line in self.answer.splitlines()]


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lacking = [p for p in test_slurm.PROGRAMS if not shutil.which(p, path=test_slurm.SBIN)]
        if lacking or os.geteuid() != 0:
            system.skip_loudly(cls, f"no Slurm here: {', '.join(lacking) or 'not root'}")
        for _ in range(test_slurm.TRIES):
            cls.cluster = Nodes()
            cls.addClassCleanup(cls.cluster.end)
            if cls.cluster.begin():
                break
        else:
            raise AssertionError(f"Slurm does not start: {cls.cluster.answer}")
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = Study(cls.dir, "plain", LORENZ)
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        cls.expected = plain.digests()

    def study(self, pause=100000, **more):
        options = {"runner_jobs": "sbatch", "runner_submit": "-n1 -t 5", **more}
        return Study(self.dir, self.id().split(".")[-1], f"{LORENZ} --pause {pause}", **options)

    def start(self, s):
        run = subprocess.Popen([str(CAIRN), "ensemble", "run", str(s.file)], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=self.cluster.env)
        self.addCleanup(run.kill)
        return run

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        log = (s.dir / "events.jsonl").read_text()
        self.assertEqual(run.returncode, 0, out + err + log)
        self.assertEqual(s.digests(), self.expected)
        until("no job is left", lambda: not self.cluster.jobs())

    def wait_for(self, s, run, kind, cycle):
        until(kind, lambda: run.poll() is not None or
              any(e.get("cycle") == cycle for e in s.events(kind)))
        self.assertIsNone(run.poll(), run.poll() is not None and run.communicate())

    def test_the_server_is_a_job_and_is_killed(self):
        s = self.study(server_jobs="sbatch", server_submit="-n1 -t 5")
        run = self.start(s)
        self.wait_for(s, run, "done", 2)
        server = next(i for i, name, _ in self.cluster.jobs() if name.endswith("-s1"))
        self.cluster.say("scancel", "-s", "KILL", "-f", server)
        self.finish(s, run)
        self.assertIn("s2", s.jobs())

    def test_the_launcher_is_killed_and_finds_its_jobs(self):
        s = self.study()
        run = self.start(s)
        self.wait_for(s, run, "task", 2)
        before = {name for _, name, _ in self.cluster.jobs()}
        run.kill()
        run.communicate()
        run = self.start(s)
        self.finish(s, run)
        self.assertEqual(len(before), 2)
        self.assertEqual([job for job in s.jobs() if job[0] == "r"], ["r1", "r2"])

    @unittest.skipUnless(ALL, "'make soak' plays it")
    def test_the_launcher_is_killed_while_it_submits(self):
        """sbatch has not come to its end: it still submits, and no orphan is left."""
        slow = self.dir / "slow"
        slow.mkdir()
        (slow / "sbatch").write_text(f"#!/bin/sh\nsleep 3\nexec {shutil.which('sbatch')} \"$@\"\n")
        (slow / "sbatch").chmod(0o755)
        s = self.study()
        env = {**self.cluster.env, "PATH": f"{slow}:{self.cluster.env['PATH']}"}
        run = subprocess.Popen([str(CAIRN), "ensemble", "run", str(s.file)], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until("names are written down", lambda: (s.dir / "jobs").exists() and "r2" in s.jobs())
        run.kill()
        run.wait()
        self.assertEqual(self.cluster.jobs(), [])
        run = self.start(s)
        self.finish(s, run)

    @unittest.skipUnless(ALL, "'make soak' plays it")
    def test_a_node_fails(self):
        s = self.study(pause=600000, runner_submit="-n1 -t 5 -w n3", runners=1)
        run = self.start(s)
        self.wait_for(s, run, "task", 2)
        self.cluster.slurmd["n3"].kill()
        self.cluster.slurmd["n3"].wait()
        self.cluster.daemons.remove(self.cluster.slurmd["n3"])
        self.cluster.say("scontrol", "update", "nodename=n3", "state=down", "reason=test")
        until("the job has failed", lambda: s.events("ended") or run.poll() is not None)
        self.cluster.__class__.__mro__[1].daemon(self.cluster, "slurmd", "-D", "-N", "n3")
        self.cluster.say("scontrol", "update", "nodename=n3", "state=resume")
        self.finish(s, run)
        self.assertIn("Slurm: NODE_FAIL", {e["how"] for e in s.events("ended")})
        for job in s.jobs():
            s.signal(job, signal.SIGKILL)  # what a dead node has left


if __name__ == "__main__":
    unittest.main()
