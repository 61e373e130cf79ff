# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""A particle filter's study of Lorenz's model of 1963, followed by another program in numpy: from
what the model printed and the observations it computes the propagation, the weights, the effective
sample size, what resampling may do, and how copies are moved apart.

TEST_PARTICLE_MEMBERS and TEST_PARTICLE_CYCLES make it longer."""
import math
import os
import pathlib
import shutil
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from study import BUILD, Study

MODEL = BUILD / "tests" / "system" / "lorenz63"
MEMBERS = int(os.environ.get("TEST_PARTICLE_MEMBERS", 24))
CYCLES = int(os.environ.get("TEST_PARTICLE_CYCLES", 12))
STEPS, VARIANCE, FACTOR, SPREAD = 25, 2.0, 0.9, 1.4


def propagate(x, nsteps, dt=0.01):
    def slope(v):
        a, b, c = v[..., 0], v[..., 1], v[..., 2]
        return np.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=-1)
    for _ in range(nsteps):
        k1 = slope(x)
        k2 = slope(x + dt / 2 * k1)
        k3 = slope(x + dt / 2 * k2)
        k4 = slope(x + dt * k3)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def weigh(x, y):
    logw = -0.5 * ((x - y) ** 2).sum(axis=-1) / VARIANCE
    w = np.exp(logw - logw.max())
    return logw, w / w.sum()


def covariance(x, w):
    if (w ** 2).sum() > 1 - 1e-9:  # one has all the weight: the spread of all
        w = np.full(len(w), 1 / len(w))
    d = x - w @ x
    return (d * w[:, None]).T @ d / (1 - (w ** 2).sum())


BANDWIDTH = FACTOR * MEMBERS ** (-1 / (3 + 4))


@unittest.skipIf(np is None, "there is no numpy")
class Followed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.s = Study(cls.dir, "followed", MODEL, study_members=MEMBERS, study_cycles=CYCLES,
                      study_steps=STEPS, study_spin=0, study_spread=SPREAD,
                      filter_name="particle", particle_jitter=FACTOR,
                      particle_cache=cls.dir / "cache", twin_variance=VARIANCE)
        cls.s.must("twin")
        shutil.rmtree(cls.s.dir)
        cls.s.must("run")
        cls.before, cls.after = cls.read("before"), cls.read("after")
        lines = [line.split() for line in (cls.dir / "observations").read_text().splitlines()
                 if not line.startswith("#")]
        cls.y = np.array([float(f[3]) for f in lines]).reshape(CYCLES, 3)
        cls.parent = {(e["cycle"], e["member"]): e["parent"] for e in cls.s.events("task")}

    @classmethod
    def read(cls, what):
        found = {}
        for log in (cls.s.dir / "log").glob("r*"):
            for line in log.read_text().splitlines():
                word = line.split()
                if word and word[0] == what:
                    found[int(word[1]), int(word[2])] = np.array([float(v) for v in word[3:]])
        return found

    def states(self, table, cycle):
        return np.array([table[cycle, m] for m in range(MEMBERS)])

    def test_propagation(self):
        for c in range(1, CYCLES + 1):
            ours = self.states(self.after, c)
            np.testing.assert_allclose(propagate(self.states(self.before, c), STEPS), ours,
                                       rtol=1e-9, atol=1e-9)

    def test_weights(self):
        ours = {(e["cycle"], e["member"]): e["logw"] for e in self.s.events("weight")}
        for e in self.s.events("analysis"):
            c = e["cycle"]
            logw, w = weigh(self.states(self.after, c), self.y[c - 1])
            np.testing.assert_allclose([ours[c, m] for m in range(MEMBERS)], logw, rtol=1e-12)
            self.assertAlmostEqual(e["ess"], 1 / (w ** 2).sum(), places=9)

    def test_resampling(self):
        for c in range(2, CYCLES + 1):
            _, w = weigh(self.states(self.after, c - 1), self.y[c - 2])
            parents = [self.parent[c, m] for m in range(MEMBERS)]
            self.assertEqual(parents, sorted(parents))
            count = np.bincount(parents, minlength=MEMBERS)
            self.assertTrue((np.abs(count - MEMBERS * w) < 1 + 1e-9).all())

    def test_first_members_are_spread(self):
        d = (self.states(self.before, 1) - [1.509, -1.531, 25.46]) / SPREAD
        self.assertLess(abs(d.mean()), 4 / math.sqrt(d.size))
        self.assertLess(abs((d ** 2).mean() - 1), 4 * math.sqrt(2 / d.size))

    def test_first_children_are_copies_and_others_are_moved(self):
        moved = []
        for c in range(2, CYCLES + 1):
            x = self.states(self.after, c - 1)
            _, w = weigh(x, self.y[c - 2])
            root = np.linalg.cholesky(covariance(x, w))
            for m in range(MEMBERS):
                d = self.before[c, m] - x[self.parent[c, m]]
                if m > 0 and self.parent[c, m] == self.parent[c, m - 1]:
                    moved.append(np.linalg.solve(root, d) / BANDWIDTH)
                else:
                    self.assertFalse(d.any())
        z = np.array(moved)
        self.assertLess(abs(z.mean()), 4 / math.sqrt(z.size))
        self.assertLess(abs((z ** 2).mean() - 1), 4 * math.sqrt(2 / z.size))


if __name__ == "__main__":
    unittest.main()
