# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke lz4 zstd zfp fpzip
"""Ensembles side by side: the same bits with any number of validators and any deaths, and settings
from a JSON file."""
import csv
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from study import LORENZ, MPIRUN, PATIENCE, Study, until

MEMBERS, CYCLES = 4, 4
SETTINGS = "fpzip:precision=32 zfp:accuracy=1e-6|1e-8 f16"
NAMES = ["none", "fpzip:precision=32", "zfp:accuracy=1e-6", "zfp:accuracy=1e-8", "f16"]
MODEL = f"{LORENZ} --n 3000 --force 6 --dt 0.01 --rough 1"
LISTING = """{
  "variables" : [ "x", "y" ],
  "compression" : {
    "method" : "validation",
    "validation" : [
      {
        "mode" : "fpzip",
        "parameter" : [16,24,32]
      },
      {
        "mode" : "zfp",
        "type" : "precision",
        "parameter" : [32,40]
      },
      {
        "mode" : "zfp",
        "type" : "accuracy",
        "parameter" : [8]
      }
    ],
    "dynamic" : [
      {
        "name" : "x",
        "sigma" : 10e-7,
        "mode" : "zfp",
        "type" : "accuracy",
        "parameter" : [0,6,8,10]
      },
      {
        "name" : "y",
        "sigma" : 10e-5,
        "mode" : "fpzip",
        "parameter" : [24,28,32,36,40]
      }
    ]
  }
}
"""


class Validation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        s = cls.make("plain", MODEL)
        run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                             timeout=PATIENCE, check=False)
        cls.out, cls.code = run.stdout, run.returncode  # 0: something is safe
        assert cls.code in (0, 1), run.stderr
        cls.expected = cls.tables(s)

    @classmethod
    def make(cls, name, runner, runners=2, **more):
        options = {"study_members": MEMBERS, "study_cycles": CYCLES, "study_steps": 20,
                   "study_spin": 200, "study_spread": 1e-3, "filter_name": "none",
                   "filter_observations": "", "filter_rotate": "no",
                   "validate_settings": SETTINGS, "validate_perturb": 1e-3,
                   "validate_noise": 3e-7}
        s = Study(cls.dir, name, runner, runners, **dict(options, **more))
        s.base = s.dir
        s.dir = s.base / "plain"  # whose events and jobs are looked at
        return s

    @staticmethod
    def tables(s):
        return {name: (s.base / name).read_bytes()
                for name in ("statistics.csv", "noise.csv", "verdicts.csv")}

    def study(self, runner=f"{MODEL} --pause 3000", **more):
        s = self.make(self.id().split(".")[-1], runner, **more)
        self.addCleanup(self.clear, s)
        return s

    @staticmethod
    def clear(s):
        for job in s.jobs() if (s.dir / "jobs").exists() else []:
            s.signal(job, signal.SIGKILL)

    @staticmethod
    def start(s):
        return subprocess.Popen(s.command("validate"), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=dict(os.environ))

    def finish(self, s, run):
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, self.code, out + err)
        self.assertEqual(self.tables(s), self.expected)
        s.must_be_gone()
        return err

    def wait_for(self, s, name):
        until(name, (s.dir / name).exists)

    def test_tables(self):
        rows = list(csv.DictReader(self.expected["statistics.csv"].decode().splitlines()))
        self.assertEqual(len(rows), CYCLES * MEMBERS * len(NAMES))
        for row in rows:
            self.assertEqual(row["setting"], NAMES[int(row["ensemble"])])
            self.assertFalse([k for k, v in row.items() if v == "nan"], row)
            self.assertEqual(row["n"], "3000")
            lossless = row["setting"] == "none"
            self.assertEqual(float(row["error"]) == 0, lossless)
            self.assertEqual(float(row["delta"]) == 0, lossless)
            self.assertEqual(float(row["rate"]) == 1, lossless)
        noise = list(csv.DictReader(self.expected["noise.csv"].decode().splitlines()))
        self.assertEqual(len(noise), CYCLES * MEMBERS * (len(NAMES) + 1))
        pair = [row for row in noise if row["ensemble"] == str(len(NAMES))]
        self.assertTrue(all(row["setting"] == "none" and float(row["error"]) > 0 for row in pair))
        verdicts = list(csv.DictReader(self.expected["verdicts.csv"].decode().splitlines()))
        self.assertEqual([v["setting"] for v in verdicts], NAMES[1:])
        self.assertEqual(verdicts[-1]["verdict"], "fail")
        self.assertIn("delta@1", verdicts[-1]["why"])
        self.assertIn("zfp:accuracy=1e-8", self.out)

    def test_other_numbers_of_validators_and_ranks(self):
        s = self.study(f"{MPIRUN} -n 2 {MODEL}", runners=1, validate_validators=3)
        self.finish(s, self.start(s))

    def test_validators_are_killed(self):
        s = self.study(validate_validators=2)
        run = self.start(s)
        for cycle in 1, 2, 3:
            self.wait_for(s, f"c{cycle:06}.ready")
            for job in s.jobs():
                if job[0] == "v":
                    s.signal(job, signal.SIGKILL)
        err = self.finish(s, run)
        self.assertRegex(err, "validator 'v[0-9]*' has ended: killed by signal 9")

    def test_a_validator_hangs(self):
        s = self.study(server_timeout="2s")
        run = self.start(s)
        self.wait_for(s, "c000001.csv")
        s.signal("v1", signal.SIGSTOP)
        err = self.finish(s, run)
        self.assertIn("validator 'v1' gives no sign of life", err)

    def test_the_server_and_a_runner_are_killed(self):
        s = self.study()
        run = self.start(s)
        self.wait_for(s, "c000002.ready")
        s.signal("s1", signal.SIGKILL)
        s.signal("r1", signal.SIGKILL)
        self.finish(s, run)

    def test_all_are_killed(self):
        s = self.study()
        run = self.start(s)
        self.wait_for(s, "c000002.csv")
        run.kill()
        run.communicate()
        for job in s.jobs():
            s.signal(job, signal.SIGKILL)
        until("all are gone", lambda: not any(s.processes(job) for job in s.jobs()))
        self.finish(s, self.start(s))

    # --- settings from a JSON file --------------------------------------------------------------

    def listing(self, text):
        path = self.dir / f"{self.id().split('.')[-1]}.json"
        path.write_text(text)
        return self.study(MODEL, validate_settings="", validate_config=path, validate_noise=0,
                          study_cycles=1)

    def test_the_listing_is_accepted(self):
        s = self.listing(LISTING)
        run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                             timeout=PATIENCE, check=False)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        rows = list(csv.DictReader((s.base / "verdicts.csv").read_text().splitlines()))
        self.assertEqual([row["setting"] for row in rows],
                         ["fpzip:precision=16", "fpzip:precision=24", "fpzip:precision=32",
                          "zfp:precision=32", "zfp:precision=40", "zfp:accuracy=1e-08"])

    def test_what_is_wrong_in_a_listing(self):
        for old, new, line, why in (
                ("[16,24,32]", "[16,25]", 8, "25 bits"),
                ('"mode" : "fpzip",', '"mode" : "sz",', 7, "'sz' is no mode"),
                ('"method" : "validation"', '"method" : "guess"', 4, "'guess'"),
                ('"sigma"', '"sgima"', 24, "'sgima' is no key"),
                ('"name" : "y"', '"name" : "z"', 30, "'z' is not one of"),
                ('"accuracy",\n        "parameter" : [8]', '"rate",\n        "parameter" : [8]', 17,
                 "'rate'"),
                ('"variables" : [ "x", "y" ],', '"variables" : [ "x", "y" ]', 3, "")):
            with self.subTest(why=why):
                self.assertIn(old, LISTING)
                s = self.listing(LISTING.replace(old, new, 1))
                run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                                     timeout=PATIENCE, check=False)
                self.assertEqual(run.returncode, 2)
                self.assertIn(f"line {line}: ", run.stderr)
                self.assertIn(why, run.stderr)

    def test_what_is_wrong_in_a_study(self):
        for more, why in (({"validate_settings": ""}, "which losses"),
                          ({"validate_settings": "zfp:accuracy=no"}, "validate.settings"),
                          ({"validate_rho": "x"}, "validate.rho"),
                          ({"runner_failing": "drop"}, "must be 'stop'")):
            s = self.study(MODEL, **more)
            run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                                 timeout=PATIENCE, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn(why, run.stderr)


if __name__ == "__main__":
    unittest.main()
