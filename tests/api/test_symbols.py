# SPDX-License-Identifier: BSD-3-Clause
"""Public headers, version map and shared library name the same functions.

A new public function is declared with CAIRN_API and listed in src/libcairn.map, in the block of
the release that brings it.
"""
import re
import unittest

import api

MAP = api.SOURCE / "src" / "libcairn.map"


def mapped():
    """The names in the map, without patterns: every one is there on purpose."""
    return set(re.findall(r"^\s*(\w+);", MAP.read_text(), flags=re.M))


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
        self.assertEqual(mapped(), api.declared(), "src/libcairn.map against include/cairn/")

    def test_library_exports_what_the_map_lists(self):
        names = {name for name, *_ in exported(api.BUILD / "lib" / "libcairn.so")}
        self.assertEqual(names, mapped())

    def test_every_symbol_has_a_version(self):
        for name, *version in exported(api.BUILD / "lib" / "libcairn.so"):
            self.assertTrue(version and version[0].startswith("CAIRN_"), name)

    def test_a_symbol_too_many_is_seen(self):
        source = self.write("more.c", "int cairn_more(void) { return 1; }\n")
        library = self.dir / "libmore.so"
        self.must(api.CC, "-shared", "-fPIC", source, "-o", library)
        self.assertEqual({name for name, *_ in exported(library)} - mapped(), {"cairn_more"})


if __name__ == "__main__":
    unittest.main()
