# SPDX-License-Identifier: BSD-3-Clause
"""Every subcommand has a manual page that says what the program says."""
import re
import unittest

import api

CAIRN = api.BUILD / "bin" / "cairn"
MAN = api.SOURCE / "docs" / "man"


def render(page):
    """The page as plain text, by section."""
    text = re.sub(".\b", "", api.run("mandoc", "-T", "ascii", "-O", "width=200", page)[1])
    parts = re.split(r"^([A-Z][A-Z ]+)\n", text, flags=re.M)
    return {name: body for name, body in zip(parts[1::2], parts[2::2])}


def synopsis(page):
    return [" ".join(line.split()) for line in render(page)["SYNOPSIS"].splitlines() if line]


def usage(text):
    """The forms after 'usage:' up to the first empty line."""
    lines = text.split("\n\n")[0].splitlines()
    return [line[len("usage: "):].strip() for line in lines]


class Command(api.TestCase):
    def commands(self):
        """(name, summary) of each, from 'cairn help'."""
        overview = self.must(CAIRN, "help")
        found = re.findall(r"^  (\w+)  +(.*)$", overview, re.M)
        self.assertIn("help", dict(found))
        return found

    def test_pages_say_what_the_program_says(self):
        for name, summary in self.commands():
            with self.subTest(command=name):
                page = MAN / f"cairn-{name}.1"
                self.assertTrue(page.exists(), f"no page {page.name}")
                text = self.must(CAIRN, name, "-h")
                self.assertEqual(synopsis(page), usage(text))
                self.assertIn(f".Nd {summary}\n", page.read_text())
                for option in re.findall(r"^  .*(--[a-z-]+)", text, re.M):
                    self.assertIn(option, render(page)["DESCRIPTION"])

    def test_json_is_described(self):
        for name, _ in self.commands():
            if "--json" in self.must(CAIRN, name, "-h"):
                self.assertIn("JSON", render(MAN / f"cairn-{name}.1"), name)

    def test_the_first_page_lists_all(self):
        page = (MAN / "cairn.1").read_text()
        listed = re.findall(r"^\.It Xr cairn-(\w+) 1\n(.*)$", page, re.M)
        self.assertEqual(listed, self.commands())

    def test_generated_page(self):
        page = api.BUILD / "man" / "cairn-config.5"
        self.must("mandoc", "-T", "lint", "-W", "warning", page)
        self.assertIn("CAIRN_KEEP_LOCAL", render(page)["OPTIONS"])


if __name__ == "__main__":
    unittest.main()
