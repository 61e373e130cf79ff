# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of this folder share: where things are, and how to run a command."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["CAIRN_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["CAIRN_BUILD_DIR"])
CC = os.environ["CAIRN_CC"]
CXX = os.environ["CAIRN_CXX"]
MPI_INCLUDE = [d for d in os.environ["CAIRN_MPI_INCLUDE"].split(":") if d]
HEADERS = sorted((SOURCE / "include").rglob("*.h"))


def need(program):
    """Skip the test where a program is missing; not in CI, which installs all of them."""
    if not shutil.which(program) and not os.environ.get("CI"):
        raise unittest.SkipTest(f"'{program}' is not installed")


def run(*command, env=None):
    """Run a command: (exit code, everything that it printed)."""
    need(command[0])
    done = subprocess.run([str(word) for word in command], check=False, text=True,
                          env=dict(os.environ, **(env or {})),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def tool(name):
    """A program of tools/ as a module, to be called without starting it each time."""
    loader = importlib.machinery.SourceFileLoader(name, str(SOURCE / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def declared():
    """The functions that the public headers declare."""
    text = "\n".join(path.read_text() for path in HEADERS)
    text = re.sub(r"/\*.*?\*/|^\s*#[^\n]*", "", text, flags=re.S | re.M)
    return set(re.findall(r"\bCAIRN_API\b[^;(]*?\b(\w+)\s*\(", text))


class TestCase(unittest.TestCase):
    """A test with an empty folder, self.dir, below the build tree."""
    maxDiff = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="scratch-", dir="."))
        self.dir = self.dir.resolve()
        self.addCleanup(shutil.rmtree, self.dir)

    def must(self, *command, env=None):
        code, output = run(*command, env=env)
        self.assertEqual(code, 0, f"{' '.join(map(str, command))}\n{output}")
        return output

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path
