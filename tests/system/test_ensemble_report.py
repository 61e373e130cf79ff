# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq lapacke
"""'cairn report' of a study: what its JSON and its page show of runners, server and failures. A
picture of it stays in the build folder, tests/system/report-study.png, to look at."""
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import unittest

import browser
import system
from study import CAIRN, PATIENCE, Study

CAUSE = "the model refuses: </script><b>too hot"


def events():
    """Two runners and a third one, two servers, six tasks of which two fail, three analyses."""
    now, log = 1_800_000_000_000_000_000, []

    def add(after, event, **members):
        nonlocal now
        now += int(after * 1e9)
        log.append({"at": now, "event": event, **members})

    add(0, "started", job="s1")
    add(0, "started", job="r1")
    add(0, "started", job="r2")
    add(1, "task", cycle=1, member=0, attempt=1, runner="r1")
    add(0, "task", cycle=1, member=1, attempt=1, runner="r2")
    add(2, "done", cycle=1, member=0, runner="r1", seconds=2)
    add(0.25, "task", cycle=1, member=2, attempt=1, runner="r1")
    add(0.75, "failed", cycle=1, member=1, runner="r2", kind="refused", burned=1, cause=CAUSE)
    add(0, "task", cycle=1, member=1, attempt=2, runner="r2")
    add(1, "ended", job="r1", how="killed by signal 9 (Killed)")
    add(0, "failed", cycle=1, member=2, runner="r1", kind="lost", burned=0, cause="lost process")
    add(0, "started", job="r3")
    add(1, "done", cycle=1, member=1, runner="r2", seconds=2)
    add(0.5, "task", cycle=1, member=2, attempt=2, runner="r2")
    add(2, "done", cycle=1, member=2, runner="r2", seconds=2)
    add(0.5, "analysis", cycle=1, members=3, observations=4, innovation=1.5, spread=1.25,
        seconds=0.5, digest="ab12")
    add(1, "ended", job="s1", how="killed by signal 9 (Killed)")
    add(0, "started", job="s2")
    add(1.5, "task", cycle=2, member=0, attempt=1, runner="r3")
    add(1, "done", cycle=2, member=0, runner="r3", seconds=1)
    add(0.5, "analysis", cycle=2, members=3, observations=0, innovation=None, spread=None,
        seconds=0.25, digest="cd34")
    add(0.5, "end", ok=True)
    return log


class StudyReport(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)
        s = Study(self.dir, "storm", "true")
        s.dir.mkdir(mode=0o700)
        self.log = events()
        (s.dir / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in self.log) +
                                            '{"at":18, "cut')
        self.file = s.file

    def cairn(self, *words):
        return subprocess.run([CAIRN, *map(str, words)], check=True, text=True, cwd=self.dir,
                              capture_output=True, timeout=PATIENCE).stdout

    def test_json(self):
        study, = json.loads(self.cairn("report", "--json", self.file))["studies"]
        began = self.log[0]["at"] / 1e9
        self.assertAlmostEqual(study["ended"] - study["began"], (self.log[-1]["at"] / 1e9) - began)
        self.assertEqual((study["cycle"], study["tasks_given"], study["failed"]), (2, 6, 2))
        spans = [(t["runner"], t["member"], t["end"], round(t["to"] - t["from"], 6))
                 for t in study["tasks"]]
        self.assertEqual(spans, [("r1", 0, "done", 2), ("r2", 1, CAUSE, 3),
                                 ("r1", 2, "lost process", 1.75), ("r2", 1, "done", 2),
                                 ("r2", 2, "done", 2), ("r3", 0, "done", 1)])
        costs = [(f["job"], f["cause"], round(f["cost"], 6)) for f in study["failures"]]
        self.assertEqual(costs, [("r2", CAUSE, 3), ("r1", "lost process", 1.75),
                                 ("s1", "killed by signal 9 (Killed)", 1.5)])
        waits = [0.25, 0.5]  # from a result to the runner's next task, within a cycle
        self.assertEqual(study["response"]["count"], 2)
        self.assertAlmostEqual(study["response"]["median"], statistics.median_high(waits), 5)
        self.assertAlmostEqual(study["busy_seconds"], 11.75, 5)
        self.assertAlmostEqual(study["lost_seconds"], 4.75, 5)
        there = {"r1": 5, "r2": 13.5, "r3": 8.5}
        self.assertAlmostEqual(study["busy"], 11.75 / sum(there.values()), 5)
        self.assertEqual([u["digest"] for u in study["updates"]], ["ab12", "cd34"])

    def test_page(self):
        if not browser.CHROMIUM or not browser.DRIVER:
            system.skip_loudly(self, "chromium and chromium-driver are not there")
        self.cairn("report", self.file)
        view = browser.Browser()
        self.addCleanup(view.close)
        view.open(self.dir / "report.html")
        sets = {s["label"]: s["n"] for s in view.js(
            "Chart.getChart('chart-gantt').data.datasets.map(d => ({label: d.label, "
            "n: d.data.length}))")}
        self.assertEqual(sets, {"failures": 3, "propagating": 4, "in vain": 2, "updating": 2,
                                "there": 5})
        self.assertEqual(view.js("Chart.getChart('chart-gantt').data.labels"),
                         ["server", "r1", "r2", "r3"])
        text = view.js("document.getElementById('failures').textContent")
        self.assertIn(CAUSE, text)
        self.assertIn("1.75 s", text)
        self.assertEqual(view.js("document.querySelectorAll('#failures b').length"), 0)
        self.assertEqual(view.js("Chart.getChart('chart-filter').data.datasets[0].data"),
                         [1.5, None])
        view.picture(pathlib.Path("report-study.png"), 1200)
        view.open(self.dir / "report.html", width=390, height=800)
        self.assertLessEqual(view.js("document.documentElement.scrollWidth"), 390)
        self.assertEqual(view.complaints(), [])


def particle_events():
    """A particle filter's two cycles: a parent from the cache, one from storage, a failure."""
    at, log = 1_800_000_000, []
    for event, members in (
            ("started", {"job": "s1"}), ("started", {"job": "r1"}), ("started", {"job": "r2"}),
            ("task", {"member": 0, "parent": 0, "runner": "r1", "from": "cache"}),
            ("task", {"member": 1, "parent": 3, "runner": "r2", "from": "storage"}),
            ("done", {"member": 0, "runner": "r1", "seconds": 2}),
            ("failed", {"member": 1, "runner": "r2", "cause": "lost process", "burned": 0}),
            ("schedule", {"tasks": 3, "hits": 1, "loads": 2, "ahead": 0, "steals": 1, "bound": 1,
                          "planned": 2, "supplies": 2, "deficits": 1, "parents": 4,
                          "loaded_bytes": 2048, "busy": 3.0, "waited": 0.5, "idle": 0.5}),
            ("analysis", {"members": 4, "ess": 2.5, "resampled": True, "parents": 3, "zero": 1,
                          "runners": 2, "seconds": 0.1, "digest": "ab"}),
            ("end", {"ok": True})):
        at += 1
        log.append({"at": at * 10**9, "event": event, "cycle": 1, "attempt": 1, **members})
    return log


class ParticleReport(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir=".")).resolve()
        self.addCleanup(shutil.rmtree, self.dir)
        s = Study(self.dir, "particles", "true", filter_name="particle")
        s.dir.mkdir(mode=0o700)
        (s.dir / "events.jsonl").write_text(
            "".join(json.dumps(e) + "\n" for e in particle_events()))
        self.file = s.file

    def cairn(self, *words):
        return subprocess.run([CAIRN, *map(str, words)], check=True, text=True, cwd=self.dir,
                              capture_output=True, timeout=PATIENCE).stdout

    def test_json(self):
        update, = json.loads(self.cairn("report", "--json", self.file))["studies"][0]["updates"]
        known = {"ess": 2.5, "zero": 1, "loads": 2, "hits": 1, "bound": 1, "most": 2, "ever": 5,
                 "steals": 1, "loaded_bytes": 2048}
        self.assertEqual({key: update[key] for key in known}, known)

    def test_page(self):
        if not browser.CHROMIUM or not browser.DRIVER:
            system.skip_loudly(self, "chromium and chromium-driver are not there")
        self.cairn("report", self.file)
        view = browser.Browser()
        self.addCleanup(view.close)
        view.open(self.dir / "report.html")
        sets = dict(view.js("Chart.getChart('chart-gantt').data.datasets.map(d => [d.label, "
                            "d.data.length])"))
        self.assertEqual((sets["propagating"], sets["from storage"], sets["in vain"]), (1, 0, 1))
        self.assertEqual(view.js("Chart.getChart('chart-ess').data.datasets.map(d => d.data)"),
                         [[2.5], [4]])
        self.assertEqual(view.js("Chart.getChart('chart-loads').data.datasets.map(d => d.data)"),
                         [[2], [1], [2]])
        text = view.js("document.getElementById('particles').textContent")
        for words in ("D + R − 1", "12.5 %", "2 KiB", "resampled"):
            self.assertIn(words, text)
        self.assertEqual(view.complaints(), [])


if __name__ == "__main__":
    unittest.main()
