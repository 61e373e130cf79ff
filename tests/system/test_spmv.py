# SPDX-License-Identifier: BSD-3-Clause
"""The two kernels of examples/spmv: how what changed grows with the distance of marks, as
differential marks count it, and as the planner's curve through it says. Steps stand for seconds:
nothing is timed."""
import json
import math
import re
import subprocess
import unittest

import system

BLOCK = 1024
PRODUCT = 2560  # steps


def table(name):
    """An array of tests/harness/spmv_growth.h."""
    text = (system.SOURCE / "tests" / "harness" / "spmv_growth.h").read_text()
    return [float(x) for x in re.search(rf"{name}\[.*?\] = {{(.*?)}}", text, re.S)[1].split(",")]


class Spmv(system.Case):
    program = "spmv"
    ranks = 2
    settings = {"level_partner": 0, "level_encoded": 0, "level_global": 0, "compare_trees": "no"}
    work = ["--size", 32768, "--batch", 32]

    def run_kernel(self, kernel, distance):
        """The mark events of a run with a mark every so many steps, within the first product."""
        nmarks = min(6, (PRODUCT - 1) // distance)
        trail = self.dir / f"{kernel}-{distance}"
        self.must_run("--kernel", kernel, "--every", distance, "--steps", nmarks * distance + 1,
                      run_trail=trail, level_local=f"{trail}.local")
        events = [json.loads(line) for line in (trail / "run-1" / "events").open()]
        marks = [e for e in events if e["event"] == "mark"]
        self.assertEqual(len(marks), nmarks)
        return marks

    def measure(self, kernel):
        """(steps, mean of changed blocks) for growing distances, and the number of blocks."""
        found = []
        for distance in map(int, table("SPMV_STEPS")):
            changed = [m["changed"] for m in self.run_kernel(kernel, distance)[1:]]
            found.append((distance, sum(changed) / len(changed)))
        return found, self.run_kernel(kernel, 64)[0]["blocks"]

    def fitted(self, found, nblocks):
        """The planner's curve through marks at these distances, a step being a second."""
        trail = self.dir / f"fit-{len(list(self.dir.glob('fit-*')))}"
        subprocess.run([system.BUILD / "tests" / "cli" / "small_trail", trail, "1", "1", "1"],
                       check=True)
        now, log = 1000.0, [{"event": "open", "nranks": 2, "nnodes": 2, "seen": 0, "time": 1000.0}]
        for version, (steps, changed) in enumerate([(1, nblocks), *found], 1):
            now += steps
            log.append({"event": "mark", "version": version, "held": 0, "stored": 0, "interval": 1,
                        "nbytes": nblocks * BLOCK, "blocks": nblocks, "changed": changed,
                        "written": changed * BLOCK, "time": now})
        (trail / "run-1" / "events").write_text("".join(json.dumps(e) + "\n" for e in log))
        code, text = self.cairn("plan", "--json", "--trail", trail)
        self.assertEqual(code, 0, text)
        floor, span, pace = json.loads(text)["measured"]["changed"]
        return lambda t: (floor - span * math.expm1(-t / pace)) / BLOCK, pace

    def check(self, kernel):
        found, nblocks = self.measure(kernel)
        self.assertEqual([changed for _, changed in found], table(f"SPMV_{kernel.upper()}"))
        curve, pace = self.fitted(found, nblocks)
        for steps, changed in found:
            self.assertLess(abs(curve(steps) - changed), 0.05 * nblocks, (kernel, steps, found))
        return pace

    def test_growth(self):
        """Scattered entries spoil most blocks soon; a diagonal takes one after the other."""
        self.assertLess(20 * self.check("random"), self.check("diagonal"))

    def test_kills(self):
        """Killed and started again, in the middle of products: the same vector."""
        self.work = [*self.work, "--kernel", "random", "--every", 50, "--steps", 6000]
        for at in (3, 40):
            code, _ = self.run_job(fault=(1, f"store:{at}:kill"))
            self.assertNotEqual(code, 0)
        self.assertIn("resumed at step", self.must_run())
        self.assert_right()


if __name__ == "__main__":
    unittest.main()
