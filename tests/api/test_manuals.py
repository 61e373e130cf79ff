# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages are well-formed."""
import unittest

import api


def lint(page):
    return api.run("mandoc", "-T", "lint", "-W", "warning", page)


class Manuals(api.TestCase):
    def test_pages_are_well_formed(self):
        made = (api.BUILD / "man" / "man3").glob("*.3")
        for page in [*sorted((api.SOURCE / "docs" / "man").glob("*.[157]")),
                     *(p for p in made if not p.read_text().startswith(".so "))]:
            with self.subTest(page=page.name):
                code, output = lint(page)
                self.assertEqual(code, 0, output)

    def test_every_call_has_a_page(self):
        for call in api.declared():
            page = api.BUILD / "man" / "man3" / f"{call}.3"
            self.assertTrue(page.exists(), call)
            text = page.read_text()
            if text.startswith(".so man3/"):
                text = (page.parent.parent / text.split()[1]).read_text()
            self.assertRegex(text, rf"(?m)^\.Ss (.*, )?{call}(, |$)")

    def test_a_bad_page_is_seen(self):
        self.assertNotEqual(lint(self.write("bad.1", ".Dd\n.Sh NAME\n.Bl\n"))[0], 0)


if __name__ == "__main__":
    unittest.main()
