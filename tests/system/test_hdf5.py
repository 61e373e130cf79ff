# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: hdf5
"""Global marks as HDF5: other tools read them, and a rank that is killed while all write one file
leaves the previous one whole.
"""
import contextlib
import json
import subprocess
import unittest
import xml.etree.ElementTree

import system
import test_stages

# h5py may be there for one of several Pythons only.
READER = """
import json, sys, h5py
with h5py.File(sys.argv[1]) as f:
    text = lambda v: v.decode() if isinstance(v, bytes) else v.item() if hasattr(v, "item") else v
    print(json.dumps({"attributes": {k: text(v) for k, v in f.attrs.items()},
                      "field": f["field"][...].ravel().tolist(), "shape": f["field"].shape,
                      "step": f["step"][...].tolist()}))
"""


def tool(*words):
    """The output of a tool that must be there and succeed."""
    words = [str(w) for w in words]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def read_by_h5py(test, path):
    for python in ("python3", "/usr/bin/python3"):
        with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
            return json.loads(tool(python, "-c", READER, path))
    return system.skip_loudly(test, "no Python has h5py")


class Tools(system.Case):
    settings = {"level_partner": 0, "level_global": 1, "keep_global": 3, "global_format": "hdf5"}
    ranks = 3

    def files(self):
        """HDF5 files of the marks that the run has, by their versions."""
        code, text = self.cairn("ls", "--json", self.trail)
        self.assertEqual(code, 0, text)
        series = self.trail / "run-1" / "series-1"
        marks = json.loads(text)["runs"][0]["marks"]
        return {m["version"]: series / f"mark-{m['version']}.h5" for m in marks
                if "global" in m["levels"]}

    def test_tools_read_it(self):
        self.must_run()
        files = self.files()
        self.assertEqual(len(files), 3)
        self.must_run(run_trail=self.dir / "parts", level_local=self.dir / "other",
                      global_format="parts")
        for version, path in files.items():
            listing = tool("h5ls", "-r", path)
            self.assertIn("/field                   Dataset {96, 96}", listing)
            self.assertIn('DATASET "step"', tool("h5dump", "-H", path))
            plain = self.dir / f"{version}.h5"
            code, text = self.cairn("export", "-m", version, "-o", plain, self.dir / "parts")
            self.assertEqual(code, 0, text)
            for name in ("field", "step"):
                self.assertEqual(tool("h5diff", path, plain, name), "")
        self.assertEqual(self.cairn("verify", self.trail)[0], 0)

    def test_h5py_reads_it(self):
        self.must_run()
        version, path = max(self.files().items())
        seen = read_by_h5py(self, path)
        self.assertEqual(seen["shape"], [96, 96])
        self.assertEqual(seen["step"], [version] * 3)
        self.assertEqual(seen["attributes"]["version"], version)
        self.assertEqual(seen["attributes"]["run"], "run-1")
        self.assertGreater(sum(seen["field"]), 0)

    def check_series(self, path, versions):
        """The XDMF file has a moment for each version, and what it refers to is there."""
        root = xml.etree.ElementTree.parse(path).getroot()
        times = [int(t.get("Value")) for t in root.iter("Time")]
        self.assertEqual(times, sorted(versions))
        for item in root.iter("DataItem"):
            if item.get("Format") == "HDF":
                file, name = item.text.split(":/")
                self.assertIn("Dataset {96, 96}", tool("h5ls", f"{path.parent / file}/{name}"))
                self.assertEqual(item.get("Dimensions"), "96 96")

    def test_time_series(self):
        self.must_run()
        versions = list(self.files())
        self.check_series(self.trail / "run-1" / "run.xmf", versions)
        code, text = self.cairn("export", "--all", "-o", self.dir / "out.h5", self.trail)
        self.assertEqual(code, 0, text)
        self.check_series(self.dir / "out.xmf", versions)
        code, text = self.cairn("prune", "--keep", 1, self.trail / "run-1")
        self.assertEqual(code, 0, text)
        self.assertEqual(list(self.files()), [max(versions)])
        self.check_series(self.trail / "run-1" / "run.xmf", [max(versions)])
        left = sorted(p.name for p in (self.trail / "run-1" / "series-1").glob("mark-*.h5"))
        self.assertEqual(left, [f"mark-{max(versions)}.h5"])

    def test_import_is_a_start(self):
        """A mark made of a file alone is resumed, and the end is the same."""
        self.must_run()
        version, path = min(self.files().items())
        code, text = self.cairn("import", "-m", version, path, self.dir / "new")
        self.assertEqual(code, 0, text)
        text = self.must_run(run_trail=self.dir / "new", level_local=self.dir / "fresh")
        self.assertIn(f"resumed at step {version}", text)
        self.assert_right()

    def test_any_number_of_ranks(self):
        """The file is cut anew for fewer and for more ranks than wrote it."""
        for ranks in (2, 4):
            code, _ = self.run_job(fault=(1, "commit:7:kill"))
            self.assertNotEqual(code, 0)
            self.lose_nodes(range(self.nnodes()))
            self.assertIn("resumed at step", self.must_run(ranks=ranks))
            self.assert_right(f"on {ranks} ranks")


class ToolsVirtual(Tools):
    settings = {**Tools.settings, "global_format": "hdf5-virtual"}


class Bodies(system.Case):
    """Items in cells: other tools see members by name, and the file is a start for other ranks."""
    program = "nbody"
    ranks = 3
    work = ["--bodies", 200, "--steps", 12, "--every", 4]
    settings = {"level_partner": 0, "level_global": 1, "global_format": "hdf5"}

    def test_cells(self):
        self.must_run()
        path = self.trail / "run-1" / "series-1" / "mark-8.h5"
        seen = tool("h5dump", "-H", "-d", "bodies#cells", path)
        self.assertIn('H5T_STD_U64LE "cell";', seen)
        self.assertIn('H5T_STD_U64LE "items";', seen)
        self.assertIn("/cairn/starts/bodies     Dataset {4}", tool("h5ls", "-r", path))
        code, text = self.cairn("import", "-m", 8, path, self.dir / "new")
        self.assertEqual(code, 0, text)
        text = self.must_run(ranks=2, run_trail=self.dir / "new", level_local=self.dir / "fresh")
        self.assertIn("resumed at step 8", text)
        self.assert_right()


class Killed(test_stages.Stages):
    """As for part files, but with nothing to come back from than the file of all ranks."""
    settings = {"level_partner": 0, "level_global": 1, "global_format": "hdf5"}
    stages = ["commit", "global"]
    ranks = 3
    faults = ["write", "sync", "rename"]

    def strike(self, fault, rank=None):
        code, _ = self.run_job(fault=(self.random.randrange(self.ranks), fault))
        if code == 0:
            return False
        self.check_files(fault)
        if any(e["event"] == "raised" for e in self.events(run=self.last_run())):
            self.lose_nodes(range(self.nnodes()))
        self.must_run()
        self.assert_right(f"after '{fault}'")
        return True

    def check_files(self, fault):
        """What the manifest names is whole, for us and for others."""
        run = self.trail / self.last_run()
        if not run.exists():
            return
        code, text = self.cairn("verify", run)
        self.assertIn(code, (0, 2), f"after '{fault}': {text}")
        code, text = self.cairn("ls", "--json", run)
        for mark in json.loads(text)["runs"][0]["marks"] if code == 0 else []:
            if "global" in mark["levels"]:
                tool("h5dump", "-d", "field", run / "series-1" / f"mark-{mark['version']}.h5")

    def test_operations(self):
        """A few operations of each kind at which a rank is killed."""
        hit = 0
        for kind in self.faults:
            for _ in range(2):
                hit += self.strike(f"{kind}:{self.random.randint(4, 40)}:kill")
        self.assertGreater(hit, 2)


class KilledVirtual(Killed):
    settings = {**Killed.settings, "global_format": "hdf5-virtual"}


if __name__ == "__main__":
    unittest.main()
