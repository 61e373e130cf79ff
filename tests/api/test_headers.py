# SPDX-License-Identifier: BSD-3-Clause
"""Each public header compiles alone, in every language that may include it."""
import unittest

import api

LANGUAGES = [(api.CC, "c", "c99"), (api.CC, "c", "c11"), (api.CXX, "c++", "c++17")]


def compile_alone(compiler, language, standard, header):
    mpi = [word for folder in api.MPI_INCLUDE for word in ("-isystem", folder)]
    return api.run(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                   "-pedantic", "-fsyntax-only", "-I", api.SOURCE / "include", *mpi,
                   "-include", header, "/dev/null")


class Headers(api.TestCase):
    def test_each_header_compiles_alone(self):
        self.assertTrue(api.HEADERS)
        for header in api.HEADERS:
            for language in LANGUAGES:
                with self.subTest(header=header.name, standard=language[2]):
                    code, output = compile_alone(*language, header)
                    self.assertEqual(code, 0, output)

    def test_a_header_that_needs_another_is_refused(self):
        header = self.write("lame.h", "int cairn_lame(size_t nbytes);\n")
        for language in LANGUAGES:
            self.assertNotEqual(compile_alone(*language, header)[0], 0)

    def test_a_header_of_c11_is_refused_as_c99(self):
        header = self.write("modern.h", "_Static_assert(sizeof(int) == 4, \"int\");\n")
        self.assertNotEqual(compile_alone(*LANGUAGES[0], header)[0], 0)
        self.assertEqual(compile_alone(*LANGUAGES[1], header)[0], 0)

    def test_public_names_have_the_prefix(self):
        self.assertEqual([n for n in api.declared() if not n.startswith("cairn_")], [])


if __name__ == "__main__":
    unittest.main()
