# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
"""States of groups, as numpy and h5py see them: arrays of random shapes, put by groups in random
pieces, are got in random boxes, exported and compared, and must be what slices of an array are.
"""
import json
import pathlib
import random
import subprocess
import unittest

import system

try:
    import h5py
    import numpy as np
except ImportError:
    np = None

CASES = 6  # of which each starts a group or two
KILLS = 5


def cuts(rng, n, pieces):
    return [0, *sorted(rng.sample(range(1, n), pieces - 1)), n]


class Shelf(system.Case):
    def setUp(self):
        super().setUp()
        if np is None:
            system.skip_loudly(self, "no Python has numpy and h5py")
        self.shelf = pathlib.Path(self.dir) / "shelf"

    def pieces(self, ranks, *words, fault=None):
        """fault: (rank, CAIRN_FAULT) for one of them, which may end the group."""
        command = [system.BUILD / "tests/system/shelf_pieces", *words]
        if fault:
            command = [system.HERE / "on-rank", fault[0], f"CAIRN_FAULT={fault[1]}", *command]
        if ranks:
            command = [system.SOURCE / "tools/mpi-test", system.MPI, ranks, *command]
        done = subprocess.run([str(w) for w in command], check=not fault, env=self.env(),
                              timeout=system.PATIENCE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL if fault else None)
        return done.returncode == 0

    def put(self, rng, key, version, array):
        """By a group of random pieces; its size."""
        split = [min(rng.choice((1, 1, 2, 3)), n) for n in array.shape]
        while np.prod(split) > 4:
            split[split.index(max(split))] -= 1
        raw = self.dir / "raw"
        array.tofile(raw)
        where = [",".join(map(str, cuts(rng, n, k))) for n, k in zip(array.shape, split)]
        self.pieces(int(np.prod(split)), "put", self.shelf, key, version, raw, *where)
        return int(np.prod(split))

    def check_boxes(self, rng, key, version, array):
        out = self.dir / "out"
        for _ in range(5):
            low = [rng.randrange(n) for n in array.shape]
            count = [rng.randint(1, n - a) for n, a in zip(array.shape, low)]
            self.pieces(0, "get", self.shelf, key, version, out,
                        *(f"{n}:{a}:{c}" for n, a, c in zip(array.shape, low, count)))
            want = array[tuple(slice(a, a + c) for a, c in zip(low, count))]
            self.assertTrue(np.array_equal(np.fromfile(out).reshape(count), want, equal_nan=True))

    def check_export(self, key, version, array, size):
        path = self.dir / "made.h5"
        code, text = self.cairn("export", "-o", path, f"{self.shelf}/{key}@{version}")
        self.assertEqual(code, 0, text)
        with h5py.File(path) as f:
            self.assertTrue(np.array_equal(f["x"][...], array, equal_nan=True))
            self.assertEqual(f.attrs["version"], version)
            self.assertEqual(f.attrs["nranks"], size)
            of_ranks = [[100 * r + k for k in range(r + 2)] for r in range(size)]
            self.assertEqual(f["list"][...].ravel().tolist(), sum(of_ranks, []))
            cells = [c for r in range(size) for c in range(r, array.shape[0], size)]
            self.assertEqual(f["items#cells"][...]["cell"].ravel().tolist(), cells)
            self.assertEqual(f["items"][...].ravel().tolist(),
                             [10 * c + k for c in cells for k in range(7 * c % 5)])

    def check_difference(self, rng, key, array):
        """One value that is another: 'cairn diff' finds it, by groups of any two sizes."""
        other = array.copy()
        where = tuple(rng.randrange(n) for n in array.shape)
        other[where] += 1
        self.put(rng, key, 2, other)
        code, text = self.cairn("diff", "--json", "--variable", "x", f"{self.shelf}/{key}@1",
                                f"{self.shelf}/{key}@2")
        self.assertEqual(code, 1, text)
        row = json.loads(text)["first"]
        self.assertEqual((row["index"], row["differing"]), (list(where), 1))
        self.put(rng, key, 3, array)
        code, text = self.cairn("diff", "--variable", "x", f"{self.shelf}/{key}@1",
                                f"{self.shelf}/{key}@3")
        self.assertEqual(code, 0, text)

    def test_pieces(self):
        rng = random.Random(system.SEED)
        values = np.random.default_rng(system.SEED)
        for case in range(CASES):
            shape = tuple(rng.randint(3, 60) for _ in range(rng.randint(1, 3)))
            array = values.standard_normal(shape)
            size = self.put(rng, f"m{case}", 1, array)
            with self.subTest(case=case, shape=shape, size=size):
                self.check_boxes(rng, f"m{case}", 1, array)
                self.check_export(f"m{case}", 1, array, size)
                if case % 3 == 0:
                    self.check_difference(rng, f"m{case}", array)

    def test_killed_groups(self):
        """A process of a group is killed at any operation on files of a put: the state is there
        wholly or not at all, others are as they were, and it can be put again."""
        rng = random.Random(system.SEED + 1)
        array = np.random.default_rng(2).standard_normal((40, 30))
        raw = self.dir / "raw"
        array.tofile(raw)
        words = [raw, "0,11,25,40", "0,30"]
        self.pieces(3, "put", self.shelf, "kept", 1, *words)
        killed = 0
        for version in range(KILLS):
            fault = (rng.randrange(3), f"any:{rng.randint(1, 40)}:kill")
            whole = self.pieces(3, "put", self.shelf, "m", version, *words, fault=fault)
            killed += not whole
            code, text = self.cairn("ls", "--json", self.shelf)
            self.assertEqual(code, 0, text)
            there = any((s["key"], s["version"]) == ("m", version)
                        for s in json.loads(text)["states"])
            with self.subTest(version=version, fault=fault, whole=whole, there=there):
                self.assertTrue(there or not whole)
                if not there:
                    self.pieces(3, "put", self.shelf, "m", version, *words)
                self.check_boxes(rng, "m", version, array)
                self.check_boxes(rng, "kept", 1, array)
                code, text = self.cairn("verify", self.shelf)
                self.assertEqual(code, 0, text)
        self.assertGreater(killed, KILLS // 3)


if __name__ == "__main__":
    unittest.main()
