# SPDX-License-Identifier: BSD-3-Clause
"""Tables 1 and 3 of the paper on checkpoints of access-declared loops: clover and tea without
Cairn, with less and more that the program says of itself, and with marks that are written in other
ways; time of the run, of a mark in steps, of coming back, and bytes that a mark keeps. In each run
one mark is taken, by the clock unless it is "triggered"; the run is killed behind it and resumed.

Called by tools/bench through bench_regions in the build tree; prints two tables and lines of JSON.
BENCH_REGIONS=240 gives both another size than 960 and 1000, BENCH_RANKS another number of ranks."""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "system"))
sys.dont_write_bytecode = True
import system

SIZE = int(os.environ.get("BENCH_REGIONS", 0))
RANKS = int(os.environ.get("BENCH_RANKS", 2))
TURNS = 3
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

# What a row is called, what the program is asked for, how marks are written.
ROWS = [
    ("plain", ["--plain"], {}),
    ("nothing declared", ["--bare"], {}),
    ("initialisation phase", [], {}),
    ("forward", ["--forward"], {}),
    ("list", ["--list"], {}),
    ("list and forward", ["--list", "--forward"], {}),
    ("triggered", ["--list", "--forward"], {}),
    ("background", ["--list", "--forward"], {"mark_mode": "background"}),
    ("in memory", ["--list", "--forward"], {"mark_mode": "background", "level_partner": 1,
                                            "level_global": 0, "level_local": "memory"}),
    ("one shared file", ["--list", "--forward"], {"global_format": "hdf5",
                                                  "level_local": "memory"}),
]


class Run(system.Case):
    """One program in all rows; tests' way to start, kill and look at jobs."""
    ranks = RANKS
    settings = {"mark_mode": "synchronous", "level_local": "trail", "level_partner": 0,
                "level_encoded": 0, "compare_trees": "no", "variable_block": "64KiB",
                "mark_interval": "1000h"}

    def runTest(self):
        pass

    def seconds(self, *args, **settings):
        """What a run's steps take, and its marks and resumes, from the run's log."""
        text = self.must_run("--time", *args, **settings)
        return float(re.search(r"([0-9.]+) s in steps", text).group(1))

    def row(self, name, args, settings, step):
        """(seconds, mark in steps, resume, bytes), of a run with one mark; None: there is none."""
        shutil.rmtree(self.trail, ignore_errors=True)
        if name == "plain":
            return self.seconds(*args), None, None, None
        memory = tempfile.mkdtemp(dir=MEMORY)
        middle = self.steps * 2 // 3
        if settings.get("level_local") == "memory":
            settings = dict(settings, level_local=memory)
        if name == "triggered":
            args = [*args, "--trigger", middle]
        else:
            settings = dict(settings, mark_interval=f"{middle * step:.6f}")
        try:
            took = self.seconds(*args, **settings)
            marks, kept = self.events("mark"), self.events("regions")
            if not marks or not kept:
                return took, None, None, None
            shutil.rmtree(self.trail)
            self.run_job("--die", marks[0]["version"] * 5 // 4, *args, **settings)
            self.must_run(*args, **settings)
            back = self.events("resume")
            return (took, marks[0]["held"] / step, back[0]["seconds"] if back else None,
                    kept[0]["kept"])
        finally:
            shutil.rmtree(memory, ignore_errors=True)

    def overhead(self):
        """Seconds with regions and without any Cairn, in turns, no mark taken: the best of each."""
        both = [(self.seconds("--place", "nowhere", run_trail=self.dir / f"calls-{k}"),
                 self.seconds("--plain", run_trail=self.dir / "none")) for k in range(TURNS)]
        return [min(column) for column in zip(*both)]

    def table(self):
        rows = {}
        step = self.seconds("--plain", run_trail=self.dir / "first") / self.steps
        for name, args, settings in ROWS:
            rows[name] = self.row(name, args, settings, step)
            show = [f"{v:.4g}" if v is not None else "-" for v in rows[name]]
            print(f"{self.program:8}{name:24}{show[0]:>10} s{show[1]:>10} steps{show[2]:>10} s"
                  f"{show[3]:>14} bytes", flush=True)
        return rows


class Clover(Run):
    program = "clover"
    size, steps = SIZE or 960, 30
    work = ["--size", size, "--steps", steps]
    least = 8 * (2 * size ** 2 + 2 * (size + 1) ** 2)
    limit = 0.07


class Tea(Run):
    program = "tea"
    size, steps = SIZE or 1000, 36
    work = ["--size", size, "--steps", steps, "--tolerance", 1e-3, "--dt", 4e-6]
    least = 8 * size ** 2
    limit = None


def report(name, ours, peer, unit, bar, at_most, note):
    ratio = ours / peer
    print(json.dumps({"name": f"region.{name}", "ours": ours, "peer": peer, "ratio": ratio,
                      "unit": unit, "bar": bar, "ok": bar is None or (ratio <= bar) == at_most,
                      "note": note}), flush=True)


def measure(kind):
    case = kind()
    case.setUp()
    try:
        rows = case.table()
        calls, without = case.overhead()
    finally:
        case.doCleanups()
    report(f"{kind.program}.total", rows["initialisation phase"][0], rows["plain"][0], "s", None,
           True, "a run with regions and one mark; peer: without Cairn")
    report(f"{kind.program}.calls", calls, without, "s", 1.01, True,
           "a run with regions and without marks; peer: without Cairn, best of both")
    if rows["background"][1] is not None:
        report(f"{kind.program}.hold", rows["background"][1], 1, "steps", kind.limit, True,
               f"a mark holds the program, in the background; peer: a step, on {RANKS} ranks")
    if rows["initialisation phase"][3] is not None:
        report(f"{kind.program}.bytes", rows["initialisation phase"][3], kind.least, "bytes", 1.02,
               True, "what a mark keeps where Cairn has chosen; peer: the least state by hand")


if __name__ == "__main__":
    for one in (Clover, Tea):
        measure(one)
