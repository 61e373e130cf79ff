# SPDX-License-Identifier: BSD-3-Clause
"""What packages are made of agrees with the build: Spack's recipe, Debian's files, completion."""
import re
import subprocess
import unittest

import api

CAIRN = api.BUILD / "bin" / "cairn"
VERSION = (api.SOURCE / "VERSION").read_text().strip()


def parts():
    """What may be left out of a build: the names of CAIRN_WITH_<name>."""
    text = (api.SOURCE / "cmake" / "CairnParts.cmake").read_text()
    return set(re.findall(r"^crn(?:_library)?_part\((\w+)", text, flags=re.M))


def listed(purpose):
    """Debian packages of a purpose in tools/packages."""
    text = re.sub(r"#.*", "", (api.SOURCE / "tools" / "packages").read_text())
    section = re.search(rf"\[{purpose}\]([^\[]*)", text)
    return set(section[1].split())


class Packaging(api.TestCase):
    def read(self, name):
        return (api.SOURCE / name).read_text()

    def test_there_are_parts(self):
        self.assertGreaterEqual(parts(), {"LZ4", "ISAL", "LIBURING", "HDF5"})

    def test_spack_has_a_variant_for_each_part(self):
        text = self.read("packaging/spack/package.py")
        variants = {name.upper() for name in re.findall(r'variant\("(\w+)"', text)}
        self.assertEqual(variants, parts())
        asked = re.search(r"parts = \(([^)]*)\)", text)[1]
        self.assertEqual({name.upper() for name in re.findall(r"\w+", asked)}, parts())
        compile(text, "package.py", "exec")

    def test_debian_packages_have_all_parts(self):
        rules = self.read("debian/rules")
        found = re.search(r"^PARTS = ((?:.*\\\n)*.*)$", rules, flags=re.M)[1]
        self.assertEqual(set(found.replace("\\\n", " ").split()), parts())
        needs = re.search(r"Build-Depends:([^:]*)\n\n", self.read("debian/control"))[1]
        needs = {word.split()[0] for word in needs.split(",")}
        always = {"gcc", "libc6-dev", "make"}
        self.assertEqual(needs - {"debhelper-compat"}, listed("build") - always)

    def test_versions_agree(self):
        self.assertIn(f"cairn ({VERSION})", self.read("debian/changelog"))
        self.assertIn(f"\nversion: {VERSION}\n", self.read("CITATION.cff"))
        major_minor = ".".join(VERSION.split(".")[:2])
        self.assertIn(f"Package: libcairn{major_minor}\n", self.read("debian/control"))

    def test_every_purpose_is_there_and_no_package_twice(self):
        every = [listed(purpose) for purpose in ("build", "demo", "test", "bench")]
        self.assertTrue(all(every))
        self.assertEqual(sum(map(len, every)), len(set.union(*every)))
        demo = listed("build") | listed("demo")
        self.assertFalse([p for p in demo if re.match("chromium|slurm|munge|mpich|clang", p)])


class Completion(api.TestCase):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = self.must(api.SOURCE / "tools" / "completion", CAIRN, "bash")
        line = " ".join(f"'{word}'" for word in words)
        script += f"compopt() {{ :; }}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words) - 1}\n_cairn\n"
        script += 'printf "%s\\n" "${COMPREPLY[@]}"\n'
        done = subprocess.run(["bash", "-c", script], check=True, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands_and_options_are_offered(self):
        self.assertEqual(self.complete("cairn", "re"), ["report"])
        self.assertEqual(self.complete("cairn", "trace", "rec"), ["record"])
        self.assertEqual(self.complete("cairn", "trace", "record", "--prec"), ["--precision"])
        self.assertEqual(self.complete("cairn", "diff", "--bou"), ["--bound"])
        self.assertIn("config", self.complete("cairn", "help", ""))
        self.assertEqual(self.complete("cairn", "run", "--", "app", "--tr"), [])

    def test_zsh_gets_all_options(self):
        text = self.must(api.SOURCE / "tools" / "completion", CAIRN, "zsh")
        for option in re.findall(r"--[\w-]+", self.must(CAIRN, "gate", "-h")):
            self.assertIn(option, text)
        self.assertEqual(text.count("'["), text.count("]'") + text.count(":_files'") -
                         text.count("'*:file:_files'"))


if __name__ == "__main__":
    unittest.main()
