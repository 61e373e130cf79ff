# SPDX-License-Identifier: BSD-3-Clause
"""Random pairs of HDF5 files that differ in one thing or in nothing, and the truth about them.

    hdf5_pairs.py DIRECTORY SEED COUNT

writes a-<i>.h5 and b-<i>.h5 and prints a JSON list with, for each pair, what was done to the second
file and what 'cairn diff' must say without and with --follow, by h5py and numpy alone, and whether
h5diff compares all of it, too. Not a test itself: it needs a Python that has h5py, which need not
be the one that runs the tests.
"""
import json
import pathlib
import random
import sys

import h5py
import numpy as np

SAME, DIFFERENT, UNTOLD = 0, 1, 2
WORDS = ["", "a", "heat", "Ωmega", "two words", "x" * 70]


class Value:
    """Something that a dataset or an attribute can hold: its data and how it is stored."""

    def __init__(self, data, dtype=None, plain=True):
        self.data, self.dtype, self.plain = data, dtype, plain

    def write(self, owner, name, **options):
        if isinstance(owner, h5py.AttributeManager):
            owner.create(name, self.data, dtype=self.dtype)
        else:
            owner.create_dataset(name, data=self.data, dtype=self.dtype, **options)


def numbers(r, shape):
    kind = r.choice(["f4", "f8", ">f8", "f2", "i1", "i4", ">i8", "u2", "u8", "?", "g"])
    data = np.array([r.choice([0, 1, 2.5, -7, 100]) for _ in range(int(np.prod(shape)))])
    data = np.abs(data) if "u" in kind else data
    data = data.astype(kind).reshape(shape)
    if data.dtype.kind == "f" and data.size and r.random() < 0.3:
        data.flat[r.randrange(data.size)] = r.choice([np.nan, np.inf, -0.0])
    return Value(data)


def texts(r, shape):
    words = [r.choice(WORDS) for _ in range(int(np.prod(shape)))]
    if r.random() < 0.5:
        data = np.array([w.encode() for w in words], dtype=object).reshape(shape)
        return Value(data, h5py.string_dtype())
    return Value(np.array([w.encode() for w in words], dtype="S80").reshape(shape))


def structures(r, shape):
    inner = r.choice([[("n", "i4"), ("x", "f8")], [("name", "S8"), ("x", "f4", (3,))],
                      [("on", "?"), ("a", [("b", "u1"), ("c", "S3")])]])
    data = np.zeros(shape, dtype=inner)
    for i in range(data.size):
        data.reshape(-1)[i][inner[0][0]] = r.choice([0, 1])
    return Value(data)


def sequences(r, shape):
    data = np.empty(shape, dtype=object)
    for i in np.ndindex(*shape):
        data[i] = np.array([r.randrange(9) for _ in range(r.randrange(4))], dtype="i4")
    return Value(data, h5py.vlen_dtype("i4"), plain=False)


def opaque(r, shape):
    data = np.zeros(shape, dtype="V5")
    return Value(data)


def some_value(r):
    shape = r.choice([(), (1,), (3,), (2, 5), (4, 1, 2), (0,)])
    kind = r.choice([numbers, numbers, numbers, texts, texts, structures, sequences, opaque])
    if kind is sequences and not shape:
        shape = (2,)
    return kind(r, shape)


def some_tree(r):
    """Paths of datasets, links and groups, each with attributes; a plain structure."""
    tree = {"": ("group", None, attributes(r))}
    for g in r.sample(["g", "g/h", "deep"], r.randrange(4)):
        tree[g] = ("group", None, attributes(r))
    parents = [p for p in tree if "/" not in p or p.split("/")[0] in tree]
    for i in range(r.randrange(1, 6)):
        parent = r.choice(parents)
        tree[f"{parent}/d{i}".lstrip("/")] = ("dataset", some_value(r), attributes(r))
    data = [p for p, e in tree.items() if e[0] == "dataset"]
    if r.random() < 0.3:
        tree["soft"] = ("soft", "/" + r.choice(data), {})
    if r.random() < 0.2:
        tree["lost"] = ("soft", "/nowhere", {})
    if r.random() < 0.2:
        tree["outward"] = ("external", "/" + r.choice(data), {})
    if r.random() < 0.2:
        tree["hard"] = ("hard", "/" + r.choice(parents + data), {})
    return tree


def attributes(r):
    return {f"at{i}": some_value(r) for i in range(r.choice([0, 0, 1, 3]))}


def write(path, tree, other, r):
    with h5py.File(path, "w") as f:
        for name, (kind, what, attrs) in tree.items():
            if kind == "group":
                o = f if name == "" else f.require_group(name)
            elif kind == "dataset":
                options = {"chunks": True, "compression": "gzip"} if (
                    np.size(what.data) > 1 and r.random() < 0.3) else {}
                what.write(f, name, **options)
                o = f[name]
            elif kind == "soft":
                f[name] = h5py.SoftLink(what)
            elif kind == "external":
                f[name] = h5py.ExternalLink(other, what)
            else:
                f[name] = f[what]
            for a, value in attrs.items():
                value.write(o.attrs, a)


def touched(value, r):
    """The value with one element changed, or None where there is none."""
    data = np.array(value.data, dtype=value.data.dtype)
    if data.size == 0:
        return None
    i = r.randrange(data.size)
    flat = data.reshape(-1)
    if value.dtype is not None and h5py.check_string_dtype(value.dtype):
        flat[i] = flat[i] + b"!"
    elif value.dtype is not None:
        flat[i] = np.append(flat[i], 3).astype("i4")
    elif data.dtype.kind == "S":
        flat[i] = (b"!" + flat[i])[:80]
    elif data.dtype.kind == "V" and data.dtype.names is None:
        flat[i] = np.void(b"\1\2\3\4\5")
    elif data.dtype.names:
        last = data.dtype.names[-1]
        if data.dtype[last].names:
            flat[i][last]["c"] = b"zz"
        else:
            flat[i][last] = 77
    elif data.dtype.kind == "b":
        flat[i] = not flat[i]
    else:
        flat[i] = 42
    return Value(data, value.dtype, value.plain)


def mutate(tree, r):
    """Change one thing; returns the new tree and a word."""
    new = dict(tree)
    data = [p for p, e in tree.items() if e[0] == "dataset"]
    marked = [p for p, e in tree.items() if e[2]]
    what = r.choice(["nothing", "nothing", "value", "value", "attribute", "attribute",
                     "no attribute", "missing", "shape", "type", "link", "kind", "stored"])
    if what == "value":
        p = r.choice(data)
        value = touched(tree[p][1], r)
        if value:
            new[p] = ("dataset", value, tree[p][2])
            return new, what
    elif what in ("attribute", "no attribute") and marked:
        p = r.choice(marked)
        attrs = dict(tree[p][2])
        a = r.choice(list(attrs))
        old = attrs.pop(a)
        value = touched(old, r) if what == "attribute" else None
        if value:
            attrs[a] = value
        if value or what == "no attribute":
            new[p] = (*tree[p][:2], attrs)
            return new, what
    elif what == "missing":
        p = r.choice(data)
        if not any(e[1] == "/" + p for e in tree.values()):
            del new[p]
            return new, what
    elif what in ("shape", "type", "kind", "stored"):
        p = r.choice(data)
        v = tree[p][1]
        if what == "shape":
            new[p] = ("dataset", Value(v.data.reshape(v.data.shape + (1,)), v.dtype), tree[p][2])
            return new, what
        if what == "type" and v.data.dtype.kind in "fiu" and v.data.dtype.itemsize == 4:
            new[p] = ("dataset", Value(v.data.astype("f8")), tree[p][2])
            return new, what
        if what == "kind":
            new[p] = ("dataset", Value(np.array(b"text")), tree[p][2])
            return new, what
        if what == "stored" and v.data.dtype.kind == "S":  # the same text in other room
            new[p] = ("dataset", Value(v.data.astype(object), h5py.string_dtype()), tree[p][2])
            return new, what
    elif what == "link" and "lost" in tree:
        new["lost"] = ("soft", "/elsewhere", {})
        return new, what
    return dict(tree), "nothing"


def same_type(a, b):
    if h5py.check_string_dtype(a) and h5py.check_string_dtype(b):
        return True
    if bool(h5py.check_string_dtype(a)) != bool(h5py.check_string_dtype(b)):
        return False
    if a.names or b.names:
        return a.names == b.names and all(same_type(a[n], b[n]) for n in a.names)
    if h5py.check_vlen_dtype(a) is not None or h5py.check_vlen_dtype(b) is not None:
        return h5py.check_vlen_dtype(a) == h5py.check_vlen_dtype(b)
    if a.kind == "f" and b.kind == "f":  # half precision is read as single
        return max(a.itemsize, 4) == max(b.itemsize, 4)
    return a.newbyteorder("=") == b.newbyteorder("=")


def same_values(x, y):
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype == object or y.dtype == object or x.dtype.kind in "SV":
        def plain(v):
            v = v.tolist() if isinstance(v, np.ndarray) else v
            return v.encode() if isinstance(v, str) else v
        return all(plain(p) == plain(q) for p, q in zip(x.reshape(-1), y.reshape(-1)))
    return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def compare_one(a, b):
    """Two datasets, or two low-level attributes with their values."""
    if not same_type(a.dtype, b.dtype) or a.shape != b.shape:
        return DIFFERENT
    return SAME if same_values(a[...], b[...]) else DIFFERENT


class Attribute:
    def __init__(self, attrs, name):
        low = attrs.get_id(name)
        self.dtype, self.shape = low.dtype, low.shape
        self.data = np.empty(low.shape, low.dtype)
        if self.data.size:
            low.read(self.data)

    def __getitem__(self, _):
        return self.data


def compare_attributes(a, b):
    names = set(a.attrs) | set(b.attrs)
    return [compare_one(Attribute(a.attrs, n), Attribute(b.attrs, n))
            if n in a.attrs and n in b.attrs else DIFFERENT for n in names]


def compare_groups(a, b, follow):
    """Statuses of everything in two groups."""
    found = compare_attributes(a, b)
    for name in set(a) | set(b):
        if name not in a.keys() or name not in b.keys():
            found.append(DIFFERENT)
            continue
        links = [g.get(name, getlink=True) for g in (a, b)]
        if any(isinstance(k, h5py.ExternalLink) for k in links) and not follow:
            found.append(UNTOLD)
            continue
        x, y = a.get(name), b.get(name)
        if x is None and y is None:
            found.append(SAME if links[0].path == links[1].path else DIFFERENT)
        elif x is None or y is None or type(x) is not type(y):
            found.append(DIFFERENT)
        elif isinstance(x, h5py.Group):
            if name != "hard":  # which has been compared by its other name
                found += compare_groups(x, y, follow)
        else:
            found += compare_attributes(x, y) + [compare_one(x, y)]
    return found


def truth(paths, follow):
    with h5py.File(paths[0]) as a, h5py.File(paths[1]) as b:
        found = compare_groups(a, b, follow)
    return DIFFERENT if DIFFERENT in found else UNTOLD if UNTOLD in found else SAME


def is_plain(tree):
    """Is there nothing that h5diff overlooks? It does not see that a sequence is longer."""
    values = [e[1] for e in tree.values() if e[0] == "dataset"]
    values += [v for e in tree.values() for v in e[2].values()]
    return all(v.plain for v in values)


def main():
    folder, seed, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    pairs = []
    for i in range(count):
        r = random.Random(seed * 1000003 + i)
        tree = some_tree(r)
        other, what = mutate(tree, r)
        paths = [folder / f"a-{i}.h5", folder / f"b-{i}.h5"]
        write(paths[0], tree, paths[0].name, r)
        write(paths[1], other, paths[1].name, r)
        pairs.append({"what": what, "truth": truth(paths, False), "followed": truth(paths, True),
                      "h5diff": what in ("nothing", "value", "attribute") and is_plain(tree)})
    print(json.dumps(pairs))


main()
