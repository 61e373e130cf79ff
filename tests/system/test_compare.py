# SPDX-License-Identifier: BSD-3-Clause
"""Runs of real programs that part, compared with each other, with a golden file, and as they go."""
import json
import subprocess
import unittest

import system


class Compare(system.Case):
    settings = {"level_partner": 0, "level_global": 1, "keep_global": "all"}
    ranks = 3

    def run_as(self, name, *args, **settings):
        return self.must_run(*args, run_name=name, **settings)

    def diff(self, *args):
        code, text = self.cairn("diff", "--json", *args, self.trail / "a", self.trail / "b")
        return code, json.loads(text)


class Bodies(Compare):
    """Forces that are added up in another order: differences of rounding, which grow."""
    program = "nbody"
    work = ["--bodies", 150, "--steps", 60, "--every", 4]

    def export(self, name):
        """All marks as HDF5: {version: path}."""
        code, text = self.cairn("export", "--all", "-o", self.dir / f"{name}.h5", self.trail / name)
        self.assertEqual(code, 0, text)
        return {v: self.dir / f"{name}-{v}.h5" for v in range(4, 60, 4)}

    def first_by_h5diff(self, a, b, bound):
        """The first mark whose exported bodies differ, as a plain comparison finds."""
        for version in sorted(a):
            done = subprocess.run(["h5diff", "-q", "-d", bound, a[version], b[version], "bodies"],
                                  check=False)
            self.assertIn(done.returncode, (0, 1))
            if done.returncode == 1:
                return version
        return None

    def test_first_mark_is_that_of_a_plain_comparison(self):
        self.run_as("a", "--shuffle", 1)
        self.run_as("b", "--shuffle", 2)
        a, b = self.export("a"), self.export("b")
        firsts = []
        for bound in ("1e-300", "1e-16", "1e-15", "1e-14", "1e-10"):
            code, found = self.diff("--bound", bound, "--variable", "bodies")
            first = found["first"] and found["first"]["mark"]
            self.assertEqual(first, self.first_by_h5diff(a, b, bound), bound)
            self.assertEqual(code, 1 if first else 0)
            firsts.append(first or 10**9)
        self.assertEqual(firsts, sorted(firsts))
        self.assertGreater(firsts[-1], firsts[0], "the difference grows")

    def test_same_order_is_the_same(self):
        self.run_as("a", "--shuffle", 3)
        self.run_as("b", "--shuffle", 3)
        self.assertEqual(self.diff("--all")[0], 0)


class Gate(Compare):
    """A golden file made here gates here, and fails after a change of physics."""
    work = ["--size", 64, "--steps", 30, "--every", 5]

    def test_golden_file(self):
        golden = self.dir / "heat.golden"
        bound = {"variable_bound": "1e-9"}
        self.run_as("a", **bound)
        self.assertEqual(self.cairn("gate", "--bless", golden, self.trail / "a")[0], 0)
        self.run_as("b", **bound)
        code, text = self.cairn("gate", golden, self.trail / "b")
        self.assertEqual((code, text.splitlines()[-1]), (0, "pass"), text)
        self.run_as("c", "--flow", 0.2001, **bound)
        code, text = self.cairn("gate", golden, self.trail / "c")
        self.assertEqual((code, text.splitlines()[-1]), (1, "fail"), text)
        self.assertIn("mark 5, rank 0, variable 'field'", text)


class Reference(Compare):
    """A run that is told to stop when it parts from its reference."""
    work = ["--size", 64, "--steps", 60, "--every", 2]

    def stops(self, *args):
        self.run_as("a", variable_bound="1e-12")
        text = self.run_as("b", "--nudge", 11, *args, variable_bound="1e-12",
                           compare_reference=self.trail / "a", compare_stop="yes")
        self.assertIn("stopped at step", text)
        lines = (self.trail / "b" / "events").read_text().splitlines()
        events = [e for e in map(json.loads, lines) if e["event"] == "diverged"]
        self.assertEqual([(e["version"], e["variable"]) for e in events], [(12, "field")])
        first = self.diff()[1]["first"]
        self.assertEqual([first[k] for k in ("mark", "rank", "index", "first", "second")],
                         [events[0][k] for k in ("version", "rank", "index", "there", "here")])

    def test_in_the_background(self):
        self.stops()

    def test_when_one_thread_alone_may_use_mpi(self):
        self.stops("--single")


if __name__ == "__main__":
    unittest.main()
