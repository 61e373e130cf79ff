# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""Studies with local filters, all kinds of observations, quality control and products: the same
bits for any layout and after a server's death, and sentences where something is missing."""
import csv
import html.parser
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
except ImportError:  # Debian's packages are for its own Python
    if sys.executable == "/usr/bin/python3" or not os.path.exists("/usr/bin/python3"):
        raise SystemExit("skipped: there is no h5py (python3-h5py)") from None
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])

from study import BUILD, LORENZ, MPIRUN, PATIENCE, Study, until

SHALLOW = f"{BUILD}/examples/shallow --n 12"
LOCAL = "[space]\ndims = 1\nperiod = 40\n[field x]\naxes = 0\n[observation]\nradius = 4\n"
WATER = ("[space]\ndims = 2\nperiod = 12 12\n[field]\naxes = 1 0\nstep = 1 1\nsmooth = 4\n"
         "[observation depth]\nfield = h\nvariance = 0.01\nradius = 2\n"
         "[observation speed]\nfield = u\nvariance = 0.01\nradius = 2\n[region west]\n"
         "box = 0 6 0 12\n")


class Filters(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)

    def study(self, name, runner, extra, runners=2, **more):
        s = Study(self.dir, name, runner, runners, **more)
        s.file.write_text(s.file.read_text() + extra)
        return s

    def run_study(self, s):
        done = subprocess.run(s.command("run"), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return s.digests()

    def fail_study(self, s):
        done = subprocess.run(s.command("run"), capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def table(self, s, name):
        with open(s.dir / name, newline="", encoding="ascii") as f:
            return list(csv.DictReader(f))

    def test_scattered_observations_of_a_plane(self):
        a = self.study("a", SHALLOW, WATER, study_spread=0.05, filter_name="letkf", filter_rtps=0.3,
                       filter_adaptive="yes", twin_places=12, products_every=5, products_as="both")
        a.must("twin")
        (a.dir / "kernel").write_text("Elsewhere\n")
        expected = self.run_study(a)
        scores = [r for r in self.table(a, "truth.csv") if r["field"] == "h"]
        self.assertEqual(len(scores), 5)
        self.assertLess(float(scores[-1]["analysis_rmse"]), float(scores[0]["background_rmse"]))
        rows = self.table(a, "diagnostics.csv")
        self.assertEqual(len(rows), 5 * 6)  # all and two types, everywhere and in the west
        self.assertEqual(sum(map(int, rows[0]["ranks"].split())), int(rows[0]["n"]))
        with h5py.File(a.dir / "products" / "cycle000005.h5") as f:
            mean, spread = f["analysis/mean/h"][:], f["analysis/spread/h"][:]
            rmse = ((f["truth/h"][:] - mean)**2).mean()**0.5
            self.assertEqual(f["observations/value"].shape, (24,))
        self.assertAlmostEqual(rmse, float(scores[-1]["analysis_rmse"]), 7)
        self.assertAlmostEqual((spread**2).mean()**0.5, float(scores[-1]["analysis_spread"]), 7)
        self.check_diagnostics(a, rows, scores)
        self.check_kernel(a)
        self.check_page(a.must("report"))
        b = self.study("b", f"{MPIRUN} -n 3 {SHALLOW} --pause 20000", WATER, study_spread=0.05,
                       filter_name="letkf", filter_rtps=0.3, filter_adaptive="yes")
        run = b.start()
        until("an update", lambda: [e for e in b.events("update") if e["cycle"] == 3])
        b.signal("s1", signal.SIGKILL)
        run.communicate(timeout=PATIENCE)
        self.assertEqual(b.digests(), expected)

    def check_diagnostics(self, s, rows, scores):
        with h5py.File(s.dir / "diagnostics.h5") as f:
            for kind, region in (("all", "all"), ("depth", "west"), ("speed", "all")):
                mine = [r for r in rows if (r["type"], r["region"]) == (kind, region)]
                group = f[f"innovations/{kind}/{region}"]
                self.assertEqual(set(group), set(mine[0]) - {"type", "region"})
                for key in set(group) - {"ranks"}:
                    self.assertEqual([float(r[key]) for r in mine], list(group[key]))
                self.assertEqual([list(map(float, r["ranks"].split())) for r in mine],
                                 group["ranks"][:].tolist())
            self.assertEqual(list(f["truth/h/analysis_crps"]),
                             [float(r["analysis_crps"]) for r in scores])

    def check_kernel(self, s):
        """The study says for which kernel its bits are, and that another server had another."""
        event, = s.events("kernel")
        self.assertEqual(event["was"], "Elsewhere")
        status = json.loads(s.must("status", "json"))
        self.assertEqual(status["kernel"], event["kernel"])
        self.assertIn(event["kernel"], s.must("status"))
        self.assertIn(event["kernel"], s.must("report"))

    def test_a_filter_of_a_shared_object(self):
        own = f"{BUILD}/examples/filter_template.so"
        a = self.study("a", LORENZ, LOCAL, study_cycles=3, filter_name="letkf")
        a.must("twin")
        self.run_study(a)
        b = self.study("b", LORENZ, LOCAL, study_cycles=3, filter_name=own, filter_local="yes")
        self.run_study(b)
        for x, y in zip(self.table(a, "diagnostics.csv"), self.table(b, "diagnostics.csv")):
            for key in ("rms", "spread", "chi2", "crps"):
                self.assertAlmostEqual(float(x[key]), float(y[key]), 7)
        c = self.study("c", LORENZ, "", filter_name="./nowhere.so")
        self.assertRegex(self.fail_study(c), "filter.name: cannot load filter './nowhere.so'")
        d = self.study("d", LORENZ, "", filter_name=f"{own}:tune=-1")
        self.assertRegex(self.fail_study(d), "does not take 'tune=-1'")

    def check_page(self, page):
        seen = []
        parser = html.parser.HTMLParser()
        parser.handle_starttag = lambda tag, attrs: seen.append((tag, dict(attrs)))
        parser.feed(page)
        images = [a["href"] for t, a in seen if t == "image"]
        self.assertEqual(len(images), 3 * 4 + 1)  # of h, u, v: truth, means, spread; innovations
        self.assertTrue(all(i.startswith("data:image/bmp;base64,Qk") for i in images))
        self.assertEqual(len([t for t, _ in seen if t == "circle"]), 24)

    def test_what_local_filters_need(self):
        for extra, words in (("", "needs \\[space\\] dims"),
                             ("[space]\ndims = 1\n", "field 'x' has no coordinates"),
                             ("[space]\ndims = 1\n[field x]\naxes = 0\n", "needs the radius"),
                             ("[field y]\naxes = 0\n", "the model has no such field"),
                             ("[space]\ndims = 1\n[field x]\naxes = 1\n", "dimensions of the")):
            s = self.study("s", LORENZ, extra, filter_name="letkf", study_cycles=1)
            s.observations.write_text("1 x 0 1 1\n")
            self.assertRegex(self.fail_study(s), words)
            shutil.rmtree(s.dir)

    def test_observations_that_are_left_out(self):
        s = self.study("s", LORENZ, "", study_cycles=1, filter_far=4)
        s.observations.write_text("1 x 0 nan 1\n1 x 40 1 1\n1 x 3 1000 1\n1 x 4 2 1\n")
        self.run_study(s)
        self.assertEqual([(r["number"], r["why"]) for r in self.table(s, "rejected.csv")],
                         [("0", "not_finite"), ("1", "outside"), ("2", "far")])
        event = s.events("analysis")[0]
        self.assertEqual((event["observations"], event["rejected"]), (1, 3))

    def test_divergence(self):
        s = self.study("s", LORENZ, "", filter_diverged_cycles=2, filter_stop_diverged="yes")
        s.observations.write_text("".join(f"{c} x {i} 500 0.01\n" for c in range(1, 6)
                                          for i in range(40)))
        self.assertIn("the filter has diverged: for 2 cycles, up to cycle 2", self.fail_study(s))
        self.assertEqual(s.events("diverged")[0]["cycle"], 2)

    def test_observations_at_their_times(self):
        """Free runs: cut at the times of observations, they see what shorter cycles see."""
        lines = [f"{t} x {7 * t % 40} 1 1\n" for t in range(2, 17, 2)]
        long = self.study("long", LORENZ, "", filter_name="none", study_steps=4, study_cycles=4,
                          filter_asynchronous="yes", products_every=1, study_keep="analysis")
        long.observations.write_text("columns time type index value variance\n" + "".join(lines))
        self.run_study(long)
        means = []
        for c in range(1, 5):
            with h5py.File(long.dir / "products" / f"cycle{c:06}.h5") as f:
                means += list(f["observations/mean"][:])
        short = self.study("short", LORENZ, "", filter_name="none", study_steps=2, study_cycles=8,
                           products_every=1)
        self.run_study(short)
        for c in range(1, 9):
            with h5py.File(short.dir / "products" / f"cycle{c:06}.h5") as f:
                self.assertEqual(f["observations/mean"][:].tolist(), [means[c - 1]])

    def test_a_server_dies_between_observations(self):
        lines = "".join(f"{t} x {i} 1 1\n" for t in range(1, 11) for i in range(0, 40, 5))
        def study(name, runner):
            s = self.study(name, runner, LOCAL, filter_name="letkf", study_steps=2,
                           filter_asynchronous="yes")
            s.observations.write_text("columns time type index value variance\n" + lines)
            return s
        expected = self.run_study(study("calm", LORENZ))
        s = study("killed", f"{LORENZ} --pause 50000")
        run = s.start()
        until("a result", lambda: len([e for e in s.events("done") if e["cycle"] == 3]) > 3)
        s.signal("s1", signal.SIGKILL)
        out, err = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, out + err)
        self.assertEqual(s.digests(), expected)


if __name__ == "__main__":
    unittest.main()
