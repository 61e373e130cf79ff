# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Studies with a runner on a host of its own (a network namespace) that is cut off, both ways or
one way, for a while or for good, or whose network loses and delays packets: each ends with the
analysis of an undisturbed study."""
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import system
from study import LORENZ, PATIENCE, Study, until

NUMBERS = itertools.count(os.getpid() % 200 + 1)


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], check=False, capture_output=True,
                          text=True).returncode == 0


class Host:
    """A network namespace with one wire to this machine, which is 10.77.N.1 there."""

    def __init__(self, loss=0, delay=0):
        self.carrier = None
        self.number = next(NUMBERS)
        self.name, self.here, self.there = (f"{p}{os.getpid()}-{self.number}"[:15]
                                            for p in ("crn", "cra", "crb"))
        self.address = f"10.77.{self.number}.1"
        self.ok = (ip("netns", "add", self.name) and
                   (self.lossy(loss, delay) if loss else self.wire()) and
                   ip("addr", "add", f"{self.address}/24", "dev", self.here) and
                   ip("link", "set", self.here, "up") and
                   self.inside("addr", "add", f"10.77.{self.number}.2/24", "dev", self.there) and
                   self.inside("link", "set", self.there, "up") and
                   self.inside("link", "set", "lo", "up"))

    def wire(self):
        return (ip("link", "add", self.here, "type", "veth", "peer", "name", self.there) and
                ip("link", "set", self.there, "netns", self.name))

    def lossy(self, loss, delay):
        """Ends of another make, between which a process of ours carries the packets."""
        command = [sys.executable, system.HERE / "lossy_wire.py", self.name, self.here, self.there,
                   loss, delay, system.SEED]
        self.carrier = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        return self.carrier.stdout.readline() == "ready\n"

    def inside(self, *words):
        return ip("-n", self.name, *words)

    def cut(self):
        return self.inside("link", "set", self.there, "down")

    def mend(self):
        return self.inside("link", "set", self.there, "up")

    def silence(self):
        """What it sends is lost; what is sent to it arrives."""
        return self.inside("route", "add", "blackhole", f"{self.address}/32")

    def unsilence(self):
        return self.inside("route", "del", "blackhole", f"{self.address}/32")

    def end(self):
        if self.carrier:
            self.carrier.kill()
            self.carrier.communicate()
        ip("link", "del", self.here)
        ip("netns", "del", self.name)


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "TEST_NETWORK_ALONE" not in os.environ or not shutil.which("ip"):
            system.skip_loudly(cls, "not root, or no ip")
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        plain = Study(cls.dir, "plain", LORENZ)
        plain.must("twin")
        shutil.rmtree(plain.dir)
        plain.must("run")
        cls.expected = plain.digests()

    def begin(self, host=None, **more):
        """A study with a runner here and one on a host, which alternate by their numbers."""
        host = host or Host()
        self.addCleanup(host.end)
        if not host.ok:
            system.skip_loudly(self, "no network namespaces here")
        script = self.dir / f"{self.id()}.sh"
        script.write_text("case $CAIRN_ENSEMBLE_JOB in\n"
                          f"r1) run='ip netns exec {host.name}';;\nesac\n"
                          f"exec $run {LORENZ} --pause 150000\n")
        s = Study(self.dir, self.id().split(".")[-1], f"sh {script}", runner_due="2s",
                  server_address=host.address, **more)
        run = s.start()
        self.addCleanup(self.clear, s, run)
        until("both are there", lambda: run.poll() is not None or
              {e["runner"] for e in s.events("task")} >= {"r1", "r2"})
        return host, s, run

    @staticmethod
    def clear(s, run):
        run.kill()
        run.communicate()
        for job in s.jobs():
            s.signal(job, signal.SIGKILL)

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, out + err + (s.dir / "events.jsonl").read_text())
        self.assertEqual(s.digests(), self.expected)
        s.must_be_gone()

    def test_cut_off_for_good(self):
        host, s, run = self.begin()
        self.assertTrue(host.cut())
        self.finish(s, run)
        self.assertTrue(any(e["attempt"] > 1 for e in s.events("task")))
        self.assertEqual({e["runner"] for e in s.events("failed")} - {"r1"}, set())

    def test_cut_off_for_a_while(self):
        host, s, run = self.begin()
        self.assertTrue(host.cut())
        until("an analysis, or the runner is given up", lambda: s.events("analysis") or
              s.events("failed") or run.poll() is not None)
        self.assertTrue(host.mend())
        self.finish(s, run)

    def test_packets_are_lost_and_late(self):
        """One in ten, 20 ms on average: tasks are late, and parts of states come in any order."""
        _, s, run = self.begin(Host(loss=0.1, delay=0.02))
        self.finish(s, run)
        self.assertIn("r1", {e["runner"] for e in s.events("done")})

    def test_silent_one_way(self):
        host, s, run = self.begin()
        self.assertTrue(host.silence())
        until("its member is started again", lambda: run.poll() is not None or
              s.events("failed") or any(e["attempt"] > 1 for e in s.events("task")))
        host.unsilence()
        self.finish(s, run)


def alone():
    """Go on in a network of its own: nothing that is sent to a host that is gone leaves it."""
    if os.geteuid() == 0 and shutil.which("unshare") and "TEST_NETWORK_ALONE" not in os.environ:
        os.environ["TEST_NETWORK_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    if shutil.which("ip"):
        ip("link", "set", "lo", "up")


if __name__ == "__main__":
    alone()
    unittest.main()
