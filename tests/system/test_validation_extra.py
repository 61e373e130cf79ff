# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke zfp hdf5
"""What a validation finds beyond sums, against numpy on the states themselves: structure, tests of
distributions, ranks, functions of one's own; and functions that crash, hang or return nothing."""
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

from study import BUILD, CAIRN, LORENZ, PATIENCE, SOURCE, Study

MEMBERS, CYCLES = 4, 3
SETTINGS = ["none", "f16", "zfp:accuracy=1e-3"]
N = 70000  # three slices
ENERGY = BUILD / "examples" / "energy_validator.so"
BAD = BUILD / "tests" / "system" / "bad_functions.so"


def ssim(x, y):
    """Baker, Pinard and Hammerling 2022, window by window."""
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    a, b = (np.round((v - low) / (high - low) * 255) / 255 for v in (x, y))
    line = np.exp(-((np.arange(11) - 5) ** 2) / (2 * 1.5 ** 2))
    w = np.outer(line, line)
    w /= w.sum()
    found = []
    for i in range(x.shape[0] - 10):
        for k in range(x.shape[1] - 10):
            p, q = a[i:i + 11, k:k + 11], b[i:i + 11, k:k + 11]
            mp, mq = (w * p).sum(), (w * q).sum()
            vp, vq = (w * (p - mp) ** 2).sum(), (w * (q - mq) ** 2).sum()
            c = (w * (p - mp) * (q - mq)).sum()
            found.append((2 * mp * mq + 1e-8) * (2 * c + 1e-8) /
                         ((mp * mp + mq * mq + 1e-8) * (vp + vq + 1e-8)))
    return np.mean(found)


def rows(path):
    with open(path, encoding="ascii") as f:
        return list(csv.DictReader(f))


class Extra(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)

    def validate(self, name, runner, **more):
        s = Study(self.dir, name, runner, **{
            "study_members": MEMBERS, "study_cycles": CYCLES, "study_steps": 5, "study_spin": 100,
            "study_spread": 1e-2, "filter_name": "none", "filter_observations": "",
            "filter_rotate": "no", "validate_settings": " ".join(SETTINGS[1:]),
            "validate_perturb": 1e-2, **more})
        run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                             timeout=PATIENCE, check=False)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return s

    def states(self, s, field):
        """Of the last cycle: [ensemble][member]."""
        found = []
        for m in range(len(SETTINGS) * MEMBERS):
            path = self.dir / "state.h5"
            subprocess.run([CAIRN, "export", "-o", path,
                            f"{s.dir / 'plain' / 'shelf'}/b{m:06}@{CYCLES}"],
                           check=True, capture_output=True)
            with h5py.File(path) as f:
                names = []
                f.visit(names.append)
                (name,) = [n for n in names if n.split("/")[-1] == field and
                           isinstance(f[n], h5py.Dataset)]
                found.append(f[name][()])
            path.unlink()
        return np.array(found).reshape(len(SETTINGS), MEMBERS, *found[0].shape)

    def test_on_a_ring(self):
        s = self.validate("ring", f"{LORENZ} --n {N} --force 6 --dt 0.01 --rough 1",
                          validate_functions=ENERGY, validate_validators=2)
        x = self.states(s, "x")
        self.ranks(s, x)
        self.distributions(s, x)
        self.functions(s, x)
        self.hdf5(s)
        out = subprocess.run([sys.executable, SOURCE / "examples/plugin/read_validation.py", s.dir],
                             text=True, capture_output=True, check=True).stdout
        self.assertIn("energy of f16", out)
        self.assertTrue(all(r["ssim"] == "" for r in rows(s.dir / "statistics.csv")))

    def ranks(self, s, x):
        member = np.arange(N) % MEMBERS
        truth = x[0, member, np.arange(N)]
        for r in rows(s.dir / "ranks.csv"):
            if int(r["cycle"]) < CYCLES:
                continue
            of = x[SETTINGS.index(r["setting"])]
            others = np.arange(MEMBERS)[:, None] != member
            below = (others & (of < truth)).sum(0) + (others & (of == truth)).sum(0) // 2
            count = np.bincount(below, minlength=MEMBERS)
            self.assertEqual([int(w) for w in r["ranks"].split()], list(count))
            flat = np.array([int(w) for w in rows(s.dir / "ranks.csv")
                             [-len(SETTINGS)]["ranks"].split()])
            self.assertAlmostEqual(float(r["skew"]),
                                   ((count - flat) ** 2 / flat).sum() / (MEMBERS - 1), 9)

    def distributions(self, s, x):
        stride = -(-N // 4096)
        found = [r for r in rows(s.dir / "distributions.csv") if int(r["cycle"]) == CYCLES]
        self.assertEqual(len(found), 2 * MEMBERS)
        for r in found:
            a = np.sort(x[0, int(r["member"]), ::stride])
            b = np.sort(x[SETTINGS.index(r["setting"]), int(r["member"]), ::stride])
            at = np.concatenate([a, b])
            gap = np.abs(np.searchsorted(a, at, "right") - np.searchsorted(b, at, "right")).max()
            self.assertAlmostEqual(float(r["distance"]), gap / len(a), 12)
            z = gap / len(a) * np.sqrt(len(a) / 2)  # Kolmogorov's limit
            k = np.arange(1, 100)
            limit = min(1, 2 * np.sum((-1.) ** (k - 1) * np.exp(-2 * (k * z) ** 2)) if z else 1)
            self.assertAlmostEqual(float(r["p"]), limit, 1)
            self.assertEqual(r["rejected"], "0")

    def functions(self, s, x):
        wanted = {}
        for e, setting in enumerate(SETTINGS):
            for m in range(MEMBERS):
                wanted[setting, m, "energy"] = (x[e, m] ** 2).sum() / 2
                # between neighbours of one slice
                wanted[setting, m, "jump"] = max(np.abs(np.diff(x[e, m, i:i + 32768])).max()
                                                 for i in range(0, N, 32768))
                if e > 0:
                    wanted[setting, m, "flips"] = (x[0, m] * x[e, m] < 0).sum()
        found = [r for r in rows(s.dir / "functions.csv") if int(r["cycle"]) == CYCLES]
        self.assertEqual(len(found), len(wanted))
        for r in found:
            value = wanted[r["setting"], int(r["member"]), r["function"]]
            self.assertEqual(r["why"], "")
            self.assertAlmostEqual(float(r["value"]) / value if value else 1, 1, 12)

    def hdf5(self, s):
        with h5py.File(s.dir / "validation.h5") as f:
            table = f["statistics/x/f16"]
            self.assertEqual(table["nrmse"].shape, (CYCLES * MEMBERS,))
            text = [r for r in rows(s.dir / "statistics.csv") if r["setting"] == "f16"]
            np.testing.assert_array_equal(table["nrmse"][()], [float(r["nrmse"]) for r in text])
            self.assertEqual(f["ranks/x/f16/ranks"].shape, (CYCLES, MEMBERS))

    def test_on_a_plane(self):
        s = self.validate("plane", f"{BUILD}/examples/shallow --n 24")
        for field in "h", "u":
            x = self.states(s, field)
            for r in rows(s.dir / "statistics.csv"):
                if r["variable"] != field or int(r["cycle"]) < CYCLES:
                    continue
                e, m = int(r["ensemble"]), int(r["member"])
                self.assertAlmostEqual(float(r["ssim"]), ssim(x[0, m], x[e, m]), 12)
        verdict = {(r["variable"], r["setting"]): r for r in rows(s.dir / "verdicts.csv")}
        self.assertIn(verdict["h", "f16"]["ssim_verdict"], ("pass", "fail", "noise"))

    def test_functions_that_misbehave(self):
        s = self.validate("bad", f"{LORENZ} --n {N} --force 6 --dt 0.01 --rough 1",
                          validate_functions=f"{BAD} {ENERGY}", validate_patience="500ms")
        found = {}
        for r in rows(s.dir / "functions.csv"):
            found.setdefault((r["function"], int(r["cycle"])), []).append(r)
        why = {key: {r["why"] for r in some} for key, some in found.items()}
        value = {key: {r["value"] for r in some} for key, some in found.items()}
        for cycle in 1, 2, 3:
            self.assertEqual(value["count", cycle], {str(N)})
            self.assertEqual(value["last", cycle], {str(2 * 32768)})
            self.assertEqual(why["energy", cycle], {""})
            self.assertEqual(why["nothing", cycle], {"", "is no number"})
        self.assertEqual(why["crash", 2], {"crashed: signal 6"})
        self.assertEqual(value["crash", 2], {""})
        self.assertEqual(value["crash", 1], {"3"})
        self.assertEqual(why["hang", 1], {"took longer than validate.patience"})
        self.assertEqual(value["hang", 2], {"2"})
        self.assertEqual(why["leave", 3], {"ended its process with exit code 7"})

    def test_what_is_no_plug_in(self):
        for file, why in (("no.so", "no.so"), (BUILD / "examples" / "wind_operator.so",
                                               "has no table 'cairn_validator'")):
            s = Study(self.dir, f"wrong{len(why)}", LORENZ, filter_name="none",
                      validate_settings="f16", validate_functions=file)
            run = subprocess.run(s.command("validate"), text=True, capture_output=True,
                                 timeout=PATIENCE, check=False)
            self.assertEqual(run.returncode, 2)
            self.assertIn("validate.functions", run.stderr)
            self.assertIn(why, run.stderr)


if __name__ == "__main__":
    unittest.main()
