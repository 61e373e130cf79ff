# SPDX-License-Identifier: BSD-3-Clause
"""Real jobs on virtual nodes: started, killed, robbed of their storage, and started again.

A Case has a folder below the build tree with a trail, storage for its nodes and the output of its
jobs. What a job computes is compared with an undisturbed run, byte for byte.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["CAIRN_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["CAIRN_BUILD_DIR"])
MPI = os.environ["CAIRN_MPI"]
MPIEXEC = f"mpiexec.{MPI}"  # by its name: a case may put another one before it
if not shutil.which(MPIEXEC):
    MPIEXEC = os.environ.get("CAIRN_MPIEXEC", "mpiexec")
HERE = pathlib.Path(__file__).resolve().parent
SEED = int(os.environ.get("CAIRN_SEED", "1"))
PATIENCE = 120  # seconds for any one job, which takes one or two

RANK_OF = (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")


def rank_of(pid):
    """The rank of a process, or None; its launcher has told it in the environment."""
    with contextlib.suppress(OSError):
        for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            for name in RANK_OF:
                if word.startswith(name):
                    return int(word[len(name):])
    return None


def descendants(pid):
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            text = path.read_text()
            children.setdefault(int(text[text.rindex(")") + 2:].split()[1]), []).append(
                int(path.parent.name))
    found, look = [], [pid]
    while look:
        look += (more := children.get(look.pop(), []))
        found += more
    return found


def is_program(pid, program):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe") == str(program)
    return False


class Job:
    """A program under mpiexec."""

    def __init__(self, program, ranks, args, env, fault=None, under=()):
        """fault: (rank, CAIRN_FAULT) for one of the ranks; under: a command that starts mpiexec."""
        self.program = BUILD / "examples" / program
        command = [SOURCE / "tools" / "mpi-test", MPI]
        command += ["env", *under, MPIEXEC, "-n", ranks] if under else [ranks]
        if fault:
            command += [HERE / "on-rank", fault[0], f"CAIRN_FAULT={fault[1]}"]
        self.output = tempfile.TemporaryFile(mode="w+", errors="replace")
        self.process = subprocess.Popen([str(w) for w in (*command, self.program, *args)],
                                        env=env, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.trail = env["CAIRN_RUN_TRAIL"].encode()

    def pids(self):
        """The pid of each rank that runs."""
        ranks = {}
        for pid in descendants(self.process.pid):
            if is_program(pid, self.program) and (rank := rank_of(pid)) is not None:
                ranks[rank] = pid
        return ranks

    def stragglers(self):
        """Processes of this or an earlier job in the trail, also when their launcher is gone."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            if is_program(path.name, self.program):
                with contextlib.suppress(OSError):
                    if b"CAIRN_RUN_TRAIL=" + self.trail + b"\0" in (path / "environ").read_bytes():
                        found.append(int(path.name))
        return found

    def kill(self, ranks):
        """kill -9; the number of processes that were hit."""
        hit = 0
        pids = self.pids()
        for rank in ranks:
            if rank in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[rank], signal.SIGKILL)
                    hit += 1
        return hit

    def wait(self, seconds=PATIENCE):
        """The exit code, once all of its processes are gone."""
        deadline = time.monotonic() + seconds
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            text = self.text()
            self.end()
            raise AssertionError(f"the job did not end in {seconds} s:\n{text}") from None
        while pids := self.stragglers():
            if time.monotonic() > deadline:
                raise AssertionError(f"processes outlive their job: {pids}")
            time.sleep(0.01)
        return code

    def bury(self):
        """Wait for a job of which ranks were killed: its exit code. Launchers may hang when that
        happens while they start it; after a while all that is left is killed, as a person would."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.end()
        return self.wait()

    def end(self):
        """Kill whatever is left of it."""
        for pid in [*self.stragglers(), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def text(self):
        self.output.seek(0)
        return self.output.read()


class Case(unittest.TestCase):
    """Jobs of one program in one folder, self.dir."""
    maxDiff = None
    program = "heat2d"
    ranks = 4
    node_size = 1
    work = ["--size", 96, "--steps", 40, "--every", 4]
    settings = {}

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.random = random.Random(f"{SEED} {self.id()}")
        self.jobs = []
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.end()
            job.output.close()

    @property
    def trail(self):
        return self.dir / "trail"

    @property
    def local(self):
        return self.dir / "local"

    def env(self, **more):
        """CAIRN_ variables: Cairn's own defaults, this case's settings, and more."""
        env = {k: v for k, v in os.environ.items() if not re.match("CAIRN_|SLURM_|OMPI_|PMI", k)}
        env.update(CAIRN_RUN_TRAIL=str(self.trail), CAIRN_LEVEL_LOCAL=str(self.local),
                   CAIRN_LEVEL_NODE_SIZE=str(self.node_size), CAIRN_VARIABLE_BLOCK="1KiB")
        env.update({f"CAIRN_{k.upper()}": str(v) for k, v in {**self.settings, **more}.items()})
        return env

    def start(self, *args, fault=None, ranks=None, under=(), **settings):
        self.local.mkdir(exist_ok=True)
        job = Job(self.program, ranks or self.ranks,
                  [*self.work, "--output", self.dir / "result", *args], self.env(**settings), fault,
                  under)
        self.jobs.append(job)
        return job

    def run_job(self, *args, **how):
        """Start a job and let it end by itself: (exit code, output)."""
        job = self.start(*args, **how)
        return job.wait(), job.text()

    def must_run(self, *args, **how):
        code, text = self.run_job(*args, **how)
        self.assertEqual(code, 0, text)
        return text

    def undisturbed(self):
        """What the program computes when nothing happens, in another trail."""
        out = self.dir / "undisturbed"
        if not out.exists():
            self.must_run("--output", out, run_trail=self.dir / "quiet-trail",
                          level_local=self.dir / "quiet-local", level_encoded=0)
        return out.read_bytes()

    def assert_right(self, note=""):
        self.assertEqual((self.dir / "result").read_bytes() == self.undisturbed(), True,
                         f"the result is not that of an undisturbed run {note}")

    def lose_nodes(self, nodes):
        for node in nodes:
            shutil.rmtree(self.local / f"node-{node}", ignore_errors=True)

    def events(self, kind=None, run="run-1"):
        """The events of a run; a last line that a kill has cut is left out."""
        events = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.trail / run / "events").read_text().splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    events.append(json.loads(line))
        return [e for e in events if kind in (None, e["event"])]

    def cairn(self, *args, ranks=0):
        """The command, as a job of so many ranks if given: (exit code, everything it printed)."""
        under = (SOURCE / "tools" / "mpi-test", MPI, ranks) if ranks else ()
        done = subprocess.run([str(w) for w in (*under, BUILD / "bin" / "cairn", *args)],
                              check=False, text=True, env=self.env(), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def nnodes(self):
        return -(-self.ranks // self.node_size)

    def wait_for(self, condition, job):
        """Poll until condition() is true or the job is over; its last value."""
        while not (value := condition()) and job.process.poll() is None:
            time.sleep(0.002)
        return value


def skip_loudly(test, why):
    print(f"SKIPPED {test.id()}: {why}", flush=True)
    test.skipTest(why)


@contextlib.contextmanager
def small_disk(test, path, nbytes, options="rw"):
    """A file system of its own at path, for as long as the context lasts; root only."""
    path.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={nbytes},{options}", "cairn-test",
                           str(path)], check=False, capture_output=True, text=True)
    if done.returncode:
        skip_loudly(test, f"cannot mount a small disk: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
