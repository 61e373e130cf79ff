# SPDX-License-Identifier: BSD-3-Clause
"""Every block of README and guides does what it shows, to the letter, for a user who is not root
and has Cairn installed.

A block is what is indented by four spaces, or fenced. What it is its first line tells: commands
(after '$ ', then the other lines are what they print), a configuration ('[section]'), CMake, a
fragment of a program, or a program. An HTML comment in the line before it says what cannot be seen:

    <!-- as count.c -->             write it to that file
    <!-- fresh results -->          without the trail 'results', which programs then use
    <!-- text -->                   nothing that anybody would paste
    <!-- needs a cluster -->        not run here, and why: told and counted
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import system

NOBODY = 65534
COMMANDS = ("cairn ", "mpirun ", "mpicc ", "make", "#!", "nodes_up=", "libs=")
ANSWERS = ("cairn diff", "cairn gate", "cairn explain", "mpirun -n 8 cairn diff")  # 1 is 'no'

Block = collections.namedtuple("Block", "line mark lang text")


def blocks_of(text):
    """All blocks of a document."""
    lines, found, mark, i = text.split("\n"), [], "", 0
    while i < len(lines):
        line, start = lines[i], i
        if line.startswith("```"):
            while not lines[i + 1].startswith("```"):
                i += 1
            found.append(Block(start + 2, mark, line[3:], "\n".join(lines[start + 1:i + 1])))
            mark, i = "", i + 2
        elif line.startswith("    ") and not (start and lines[start - 1].strip()):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            found.append(Block(start + 1, mark, "",
                               textwrap.dedent("\n".join(lines[start:i])).strip("\n")))
            mark = ""
        else:
            note = re.fullmatch(r"<!-- (.*) -->", line)
            mark = note.group(1) if note else mark if not line.strip() else ""
            i += 1
    return found


def kind_of(block):
    first = block.text.split("\n")[0]
    if block.mark.startswith("needs "):
        return "skipped"
    if block.mark == "text":
        return "text"
    if block.mark.startswith("as "):
        return "file"
    if first.startswith("["):
        return "configuration"
    if first.startswith(("$ ", *COMMANDS)) and not first.startswith("cairn *"):
        return "commands"
    if first.startswith("find_package"):
        return "cmake"
    if re.search(r"[;{>,]\s*(//.*|/\*.*)?$", first) or first.startswith("static "):
        return "fragment"
    return None


class Guides(system.Case):
    furnished = None  # a folder that all tests begin with a copy of

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix="cairn-guides-"))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.place.chmod(0o755)
        cls.prefix = cls.place / "installed"
        subprocess.run(["cmake", "--install", str(system.BUILD), "--prefix", str(cls.prefix)],
                       check=True, stdout=subprocess.DEVNULL)
        cls.lib = next(cls.prefix.rglob("libcairn.so")).parent
        cls.clean = {k: v for k, v in os.environ.items()
                     if not k.startswith(("CAIRN_", "OMPI_", "SLURM_"))}
        for name in ("frame.h", "app.c"):
            shutil.copy(system.HERE / f"guide_{name}", cls.place / name)

    def user_env(self, where):
        path = f"{self.prefix / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        return {**self.clean, "PATH": path, "HOME": str(where), "TMPDIR": str(where),
                "LD_LIBRARY_PATH": str(self.lib), "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"),
                "CMAKE_PREFIX_PATH": str(self.prefix), "PREFIX": str(self.prefix),
                "CAIRN_LEVEL_LOCAL": "trail", "CAIRN_KEEP_GLOBAL": "all",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy":
                "none", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def shell(self, where, script, **more):
        """Run a script as a normal user: its code and what it printed."""
        other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*(other if os.geteuid() == 0 else []), "bash", "-e", "-o", "pipefail", "-c",
                   script]
        done = subprocess.run(command, cwd=where, env={**self.user_env(where), **more}, check=False,
                              text=True, errors="replace", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
        return done.returncode, done.stdout

    def must(self, where, script, note="", **more):
        code, text = self.shell(where, script, **more)
        self.assertEqual(code, 0, f"{note}\n{script}\n{text}")

    def home(self):
        """A folder of its own with what the guides take for granted."""
        if not Guides.furnished:
            Guides.furnished = self.furnish(self.place / "furnished")
        home = self.place / self.id().rsplit(".", 1)[1]
        subprocess.run(["cp", "-a", str(self.furnished), str(home)], check=True)
        return home

    def furnish(self, home):
        """Programs, runs, files of others."""
        home.mkdir()
        os.chown(home, NOBODY if os.geteuid() == 0 else -1, -1)
        self.must(home, f"""
            cp {self.place}/app.c . && touch input && mkdir tests
            mpicc app.c -o app $(pkg-config --cflags --libs cairn)
            cp app program && cp app simulation
            ./app
            export CAIRN_RUN_TRAIL=results
            CAIRN_RUN_NAME=run-1 ./app && CAIRN_RUN_NAME=run-2 NUDGE=0.1 ./app
            CAIRN_RUN_NAME=every-5 ./app && CAIRN_RUN_NAME=every-10 ./app
            cairn export -o a.h5 results/run-1 && cairn export -o b.h5 results/run-2
            cp a.h5 start.h5
            head -c 2097152 /dev/zero >a.bin && cp a.bin b.bin
            cairn trace record -o run.ctr -- mpirun -n 8 ./app""")
        return home

    def play(self, where, block):
        """Do what a block shows; its kind, or a failure."""
        kind, note = kind_of(block), f"line {block.line}"
        more = {}
        if block.mark.startswith("fresh "):
            more = {"CAIRN_RUN_TRAIL": block.mark.split()[1]}
            shutil.rmtree(where / block.mark.split()[1], ignore_errors=True)
        self.assertIsNotNone(kind, f"{note}: what is this? A comment before it can tell:\n"
                             f"{block.text}")
        if kind == "commands":
            self.play_commands(where, block, note, more)
        elif kind == "file":
            (where / block.mark.split()[1]).write_text(block.text + "\n")
        elif kind == "configuration":
            (where / "a.conf").write_text(block.text + "\n")
            self.must(where, "CAIRN_CONFIG=a.conf CAIRN_RUN_TRAIL=configured "
                      "CAIRN_LEVEL_LOCAL=$PWD/local ./app", f"{note}\n{block.text}")
        elif kind == "cmake":
            (where / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(guide C)\n"
                f"add_executable(program app.c)\n{block.text}\n")
            self.must(where, "cmake -B build . && cmake --build build", note)
        elif kind == "fragment":
            outside = block.text.startswith(("static ", "#include"))
            body = block.text if block.text.startswith("static ") else (
                re.sub(r"(?m)^#include.*\n", "", block.text))
            whole = body if outside and block.text.startswith("static ") else (
                f"void fragment(void)\n{{\n{body}\n}}")
            (where / "fragment.c").write_text(f'#include "{self.place}/frame.h"\n{whole}\n')
            self.must(where, "mpicc -w -std=gnu11 -fsyntax-only fragment.c "
                      "$(pkg-config --cflags cairn)", f"{note}\n{whole}")
        return kind

    def play_commands(self, where, block, note, more):
        lines = block.text.split("\n")
        if lines[0].startswith("$ "):
            scripts = [line[2:] for line in lines if line.startswith("$ ")]
        else:
            scripts = [block.text]
        for script in scripts:
            code, text = self.shell(where, script, **more)
            good = (0, 1) if script.startswith(ANSWERS) else (0,)
            self.assertIn(code, good, f"{note}\n{script}\n{text}")

    def play_document(self, name):
        home = self.home()
        counts = collections.Counter()
        for block in blocks_of((system.SOURCE / name).read_text()):
            with self.subTest(f"{name}:{block.line}"):
                kind = self.play(home, block)
                counts[kind] += 1
                if kind == "skipped":
                    print(f"SKIPPED {name}:{block.line}: {block.mark}", flush=True)
        print(f"{name}: {dict(counts)}", flush=True)

    def test_readme(self):
        self.play_document("README.md")

    def test_assimilate(self):
        self.play_document("docs/guide/assimilate.md")

    def test_checkpoint(self):
        self.play_document("docs/guide/checkpoint.md")

    def test_coming_from(self):
        self.play_document("docs/guide/coming-from.md")

    def test_compare(self):
        self.play_document("docs/guide/compare.md")

    def test_hdf5(self):
        self.play_document("docs/guide/hdf5.md")

    def test_ensemble(self):
        self.play_document("docs/guide/ensemble.md")

    def test_plan(self):
        self.play_document("docs/guide/plan.md")

    def test_region(self):
        self.play_document("docs/guide/region.md")

    def test_run(self):
        self.play_document("docs/guide/run.md")

    def test_state(self):
        self.play_document("docs/guide/state.md")

    def test_trace(self):
        self.play_document("docs/guide/trace.md")

    def test_validate(self):
        self.play_document("docs/guide/validate.md")

    def test_all_guides_are_played(self):
        own = pathlib.Path(__file__).read_text()
        for path in (system.SOURCE / "docs" / "guide").glob("*.md"):
            self.assertIn(f'play_document("docs/guide/{path.name}")', own)

    def test_all_defaults_are_a_configuration(self):
        home = self.home()
        self.must(home, "cairn help config >all.conf && CAIRN_CONFIG=all.conf ./app")

    def test_manual_pages_name_what_is_installed(self):
        for page in (system.SOURCE / "docs" / "man").glob("*.[157]*"):
            for name in re.findall(r"(?m)^\.Pa (\S+\.md)", page.read_text()):
                self.assertTrue(list(self.prefix.rglob(name)), f"{page.name} names {name}")


if __name__ == "__main__":
    unittest.main()
