# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages are well-formed."""
import unittest

import api


def lint(page):
    return api.run("mandoc", "-T", "lint", "-W", "warning", page)


class Manuals(api.TestCase):
    def test_pages_are_well_formed(self):
        for page in sorted((api.SOURCE / "docs" / "man").glob("*.[157]")):
            with self.subTest(page=page.name):
                code, output = lint(page)
                self.assertEqual(code, 0, output)

    def test_a_bad_page_is_seen(self):
        self.assertNotEqual(lint(self.write("bad.1", ".Dd\n.Sh NAME\n.Bl\n"))[0], 0)


if __name__ == "__main__":
    unittest.main()
