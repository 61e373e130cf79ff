# SPDX-License-Identifier: BSD-3-Clause
"""Plain HDF5 files and raw arrays: 'cairn diff' says what a comparison of all values says."""
import contextlib
import json
import subprocess
import unittest

import system

# Makes two files of random datasets that differ here and there, and prints what numpy makes of
# them. h5py may be there for one of several Pythons only.
WRITER = r"""
import json, random, sys, h5py, numpy as np
seed, bound, first, second = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
rng, np_rng = random.Random(seed), np.random.default_rng(seed)
TYPES = ["<f8", "<f4", ">f8", ">f4", "<i4", "<u2", "<i8", ">i4", "|u1"]
expected = {}

def how(shape):
    if not shape or 0 in shape or rng.random() < 0.4:
        return {}
    chunks = tuple(rng.randint(1 + n // 4, n) for n in shape)
    return {"chunks": chunks, **({"compression": "gzip"} if rng.random() < 0.5 else {})}

def differ(a, b):
    if a.dtype.kind != "f":
        return a != b
    x, y = a.astype("f8"), b.astype("f8")
    with np.errstate(invalid="ignore"):
        return ~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= bound))

def random_pair(shape, kind):
    a = (np_rng.random(shape) * 100).astype(kind)
    b = a.copy()
    flat = b.reshape(-1)
    for _ in range(rng.choice([0, 0, 1, 3, min(flat.size, 500)]) if flat.size else 0):
        i = rng.randrange(flat.size)
        if b.dtype.kind == "f":
            flat[i] += rng.choice([bound * 0.9, bound * 2, 1, np.nan, np.inf])
        else:
            flat[i] += 1
    return a, b

with h5py.File(first, "w") as f, h5py.File(second, "w") as g:
    for n in range(14):
        depth = rng.randint(0, 3)
        name = "/".join([*(f"group{rng.randint(0, 2)}" for _ in range(depth)), f"set{n:02}"])
        shape = tuple(rng.choice([0, 1, 2, 7, 40, 300]) for _ in range(rng.randint(0, 3)))
        kind = np.dtype(rng.choice(TYPES))
        if n == 5: # rows that are larger than what is read at once
            shape, kind = (2, 1100000), np.dtype("<f8")
        a, b = random_pair(shape, kind)
        where = rng.random()
        if where < 0.9:
            f.create_dataset(name, data=a, **how(shape))
        if where > 0.1:
            g.create_dataset(name, data=b, **how(shape))
        if not 0.1 < where < 0.9:
            expected[name] = "only in the first" if where <= 0.1 else "only in the second"
            continue
        d = differ(a, b)
        places = np.argwhere(d) if d.shape else ([[0]] if d else [])
        expected[name] = [int(d.sum()), [int(i) for i in places[0]] if len(places) else None]
    for h in (f, g):
        h["text"] = "no numbers"
    expected["text"] = [0, None]
    groups = [set(), set()]
    for names, h in zip(groups, (f, g)):
        h.visititems(lambda n, x, names=names: names.add(n) if isinstance(x, h5py.Group) else None)
    for name in groups[0] ^ groups[1]:
        expected[name] = "only in the first" if name in groups[0] else "only in the second"
print(json.dumps(expected))
"""

RAW = r"""
import sys, numpy as np
rng = np.random.default_rng(int(sys.argv[1]))
a = rng.random((700, 3001)).astype(sys.argv[2])
b = a.copy()
b[500, 17] += 1
b[699, 3000] += 1
a.tofile(sys.argv[3])
b.tofile(sys.argv[4])
"""


ODD = r"""
import sys, h5py, numpy as np
for path in sys.argv[1:]:
    with h5py.File(path, "w") as f:
        f["deep"] = np.zeros((1,) * 9)
        f["long"] = np.zeros(3, np.longdouble)
        f["plain"] = np.zeros(3)
        f["text"] = "no numbers"
        f.create_dataset("wide", (2, 2**61), "f8", chunks=(1, 1024)) # of which nothing is there
"""


class Files(system.Case):
    def python(self, script, *args):
        """The output of a script that needs h5py."""
        for python in ("python3", "/usr/bin/python3"):
            with contextlib.suppress(FileNotFoundError):
                if subprocess.run([python, "-c", "import h5py"], check=False,
                                  capture_output=True).returncode == 0:
                    return subprocess.run([python, "-c", script, *map(str, args)], check=True,
                                          capture_output=True, text=True).stdout
        return system.skip_loudly(self, "no Python has h5py")

    def check(self, rows, expected):
        self.assertEqual([r["variable"] for r in rows], sorted(expected))
        for r in rows:
            want = expected[r["variable"]]
            if isinstance(want, str):
                self.assertEqual(r["verdict"], want)
                continue
            self.assertEqual([r["differing"], r.get("index")], want, r)
            self.assertEqual(r["verdict"], "different" if want[0] else "same")

    def test_as_numpy(self):
        a, b = self.dir / "a.h5", self.dir / "b.h5"
        for turn in range(4):
            bound = self.random.choice([1e-3, 1e-9])
            expected = json.loads(self.python(WRITER, self.random.randrange(10**9), bound, a, b))
            code, text = self.cairn("diff", "--json", "--bound", bound, "--threads", 1 + turn % 3,
                                    a, b)
            found = json.loads(text)
            self.check(found["rows"], expected)
            same = all(not isinstance(w, str) and w[0] == 0 for w in expected.values())
            self.assertEqual(code, 0 if same else 1)
            self.assertEqual(found["skipped"], 0)
            a.unlink()
            b.unlink()

    def test_numbers_that_cannot_be_compared(self):
        """They are told, and two files that have them are not called the same."""
        a, b = self.dir / "a.h5", self.dir / "b.h5"
        self.python(ODD, a, b)
        code, text = self.cairn("diff", "--json", a, b)
        found = json.loads(text)
        verdicts = {r["variable"]: r["verdict"] for r in found["rows"]}
        self.assertEqual(verdicts, {"deep": "could not tell", "long": "same", "plain": "same",
                                    "text": "same", "wide": "could not tell"})
        self.assertEqual((code, found["skipped"]), (2, 0))
        self.assertEqual(self.cairn("diff", "--variable", "plain", a, b)[0], 0)

    def test_raw(self):
        a, b = self.dir / "a.bin", self.dir / "b.bin"
        for kind in ("float64", "int32"):
            self.python(RAW, 5, kind, a, b)
            code, text = self.cairn("diff", "--raw", kind, "--shape", "700x3001", "--json", a, b)
            self.assertEqual(code, 1)
            row = json.loads(text)["rows"][0]
            self.assertEqual((row["index"], row["differing"]), ([500, 17], 2))
            self.assertEqual((row["low"], row["high"]), ([500, 17], [699, 3000]))
            self.assertEqual(self.cairn("diff", "--raw", kind, a, a)[0], 0)


if __name__ == "__main__":
    unittest.main()
