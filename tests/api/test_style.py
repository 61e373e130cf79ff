# SPDX-License-Identifier: BSD-3-Clause
"""tools/check-style finds nothing here, and finds each thing that it is there to find."""
import unittest

import api

check = api.tool("check-style").check
SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"


def function(nlines):
    """A function of so many lines, signature and braces included."""
    return "int f(int x)\n{\n" + "".join(f"    x += {i};\n" for i in range(nlines - 4)) \
        + "    return x;\n}\n"


def nested(levels):
    """A statement so many levels deep, the deepest without braces."""
    text = "int f(int x)\n{\n"
    for level in range(1, levels):
        text += "    " * level + ("if (x)\n" if level == levels - 1 else "if (x) {\n")
    text += "    " * levels + "call(x,\n" + "    " * (levels + 4) + "x);\n"
    return text + "".join("    " * level + "}\n" for level in range(levels - 2, 0, -1)) + "}\n"


def guarded(name, text=""):
    return f"{SPDX}#ifndef {name}\n#define {name}\n{text}#endif\n"


def lines(n, word):
    return "".join(f"int {word}{i};\n" for i in range(n))


GOOD = [
    ("src/io/io_a.c", SPDX + function(100)),
    ("src/io/io_a.c", SPDX + nested(4)),
    ("src/io/io_a.c", SPDX + lines(999, "x")),
    ("src/io/io_a.h", guarded("CAIRN_IO_A_H")),
    ("src/io/io_a.c", SPDX + "/* " + "x" * 94 + " */\n"),
    ("src/io/io_a.c", SPDX + lines(100, "a") + lines(7, "b") + lines(100, "c") + lines(7, "b")),
    ("src/io/CMakeLists.txt", "crn_module(io)\n"),
    ("Makefile", "# SPDX-License-Identifier: BSD-3-Clause\nall:\n\ttrue\n"),
]
BAD = [
    ("src/io/io_a.c", SPDX + function(101), "a function of 101 lines"),
    ("src/io/io_a.c", SPDX + nested(5), "5 levels of indent"),
    ("src/io/io_a.c", SPDX + lines(1000, "x"), "a file of 1001 lines"),
    ("src/io/io_a.c", SPDX + "/* " + "x" * 95 + " */\n", "101 columns"),
    ("src/io/io_a.c", lines(6, "x"), "no line 'SPDX"),
    ("src/io/io_a.h", guarded("CAIRN_IO_B_H"), "no guard CAIRN_IO_A_H"),
    ("src/io/io_a.c", SPDX + "\tint x;\n", "a tab"),
    ("src/io/io_a.c", SPDX + "int x; \n", "space at the end"),
    ("src/io/io_a.c", SPDX + "int x;", "no end of the last line"),
    ("src/io/io_a.c", SPDX + lines(20, "a") + lines(20, "a"), "of the lines repeat others"),
    ("tools/x", "#!/bin/sh\necho\necho\necho\necho\n", "no line 'SPDX"),
    ("docs/x.md", "see /" + "home/someone/cairn\n", "a path of one machine"),
    ("docs/x.md", "see deb" + ".debian.org\n", "a package registry"),
]


class Style(api.TestCase):
    def test_this_tree(self):
        self.must(api.SOURCE / "tools" / "check-style")

    def test_git_does_not_know_it(self):
        """Of a repository only its own files are judged; a folder that is none is judged whole."""
        mine = self.write("src/io/io_a.c", SPDX + "int x; \n")
        self.write("scratch/io_b.c", "int x; \n")
        self.assertGreater(len(check(self.dir)), 1)
        for words in (["init", "-q"], ["add", str(mine)]):
            self.must("git", "-C", self.dir, *words)
        self.assertEqual(len(check(self.dir)), 1)

    def test_what_is_allowed(self):
        for name, text in GOOD:
            with self.subTest(name=name, text=text[-80:]):
                path = self.write(name, text)
                self.assertEqual(check(self.dir), [])
                path.unlink()

    def test_each_offence(self):
        for name, text, words in BAD:
            with self.subTest(name=name, words=words):
                path = self.write(name, text)
                complaints = check(self.dir)
                self.assertEqual(len(complaints), 1, complaints)
                self.assertIn(words, complaints[0])
                path.unlink()


if __name__ == "__main__":
    unittest.main()
