# SPDX-License-Identifier: BSD-3-Clause
"""Kill -9 at random times, of one rank, several or all; then take away the storage of as many nodes
as the newest mark's level promises to survive; start again; the result must be right."""
import contextlib
import struct
import time
import unittest

import system


class Kills(system.Case):
    """Level local: processes die, storage stays."""
    settings = {"level_partner": 0, "level_global": 0}
    rounds = 3   # deaths before the job may end by itself
    losses = 0   # nodes whose storage is lost at a death
    least = None # the level that makes the loss bearable
    deaths = 0   # jobs that were killed
    hits = 0     # ranks that were killed
    made_good = 0

    def work_time(self):
        """Seconds that an undisturbed job takes, to spread the kills over."""
        start = time.monotonic()
        self.undisturbed()
        return time.monotonic() - start

    def victims(self):
        """One rank, several, or all."""
        n = self.random.choice([1, self.random.randint(2, self.ranks), self.ranks])
        return self.random.sample(range(self.ranks), n)

    def lose_some(self):
        """Take away as much as the level promises to survive, once for each mark that gets there:
        what was lost is made good by the next one."""
        safe = sum(e["event"] == "raised" and e["level"] == self.least for e in self.events())
        if safe > self.made_good:
            self.made_good = safe
            self.lose_nodes(self.random.sample(range(self.nnodes()), self.losses))

    def pause(self, job, whole):
        """Wait for a time to kill: any time of the job, or soon after something was logged."""
        if self.random.random() < 0.5:
            time.sleep(self.random.uniform(0.05, 1) * whole)
            return
        seen = len(self.events()) + self.random.randint(1, 12)
        self.wait_for(lambda: len(self.events()) >= seen, job)
        time.sleep(self.random.uniform(0, 0.02))

    def disturb(self, whole):
        """Start a job and kill ranks of it; the number of those, 0 when it was done before."""
        job = self.start()
        self.pause(job, whole)
        hit = job.kill(self.victims())
        code = job.bury() if hit else job.wait()
        if code != 0:
            self.lose_some()
        return hit if code != 0 else 0

    def begun(self):
        """Is there a mark to resume, in a run that was not closed? The manifest says so before the
        log does."""
        with contextlib.suppress(FileNotFoundError):
            head = (self.trail / "run-1" / "manifest").read_bytes()
            nmarks, = struct.unpack_from("<I", head, 12)
            return nmarks > 0 and head[48] == 0
        return False

    def play(self):
        """Kill until the job comes to its end; at the last it is left alone."""
        whole = self.work_time()
        for _ in range(self.rounds):
            hit = self.disturb(whole)
            if hit == 0:
                break
            self.hits += hit
            self.deaths += 1
        else:
            begun = self.begun()
            text = self.must_run()
            if begun: # without, a rank that outlived its launcher may have finished a first mark
                self.assertIn("resumed at step", text)
        self.assert_right(f"after {self.hits} kills")

    def test_random_times(self):
        self.play()


class KillsPartner(Kills):
    settings = {"level_partner": 1, "level_global": 0}
    losses = 1
    least = "partner"


class KillsPartnerTwoRanksANode(KillsPartner):
    node_size = 2
    ranks = 6


class KillsEncoded(Kills):
    settings = {"level_partner": 0, "level_encoded": 1, "level_global": 0, "level_group": 4,
                "level_parity": 2}
    losses = 2
    least = "encoded"


class KillsGlobal(Kills):
    settings = {"level_partner": 0, "level_global": 1}
    losses = 4
    least = "global"


class KillsMixed(Kills):
    """Every 2nd mark partner, every 3rd global, eight ranks on four nodes."""
    settings = {"level_partner": 2, "level_global": 3}
    ranks = 8
    node_size = 2
    losses = 1
    least = "partner"


class KillsSingle(KillsPartner):
    """No thread but the program's may use MPI: marks are finished in its calls."""
    settings = {"level_partner": 1, "level_global": 2}
    work = [*Kills.work, "--single"]


class KillsTrail(Kills):
    """No node-local storage at all."""
    settings = {"level_local": "trail", "level_partner": 0, "level_global": 0}


class KillsBodies(KillsPartner):
    """A program whose variables move and change their size."""
    program = "nbody"
    work = ["--bodies", 120, "--steps", 40, "--every", 4]


if __name__ == "__main__":
    unittest.main()
