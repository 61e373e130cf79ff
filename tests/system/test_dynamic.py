# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke zfp fpzip
"""Dynamic mode: states are stored by the best codec that keeps the bound, what goes on is what was
stored, and no layout and no death changes a bit of it."""
import collections
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from study import CAIRN, LORENZ, MPIRUN, PATIENCE, Study, until

MEMBERS, CYCLES = 6, 5
SETTINGS = "f32 zfp:accuracy=1e-2|1e-5|1e-8"
LISTING = """{
  "variables" : [ "x" ],
  "compression" : {
    "method" : "dynamic",
    "dynamic" : [
      { "name" : "x", "sigma" : 10e-5, "mode" : "zfp", "type" : "accuracy", "parameter" : [2,5,8] }
    ]
  }
}
"""


class Dynamic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.make("twin").must("twin")

    @classmethod
    def make(cls, name, runner=LORENZ, runners=2, **more):
        return Study(cls.dir, name, runner, runners, **{
            "study_members": MEMBERS, "study_cycles": CYCLES, "study_keep": "background",
            "filter_inflation": 1, "filter_rotate": "no", "particle_perturb": 0.1,
            "particle_cache": cls.dir / "cache", "dynamic_settings": SETTINGS,
            "dynamic_sigma": 1e-4, "dynamic_measure": "no", **more})

    def run_study(self, name, **more):
        s = self.make(name, **more)
        s.must("run")
        return s, self.rows(s)

    @staticmethod
    def rows(s):
        with open(s.dir / "dynamic.csv", encoding="ascii") as f:
            rows = list(csv.DictReader(f))
        found = collections.defaultdict(dict)
        for r in rows:
            cell = found[int(r["cycle"]), int(r["member"])]
            cell.setdefault(r["what"], []).append(r)
        return found

    def particle(self, name, **more):
        return self.run_study(name, filter_name="particle", **more)

    def check_choices(self, rows, sigma, trials):
        order = None
        for cycle in range(1, CYCLES + 1):
            sums = collections.defaultdict(list)
            for m in range(MEMBERS):
                tried = rows[cycle, m].get("tried", [])
                (used,) = rows[cycle, m]["used"]
                for r in tried:
                    self.assertEqual(int(r["holds"]), float(r["error"]) <= sigma)
                    sums[r["codec"]].append((float(r["rate"]), int(r["holds"])))
                holding = [r for r in tried if int(r["holds"])]
                if cycle in trials:
                    self.assertEqual(len(tried), 4)
                    best = max(holding, key=lambda r: float(r["rate"]))
                else:
                    self.assertEqual([r["codec"] for r in tried], order[:len(tried)])
                    self.assertEqual(len(holding), min(1, len(holding)))
                    best = holding[-1] if holding else {"codec": "none"}
                self.assertEqual(used["codec"], best["codec"])
            if cycle in trials:
                kept = {c: v for c, v in sums.items() if sum(h for _, h in v) * 2 > len(v)}
                order = sorted(kept, key=lambda c: -sum(r for r, _ in kept[c]) / len(kept[c]))
        return order

    def test_the_best_that_holds_is_used(self):
        _, rows = self.particle("best")
        order = self.check_choices(rows, 1e-4, {1})
        self.assertEqual(len(rows), MEMBERS * CYCLES)
        self.assertEqual(order[0], "zfp:accuracy=1e-5")
        self.assertNotIn("zfp:accuracy=1e-2", order)

    def test_falls_to_the_next_and_tries_again(self):
        _, rows = self.particle("next", dynamic_settings="f16 zfp:accuracy=1e-6|1e-7 f32",
                                dynamic_sigma=0.0036, dynamic_retry=3)
        self.check_choices(rows, 0.0036, {1, 4})
        used = {rows[key]["used"][0]["codec"] for key in rows}
        self.assertIn("f16", used)
        self.assertGreater(len(used), 1)

    def test_without_a_check(self):
        _, rows = self.particle("unchecked", dynamic_check="no", dynamic_sigma=0)
        self.assertEqual({rows[key]["used"][0]["codec"] for key in rows}, {"zfp:accuracy=1e-2"})

    def test_nothing_holds(self):
        _, rows = self.particle("nothing", dynamic_sigma=1e-14)
        self.assertEqual({rows[key]["used"][0]["codec"] for key in rows}, {"none"})

    def test_loss_changes_results_and_layouts_do_not(self):
        s, _ = self.particle("layout")
        expected = s.digests()
        plain = self.make("lossless", filter_name="particle", dynamic_settings="")
        plain.must("run")
        self.assertNotEqual(plain.digests(), expected)
        for name, runner, n in (("one", LORENZ, 1), ("ranks", f"{MPIRUN} -n 2 {LORENZ}", 2)):
            with self.subTest(name):  # pieces of 20: boundaries of zfp's blocks
                s, _ = self.particle(name, runner=runner, runners=n)
                self.assertEqual(s.digests(), expected)

    def killed(self, name, **more):
        s = self.make(name, runner=f"{LORENZ} --pause 20000", **more)
        with subprocess.Popen(s.command("run"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ)) as run:
            for cycle, jobs in ((1, ("s1",)), (2, ("r1",)), (3, ("s2", "r2")), (4, ("s3",))):
                until(f"cycle {cycle}",
                      lambda c=cycle: [e for e in s.events("done") if e["cycle"] == c][1:])
                for job in jobs:
                    s.signal(job, signal.SIGKILL)
            _, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, err)
        self.assertIn("'s3' has ended", err)
        return s

    def test_deaths_change_nothing(self):
        for name, more in (("particle", {"filter_name": "particle"}), ("etkf", {})):
            with self.subTest(name):
                s, rows = self.run_study(f"{name}-whole", dynamic_retry=2, **more)
                killed = self.killed(f"{name}-killed", dynamic_retry=2, **more)
                self.assertEqual(killed.digests(), s.digests())
                after = self.rows(killed)
                for key in rows:
                    for what in ("tried", "used"):
                        self.assertEqual(
                            [{k: v for k, v in r.items() if k != "seconds"}
                             for r in after[key].get(what, [])],
                            [{k: v for k, v in r.items() if k != "seconds"}
                             for r in rows[key].get(what, [])], (key, what))
                self.assertEqual(list(s.dir.glob("c*.coded*")), [])

    def test_the_state_says_what_was_used(self):
        s, rows = self.run_study("recorded")
        text = subprocess.run([CAIRN, "show", "--json", s.dir / "shelf" / "b000003"],
                              text=True, capture_output=True, check=True).stdout
        (field,) = json.loads(text)["fields"]
        self.assertEqual(field["codec"], rows[CYCLES, 3]["used"][0]["codec"])

    def test_stops_where_there_is_no_gain(self):
        # hardly smaller, and much work: less than nothing is gained however long a disk takes
        s, rows = self.particle("gainless", runner=f"{LORENZ} --n 100000", dynamic_measure="yes",
                                dynamic_settings="fpzip:precision=62", dynamic_retry=2,
                                filter_observations="")
        stopped = [e["cycle"] for e in s.events("dynamic_stopped")]
        self.assertTrue(stopped)
        after = {rows[key]["used"][0]["codec"] for key in rows if key[0] - 1 in stopped and
                 (key[0] - 1) % 2}
        self.assertLessEqual(after, {"none"})
        self.assertEqual({rows[1, m]["used"][0]["codec"] for m in range(0, MEMBERS, 2)}, {"none"})

    def test_goes_on_where_there_is_gain(self):
        s, rows = self.particle("gainful", runner=f"{LORENZ} --n 20000", dynamic_measure="yes",
                                filter_observations="", study_cycles=3, particle_limit=400000)
        self.assertEqual(s.events("dynamic_stopped"), [])
        self.assertNotIn("none", {rows[3, m]["used"][0]["codec"] for m in range(MEMBERS)})
        terms = s.events("dynamic")[-1]
        self.assertGreater(terms["gain"], 0)
        self.assertGreater(terms["store_plain"], terms["store"])

    def test_the_listing(self):
        path = self.dir / "listing.json"
        path.write_text(LISTING)
        _, rows = self.particle("listing", dynamic_settings="", dynamic_config=path)
        self.assertEqual({rows[key]["used"][0]["codec"] for key in rows}, {"zfp:accuracy=1e-05"})

    def test_what_is_wrong(self):
        path = self.dir / "wrong.json"
        path.write_text(LISTING.replace('"dynamic",', '"validation",', 1))
        other = self.dir / "other.json"
        other.write_text(LISTING.replace('"x"', '"y"'))
        for more, why in (({"dynamic_sigma": 0}, "sigma is missing"),
                          ({"dynamic_settings": "zfp:accuracy=no"}, "[dynamic]"),
                          ({"study_keep": "both"}, "study.keep = background"),
                          ({"dynamic_config": path}, "line 4: \"method\" is 'validation'"),
                          ({"dynamic_settings": "", "dynamic_config": other}, "field 'y'")):
            with self.subTest(why):
                s = self.make(f"wrong{len(why)}", **more)
                run = subprocess.run(s.command("run"), text=True, capture_output=True,
                                     timeout=PATIENCE, check=False)
                self.assertNotEqual(run.returncode, 0)
                self.assertIn(why, run.stderr)


if __name__ == "__main__":
    unittest.main()
