# SPDX-License-Identifier: BSD-3-Clause
"""Public headers, version map and shared library name the same functions.

A new public function is declared with CAIRN_API and listed in src/libcairn.map, or for those of
<cairn/ensemble.h> in src/ensemble/libcairn-ensemble.map, in the block of the release that brings
it.
"""
import re
import unittest

import api

LIBRARIES = {
    "libcairn.so": api.SOURCE / "src" / "libcairn.map",
    "libcairn-ensemble.so": api.SOURCE / "src" / "ensemble" / "libcairn-ensemble.map",
}


def mapped(library):
    """The names in a library's map, without patterns: every one is there on purpose."""
    return set(re.findall(r"^\s*(\w+);", LIBRARIES[library].read_text(), flags=re.M))


def exported(library):
    """(name, version) of what a library defines for others."""
    code, output = api.run("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    assert code == 0, output
    symbols = set()
    for line in output.splitlines():
        _, kind, name = line.split()[-3:]
        if kind != "A":  # the names of the versions themselves
            symbols.add(tuple(re.split("@+", name)))
    return symbols


class Symbols(api.TestCase):
    def test_map_lists_what_headers_declare(self):
        every = [mapped(library) for library in LIBRARIES]
        self.assertEqual(set.union(*every), api.declared(), "the maps against include/cairn/")
        self.assertFalse(set.intersection(*every))

    def test_library_exports_what_the_map_lists(self):
        for library in LIBRARIES:
            names = {name for name, *_ in exported(api.BUILD / "lib" / library)}
            self.assertEqual(names, mapped(library))

    def test_every_symbol_has_a_version(self):
        for library in LIBRARIES:
            for name, *version in exported(api.BUILD / "lib" / library):
                self.assertTrue(version and version[0].startswith("CAIRN_"), name)

    def test_what_ensembles_load_is_not_linked(self):
        for library in LIBRARIES:
            needed = self.must("ldd", api.BUILD / "lib" / library)
            self.assertNotRegex(needed, "libzmq|lapack|blas")

    def test_a_symbol_too_many_is_seen(self):
        source = self.write("more.c", "int cairn_more(void) { return 1; }\n")
        library = self.dir / "libmore.so"
        self.must(api.CC, "-shared", "-fPIC", source, "-o", library)
        self.assertEqual({name for name, *_ in exported(library)} - mapped("libcairn.so"),
                         {"cairn_more"})


if __name__ == "__main__":
    unittest.main()
