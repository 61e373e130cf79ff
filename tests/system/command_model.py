# SPDX-License-Identifier: BSD-3-Clause
"""A model that knows nothing of Cairn, for test_ensemble_command.py: Lorenz's model of 1996 by
numpy, with its state in HDF5 files. Not a test itself: it needs a Python that has h5py.

    command_model.py first FILE            make a first state
    command_model.py IN OUT STEPS [HOW]    advance it; HOW: "refuse" or "killed" when the file has
                                           52 steps behind it
    command_model.py compare FILE FILE     are the datasets of the two the same, bit for bit?
"""
import os
import shutil
import signal
import sys

import h5py
import numpy as np

FORCE, DT = 8.0, 0.05


def slope(x):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + FORCE


def step(x):
    """As examples/lorenz96.c does it, in the same order, so that the bits are the same."""
    last, total = np.zeros_like(x), np.zeros_like(x)
    for h, weight in ((0, 1), (DT / 2, 2), (DT / 2, 2), (DT, 1)):
        last = slope(x + h * last)
        total = total + weight * last
    return x + DT / 6 * total


def make_first(path):
    x = np.full(40, FORCE)
    x[0] += 0.01
    with h5py.File(path, "w") as f:
        f["ocean/x"] = x
        f["note"] = "left alone: no number"
        f["clock"] = np.array([0], dtype=">i4")


def advance(source, target, steps, how):
    if source != target:
        shutil.copyfile(source, target)
    with h5py.File(target, "r+") as f:
        late = f["clock"][0] >= 52
        if late and how == "refuse":
            sys.exit(3)
        if late and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        x = f["ocean/x"][:]
        for _ in range(steps):
            x = step(x)
        f["ocean/x"][:] = x
        f["clock"][0] += steps


def compare(a, b):
    with h5py.File(a) as f, h5py.File(b) as g:
        assert set(f) == set(g), (set(f), set(g))
        for name in f:
            assert np.array_equal(f[name][()], g[name][()]), name
        print(*(f"{name}{list(f[name].shape)}" for name in sorted(f)))


if sys.argv[1] == "first":
    make_first(sys.argv[2])
elif sys.argv[1] == "compare":
    compare(*sys.argv[2:4])
else:
    advance(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "")
