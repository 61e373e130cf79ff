# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench gathers what programs print, and refuses what is not a measurement."""
import json
import unittest

import api

BENCH = api.SOURCE / "tools" / "bench"
GOOD = {"name": "store.write", "ours": 1.5, "peer": 2.0, "ratio": 0.75, "unit": "GB/s", "bar": 0.9,
        "ok": False, "note": "plain writes"}


class Bench(api.TestCase):
    def program(self, name, *lines, code=0):
        text = "".join(f"echo '{line}'\n" for line in lines)
        path = self.write(name, f"#!/bin/sh\n{text}exit {code}\n")
        path.chmod(0o755)

    def results(self):
        return json.loads((self.dir / "results.json").read_text())

    def test_results_and_table(self):
        free = dict(GOOD, name="hash.tree", bar=None, ok=True)
        self.program("bench_store", json.dumps(GOOD), "a line for people")
        self.program("bench_hash", json.dumps(free))
        output = self.must(BENCH, self.dir)
        self.assertEqual(self.results(), [free, GOOD])
        self.assertRegex(output, r"store\.write +1\.5 +2 +GB/s +0\.75 +0\.9 +MISSED +plain writes")
        self.assertIn("a line for people", output)
        self.assertIn("2 measurements, 1 bars missed", output)

    def test_a_word_selects(self):
        self.program("bench_store", json.dumps(GOOD))
        self.program("bench_hash", code=1)
        self.must(BENCH, self.dir, "store")
        self.assertEqual(self.results(), [GOOD])
        self.assertEqual(api.run(BENCH, self.dir, "stone")[0], 1)

    def test_what_is_no_measurement_is_refused(self):
        bad = [dict(GOOD, ours="fast"), dict(GOOD, ok=1), dict(GOOD, more=1), dict(GOOD, name="x")]
        for line in [json.dumps(b) for b in bad] + ["{"]:
            with self.subTest(line=line):
                self.program("bench_bad", line)
                self.assertEqual(api.run(BENCH, self.dir)[0], 1)

    def test_a_program_that_fails_is_named_and_others_are_kept(self):
        self.program("bench_bad", code=3)
        self.program("bench_store", json.dumps(GOOD))
        code, output = api.run(BENCH, self.dir)
        self.assertEqual(code, 1)
        self.assertIn("bench_bad: exit code 3", output)
        self.assertEqual(self.results(), [GOOD])

    def test_a_program_may_ask_for_ranks(self):
        self.program("bench_wide", json.dumps(GOOD))
        self.write("bench_wide.ranks", "openmpi 2\n")
        self.must(BENCH, self.dir)
        self.assertEqual(self.results(), [GOOD, GOOD])


if __name__ == "__main__":
    unittest.main()
