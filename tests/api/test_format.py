# SPDX-License-Identifier: BSD-3-Clause
"""A second reader of trails, made from docs/format.md alone, finds what was written.

It shares nothing with the library: numbers by struct, digests by the command xxhsum.
"""
import pathlib
import struct
import subprocess
import unittest

import api

SMALL_TRAIL = api.BUILD / "tests" / "cli" / "small_trail"
PAGE, GRAIN, CRUMB = 4096, 512, 64


class Bytes:
    """Fields one behind the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def raw(self, n):
        self.at += n
        assert self.at <= len(self.data), "cut short"
        return self.data[self.at - n:self.at]

    def numbers(self, form):
        return struct.unpack("<" + form, self.raw(struct.calcsize("<" + form)))

    def number(self, form):
        return self.numbers(form)[0]

    def text(self):
        return self.raw(self.number("H")).decode()

    def reference(self):
        return (*self.numbers("QQ"), self.raw(16))

    def end(self):
        assert self.at == len(self.data), "strange bytes follow"


class Digests:
    """Bytes and the digests that they should have, checked together."""

    def __init__(self, folder):
        self.folder, self.pairs = folder, []

    def expect(self, data, digest):
        self.pairs.append((data, digest))

    def of(self, pieces):
        """Digests of pieces, by one call of xxhsum."""
        for i, piece in enumerate(pieces):
            (self.folder / str(i)).write_bytes(piece)
        output = subprocess.run(["xxhsum", "-H2", *map(str, range(len(pieces)))], check=True,
                                cwd=self.folder, capture_output=True, text=True).stdout
        return [bytes.fromhex(line.split()[0]) for line in output.splitlines()]

    def wrong(self):
        """Indices of the pairs that do not agree."""
        found = self.of([data for data, _ in self.pairs])
        return [i for i, (_, digest) in enumerate(self.pairs) if found[i] != digest]

    def root(self, leaves):
        """Section 5."""
        while len(leaves) > 1:
            pairs = [leaves[i] + leaves[i + 1] for i in range(0, len(leaves) - 1, 2)]
            leaves = self.of(pairs) + leaves[len(pairs) * 2:]
        return leaves[0] if leaves else bytes(16)


def read_manifest(path, digests):
    """Section 3: (identity, marks)."""
    data = path.read_bytes()
    b = Bytes(data)
    assert b.raw(8) == b"CAIRNMF\n"
    form, n = b.numbers("II")
    assert form == 1
    identity = b.raw(16)
    b.numbers("QQII")
    marks = [b.numbers("QQQIIII") for _ in range(n)]
    digests.expect(data[:-16], b.raw(16))
    b.end()
    return identity, marks


class Part:
    """Section 4."""

    def __init__(self, path, digests):
        self.data, self.digests = path.read_bytes(), digests
        supers = [self.superblock(at) for at in (0, 2048, 4096, 6144)]
        for at, found in zip((0, 2048, 4096, 6144), supers):
            assert not found or found["seq"] % 2 == at // 4096
        newest = max((s for s in supers if s), key=lambda s: s["seq"])
        self.owner, self.end = newest["owner"], newest["end"]
        self.used = []
        self.marks = self.catalogue(newest)

    def superblock(self, at):
        data = self.data[at:at + 512]
        if data == bytes(512):
            return None
        b = Bytes(data)
        assert b.raw(8) == b"CAIRNPT\n"
        assert b.numbers("II") == (2, 0)
        found = {"seq": b.number("Q"), "owner": (b.raw(16), *b.numbers("IIII")),
                 "end": b.number("Q"), "catalogue": b.reference(), "dropped": b.number("I")}
        assert b.raw(396) == bytes(396)
        self.digests.expect(data[:496], b.raw(16))
        b.end()
        return found

    def bytes_at(self, off, nbytes, digest):
        assert off >= 8192 and off + nbytes <= self.end
        data = self.data[off:off + nbytes]
        assert len(data) == nbytes
        self.digests.expect(data, digest)
        return data

    def piece(self, off, nbytes, digest, room=GRAIN):
        """Bytes of the file, which nothing else may use."""
        assert off % GRAIN == 0
        self.used.append((off, off + (nbytes + room - 1) // room * room))
        return self.bytes_at(off, nbytes, digest)

    def block(self, off, stored, digest):
        """Section 6: what is below a sector shares it with others."""
        if stored >= PAGE:
            assert off % PAGE == 0
            return self.piece(off, stored, digest, PAGE)
        if stored >= GRAIN:
            return self.piece(off, stored, digest)
        assert off % CRUMB == 0
        self.used.append((off, off + stored))
        return self.bytes_at(off, stored, digest)

    def catalogue(self, superblock):
        """Section 4.2."""
        b = Bytes(self.piece(*superblock["catalogue"]))
        assert b.raw(4) == b"CTL2"
        pages = [(b.reference(), b.number("I")) for _ in range(b.number("I"))]
        b.end()
        marks = [m for reference, n in pages for m in self.catalogue_page(reference, n)]
        return {m[0]: m for m in marks[superblock["dropped"]:]}

    def catalogue_page(self, reference, n):
        b = Bytes(self.piece(*reference))
        assert b.raw(4) == b"CATP" and b.number("I") == n and 1 <= n <= 64
        marks = []
        for _ in range(n):
            assert b.text() == ""
            marks.append((*b.numbers("QQQ"), b.reference()))
        b.end()
        return marks

    def mark(self, version):
        """Section 4.3: the variables by name."""
        _, seq, begun, record = self.marks[version]
        b = Bytes(self.piece(*record))
        assert b.raw(4) == b"MRK2"
        n = b.number("I")
        assert b.numbers("QQQ") == (version, seq, begun)
        pages = [b.reference() for _ in range(0, n, 128)]
        b.end()
        variables = []
        for reference in pages:
            variables += self.page(reference, min(128, n - len(variables)), seq)
        return {v["name"]: v for v in variables}

    def page(self, reference, n, seq):
        b = Bytes(self.piece(*reference))
        assert b.raw(4) == b"PAGE" and b.number("I") == n
        assert b.number("Q") <= seq
        variables = [self.variable(b) for _ in range(n)]
        b.end()
        return variables

    def variable(self, b):
        v = {"name": b.text(), "type": b.text(), "attributes": b.text()}
        v["item"], v["block"], v["nbytes"], v["ndims"] = b.numbers("IIQB")
        v["global"], v["offset"], v["count"] = (b.numbers("Q" * v["ndims"]) for _ in range(3))
        v["changed"], v["stored"] = b.numbers("QQ")
        v["root"] = b.raw(16)
        v["data"], v["leaves"] = self.blocks(v, b)
        return v

    def blocks(self, v, b):
        """Section 4.4: the bytes of a variable and the digests of its blocks."""
        n = -(-v["nbytes"] // v["block"])
        kind = b.number("B")
        assert kind & 1 == 0, "a short table"
        assert (kind == 2) == (32 * n <= 128)
        if kind == 0:
            reference = b.reference()
            assert reference[1] == 32 * n
            b = Bytes(self.piece(*reference))
        data, leaves = b"", []
        for _ in range(n):
            off, stored, codec, digest = (*b.numbers("QII"), b.raw(16))
            assert codec == 0 and stored == min(v["block"], v["nbytes"] - len(data))
            data += self.block(off, stored, digest)
            leaves.append(digest)
        return data, leaves


class Format(api.TestCase):
    RANKS, MARKS, KEEP = 3, 7, 2

    def setUp(self):
        super().setUp()
        api.need("xxhsum")
        self.digests = Digests(self.dir)
        self.trail = self.dir / "trail"
        self.must(SMALL_TRAIL, self.trail, self.RANKS, self.MARKS, self.KEEP)
        self.run_dir = self.trail / "run-1"

    def part(self, rank):
        return Part(self.run_dir / "series-1" / "000" / f"part-{rank:06}", self.digests)

    def expected(self, rank, mark):
        """What tests/harness/small_trail.h writes."""
        cells = [rank + 0.001 * i + (mark if i // 512 == mark % 8 else 0.0) for i in range(4096)]
        return struct.pack("<4096d", *cells)

    def check_mark(self, part, rank, mark):
        part.used.clear()
        variables = part.mark(10 * mark)
        self.assertEqual(list(variables), ["temperature", "step"])
        field, step = variables["temperature"], variables["step"]
        self.assertEqual(field["data"], self.expected(rank, mark))
        self.assertEqual(step["data"], struct.pack("<Q", 10 * mark))
        self.assertEqual((field["type"], field["item"], field["block"]), ("float64", 8, 4096))
        self.assertEqual((field["global"], field["offset"], field["count"]),
                         ((4096 * self.RANKS,), (4096 * rank,), (4096,)))
        for v in variables.values():
            self.assertEqual(self.digests.root(v["leaves"]), v["root"])
        ends = sorted(part.used)
        self.assertTrue(all(a[1] <= b[0] for a, b in zip(ends, ends[1:])), "pieces overlap")

    def test_a_reader_made_from_the_specification(self):
        self.assertEqual((self.trail / "trail").read_bytes(), b"cairn trail 1\n")
        identity, marks = read_manifest(self.run_dir / "manifest", self.digests)
        kept = range(self.MARKS - self.KEEP + 1, self.MARKS + 1)
        self.assertEqual([m[0] for m in marks], [10 * k for k in kept])
        for _, _, nbytes, series, nranks, levels, reserved in marks:
            self.assertEqual((nbytes, series, nranks, levels, reserved),
                             (self.RANKS * (4096 * 8 + 8), 1, self.RANKS, 8, 0))
        for rank in range(self.RANKS):
            part = self.part(rank)
            self.assertEqual(part.owner, (identity, 1, rank, self.RANKS, 0))
            self.assertEqual(list(part.marks), [10 * k for k in kept])
            for k in kept:
                self.check_mark(part, rank, k)
        self.assertEqual(self.digests.wrong(), [])

    def test_the_reader_notices_damage(self):
        path = self.run_dir / "series-1" / "000" / "part-000001"
        data = path.read_bytes()
        cell = struct.pack("<d", 1 + 0.001 * 1001)
        self.assertIn(cell, data)
        path.write_bytes(data.replace(cell, struct.pack("<d", 2.5)))
        part = self.part(1)
        for k in (self.MARKS - 1, self.MARKS):
            part.mark(10 * k)
        wrong = self.digests.wrong()
        self.assertTrue(wrong)
        for i in wrong:
            self.assertIn(struct.pack("<d", 2.5), self.digests.pairs[i][0])

    def test_what_the_directory_holds(self):
        names = sorted(str(p.relative_to(self.trail)) for p in self.trail.rglob("*")
                       if p.is_file())
        parts = [f"run-1/series-1/000/part-{rank:06}" for rank in range(self.RANKS)]
        self.assertEqual(names, ["run-1/lock", "run-1/manifest", *parts, "trail"])
        for name in names:
            self.assertEqual(pathlib.Path(self.trail / name).stat().st_mode & 0o777, 0o600)


if __name__ == "__main__":
    unittest.main()
