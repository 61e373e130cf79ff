# SPDX-License-Identifier: BSD-3-Clause
"""The two programs with regions, examples/clover and examples/tea: that they compute what they
should, by solutions that are known; that Cairn finds the least that their marks must keep; and that
they end with the same bits when they are killed before any region and started again."""
import array
import json
import math
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

import system

GAMMA = 1.4


def values(path):
    numbers = array.array("d")
    numbers.frombytes(path.read_bytes())
    return numbers


class Riemann:
    """The exact solution of Sod's shock tube: both states at rest, a diaphragm between them."""
    left, right = (1.0, 1.0), (0.125, 0.1)  # density and pressure

    def __init__(self):
        low, high = self.right[1], self.left[1]
        while high - low > 1e-15:
            middle = (low + high) / 2
            if self.speed(middle, self.left) + self.speed(middle, self.right) > 0:
                high = middle
            else:
                low = middle
        self.p, self.u = low, self.speed(low, self.right)

    @staticmethod
    def sound(state):
        return math.sqrt(GAMMA * state[1] / state[0])

    def speed(self, p, state):
        """What a wave from a state to pressure p adds to the speed: a shock or a rarefaction."""
        rho, p0 = state
        if p > p0:
            return (p - p0) * math.sqrt(2 / (rho * ((GAMMA + 1) * p + (GAMMA - 1) * p0)))
        return 2 * self.sound(state) / (GAMMA - 1) * ((p / p0) ** ((GAMMA - 1) / (2 * GAMMA)) - 1)

    def density(self, xi):
        """At x = xi t."""
        (rl, pl), (rr, pr) = self.left, self.right
        if xi > self.u:
            k, x = (GAMMA - 1) / (GAMMA + 1), self.p / pr
            front = self.sound(self.right) * math.sqrt((x + k) / (1 + k))
            return rr if xi > front else rr * (x + k) / (k * x + 1)
        c = self.sound(self.left)
        if xi < -c:
            return rl
        if xi > self.u - c * (self.p / pl) ** ((GAMMA - 1) / (2 * GAMMA)):
            return rl * (self.p / pl) ** (1 / GAMMA)
        inside = 2 / (GAMMA + 1) - (GAMMA - 1) / (GAMMA + 1) * xi / c
        return rl * inside ** (2 / (GAMMA - 1))


class RegionCase(system.Case):
    settings = {"mark_interval": "1000h", "level_local": "trail", "level_partner": 0,
                "level_encoded": 0, "variable_block": "4KiB"}
    ranks = 2
    trails = 0

    def compute(self, *args, ranks=1):
        """What an undisturbed run prints, and the field that it writes."""
        self.trails += 1
        out = self.dir / f"out-{self.trails}"
        text = self.must_run("--output", out, *args, ranks=ranks,
                             run_trail=self.dir / f"trail-{self.trails}")
        return text, values(out)

    def newest(self):
        """The newest mark of the run, as 'cairn show' describes it, and what it keeps of each
        variable."""
        code, text = self.cairn("show", "--json", self.trail / "run-1")
        self.assertEqual(code, 0, text)
        version = json.loads(text)["marks"][-1]["version"]
        code, text = self.cairn("show", "--json", self.trail / "run-1", version)
        self.assertEqual(code, 0, text)
        mark = json.loads(text)["marks"][0]
        return mark, {v["name"]: v.get("kept_bytes", v["nbytes"]) for v in mark["variables"]
                      if not v["name"].startswith("region#")}

    def assert_kept(self, kept, formula, names):
        self.assertEqual(sorted(n for n in kept if kept[n] > 0), sorted(names))
        total = sum(kept.values())
        self.assertLessEqual(abs(total / formula - 1), 0.02, f"{total} against {formula}")

    def check_declarations(self, *args):
        """With region.check, before and after a kill: nothing is found, nothing is disturbed."""
        self.settings = dict(self.settings, region_check="yes")
        self.kill_and_restart(*args)
        self.assertEqual(self.events("finding"), [])

    def kill_and_restart(self, region_counts, *args, ranks=None):
        """Kill the program before each of these regions in turn, then let it end."""
        shutil.rmtree(self.trail, ignore_errors=True)
        for count in region_counts:
            code, text = self.run_job("--die", count, *args)
            self.assertNotEqual(code, 0, text)
        self.must_run(*args, ranks=ranks)
        self.assertGreaterEqual(len(self.events("resume")), 1)
        self.assert_right(f"after kills before regions {region_counts}, with {args}")


class Clover(RegionCase):
    program = "clover"
    work = ["--rows", 24, "--cols", 20, "--steps", 60, "--trigger", 8]

    def test_sod(self):
        exact, errors = Riemann(), []
        for n in (100, 200, 400):
            _, rho = self.compute("--start", "sod", "--rows", 3, "--cols", n, "--steps", 10000,
                                  "--end", 0.2)
            errors.append(sum(abs(rho[i] - exact.density(((i + 0.5) / n - 0.5) / 0.2))
                              for i in range(n)) / n)
        self.assertLess(errors[0], 0.01)
        self.assertGreaterEqual(errors[0] / errors[1], 1.5, errors)
        self.assertGreaterEqual(errors[1] / errors[2], 1.5, errors)

    def test_sod_along_columns_is_the_same(self):
        _, x = self.compute("--start", "sod", "--rows", 3, "--cols", 100)
        _, y = self.compute("--start", "sod", "--rows", 100, "--cols", 3, "--along-y", ranks=2)
        self.assertLess(max(abs(x[i] - y[3 * i]) for i in range(100)), 1e-12)

    def test_mass_and_energy_are_conserved(self):
        """With shocks, too, where a remap without correction loses kinetic energy on any grid."""
        for start, end in (("hump", 0.4), ("square", 3)):
            for n in (25, 50):
                text, _ = self.compute("--start", start, "--rows", n, "--cols", n, "--end", end,
                                       "--steps", 10000)
                line = text.splitlines()[-2]
                mass, energy = (float(line.split("changed by ")[k].split()[0].rstrip(";"))
                                for k in (1, 2))
                self.assertLess(abs(mass), 1e-12, line)
                self.assertLess(abs(energy), 1e-12, line)

    def test_ranks_agree_bit_for_bit(self):
        texts, fields = zip(*(self.compute(ranks=n) for n in (1, 3)))
        self.assertEqual(len(set(texts)), 1, texts)
        self.assertTrue(fields[0] == fields[1])

    def test_four_fields_of_25_are_kept(self):
        n = 120
        self.must_run("--rows", n, "--cols", n, "--steps", 41, "--trigger", 20)
        _, kept = self.newest()
        self.assertEqual(len(kept), 25)
        self.assert_kept(kept, 8 * (2 * n * n + 2 * (n + 1) ** 2),
                         ["density0", "energy0", "xvel0", "yvel0"])
        last = self.events("regions")[-1]
        self.assertEqual((last["place"], last["kept"]), ("ideal gas", sum(kept.values())))
        self.assertEqual([s["name"] for s in last["sites"][:2]], ["ideal gas", "reset"])
        self.assertIn({"name": "xvel0", "nbytes": kept["xvel0"], "why": "read by viscosity"},
                      last["variables"])

    def test_kills_at_any_point(self):
        """Between place and commit, too: a place is every eighth step, some regions before 115. The
        second kill comes after the second place, which waits until the first mark counts."""
        for options in ([], ["--bare", "--place", "advect momentum y"], ["--forward"],
                        ["--list", "--forward"]):
            self.kill_and_restart([118, self.random.randrange(260, 600)], *options)

    def test_kills_and_other_ranks(self):
        self.kill_and_restart([self.random.randrange(260, 800)], "--pieces", ranks=3)

    def test_declarations_are_right(self):
        self.check_declarations([self.random.randrange(260, 600)])
        self.check_declarations([self.random.randrange(260, 600)], "--forward")


class InMemory(RegionCase):
    """Marks in memory of the nodes, with a partner's copy, and in the trail only when the program
    is asked to leave."""
    program = "clover"
    work = ["--rows", 24, "--cols", 20, "--steps", 60, "--trigger", 8]
    settings = dict(RegionCase.settings, level_partner=1, level_global=0)

    def setUp(self):
        super().setUp()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.memory = pathlib.Path(tempfile.mkdtemp(dir=memory))
        self.addCleanup(shutil.rmtree, self.memory, ignore_errors=True)
        self.settings = dict(self.settings, level_local=self.memory)

    def test_a_killed_process_and_its_node(self):
        code, text = self.run_job("--die", 300)
        self.assertNotEqual(code, 0, text)
        shutil.rmtree(self.memory / "node-1", ignore_errors=True)
        self.must_run()
        self.assertEqual(self.events("resume")[0]["version"] > 0, True)
        self.assert_right("after the loss of a node")

    def test_signals_drain_to_files(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            shutil.rmtree(self.trail, ignore_errors=True)
            job = self.start("--steps", 100000)
            self.assertTrue(self.wait_for(lambda: self.events("mark"), job), job.text())
            for pid in job.pids().values():
                os.kill(pid, number)
            job.wait()
            self.assertIn("stopped at step", job.text())
            for node in self.memory.glob("*"):
                shutil.rmtree(node)
            step = int(job.text().split("stopped at step ")[1].split()[0])
            out = self.dir / "whole"
            self.must_run("--steps", step + 4, "--output", out, run_trail=self.dir / f"t{number}")
            self.must_run("--steps", step + 4)
            self.assertEqual(len(self.events("resume")), 1)
            self.assertEqual((self.dir / "result").read_bytes(), out.read_bytes())


class Tea(RegionCase):
    program = "tea"
    work = ["--size", 24, "--steps", 24, "--trigger", 5, "--fixed"]

    def test_one_mode_decays(self):
        """Against the exact solution of the equations that are solved, and of those of nature."""
        errors = []
        for n, steps in ((20, 10), (20, 20), (20, 40)):
            dt = 0.08 / steps
            _, e = self.compute("--wave", "--size", n, "--steps", steps, "--dt", dt)
            mode = 2 / 0.5 * sum(e[j * n + i] * math.cos(math.pi * (i + 0.5) / n)
                                 for j in range(n) for i in range(n)) / n ** 2
            rate = 4 * n * n * math.sin(math.pi / 2 / n) ** 2
            self.assertLess(abs(mode / (1 + dt * rate) ** -steps - 1), 1e-8)
            errors.append(abs(mode - math.exp(-math.pi ** 2 * 0.08)))
        self.assertLess(errors[2], 0.01)
        self.assertGreater(errors[0] / errors[1], 1.5, errors)
        self.assertGreater(errors[1] / errors[2], 1.5, errors)

    def test_ranks_agree(self):
        fixed = [self.compute(ranks=n)[1] for n in (1, 3)]
        self.assertTrue(fixed[0] == fixed[1])
        self.work = [w for w in self.work if w != "--fixed"]
        some, others = (self.compute(ranks=n)[1] for n in (1, 3))
        self.assertLess(max(abs(a / b - 1) for a, b in zip(some, others)), 1e-10)

    def test_one_field_of_23_is_kept(self):
        n = 100
        self.must_run("--size", n, "--steps", 20, "--trigger", 15, "--tolerance", 1e-4)
        _, kept = self.newest()
        self.assertEqual(len(kept), 23)
        self.assert_kept(kept, 8 * n * n, ["energy1"])

    def test_kills_at_any_point(self):
        for options in (["--place", "u, r"], ["--forward"], ["--list"]):
            self.kill_and_restart([self.random.randrange(2000, 4000)], *options)

    def test_kills_and_other_ranks(self):
        self.kill_and_restart([self.random.randrange(2000, 4000)], "--pieces", ranks=1)

    def test_declarations_are_right(self):
        self.check_declarations([self.random.randrange(2000, 4000)])


if __name__ == "__main__":
    unittest.main()
