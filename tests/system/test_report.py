# SPDX-License-Identifier: BSD-3-Clause
"""The page of 'cairn report' in a real browser: it shows the numbers that --json has, and does what
a page should. Pictures of it stay in the build folder, tests/system/report-*.png, to look at."""
import json
import pathlib
import subprocess
import unittest

import browser
import system

SCRIPT = "</script><img src=x onerror=alert(1)>"


def events():
    """Three legs on four ranks: one that dies, one that hangs, one that ends."""
    now = 1_800_000_000.0
    log = []

    def add(after, kind, /, **members):
        nonlocal now
        now += after
        log.append({"event": kind, **members, "time": now})

    def mark(version, **levels):
        changed = [(version // 10 * (rank + 1)) % 16 + 1 for rank in range(4)]
        digits = "".join("0123456789abcdefghijklmnopqrstuvwxyz"[2 * n] for n in changed)
        add(4.0, "mark", version=version, held=0.01 + version / 1e4, stored=0.5, interval=6.0,
            nbytes=1 << 20, blocks=80, changed=sum(changed), written=sum(changed) << 14)
        add(0.0, "changes", version=version, ranks=digits, variables=[
            {"name": name, "nbytes": 1 << 19, "tracked": True, "written": 1 << 18,
             "hashed": 1 << 18, "changed": sum(changed) << k, "stored": sum(changed) << k,
             "way": "compare", "predicted": -0.5, "measured": None}
            for k, name in enumerate(("pressure", "velocity"), 11)])
        for level, took in levels.items():
            add(took, "raised", version=version, level=level, seconds=took, moved=1 << 18,
                stored=1 << 19)

    def tuned(interval, better):
        levels = [{"level": "local", "rate": 1 / 100, "restart": 1.0, "fixed": 0.01,
                   "bandwidth": 4e6, "background": 0.5},
                  {"level": "partner", "rate": 1 / 1000, "restart": 2.0, "fixed": 0.02,
                   "bandwidth": 1e6, "background": 1.0}]
        add(0.0, "tuned", interval=interval, every={"local": 1, "partner": 2}, efficiency=0.9,
            better_interval=better, better_every={"local": 1, "partner": 5},
            changed=[1e5, 9e5, 20.0], levels=levels)

    def begin(tries, resumed=None):
        if resumed:
            add(1, "launch", command=["mpirun"], tries=tries, nranks=4, seen=now)
        add(1, "open", nranks=4, nnodes=4, seen=now if resumed else 0)
        if resumed:
            add(0.5, "resume", version=resumed, seconds=0.5,
                **{"from": {"local": {"blocks": 48, "bytes": 1, "bad": 0},
                            "partner": {"blocks": 16, "bytes": 1, "bad": 16}}})

    def end(**members):
        add(2.5, "ended", launched=log[0]["time"], command=["mpirun"], nranks=4, seen=now + 2,
            **members)

    begin(1)
    for version in range(10, 130, 10):
        mark(version, **({"partner": 0.4} if version % 20 == 0 else {}))
        if version % 20 == 0:
            tuned(100 / version + 2, 2.5)
    end(why="exit", code=137, signal=None, output=f"rank 2 was killed {SCRIPT}")
    begin(2, resumed=110)
    for version in range(120, 180, 10):
        mark(version, **({"global": 0.9} if version % 50 == 0 else {}))
    end(why="hang", code=143, signal=None, output="")
    begin(3, resumed=170)
    mark(180)
    add(1, "failed", version=180, level="partner", text="no room")
    mark(190, partner=0.4)
    for version, place in ((180, "reset"), (190, "ideal gas")):
        add(0, "regions", version=version, place=place, kept=1 << 20, whole=4 << 20,
            variables=[{"name": "density0", "nbytes": 1 << 20, "why": "read by ideal gas"}],
            sites=[{"name": n, "mean": k * 1024.0, "spread": 0.0, "visits": 9, "gap": 14}
                   for k, n in enumerate(("ideal gas", "reset"), 1)])
    add(0, "finding", site="flux", variable="heat", kind="undeclared read", index=512, count=1,
        rank=1)
    add(1, "close", finished=True)
    end(why="exit", code=0, signal=None, output="done")
    return log


def need_browser():
    if not browser.CHROMIUM or not browser.DRIVER:
        print("SKIPPED test_report: chromium and chromium-driver are not there", flush=True)
        raise unittest.SkipTest("no browser")


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_browser()
        cls.dir = pathlib.Path(system.tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        cls.addClassCleanup(system.shutil.rmtree, cls.dir, ignore_errors=True)
        for _ in range(2):
            subprocess.run([system.BUILD / "tests" / "cli" / "small_trail", "trail", "2", "1", "1"],
                           cwd=cls.dir, check=True)
        (cls.dir / "trail" / "run-2" / "events").write_text(
            "".join(json.dumps(e) + "\n" for e in events()))
        cls.cairn("report", "-o", "report.html", "trail")
        cls.data = json.loads(cls.cairn("report", "--json", "trail"))
        cls.run_ = cls.data["runs"][1]
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def cairn(cls, *args):
        done = subprocess.run([system.BUILD / "bin" / "cairn", *args], cwd=cls.dir, check=True,
                              capture_output=True, text=True)
        return done.stdout

    def setUp(self):
        self.js, self.click = self.browser.js, self.browser.click
        self.browser.open(self.dir / "report.html")

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])

    def cells(self, section):
        """The text of a table, row by row."""
        self.js("document.querySelectorAll(`#${$[0]} > details`).forEach(d => {d.open = true;"
                "d.dispatchEvent(new Event('toggle'))})", section) # its own comes later
        return self.js("[...document.querySelector(`#${$[0]} details > .table`)"
                       ".querySelectorAll('tbody tr')].map("
                       "tr => [...tr.cells].map(td => td.textContent))", section)

    def test_is_whole(self):
        self.assertEqual(self.js("performance.getEntriesByType('resource').length"), 0)
        self.assertEqual(self.js("document.title"), "Cairn report")
        self.assertEqual(self.js("document.querySelectorAll('canvas').length"),
                         8 + self.run_["plan"]["run"]["fits"])

    def test_has_the_numbers(self):
        self.assertEqual(self.js("JSON.parse(document.getElementById('data').textContent)")["runs"],
                         self.data["runs"])
        legs = self.cells("timeline")
        self.assertEqual([row[9] for row in legs], [leg["end"] for leg in self.run_["legs"]])
        self.assertEqual([row[4] for row in legs], ["–", "110", "170"])
        marks = self.cells("costs")
        self.assertEqual([row[0] for row in marks],
                         [str(m["version"]) for m in self.run_["marks"]])
        self.assertEqual([row[5] for row in marks],
                         [str(m["changed"]) for m in self.run_["marks"]])
        shares = self.cells("changes")
        for row, mark in zip(shares, self.run_["marks"], strict=True):
            self.assertEqual(row[2:], [f"{100 * x:.1f} %" for x in mark["ranks"]])
        self.assertEqual(
            self.js("Chart.getChart('chart-held').data.datasets[0].data"),
            [m["held"] for m in self.run_["marks"]])

    def test_plan(self):
        """What the planner said and what was done; the curve around the best interval."""
        plan = self.run_["plan"]
        said = self.cells("plan")
        self.assertEqual(len(said), 6)
        self.assertEqual([row[2] for row in said], ["local, 1 in 2 partner"] * 6)
        self.assertEqual([row[4] for row in said], ["2.5 s"] * 6)
        data = "Chart.getChart($[0]).data.datasets[$[1]].data.map(p => p[$[2]])"
        self.assertEqual(self.js(data, "chart-plan", 0, "y")[:6],
                         [t["interval"] for t in plan["tuned"]])
        self.assertEqual(self.js(data, "chart-plan", 2, "y"),
                         [m["since"] for m in self.run_["marks"]])
        best, curve = plan["run"]["best"], [y for _, y in plan["run"]["curve"]]
        self.assertAlmostEqual(max(curve), best["efficiency"])
        # what is best is only said of runs that went as the model expects; short ones need not
        self.assertEqual(self.js("!!Chart.getChart('chart-efficiency')"), plan["run"]["fits"])
        self.assertEqual(self.js("!document.querySelector('#plan .remark')"), plan["run"]["fits"])
        if plan["run"]["fits"]:
            self.assertEqual(self.js(data, "chart-efficiency", 0, "x"), [best["interval"]])
            self.assertEqual(self.js(data, "chart-efficiency", 2, "y"), curve)
        code, text = system.subprocess.getstatusoutput(
            f"{system.BUILD}/bin/cairn plan --json --trail {self.dir}/trail/run-2")
        self.assertEqual(code, 0, text)
        self.assertEqual(round(best["efficiency"], 3),
                         round(json.loads(text)["best"]["efficiency"], 3))

    def test_regions(self):
        """The newest mark's place, what it keeps and why, runners-up, and the line of code."""
        self.assertIn("at 'ideal gas', the best place so far, and keep 1 MiB of 4 MiB, 25.0 %",
                      self.js("document.querySelector('#regions p').textContent"))
        self.assertIn('.place = "ideal gas"',
                      self.js("document.querySelector('#regions pre').textContent"))
        self.assertEqual(self.cells("regions"), [["density0", "1 MiB", "read by ideal gas"]])
        rows = self.js("[...document.querySelectorAll('#regions tbody tr')].map("
                       "tr => [...tr.cells].map(td => td.textContent))")
        self.assertEqual(rows[1:], [["ideal gas", "1 KiB", "0 B", "9", "14"],
                                    ["reset", "2 KiB", "0 B", "9", "14"],
                                    ["flux", "heat", "undeclared read", "512", "1", "1"]])

    def test_what_programs_print_is_text(self):
        self.assertIn(SCRIPT, self.js("document.querySelector('#timeline pre').textContent"))
        self.assertEqual(self.js("document.querySelectorAll('img').length"), 0)

    def tooltip(self, chart):
        return self.js("(t => t.opacity ? [...t.title, ...t.body.flatMap(b => b.lines)] : [])("
                       "Chart.getChart($[0]).tooltip)", chart)

    def test_tooltips(self):
        self.js("document.getElementById('chart-changes').scrollIntoView({block: 'center'})")
        x, y = self.js("(p => [p.x, p.y - 3])(Chart.getChart('chart-changes')"
                       ".getDatasetMeta(1).data[4])")
        self.browser.point_at("#chart-changes", x, y)
        share = f"{100 * self.run_['marks'][4]['ranks'][1]:.1f} %"
        self.assertEqual(self.tooltip("chart-changes"),
                         ["mark 50, rank 1", f"{share} of the state changed"])

    def test_filters(self):
        def shown():
            return [int(row[0]) for row in self.cells("costs")]
        everything = [m["version"] for m in self.run_["marks"]]
        self.assertEqual(shown(), everything)
        self.click("#level-local")
        self.assertEqual(shown(), [m["version"] for m in self.run_["marks"] if m["levels"]])
        self.assertEqual(self.js("document.activeElement.id"), "level-local")
        self.click("#level-partner")
        self.assertEqual(shown(), [150])
        for level in ("local", "partner"):
            self.click(f"#level-{level}")
        self.browser.choose("#leg", "3")
        self.assertEqual(shown(), [180, 190])

    def test_sorting(self):
        self.click("#costs summary")
        self.click("#costs th:nth-child(6) button")
        changed = [int(row[5]) for row in self.cells("costs")]
        self.assertEqual(changed, sorted(changed))
        self.click("#costs th:nth-child(6) button")
        changed = [int(row[5]) for row in self.cells("costs")]
        self.assertEqual(changed, sorted(changed, reverse=True))

    def test_keyboard(self):
        right = "\ue014"
        self.browser.type("#chart-timeline", right + right)
        self.assertEqual(self.tooltip("chart-timeline")[0], "mark 20")
        self.browser.type("#chart-timeline", "\ue00c")
        self.assertEqual(self.tooltip("chart-timeline"), [])

    def test_runs(self):
        self.browser.choose("#run", "0")
        self.assertIn("trail/run-1", self.js("document.querySelector('.what').textContent"))
        self.assertEqual(self.js("document.querySelectorAll('canvas').length"), 0)

    def test_looks(self):
        paper = "getComputedStyle(document.body).backgroundColor"
        for scheme in ("light", "dark"):
            self.browser.open(self.dir / "report.html", scheme=scheme)
            look = self.js(paper)
            self.browser.picture(pathlib.Path(f"report-{scheme}.png"), 1200)
            self.click("#theme") # from what the system says to light
            if scheme == "dark":
                self.assertNotEqual(self.js(paper), look)
            self.js("localStorage.clear()")
        self.browser.open(self.dir / "report.html", width=390, height=800)
        self.assertLessEqual(self.js("document.documentElement.scrollWidth"), 390)
        self.browser.picture(pathlib.Path("report-phone.png"), 390)


class Extremes(system.Case):
    """Trails that are empty, and runs that are long or bare."""

    def setUp(self):
        super().setUp()
        need_browser()
        self.view = browser.Browser()
        self.addCleanup(self.view.close)

    def show(self, *trails):
        page = self.dir / "report.html"
        code, text = self.cairn("report", "-o", page, *trails)
        self.assertEqual((code, text), (0, ""))
        self.view.open(page)
        self.assertEqual(self.view.complaints(), [])
        return page

    def make_run(self):
        subprocess.run([system.BUILD / "tests" / "cli" / "small_trail", self.trail, "2", "1", "1"],
                       check=True)
        return self.trail / "run-1" / "events"

    def test_long_run(self):
        """1500 marks of 64 ranks, with variables of any name."""
        log = [{"event": "open", "nranks": 64, "nnodes": 8, "seen": 0, "time": 1e9}]
        for version in range(1500):
            log.append({"event": "mark", "version": version, "held": 0.01, "stored": 0.1,
                        "interval": 9, "nbytes": 1 << 30, "blocks": 640, "changed": 64,
                        "written": 1 << 20, "time": 1e9 + 10 * version})
            log.append({"event": "changes", "version": version, "ranks": "5" * 64, "variables": [
                {"name": f"{SCRIPT} {k}", "nbytes": 1 << 20, "tracked": False, "written": 0,
                 "hashed": 1, "changed": k, "stored": k, "way": "compare", "predicted": None,
                 "measured": None} for k in range(8)], "time": 1e9 + 10 * version})
        self.make_run().write_text("".join(json.dumps(e) + "\n" for e in log))
        self.assertLess(self.show(self.trail).stat().st_size, 8 << 20)
        js = self.view.js
        self.assertEqual(js("document.querySelectorAll('img').length"), 0)
        self.assertIn("the newest 400 of 1500 marks", js("document.body.textContent"))
        self.assertIn(f"{SCRIPT} 7", js("document.querySelector('#changes').textContent"))
        self.assertIn("2 others", js("document.querySelector('#changes').textContent"))
        self.view.click("#costs summary")
        rows = "document.querySelectorAll('#costs tbody tr').length"
        self.view.wait_for(f"{rows} > 0")
        self.assertEqual(js(rows), 200)
        self.view.click("#costs .more")
        self.assertEqual(js(rows), 1500)

    def test_run_without_events(self):
        self.make_run()
        self.show(self.trail)
        self.assertIn("None to show", self.view.js("document.body.textContent"))
        self.assertIn("1 kept now", self.view.js("document.body.textContent"))

    def test_empty_trail(self):
        self.make_run()
        system.shutil.rmtree(self.trail / "run-1")
        self.show(self.trail)
        self.assertIn("no runs in this trail", self.view.js("document.body.textContent"))


class Comparison(system.Case):
    """Two real runs, the second of them disturbed."""
    ranks = 2
    settings = {"level_local": "trail", "keep_global": "all"}

    def test_parting(self):
        need_browser()
        self.must_run(run_name="quiet")
        self.must_run("--nudge", 17, run_name="nudged")
        command = ["report", "--first", self.trail / "quiet", "--second", self.trail / "nudged"]
        code, text = self.cairn(*command, "--json", self.trail)
        self.assertEqual(code, 0, text)
        found = json.loads(text)["comparison"]
        parts = found["parts"]
        self.assertEqual((found["verdict"], parts["version"], parts["variable"]),
                         ("different", 20, "field"))
        page = self.dir / "report.html"
        self.assertEqual(self.cairn(*command, "-o", page, self.trail), (0, ""))
        view = browser.Browser()
        self.addCleanup(view.close)
        view.open(page)
        said = view.js("document.getElementById('parting').textContent")
        index = ", ".join(map(str, parts["where"]["index"]))
        self.assertIn(f"They part at mark 20: field[{index}] on rank {parts['where']['rank']} is "
                      f"{parts['where']['first']}", said)
        rows = [row for row in found["rows"] if row["variable"] == "field"]
        self.assertEqual(
            view.js("Chart.getChart('chart-growth').data.datasets.find(d => d.label === 'field')"
                    ".data"), [row["max"] or None for row in rows])
        view.picture(pathlib.Path("report-comparison.png"), 1200)
        view.open(page, width=390, height=800) # where names of runs leave little room
        self.assertLessEqual(view.js("document.documentElement.scrollWidth"), 390)
        view.picture(pathlib.Path("report-comparison-phone.png"), 390)
        self.assertEqual(view.complaints(), [])


class Trace(system.Case):
    """A real run that was recorded, its trace beside it in the trail."""

    def setUp(self):
        super().setUp()
        need_browser()
        self.file = self.trail / "run-1.ctr"
        cairn = system.BUILD / "bin" / "cairn"
        self.must_run(under=(cairn, "trace", "record", "-o", self.file, "--"))
        code, text = self.cairn("trace", "stat", "--json", self.file)
        self.assertEqual(code, 0, text)
        self.stat = json.loads(text)
        self.page = self.dir / "report.html"
        self.view = browser.Browser()
        self.addCleanup(self.view.close)

    def show(self, **how):
        self.assertEqual(self.cairn("report", "-o", self.page, self.trail), (0, ""))
        self.view.open(self.page, **how)

    def column(self, caption, n):
        """The text of a column of a table."""
        return self.view.js(
            "(d => (d.open = true, d.dispatchEvent(new Event('toggle')), [...d.querySelectorAll("
            "'tbody tr')].map(tr => tr.cells[$[1]].textContent)))([...document.querySelectorAll("
            "'#trace > details')].find(d => d.textContent.startsWith($[0])))", caption, n)

    def test_numbers(self):
        self.show()
        js, stat = self.view.js, self.stat
        trace = js("JSON.parse(document.getElementById('data').textContent)")["runs"][0]["trace"]
        self.assertEqual(trace.pop("groups"), 4)
        trace["began_ns"] = stat["began_ns"] # which is more than a number of JavaScript can hold
        self.assertEqual(trace, stat)
        self.assertEqual([int(n) for n in self.column("Calls (", 2)],
                         [row["events"] for row in stat["calls"]])
        self.assertEqual(self.column("Files (", 0)[:200],
                         [row["file"] for row in stat["files"]][:200])
        bars = "Chart.getChart($[0]).data.datasets[0].data"
        self.assertEqual(js(bars, "chart-call-time"),
                         [row["seconds"] for row in stat["calls"] if row["seconds"] > 0][:12])
        sent = js("Chart.getChart('chart-pairs').data.datasets.map("
                  "d => d.pairs.map(p => p ? p.nbytes : 0))")
        expected = [[0] * 4 for _ in range(4)]
        for pair in stat["pairs"]:
            expected[pair["rank"]][pair["peer"]] = pair["nbytes"]
        self.assertEqual(sent, expected)
        for layer in ("coll", "p2p"):
            seconds = [row["seconds"] for row in stat["ranks"] if row["layer"] == layer]
            self.assertIn(seconds, js("Chart.getChart('chart-rank-time').data.datasets.map("
                                      "d => d.data)"), layer)
        self.assertEqual(self.view.complaints(), [])

    def test_looks(self):
        for scheme, width in (("light", 1200), ("dark", 1200), ("light", 390)):
            self.show(width=width, scheme=scheme)
            self.assertLessEqual(self.view.js("document.documentElement.scrollWidth"), width)
            self.view.picture(pathlib.Path(f"report-trace-{scheme}-{width}.png"), width)
        self.assertEqual(self.view.complaints(), [])

    def test_none(self):
        self.file.unlink()
        self.show()
        self.assertIsNone(self.view.js("document.getElementById('trace')"))
        self.assertEqual(self.view.complaints(), [])


if __name__ == "__main__":
    unittest.main()
