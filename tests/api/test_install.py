# SPDX-License-Identifier: BSD-3-Clause
"""An installed Cairn is found and used by other people's programs, wherever it was put."""
import os
import re
import unittest

import api

PROGRAM = """\
#include <cairn/error.h>
#include <cairn/version.h>
#include <stdio.h>

int main(void)
{
    printf("%s %s\\n", cairn_version(), cairn_strerror(CAIRN_OK));
    return 0;
}
"""
# All of the archive is linked, so that everything which it stands on must be named.
LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(Cairn 0.1 REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE Cairn::cairn)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,Cairn::static>)
"""
VERSION = (api.SOURCE / "VERSION").read_text().strip()


class Install(api.TestCase):
    def setUp(self):
        super().setUp()
        self.must("cmake", "--install", api.BUILD, "--prefix", "/opt/cairn",
                  env={"DESTDIR": str(self.dir / "stage")})
        self.tree = self.dir / "stage" / "opt" / "cairn"
        self.write("main.c", PROGRAM)

    def check_program(self, path):
        self.assertEqual(self.must(path), f"{VERSION} success\n")

    def pkg_config(self, *words):
        pc = next(self.tree.rglob("cairn.pc"))
        path = {"PKG_CONFIG_PATH": str(pc.parent)}
        return self.must("pkg-config", *words, "cairn", env=path).split()

    def test_cmake_package(self):
        self.write("CMakeLists.txt", LISTS)
        self.must("cmake", "-G", "Ninja", "-S", self.dir, "-B", self.dir / "out",
                  f"-DCMAKE_C_COMPILER={api.CC}", f"-DCMAKE_PREFIX_PATH={self.tree}")
        self.must("cmake", "--build", self.dir / "out")
        self.check_program(self.dir / "out" / "with_shared")
        self.check_program(self.dir / "out" / "with_static")
        self.assertIn("libcairn.so", self.must("ldd", self.dir / "out" / "with_shared"))
        self.assertNotIn("libcairn.so", self.must("ldd", self.dir / "out" / "with_static"))

    def test_pkg_config_shared(self):
        flags = self.pkg_config("--cflags", "--libs")
        library = next(self.tree.rglob("libcairn.so")).parent
        program = self.dir / "with_shared"
        self.must(api.CC, self.dir / "main.c", "-o", program, *flags, f"-Wl,-rpath,{library}")
        self.check_program(program)

    def test_pkg_config_static(self):
        flags = self.pkg_config("--static", "--cflags", "--libs")
        whole = "-Wl,--whole-archive,-l:libcairn.a,--no-whole-archive"
        flags = [whole if flag == "-lcairn" else flag for flag in flags]
        program = self.dir / "with_static"
        self.must(api.CC, self.dir / "main.c", "-o", program, *flags)
        self.check_program(program)
        self.assertNotIn("libcairn.so", self.must("ldd", program))

    def test_versions_agree(self):
        self.assertEqual(self.pkg_config("--modversion"), [VERSION])
        text = (self.tree / "include" / "cairn" / "version.h").read_text()
        numbers = re.findall(r"#define CAIRN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text)
        self.assertEqual(".".join(numbers), VERSION)

    def test_everything_is_there_and_names_no_build_folder(self):
        for header in api.HEADERS:
            self.assertTrue((self.tree / "include" / "cairn" / header.name).exists(), header)
        made = list((api.BUILD / "man").rglob("*.[1357]"))
        for page in [*(api.SOURCE / "docs" / "man").glob("*.[157]"), *made]:
            place = self.tree / "share" / "man" / f"man{page.suffix[1:]}" / page.name
            self.assertTrue(place.exists(), page)
        for path in [p for p in self.tree.rglob("*") if p.suffix in (".pc", ".cmake", ".h")]:
            for folder in (api.SOURCE, api.BUILD, self.dir):
                self.assertNotIn(f"{folder}{os.sep}", path.read_text(), path)

    def test_command_runs_from_the_tree(self):
        self.assertEqual(self.must(self.tree / "bin" / "cairn", "--version"), f"cairn {VERSION}\n")


if __name__ == "__main__":
    unittest.main()
