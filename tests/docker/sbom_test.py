#!/usr/bin/env python3
"""docker/sbom.sh on this machine: each package that dpkg knows is in the document, once, and the same call writes the same."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "docker/sbom.sh"


def document(folder):
    path = folder / "deep/sbom.json"
    subprocess.run([SCRIPT, path], check=True, env={**os.environ, "VERSION": "1.2.3", "CREATED": "2026-01-02T03:04:05Z"})
    return json.loads(path.read_text())


class Sbom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.found = document(cls.folder)

    def test_packages(self):
        lines = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}|${Package}|${Version}\\n"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        installed = sorted(tuple(line.split("|")[1:]) for line in lines if line.startswith("ii "))
        first, *packages = self.found["packages"]
        self.assertEqual((first["name"], first["versionInfo"]), ("lockstep", "1.2.3"))
        self.assertEqual(sorted((package["name"], package["versionInfo"]) for package in packages), installed)
        ids = [package["SPDXID"] for package in self.found["packages"]]
        self.assertEqual(len(set(ids)), len(ids))
        for package in self.found["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
        for package in packages:
            address = package["externalRefs"][0]["referenceLocator"]
            self.assertRegex(address, r"^pkg:deb/[a-z]+/[a-z0-9.%B-]+@[^@+: ]+\?arch=[a-z0-9]+&upstream=[^@+: ]+&distro=[a-z]+-[\w.]+$")

    def test_relations(self):
        ids = {package["SPDXID"] for package in self.found["packages"]} | {"SPDXRef-DOCUMENT"}
        for relation in self.found["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, ids)
        self.assertEqual(len(self.found["relationships"]), len(self.found["packages"]))

    def test_it_is_the_same_again(self):
        self.assertEqual(document(self.folder), self.found)
        self.assertTrue(re.fullmatch(r"https://spdx\.org/spdxdocs/lockstep-[0-9a-f]{32}", self.found["documentNamespace"]))
        self.assertEqual(self.found["creationInfo"]["created"], "2026-01-02T03:04:05Z")


if __name__ == "__main__":
    if not shutil.which("dpkg-query"):
        print("skipped: there is no dpkg here")
        sys.exit(77)
    unittest.main(verbosity=2)
