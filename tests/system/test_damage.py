# SPDX-License-Identifier: BSD-3-Clause
"""Storage that lies or is gone: a damaged block in each kind of copy, and more loss than a level
promises to survive."""
import shutil
import struct
import unittest

import system

HOT = struct.pack("<d", 1) * 16  # in the middle of the plate, where no step has come to


class Damage(system.Case):
    """Marks 3, 6, 9 and 12 are taken at all levels; then a rank dies on its way to the next."""
    settings = {"level_partner": 1, "level_global": 1}
    work = ["--size", 96, "--steps", 18, "--every", 3]
    newest = 12

    def setUp(self):
        super().setUp()
        code, text = self.run_job(fault=(1, "store:5:kill"))
        self.assertNotEqual(code, 0, text)
        self.assertEqual(max(e["version"] for e in self.events("mark")), self.newest)

    def copies(self, pattern):
        return sorted(path for path in self.dir.rglob(pattern) if "quiet" not in str(path))

    def damage(self, pattern):
        """Change one bit of some blocks in every file that matches."""
        paths = self.copies(pattern)
        self.assertTrue(paths, pattern)
        for path in paths:
            data = bytearray(path.read_bytes())
            at = data.find(HOT)
            self.assertGreater(at, 0, path)
            while at >= 0:
                data[at + 77] ^= 4
                at = data.find(HOT, at + len(HOT))
            path.write_bytes(data)

    def resumed(self, version):
        """Go on from this mark to the right end; the levels that blocks came from."""
        self.assertIn(f"resumed at step {version}\n", self.must_run())
        self.assert_right()
        return self.events("resume")[-1]["from"]

    def test_own_part(self):
        self.damage("own-1")
        came = self.resumed(self.newest)
        self.assertGreater(came["local"]["bad"], 0)
        self.assertEqual(came["partner"]["blocks"], came["local"]["bad"])

    def test_own_part_and_partner(self):
        self.damage("own-1")
        self.damage("partner-1")
        came = self.resumed(self.newest)
        self.assertEqual(came["global"]["blocks"], came["partner"]["bad"])

    def test_lost_node_and_damaged_partner(self):
        self.lose_nodes([1])
        self.damage("partner-1")
        self.assertGreater(self.resumed(self.newest)["global"]["blocks"], 0)

    def test_all_nodes_lost(self):
        self.lose_nodes(range(self.ranks))
        came = self.resumed(self.newest)
        self.assertEqual(list(k for k, v in came.items() if v["blocks"]), ["global"])

    def test_everything_damaged(self):
        """The refusal says what is missing, and a trail that is mended goes on."""
        part = self.copies("part-000001")[0]
        whole = part.read_bytes()
        self.lose_nodes(range(self.ranks))
        self.damage("part-000001")
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"rank 1, variable 'field': block \d+ .* is damaged or lost")
        part.write_bytes(whole)
        self.resumed(self.newest)

    def test_cut_files(self):
        """A file that is cut or empty is as good as lost."""
        for path, keep in zip(self.copies("own-*"), (0, 100, 5000, 20000)):
            with path.open("r+b") as file:
                file.truncate(keep)
        self.resumed(self.newest)

    def test_lost_manifest(self):
        (self.trail / "run-1" / "manifest").unlink()
        self.resumed(self.newest)


class Loss(system.Case):
    """Beyond the promise: an older mark of a safer level, or a refusal."""
    work = ["--size", 96, "--steps", 18, "--every", 3]

    def die(self, **settings):
        self.settings = settings
        code, text = self.run_job(fault=(1, "store:5:kill"))
        self.assertNotEqual(code, 0, text)

    def test_older_mark_of_a_safer_level(self):
        self.die(level_partner=1, level_global=3)
        self.lose_nodes(range(self.ranks))
        self.assertIn("resumed at step 9\n", self.must_run())
        self.assert_right()
        self.assertEqual(self.events("lost")[-1]["version"], 12)

    def test_older_partner_mark(self):
        self.die(level_partner=3, level_global=0)
        self.lose_nodes([2])
        self.assertIn("resumed at step 9\n", self.must_run())
        self.assert_right()

    def test_refusal(self):
        self.die(level_partner=1, level_global=0)
        self.lose_nodes([1, 2])
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"mark \d+ is not whole: the share of rank 1 is neither in its own")
        self.assertFalse((self.dir / "result").exists())

    def test_refusal_harms_nothing(self):
        """Nodes that come back later are as good as before."""
        self.die(level_partner=0, level_global=0)
        away = self.dir / "away"
        (self.local / "node-2").rename(away)
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        shutil.rmtree(self.local / "node-2", ignore_errors=True)
        away.rename(self.local / "node-2")
        self.assertIn("resumed at step 12\n", self.must_run())
        self.assert_right()


class LossEncoded(Damage):
    """Parity instead of copies."""
    settings = {"level_partner": 0, "level_encoded": 1, "level_group": 4, "level_parity": 2,
                "level_global": 0}

    def test_own_part(self):
        self.damage("own-1")
        came = self.resumed(self.newest)
        self.assertEqual(came["encoded"]["blocks"], came["local"]["bad"])

    def test_two_nodes(self):
        self.lose_nodes([0, 2])
        self.assertGreater(self.resumed(self.newest)["encoded"]["blocks"], 0)

    def test_node_and_block(self):
        self.lose_nodes([0])
        self.damage("own-1")
        self.resumed(self.newest)

    def test_damaged_parity(self):
        path = self.copies("parity-*")[0]
        data = bytearray(path.read_bytes())
        for at in range(16384, len(data), 1024):
            data[at] ^= 16
        path.write_bytes(data)
        self.lose_nodes([1 if "node-1" not in str(path) else 2])
        self.resumed(self.newest)

    def test_three_nodes(self):
        self.lose_nodes([0, 1, 2])
        code, text = self.run_job()
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, r"mark \d+ is not whole")

    def test_own_part_and_partner(self):
        self.skipTest("no partner")

    test_lost_node_and_damaged_partner = test_all_nodes_lost = test_own_part_and_partner
    test_everything_damaged = test_cut_files = test_lost_manifest = test_own_part_and_partner


if __name__ == "__main__":
    unittest.main()
