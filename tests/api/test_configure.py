# SPDX-License-Identifier: BSD-3-Clause
"""Plain CMake configures anywhere: without what can be left out, with any MPI, with a sentence."""
import re
import shutil
import unittest

import api

PARTS = re.findall(r"^crn(?:_library)?_part\((\w+)",
                   (api.SOURCE / "cmake" / "CairnParts.cmake").read_text(), flags=re.M)
# What stands in for a missing part.
STAND_INS = ("base/base_config", "base/base_json", "base/base_rng", "event/event",
             "codec/codec_missing", "erasure/erasure_none", "io/io_queue", "tracefmt/tracefmt_pack",
             "exchange/exchange_none", "diff/diff_hdf5_none", "codec/codec_program")


class Configure(api.TestCase):
    def configure(self, *words, env=None):
        api.need("ninja")
        return api.run("cmake", "-G", "Ninja", "-S", api.SOURCE, "-B", self.dir / "out",
                       "-DBUILD_TESTING=OFF", *words, env=env)

    def test_all_parts_can_be_left_out(self):
        code, output = self.configure(*(f"-DCAIRN_WITH_{part}=OFF" for part in PARTS),
                                      "-DCAIRN_WERROR=ON")
        self.assertEqual(code, 0, output)
        said = re.findall(r"^-- Cairn goes without: (.*)$", output, flags=re.M)
        self.assertEqual(len(said), 1, output)
        for part in PARTS:
            self.assertIn(f"{part.lower()} (", said[0])
        for name in STAND_INS:
            module = name.split("/")[0]
            source = f"src/{module}/CMakeFiles/{module}.dir/{name.split('/')[1]}.c.o"
            self.must("cmake", "--build", self.dir / "out", "--target", source)

    def test_tests_that_need_a_missing_part_are_skipped(self):
        api.need("ctest")
        code, output = self.configure(*(f"-DCAIRN_WITH_{part}=OFF" for part in PARTS),
                                      "-DBUILD_TESTING=ON")
        self.assertEqual(code, 0, output)
        skipped = r"^(unit/test_codec|mpi/test_hdf5|cli/trace/show|golden/test_golden)$"
        output = self.must("ctest", "--test-dir", self.dir / "out", "-R", skipped, "-V")
        self.assertEqual(output.count("(Skipped)"), 4, output)

    def test_an_unknown_word_is_refused(self):
        code, output = self.configure("-DCAIRN_WITH_LZ4=maybe")
        self.assertNotEqual(code, 0, output)
        self.assertIn("CAIRN_WITH_LZ4 is 'maybe'", output)

    def test_the_compiler_says_which_mpi(self):
        compiler = shutil.which("mpicc.mpich")
        if not compiler:
            self.skipTest("there is no mpicc.mpich")
        for words, env in (([], {"CC": compiler}), ([f"-DMPI_C_COMPILER={compiler}"], {})):
            with self.subTest(words=words):
                shutil.rmtree(self.dir / "out", ignore_errors=True)
                code, output = self.configure(*words, env=env)
                self.assertEqual(code, 0, output)
                cache = (self.dir / "out" / "CMakeCache.txt").read_text()
                self.assertRegex(cache, r"MPIEXEC_EXECUTABLE:\w+=.*/mpiexec\.mpich")
                pc = (self.dir / "out" / "cairn.pc").read_text()
                self.assertIn("-DCAIRN_FOR_MPICH", pc)


if __name__ == "__main__":
    unittest.main()
