# SPDX-License-Identifier: BSD-3-Clause
"""The job of docs/guide/run.md, to the letter, under a real Slurm on this machine alone: killed,
requeued by 'cairn run', and finished from its mark."""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import time
import unittest

import system

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "squeue", "scancel"]
SBIN = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])

CONFIG = """
ClusterName=cairn
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={port2}
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
TmpFS={dir}/tmp
FirstJobId={first}
SelectType=select/linear
SchedulerType=sched/builtin
JobRequeue=1
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


TRIES = 5  # ports that are free may be taken before the daemons have them: then others


def guide_script():
    """The job script of the guide."""
    text = (system.SOURCE / "docs" / "guide" / "run.md").read_text()
    start = text.index("    #!/bin/bash\n")
    return textwrap.dedent(text[start:text.index("\n\n", start) + 1])


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


class Cluster:
    """Slurm's daemons with all that they keep in a folder, whose name must be short for sockets."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cairn-slurm-"))
        self.daemons = []
        self.answer = "munge does not start"
        for name in ("state", "spool", "munge", "tmp"):
            (self.dir / name).mkdir()
        (self.dir / "munge" / "key").write_bytes(os.urandom(128))
        (self.dir / "munge" / "key").chmod(0o400)
        port, port2 = free_ports(2)
        (self.dir / "slurm.conf").write_text(CONFIG.format(
            host=socket.gethostname().split(".")[0], user="root", port=port, port2=port2,
            dir=self.dir, cpus=os.cpu_count(), first=random.randrange(1000, 60000000)))
        self.env = {**os.environ, "SLURM_CONF": str(self.dir / "slurm.conf"), "PATH": SBIN}

    def begin(self):
        """Start it; whether it came up."""
        munge = self.dir / "munge"
        self.daemon("munged", "--force", "--foreground", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        if not self.wait((munge / "socket").exists):
            return False
        self.daemon("slurmctld", "-D")
        if not self.wait(lambda: self.say("scontrol", "ping") and "UP" in self.answer):
            return False
        self.daemon("slurmd", "-D")
        return self.wait(lambda: self.say("sinfo", "-h", "-o", "%t") and "idle" in self.answer)

    def daemon(self, *command):
        with (self.dir / f"{command[0]}.out").open("w") as out:
            self.daemons.append(subprocess.Popen(command, env=self.env, stdout=out, stderr=out,
                                                 start_new_session=True))

    def say(self, *command, env=None):
        """Run a command of Slurm: whether it went well; self.answer is what it printed."""
        done = subprocess.run([str(w) for w in command], env=env or self.env, check=False,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=60)
        self.answer = done.stdout.strip()
        return done.returncode == 0

    def wait(self, condition, seconds=60):
        """Poll; False when it does not come true, or a daemon has died meanwhile."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and all(d.poll() is None for d in self.daemons):
            if condition():
                return True
            time.sleep(0.1)
        return False

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []
        shutil.rmtree(self.dir, ignore_errors=True)


class Slurm(system.Case):
    ranks = 2
    work = ["--size", 96, "--steps", 120, "--every", 4]
    settings = {"level_partner": 0, "level_global": 0}

    def setUp(self):
        super().setUp()
        lacking = [p for p in PROGRAMS if not shutil.which(p, path=SBIN)]
        if lacking or os.geteuid() != 0:
            system.skip_loudly(self, f"no Slurm here: {', '.join(lacking) or 'not root'}")
        for _ in range(TRIES):
            self.cluster = Cluster()
            self.addCleanup(self.cluster.end)
            if self.cluster.begin():
                return
            self.cluster.end()
        system.skip_loudly(self, f"Slurm does not start: {self.cluster.answer}")

    def submit(self):
        """The guide's script as it is; only what it asks for of the machine is less. Its number."""
        command = [system.BUILD / "examples" / "heat2d", *self.work, "--pause", 20, "--output",
                   self.dir / "result"]
        app = self.dir / "app"
        app.write_text(f"#!/bin/sh\nexec {' '.join(map(str, command))}\n")
        app.chmod(0o755)
        script = self.dir / "job.sh"
        script.write_text(guide_script())
        self.local.mkdir()
        path = f"{system.BUILD / 'bin'}{os.pathsep}{SBIN}"
        env = {**self.env(), "SLURM_CONF": self.cluster.env["SLURM_CONF"], "PATH": path}
        self.assertTrue(self.cluster.say(
            "sbatch", "--parsable", "--nodes=1", f"--ntasks-per-node={self.ranks}", "--time=30",
            "--overcommit", "-D", self.dir, "-o", self.output, script, env=env),
            self.cluster.answer)
        return self.cluster.answer

    @property
    def output(self):
        return self.dir / "job.out"

    def text(self):
        return self.output.read_text() if self.output.exists() else "nothing was printed"

    def must_see(self, condition):
        self.assertTrue(self.cluster.wait(condition, system.PATIENCE), self.text())

    def one_rank(self):
        """The pid of rank 1 of the job; its trail tells it from others."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                told = (path / "environ").read_bytes().split(b"\0")
                if (system.is_program(path.name, system.BUILD / "examples" / "heat2d") and
                        b"SLURM_PROCID=1" in told and
                        f"CAIRN_RUN_TRAIL={self.trail}".encode() in told):
                    return int(path.name)
        return None

    def queue(self, job):
        """Its state in the queue, empty when Slurm does not say."""
        known = self.cluster.say("squeue", "-h", "-j", job, "-o", "%T")
        return self.cluster.answer if known else ""

    def finished(self, job):
        """Whether the run has come to its end. Slurm lets a job that was requeued wait for two
        minutes, which it may say after it has queued the job: told once is not enough."""
        if self.queue(job) == "PENDING":
            self.cluster.say("scontrol", "update", f"JobId={job}", "StartTime=now")
        return any(e["finished"] for e in self.events("close"))

    def test_killed_and_requeued(self):
        job = self.submit()
        self.must_see(lambda: len(self.events("mark")) >= 3)
        os.kill(self.one_rank(), signal.SIGKILL) # cairn run starts it again
        self.must_see(lambda: self.events("resume"))
        seen = len(self.events("mark"))
        self.must_see(lambda: len(self.events("mark")) > seen + 1)
        self.assertTrue(self.cluster.say("scancel", "-b", "-s", "USR1", job))
        self.must_see(lambda: self.queue(job) == "PENDING")
        time.sleep(3) # a node takes no job that it ended in the same second
        self.must_see(lambda: self.finished(job))
        self.must_see(lambda: "done at step 120" in self.text())
        self.assertIn("requeueing the job", self.text())
        self.assertEqual(len(self.events("resume")), 2, self.text())
        self.assert_right(self.text())


if __name__ == "__main__":
    unittest.main()
