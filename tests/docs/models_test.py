#!/usr/bin/env python3
"""Each model and each list of layers that docs/models-and-ops.md shows is a job that `check` accepts and that trains."""
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["LOCKSTEP"]
IMAGES = "digits: {count: 64}"
TEXT = "text: {path: text.txt, tokenizer: characters, context: 16}"


def blocks():
    """As the job's lines; a list of layers that makes an image gets an end."""
    page = (ROOT / "docs/models-and-ops.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if block.startswith("  model:\n"):
            yield block
        else:
            yield f"  model:\n    layers:\n{block}      - global_pool\n      - {{linear: 10}}\n"


class Models(unittest.TestCase):
    def test_each_block_trains(self):
        found = list(blocks())
        self.assertTrue(any("{mul: {inputs: [x, previous]}}" in block for block in found), "squeeze and excitation")
        self.assertTrue(any("tied:" in block for block in found), "shared weights")
        for block in found:
            with self.subTest(block=block), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "text.txt").write_text("to be or not to be " * 40, encoding="utf-8")
                data = TEXT if "embedding:" in block else IMAGES
                (pathlib.Path(folder) / "job.yaml").write_text(
                    f"job:\n{block}  data: {{train: {{{data}}}}}\n  batch_size: 8\n  micro_batches: 2\n  epochs: 1\n"
                    "  evaluate: never\n  checkpoint: never\n", encoding="utf-8")
                said = self.run_program(folder, "check", "job.yaml")
                self.assertIn("\njob.yaml: ok\n", said)
                end = json.loads(self.run_program(folder, "train", "job.yaml", "--log", "json").splitlines()[-1])
                self.assertEqual((end["event"], end["outcome"]), ("end", "done"))
                self.assertTrue(math.isfinite(end["loss"]))
                self.assertGreaterEqual(end["steps"], 5)

    def run_program(self, folder, *words):
        done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
