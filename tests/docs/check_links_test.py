"""scripts/check_links.py finds what is broken, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_links.py"


def check(**pages):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages.items():
            pathlib.Path(folder, f"{name}.md").write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


class TestLinks(unittest.TestCase):
    def test_good_links(self):
        self.assertEqual(check(a="# A `job.x[]`\n\n[b](b.md) [part](b.md#a-part) [own](#a-jobx) [far](https://example.org)\n",
                               b="# B\n## A part\n"), (0, []))

    def test_missing_file(self):
        self.assertEqual(check(a="\n[c](c.md)\n"), (1, ["a.md:2: expected a file, found nothing at 'c.md'"]))

    def test_missing_heading(self):
        self.assertEqual(check(a="[b](b.md#no)\n", b="# Yes\n"), (1, ["a.md:1: expected a heading '#no' in 'b.md'"]))

    def test_second_heading_of_a_name(self):
        self.assertEqual(check(a="# Yes\n# Yes\n[1](#yes-1)\n"), (0, []))

    def test_code_is_not_a_link(self):
        self.assertEqual(check(a="`[x](y)`\n```\n[x](y)\n```\n"), (0, []))

    def test_no_page(self):
        self.assertEqual(check()[0], 1)


if __name__ == "__main__":
    unittest.main()
