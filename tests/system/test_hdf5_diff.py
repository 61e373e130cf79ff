# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
"""Verdicts of 'cairn diff' on random pairs of HDF5 files, held against numpy's and h5diff's: types,
attributes, texts, links and what only one file has.
"""
import collections
import contextlib
import json
import subprocess
import unittest

import system

COUNT = 240


TWO_FILES = """
import sys, h5py, numpy
for k, name in enumerate(sys.argv[1:]):
    with h5py.File(name, "w") as f:
        f["shaped"] = numpy.zeros((2, 300) if k == 0 else (300, 2))
        f["words"] = 3.0 if k == 0 else "three"
        f["gone"] = h5py.SoftLink("/nowhere")
        f["other"] = h5py.ExternalLink("c.h5", "/x")
        f["x"] = numpy.arange(3.0)
        f["x"].attrs["units"] = ["m", "km"][k]
        f["own"] = ["a"] if k == 0 else ["a", "b"]
        f.create_group(["one", "two"][k])
"""


class Pairs(system.Case):
    def python(self, *words):
        """What a script that needs h5py prints; it may be there for one of several Pythons only."""
        for python in ("/usr/bin/python3", "python3"):
            with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
                return subprocess.run([python, *map(str, words)], check=True, capture_output=True,
                                      text=True).stdout
        return system.skip_loudly(self, "no Python has h5py")

    def make(self):
        return json.loads(self.python(system.HERE / "hdf5_pairs.py", self.dir, system.SEED, COUNT))

    def test_sentences(self):
        files = [self.dir / "a.h5", self.dir / "b.h5"]
        self.python("-c", TWO_FILES, *files)
        code, text = self.cairn("diff", *files)
        self.assertEqual(code, 1, text)
        for sentence in (
                "its shape is [2, 300] in the first file and [300, 2] in the second",
                "its type is float64 in the first file and text in the second",
                "it leads into another file, to '/x' in 'c.h5': --follow compares that",
                "its shape is [1] in the first file and [2] in the second",
                f"'{files[1]}' does not have it", f"'{files[0]}' does not have it"):
            self.assertIn(sentence, text)
        code, text = self.cairn("diff", "--variable", "x/@units", *files)
        self.assertIn("first difference: 'x/@units', index [0]: 'm' and 'km'", text)
        code, text = self.cairn("diff", "--variable", "other", *files)
        self.assertEqual(code, 2, text)
        names = "shaped,words,other,x/@*,own,one,two"
        code, text = self.cairn("diff", "--exclude", names, *files)
        self.assertEqual(code, 0, text)
        self.assertIn("7 were left out by name", text)

    def test_verdicts(self):
        seen = collections.Counter()
        for i, pair in enumerate(self.make()):
            files = [str(self.dir / f"{k}-{i}.h5") for k in "ab"]
            told = f"pair {i} of seed {system.SEED}: {pair}"
            code, text = self.cairn("diff", *files)
            self.assertEqual(code, pair["truth"], f"{told}\n{text}")
            if pair["truth"] == 2 or pair["followed"] != pair["truth"]:
                code, text = self.cairn("diff", "--follow", *files)
                self.assertEqual(code, pair["followed"], f"{told}\n{text}")
            if pair["h5diff"]:
                theirs = subprocess.run(["h5diff", "--follow-symlinks", *files], check=False,
                                        capture_output=True).returncode
                self.assertEqual(theirs, pair["followed"], told)
            seen[pair["what"], pair["truth"]] += 1
        print(f"{COUNT} pairs: {dict(seen)}")
        for what in ("nothing", "value", "attribute", "no attribute", "missing", "shape"):
            self.assertTrue(any(w == what for w, _ in seen), f"no pair has {what}")


if __name__ == "__main__":
    unittest.main()
