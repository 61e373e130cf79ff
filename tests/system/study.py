# SPDX-License-Identifier: BSD-3-Clause
"""Studies of real processes, for the tests of ensembles."""
import json
import os
import pathlib
import subprocess
import time

SOURCE = pathlib.Path(os.environ["CAIRN_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["CAIRN_BUILD_DIR"])
CAIRN = BUILD / "bin" / "cairn"
LORENZ = BUILD / "examples" / "lorenz96"
ODD = BUILD / "tests" / "system" / "odd_model"
MPIRUN = "mpirun --oversubscribe --allow-run-as-root"
MEMBERS, CYCLES = 5, 5
PATIENCE = 240  # seconds, for what must happen at all


class Study:
    """A study in a folder of its own."""

    def __init__(self, folder, name, runner, runners=2, **more):
        self.file = folder / f"{name}.ini"
        self.dir = folder / name
        self.observations = folder / "observations"
        options = {"study": {"members": MEMBERS, "cycles": CYCLES, "spin": 50},
                   "filter": {"inflation": 1.02, "rotate": "yes",
                              "observations": self.observations},
                   "runner": {"command": runner, "number": runners, "due": "30s"}}
        for key, value in more.items():
            section, key = key.split("_", 1)
            options.setdefault(section, {})[key] = value
        text = "".join(f"[{s}]\n" + "".join(f"{k} = {v}\n" for k, v in keys.items())
                       for s, keys in options.items())
        self.file.write_text(text)

    def command(self, *words):
        return [str(CAIRN), "ensemble", words[0], str(self.file), *map(str, words[1:])]

    def must(self, *words):
        return subprocess.run(self.command(*words), check=True, text=True, capture_output=True,
                              timeout=PATIENCE).stdout

    def start(self, **env):
        return subprocess.Popen(self.command("run"), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=dict(os.environ, **env))

    def events(self, kind=None):
        try:
            lines = (self.dir / "events.jsonl").read_text().splitlines()
        except FileNotFoundError:
            return []
        every = [json.loads(line) for line in lines]
        return [e for e in every if kind is None or e["event"] == kind]

    def digests(self):
        """The analysis of each cycle; one that was computed again must be the same."""
        found = {}
        for e in self.events("analysis"):
            assert found.setdefault(e["cycle"], e["digest"]) == e["digest"], e
        return found

    def processes(self, job):
        """Those whose environment names the job."""
        marks = {f"CAIRN_ENSEMBLE_JOB={job}".encode(), f"CAIRN_ENSEMBLE_DIR={self.dir}".encode()}
        pids = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and marks <= set(
                        (entry / "environ").read_bytes().split(b"\0")):
                    pids.append(int(entry.name))
            except OSError:
                continue
        return pids

    def must_be_gone(self):
        """No process is left of any job. (Open MPI's own helper of a process that was started
        alone, which has its environment, ends a moment after it.)"""
        until("all processes of the study are gone",
              lambda: not any(self.processes(job) for job in self.jobs()))

    def signal(self, job, number):
        for pid in self.processes(job):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def jobs(self):
        return (self.dir / "jobs").read_text().split()


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)
