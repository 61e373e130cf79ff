# SPDX-License-Identifier: BSD-3-Clause
"""Documents name files and targets that exist, and the version that this is."""
import re
import unittest

import api

DOCUMENTS = [*api.SOURCE.glob("*.md"), *api.SOURCE.glob("bench/*.md"),
             *api.SOURCE.glob("docs/**/*.md")]
MAKEFILE = (api.SOURCE / "Makefile").read_text()


def missing_files(text):
    """Files and folders of the repository that the text has in backquotes and nobody has."""
    paths = re.findall(r"`((?:bench|cmake|docs|examples|include|src|tests|tools)/[\w./-]*)`", text)
    return [path for path in paths if not (api.SOURCE / path).exists()]


def missing_targets(text):
    """Targets of the Makefile that the text tells a reader to make."""
    targets = re.findall(r"(?:^    |`)make ([a-z]+)", text, flags=re.M)
    return [t for t in targets if not re.search(rf"^[a-z ]*\b{t}\b[a-z ]*:", MAKEFILE, flags=re.M)]


class Documents(api.TestCase):
    def test_what_documents_name_is_there(self):
        for document in DOCUMENTS:
            with self.subTest(document=document.name):
                text = document.read_text()
                self.assertEqual(missing_files(text), [])
                self.assertEqual(missing_targets(text), [])

    def test_the_first_commands_are_on_the_first_screen(self):
        screen = "\n".join((api.SOURCE / "README.md").read_text().splitlines()[:25])
        self.assertIn("    make demo", screen)
        self.assertIn("    make check", screen)

    def test_changes_know_the_version(self):
        version = (api.SOURCE / "VERSION").read_text().strip()
        self.assertIn(f"\n## {version} ", (api.SOURCE / "CHANGELOG.md").read_text())

    def test_every_module_is_in_the_architecture(self):
        text = (api.SOURCE / "ARCHITECTURE.md").read_text()
        listed = re.findall(r"^\| `(\w+)` \|", text, flags=re.M)
        folders = [path.name for path in (api.SOURCE / "src").iterdir() if path.is_dir()]
        self.assertEqual(sorted(listed), sorted(folders))

    def test_every_format_has_a_row_and_a_fuzzer(self):
        rows = re.findall(r"^\| [^|]+ \| `(docs/[^`]+)` \| [^|]+ \| (.*) \|$",
                          (api.SOURCE / "ARCHITECTURE.md").read_text(), flags=re.M)
        pages = {"docs/format.md", *(f"docs/format/{page.name}"
                                     for page in (api.SOURCE / "docs" / "format").iterdir())}
        self.assertEqual(pages - {page for page, _ in rows}, set())
        for page, fuzzers in rows:
            with self.subTest(page=page):
                names = re.findall(r"`(fuzz_\w+)`", fuzzers)
                self.assertTrue(names)
                for name in names:
                    self.assertTrue((api.SOURCE / "tests" / "fuzz" / f"{name}.c").exists(), name)

    def test_every_benchmark_states_its_question(self):
        text = (api.SOURCE / "bench" / "README.md").read_text()
        listed = re.findall(r"^\| `(bench_\w+)` \|", text, flags=re.M)
        programs = [path.stem for kind in ("c", "py")
                    for path in (api.SOURCE / "bench").glob(f"bench_*.{kind}")]
        self.assertEqual(sorted(listed), sorted(programs))

    def test_a_bad_document_is_seen(self):
        self.assertEqual(missing_files("see `docs/nowhere.md` and `src/base/`"),
                         ["docs/nowhere.md"])
        self.assertEqual(missing_targets("say `make tea`, then\n\n    make check\n"), ["tea"])


if __name__ == "__main__":
    unittest.main()
