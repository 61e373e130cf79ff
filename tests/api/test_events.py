# SPDX-License-Identifier: BSD-3-Clause
"""The log of a run: docs/format/events.md describes what src/event/event_table.h has, and the
command says the same of a log whatever the order of its members, and of one with unknown ones."""
import json
import random
import re
import subprocess
import unittest

import api

TABLE = api.SOURCE / "src" / "event" / "event_table.h"
FORMAT = api.SOURCE / "docs" / "format" / "events.md"
GOLDEN = api.SOURCE / "tests" / "golden" / "good-events-1"
CAIRN = api.BUILD / "bin" / "cairn"
SMALL_TRAIL = api.BUILD / "tests" / "cli" / "small_trail"


def structures():
    """{constant: members} of the table."""
    text = TABLE.read_text().replace("\\\n", " ")
    return {name: re.findall(r"\b[MO]\(\w+, (\w+)\)", members)
            for name, members in re.findall(r"#define CRN_EVENT_(\w+)_MEMBERS\(M, O\)(.*)", text)}


def kinds():
    """{kind: members} of the table."""
    text = TABLE.read_text().replace("\\\n", " ")
    rows = re.search(r"#define CRN_EVENT_KINDS\(K, BARE\)(.*)", text)[1]
    return {name: structures().get(constant, [])
            for constant, name in re.findall(r"\b(?:K|BARE)\((\w+), (\w+)\)", rows)}


def described():
    """{kind: members} of the tables in the document."""
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\| [^|]+ \|$", FORMAT.read_text(), re.M)
    return {kind: re.findall(r"`(\w+)`", members) for kind, members in rows}


class Document(unittest.TestCase):
    def test_kinds_and_members(self):
        self.assertEqual(described(), kinds())

    def test_parts(self):
        named = set(re.findall(r"`(\w+)`", FORMAT.read_text()))
        for constant in ("SOURCE", "BELIEF", "VARIABLE", "KEPT", "SITE"):
            self.assertEqual(set(structures()[constant]) - named, set())


def shuffled(value, chance):
    """The same JSON with members in another order, and with unknown ones in every object."""
    if isinstance(value, list):
        return [shuffled(v, chance) for v in value]
    if not isinstance(value, dict):
        return value
    members = [(k, shuffled(v, chance)) for k, v in value.items()]
    if "event" in value:
        members += [("unknown", {"event": "mark", "version": 1, "text": "\"}]\\"}),
                    ("later", [{"event": "changes"}])]
    chance.shuffle(members)
    return dict(members)


class Log(api.TestCase):
    """What the command says of a run with the golden log, and with others that mean the same."""

    def setUp(self):
        super().setUp()
        self.trail = self.dir / "trail"
        self.must(SMALL_TRAIL, self.trail, "2", "10", "2")
        cut = '{"event":"ended","why":"ex'  # by a crash
        self.events = GOLDEN.joinpath("events").read_text() + cut

    def told(self, events, *command):
        (self.trail / "run-1" / "events").write_text(events)
        done = subprocess.run([CAIRN, *command], check=False, capture_output=True, text=True)
        self.assertEqual(done.stderr, "", command)
        if "--json" in command:
            facts = json.loads(done.stdout)
            return done.returncode, facts["runs"] if command[0] == "report" else facts
        return done.returncode, done.stdout.splitlines()

    def all_told(self, events):
        told = {(command, *mark): self.told(events, *command.split(), self.trail, *mark)
                for command, *mark in (["ls"], ["ls --json"], ["show"], ["show", "100"],
                                       ["verify"], ["verify --json"], ["report --json"],
                                       ["plan --trail"], ["plan --json --trail"])}
        told["legs"] = self.told(events, "show", "--json", self.trail)[1]["legs"]
        return told

    def test_order_and_unknown_members_change_nothing(self):
        chance = random.Random(1)
        lines = self.events.split("\n")
        others = "\n".join([json.dumps(shuffled(json.loads(line), chance)) for line in lines[:-1]]
                           + [lines[-1]])
        self.assertNotEqual(others, self.events)
        self.assertEqual(self.all_told(others), self.all_told(self.events))

    def test_unknown_kinds_change_nothing(self):
        more = self.events.replace("\n", '\n{"event":"flown","version":100,"time":1}\n', 1)
        self.assertEqual(self.told(more, "report", "--json", self.trail),
                         self.told(self.events, "report", "--json", self.trail))

    def test_golden(self):
        """An earlier version said the same of this log, which has members of all versions."""
        self.assertEqual(golden_facts(self), json.loads(GOLDEN.joinpath("told.json").read_text()))


def golden_facts(log):
    """What is in the log alone: not times and digests of the trail that the test makes."""
    show = log.told(log.events, "show", "--json", log.trail)[1]
    report = log.told(log.events, "report", "--json", log.trail)[1][0]
    plan = log.told(log.events, "plan", "--json", "--trail", log.trail)[1]
    return {"show": {k: show[k] for k in ("legs", "events")},
            "report": {k: report[k] for k in ("legs", "marks", "plan")},
            "plan": {k: plan[k] for k in ("run", "done", "measured")}}


if __name__ == "__main__":
    unittest.main()
