# SPDX-License-Identifier: BSD-3-Clause
"""An installed Cairn is found and used by other people's programs, wherever it was put."""
import os
import re
import shutil
import sys
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
cmake_minimum_required(VERSION 3.24)
project(user LANGUAGES C)
find_package(Cairn 0.1 REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE Cairn::cairn)
add_executable(with_static main.c)
target_link_libraries(with_static PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,Cairn::static>)
"""
# A C++ program that knows nothing of C, and what can be linked instead of preloaded.
CXX_LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(user LANGUAGES CXX)
find_package(Cairn REQUIRED)
add_executable(program main.cc)
target_link_libraries(program PRIVATE Cairn::cairn)
add_executable(recorded main.cc)
target_link_libraries(recorded PRIVATE -Wl,--no-as-needed Cairn::trace Cairn::cairn)
"""
CXX_PROGRAM = """\
#include <cairn/ckpt.h>
#include <cairn/version.h>
#include <iostream>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    std::cout << cairn_version() << " success" << std::endl;
    MPI_Finalize();
    return 0;
}
"""
# What is loaded by a program that was not linked with MPI.
LOADER = """\
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.cairn_version.restype = ctypes.c_char_p
print(library.cairn_version().decode(), "success")
maps = open("/proc/self/maps").read()
print([name for name in ("libstdc++", "libgomp", "libhdf5", "libzfp", "libfpzip") if name in maps])
"""
OTHER = {"Open MPI": "mpich", "MPICH": "openmpi"}
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

    def cmake(self, lists, *words):
        """Configure a user's project: (exit code, output)."""
        self.write("CMakeLists.txt", lists)
        return api.run("cmake", "-G", "Ninja", "-S", self.dir, "-B", self.dir / "out",
                       f"-DCMAKE_PREFIX_PATH={self.tree}", *words)

    def our_mpi(self):
        flags = self.pkg_config("--cflags")
        return "Open MPI" if "-DCAIRN_FOR_OPEN_MPI" in flags else "MPICH"

    def our_mpicc(self):
        return "mpicc." + {"Open MPI": "openmpi", "MPICH": "mpich"}[self.our_mpi()]

    @unittest.skipUnless(api.CXX and shutil.which(api.CXX), "no C++ compiler")
    def test_cxx_programs_link(self):
        self.write("main.cc", CXX_PROGRAM)
        code, output = self.cmake(CXX_LISTS, f"-DCMAKE_CXX_COMPILER={api.CXX}",
                                  f"-DMPI_C_COMPILER={self.our_mpicc()}")
        self.assertEqual(code, 0, output)
        self.must("cmake", "--build", self.dir / "out")
        self.assertIn("libcairn-trace", self.must("ldd", self.dir / "out" / "recorded"))
        linked = self.must("ldd", self.dir / "out" / "program")
        self.assertNotIn("libmpi_cxx", linked)
        self.assertNotIn("libmpichcxx", linked)

    def test_a_program_of_another_mpi_is_told_when_it_is_configured(self):
        ours = self.our_mpi()
        other = f"mpicc.{OTHER[ours]}"
        if not shutil.which(other):
            self.skipTest(f"there is no {other}")
        code, output = self.cmake(LISTS, f"-DMPI_C_COMPILER={other}")
        self.assertNotEqual(code, 0, output)
        text = " ".join(output.split())
        theirs = [name for name in OTHER if name != ours][0]
        self.assertIn(f"this Cairn was built for {ours}, but the program's MPI is {theirs}", text)

    def test_a_program_of_another_mpi_is_told_when_it_is_compiled(self):
        other = f"mpicc.{OTHER[self.our_mpi()]}"
        if not shutil.which(other):
            self.skipTest(f"there is no {other}")
        self.write("main.c", "#include <cairn/ckpt.h>\nint main(void) { return 0; }\n")
        flags = [flag for flag in self.pkg_config("--cflags") if "mpi" not in flag]
        code, output = api.run(other, "-c", self.dir / "main.c", "-o", self.dir / "main.o", *flags)
        self.assertNotEqual(code, 0, output)
        self.assertIn("this libcairn was built for another MPI", output)
        self.must(self.our_mpicc(), "-c", self.dir / "main.c", "-o", self.dir / "main.o", *flags)

    def test_the_library_can_be_loaded_and_brings_no_other_run_times(self):
        library = next(self.tree.rglob("libcairn.so"))
        script = self.write("load.py", LOADER)
        self.assertEqual(self.must(sys.executable, script, library), f"{VERSION} success\n[]\n")

    def test_pkg_config_says_where_the_library_is(self):
        library = next(self.tree.rglob("libcairn.so")).parent
        self.assertEqual(os.path.realpath(self.pkg_config("--variable=rpath")[0]), str(library))

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
