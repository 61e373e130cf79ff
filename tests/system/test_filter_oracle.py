# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: lapacke hdf5
"""Filters and operators against numpy, written from the papers: random ensembles, observed by
index, interpolation and in blocks with correlated errors, from text and HDF5; global and local."""
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError:
    print("skipped: there are no numpy and h5py (python3-h5py)")
    raise SystemExit(77) from None

ORACLE = pathlib.Path(os.environ["CAIRN_BUILD_DIR"]) / "tests" / "system" / "filter_oracle"
SEED = int(os.environ.get("CAIRN_SEED", "1"))
CASES = int(os.environ.get("CAIRN_CASES", "15"))
RADIUS = {"near": 1.5, "wide": 4.0}


def gaspari_cohn(d, radius):
    """Their equation 4.10 with c = 1.82 radii, as DAPPER scales it."""
    z = d / (1.82 * radius)
    if z <= 1:
        return -z**5 / 4 + z**4 / 2 + 5 * z**3 / 8 - 5 * z**2 / 3 + 1
    if z <= 2:
        return z**5 / 12 - z**4 / 2 + 5 * z**3 / 8 + 5 * z**2 / 3 - 5 * z + 4 - 2 / (3 * z)
    return 0.0


class Case:
    def __init__(self, rng, ny, nx, n, period, sphere):
        self.rng, self.ny, self.nx, self.n = rng, ny, nx, n
        self.period, self.sphere = period, sphere
        self.x = rng.normal(size=(n, ny * nx)) * 2 + rng.normal(size=ny * nx)
        self.obs = []     # type, place, value, variance, block, row

    def distance(self, a, b):
        if self.sphere:
            v = [np.array([np.cos(q[1]) * np.cos(q[0]), np.cos(q[1]) * np.sin(q[0]), np.sin(q[1])])
                 for q in (np.radians(a), np.radians(b))]
            return self.sphere * np.arctan2(np.linalg.norm(np.cross(*v)), np.dot(*v))
        dx = abs(a[0] - b[0])
        if self.period:
            dx %= self.period
            dx = min(dx, self.period - dx)
        return np.hypot(dx, a[1] - b[1])

    def place_of(self, k):
        return (0.5 + k % self.nx, 2.0 * (k // self.nx))

    def row_at(self, x, y):
        """Bilinear weights; None outside."""
        period = self.period or (360 if self.sphere else 0)
        i, j = x - 0.5, y / 2
        if period:
            i %= period
        i0, j0 = int(np.floor(i)), int(np.floor(j))
        a, b = i - i0, j - j0
        i1 = i0 + 1
        if period == self.nx:
            i0, i1 = i0 % self.nx, i1 % self.nx
        row = np.zeros((self.ny, self.nx))
        for jj, wj in ((j0, 1 - b), (j0 + 1, b)):
            for ii, wi in ((i0, 1 - a), (i1, a)):
                if wi * wj == 0:
                    continue
                if not (0 <= ii < self.nx and 0 <= jj < self.ny):
                    return None
                row[jj, ii] += wi * wj
        return row.ravel()

    def draw(self, nobs, nblocks):
        for k in range(nobs):
            place = (self.rng.uniform(-1, self.nx + 1), self.rng.uniform(-1, 2 * self.ny))
            self.obs.append([self.rng.choice(["near", "wide"]), place, self.rng.normal() * 3,
                             self.rng.uniform(0.3, 2), None, self.row_at(*place)])
        for b in range(nblocks):
            kind = self.rng.choice(["near", "wide"])
            for k in self.rng.choice(nobs, min(4, nobs), replace=False):
                if self.obs[k][4] is None:
                    self.obs[k][4], self.obs[k][0] = b, kind
        if nobs > 3:
            self.obs[2][2] = np.nan

    def used(self):
        """Observations in the order of the file, without those that cannot be used."""
        return [o for o in self.obs if o[5] is not None and np.isfinite(o[2])]

    def covariance(self, obs):
        r = np.diag([o[3] for o in obs])
        for i, a in enumerate(obs):
            for k, b in enumerate(obs):
                if i != k and a[4] is not None and a[4] == b[4] and a[0] == b[0]:
                    r[i, k] = np.sqrt(a[3] * b[3]) * np.exp(-self.distance(a[1], b[1]) / 2)
        return r

    def write(self, folder, hdf5):
        self.x.tofile(folder / "background.bin")
        if hdf5:
            with h5py.File(folder / "obs", "w") as f:
                for kind in ("near", "wide"):
                    rows = [o for o in self.obs if o[0] == kind]
                    if not rows:
                        continue
                    g = f.create_group(kind)
                    g["x"] = np.array([o[1][0] for o in rows])
                    g["lat"] = np.array([o[1][1] for o in rows])
                    value = np.array([-999.0 if np.isnan(o[2]) else o[2] for o in rows])
                    d = g.create_dataset("value", data=value)
                    d.attrs["_FillValue"] = -999.0
                    g["variance"] = np.array([o[3] for o in rows])
                    g["cycle"] = np.ones(len(rows), dtype=np.int32)
                    if any(o[4] is not None for o in rows):  # HDF5 has blocks for all: of one, too
                        g["block"] = np.array([1000 + i if o[4] is None else o[4]
                                               for i, o in enumerate(rows)])
            return
        lines = ["columns cycle type x y value variance block"]
        for o in self.obs:
            lines.append(f"1 {o[0]} {o[1][0]!r} {o[1][1]!r} {float(o[2])!r} {o[3]!r} "
                         f"{'-' if o[4] is None else o[4]}")
        (folder / "obs").write_text("\n".join(lines) + "\n")


def etkf(x, y, d, rinv, prior):
    n = len(x)
    s, a = (y - y.mean(0)).T * prior, (x - x.mean(0)).T * prior
    inner = (n - 1) * np.eye(n) + s.T @ rinv @ s
    values, v = np.linalg.eigh(inner)
    mean = v @ np.diag(1 / values) @ v.T @ s.T @ rinv @ d
    w = v @ np.diag(np.sqrt((n - 1) / values)) @ v.T
    return x.mean(0) + a @ mean, (a @ w).T


def denkf(x, y, d, rinv, prior):
    n = len(x)
    s, a = (y - y.mean(0)).T * prior, (x - x.mean(0)).T * prior
    gain = a @ np.linalg.inv((n - 1) * np.eye(n) + s.T @ rinv @ s) @ s.T @ rinv
    return x.mean(0) + gain @ d, (a - 0.5 * gain @ s).T


FILTERS = {"etkf": etkf, "letkf": etkf, "denkf": denkf}


def relax(case, mean, anomalies, o, background):
    anomalies = (1 - o["rtpp"]) * anomalies + o["rtpp"] * background
    anomalies = anomalies * o["inflation"]
    if o["rtps"]:
        before, after = background.std(0, ddof=1), anomalies.std(0, ddof=1)
        anomalies = anomalies * (1 + o["rtps"] * (before - after) / after)
    return mean + anomalies


def analysis(case, name, local, o):
    obs = case.used()
    h = np.array([b[5] for b in obs]).reshape(len(obs), case.ny * case.nx)
    y, value = case.x @ h.T, np.array([b[2] for b in obs])
    background = case.x - case.x.mean(0)
    r = case.covariance(obs)
    d = value - y.mean(0)
    if not local:
        mean, anomalies = FILTERS[name](case.x, y, d, np.linalg.inv(r), o["prior"])
        return relax(case, mean, anomalies, o, background)
    mean, anomalies = np.zeros(case.x.shape[1]), np.zeros(case.x.shape)
    for k in range(case.x.shape[1]):
        t = np.array([gaspari_cohn(case.distance(case.place_of(k), b[1]), RADIUS[b[0]])
                      for b in obs])
        near = t > 0
        rinv = np.linalg.inv(r[np.ix_(near, near)] / np.sqrt(np.outer(t[near], t[near])))
        m, a = FILTERS[name](case.x[:, k:k + 1], y[:, near], d[near], rinv, o["prior"])
        mean[k], anomalies[:, k] = m[0], a[:, 0]
    return relax(case, mean, anomalies, o, background)


class Oracle(unittest.TestCase):
    def run_case(self, case, folder, name, local, o, rotate=0):
        words = [ORACLE, folder, name, int(local), rotate, o["inflation"], o["prior"], o["rtpp"],
                 o["rtps"], case.n, case.ny, case.nx, case.period, case.sphere]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (np.fromfile(folder / "analysis.bin").reshape(case.x.shape),
                [float(w) for w in done.stdout.split()])

    def compare(self, k, name, local, hdf5):
        rng = np.random.default_rng([SEED, k])
        sphere = k % 5 == 4
        ny, nx, n = rng.integers(3, 7), rng.integers(5, 9), int(rng.integers(4, 24))
        case = Case(rng, int(ny), int(nx), n, 0 if sphere else [0, int(nx)][k % 2],
                    57.29577951308232 if sphere else 0)
        case.draw(int(rng.integers(1, 40)), int(rng.integers(0, 3)))
        o = {"inflation": rng.choice([1, 1.1]), "prior": rng.choice([0, 1.2]),
             "rtpp": rng.choice([0, 0.3]), "rtps": rng.choice([0, 0.5])}
        with tempfile.TemporaryDirectory(dir=".") as folder:
            folder = pathlib.Path(folder)
            case.write(folder, hdf5)
            if hdf5:  # by type, as the file has them
                case.obs.sort(key=lambda b: b[0])
            expected = dict(o, prior=o["prior"] or 1)
            ours, fit = self.run_case(case, folder, name, local, o)
        self.assertEqual(fit[:2], [len(case.used()), len(case.obs) - len(case.used())])
        theirs = analysis(case, name, local, expected)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9, err_msg=f"case {k} {name}")
        self.check_fit(case, fit, expected)

    def check_fit(self, case, fit, o):
        obs = case.used()
        if not obs:
            return
        h = np.array([b[5] for b in obs])
        y = case.x @ h.T
        s = (y - y.mean(0)).T * o["prior"]
        hph, r = s @ s.T / (case.n - 1), case.covariance(obs)
        d = np.array([b[2] for b in obs]) - y.mean(0)
        values = np.linalg.eigvals(hph @ np.linalg.inv(r)).real
        want = [d @ np.linalg.inv(r) @ d, values.sum(), d @ np.linalg.inv(hph + r) @ d,
                values.sum()**2 / (values**2).sum()]
        np.testing.assert_allclose(fit[2:], want, rtol=1e-8)

    def test_global(self):
        for k in range(CASES):
            self.compare(k, ["etkf", "denkf"][k % 2], False, k % 3 == 2)

    def test_local(self):
        for k in range(1000, 1000 + CASES):
            self.compare(k, ["letkf", "denkf"][k % 2], True, k % 3 == 2)

    def test_perturbed_observations(self):
        """The EnKF's mean is the Kalman filter's, since perturbations are centred."""
        rng = np.random.default_rng([SEED, 7])
        case = Case(rng, 4, 6, 12, 6, 0)
        case.draw(20, 2)
        o = {"inflation": 1, "prior": 0, "rtpp": 0, "rtps": 0}
        with tempfile.TemporaryDirectory(dir=".") as folder:
            folder = pathlib.Path(folder)
            case.write(folder, False)
            ours, _ = self.run_case(case, folder, "enkf", False, o)
        theirs = analysis(case, "etkf", False, dict(o, prior=1))
        np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=1e-9)

    def test_rotation_keeps_mean_and_covariance(self):
        rng = np.random.default_rng([SEED, 8])
        case = Case(rng, 4, 6, 9, 6, 0)
        case.draw(20, 2)
        o = {"inflation": 1, "prior": 0, "rtpp": 0, "rtps": 0}
        with tempfile.TemporaryDirectory(dir=".") as folder:
            folder = pathlib.Path(folder)
            case.write(folder, False)
            turned, _ = self.run_case(case, folder, "letkf", True, o, rotate=1)
        theirs = analysis(case, "letkf", True, dict(o, prior=1))
        np.testing.assert_allclose(turned.mean(0), theirs.mean(0), atol=1e-9)
        np.testing.assert_allclose(turned.std(0), theirs.std(0), atol=1e-9)
        self.assertGreater(abs(turned - theirs).max(), 1e-3)


if __name__ == "__main__":
    unittest.main()
