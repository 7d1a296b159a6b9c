#!/usr/bin/env python3
"""docs/python.md: its lines run on a run like the page's, and give what it shows, but for the numbers. Its part on PyTorch is
left out where there is no PyTorch."""
import contextlib
import doctest
import importlib.util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import traceback
import unittest

from reading import ROOT, InFolder, program

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\b[0-9a-f]{64}\b|-?\d+(?:[.,]\d+)*(?:e[+-]\d+)?")
DIFFERENT = {"Sweeps"}  # whose numbers of trials or settings are others


def sections():
    """(heading, its text) of each part."""
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def printed(source, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(source, "<page>", "single"), names)  # pylint: disable=exec-used
        except Exception as error:  # pylint: disable=broad-exception-caught
            print("Traceback (most recent call last):\n  ...\n" + "".join(traceback.format_exception_only(error)), end="")
    return out.getvalue()


class Page(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        command = re.search(r"^\$ lockstep (train .*)$", PAGE, re.MULTILINE)[1].split()
        program(*command, folder=cls.folder)
        sweep = (ROOT / "examples/digits-sweep.yaml").read_text()
        (cls.folder / "sweep.yaml").write_text(re.sub(r"budget: \d+", "budget: 3", sweep))
        program("sweep", "sweep.yaml", "--directory", "sweeps/digits-sweep", "--ranks", "1", "steps=8",
                "evaluate={every: 2 steps}", folder=cls.folder)
        spec = importlib.util.spec_from_file_location("bad_data", ROOT / "tests/bad/bad_data.py")
        bad_data = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bad_data)
        (cls.folder / "digit.png").write_bytes(bad_data.png(28, 28))
        shutil.copytree(cls.folder / "runs/digits/checkpoints/step-00000748", cls.folder / "damaged")
        with open(cls.folder / "damaged/model.safetensors", "r+b") as file:
            file.truncate(40000)
        out, _ = program("predict", "runs/digits", "digit.png", "--top", "3", "--log", "json", folder=cls.folder)
        (cls.folder / "predictions.jsonl").write_text(out)

    def test_its_lines(self):
        names, count = {}, 0
        with contextlib.chdir(self.folder):
            for heading, text in sections():
                if "PyTorch" in heading and importlib.util.find_spec("torch") is None:
                    continue
                for block in re.findall(r"```python\n(>>>.*?)```", text, re.DOTALL):
                    for example in doctest.DocTestParser().get_examples(block):
                        found = printed(example.source, names)
                        if heading not in DIFFERENT:
                            self.assertEqual(NUMBER.sub("N", found), NUMBER.sub("N", example.want), example.source)
                        count += 1
        self.assertGreater(count, 25)

    def test_the_summary(self):
        shown = re.search(r"^\$ (python -m .*)\n((?:.+\n)*)```", PAGE, re.MULTILINE)
        done = subprocess.run([sys.executable, *shown[1].split()[1:]], cwd=self.folder, capture_output=True, text=True,
                              check=True, env={"PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(NUMBER.sub("N", done.stdout), NUMBER.sub("N", shown[2]))

    def test_the_example(self):
        done = subprocess.run([sys.executable, ROOT / "examples/python/look_at_a_run.py"], cwd=self.folder,
                              capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "python")})
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^runs/digits: done, step 748 of 748, parameters [0-9a-f]{16}$")
        self.assertRegex(done.stdout, r"\nbest accuracy: [0-9.]+ at step \d+\nrank 0: computed ")
        self.assertRegex(lines[-1], r"^linear1\.bias +\[10\] +[0-9.]+$")

    def test_the_pages_of_the_package_name_its_modules(self):
        named = set(re.findall(r"`(\w+)`", re.search(r"\| module \|.*", (ROOT / "python/README.md").read_text(),
                                                     re.DOTALL)[0]))
        files = {path.stem for path in pathlib.Path(ROOT / "python/lockstep_reader").glob("[a-z]*.py")}
        self.assertLessEqual(files - {"locks"}, named)


if __name__ == "__main__":
    unittest.main()
