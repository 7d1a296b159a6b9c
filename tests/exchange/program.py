"""Runs lockstep for the tests of exports: small trainings, their exports, and what their models predict."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy

PROGRAM = os.environ["LOCKSTEP"]
PREDICTIONS = str(pathlib.Path(PROGRAM).with_name("predictions"))


class WithProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "texts.csv").write_text("text,label\n" + "".join(
            f"{'ab' * (i % 5 + 1)}{chr(97 + i % 17)},{'xyz'[i % 3]}\n" for i in range(48)))
        (cls.folder / "table.csv").write_text("a,b,price,size\n" + "".join(
            f"{i % 7},{i * i % 11},{300 + i % 7 * 20},{i * i % 11 - 5}\n" for i in range(48)))
        (cls.folder / "text.txt").write_text("".join(chr(97 + i * i % 17) for i in range(4000)))

    def run_program(self, *words, code=0, program=PROGRAM):
        done = subprocess.run([program, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout[-2000:]}\n{done.stderr}")
        return done

    def train(self, name, job, *words):
        """Trains a job, a dict; returns the events start and end."""
        (self.folder / f"{name}.json").write_text(json.dumps({"job": {**job, "run_directory": name}}))
        lines = self.run_program("train", f"{name}.json", "--log", "json", *words).stdout.splitlines()
        return json.loads(lines[0]), json.loads(lines[-1])

    def predictions(self, name, *weights, samples=3):
        """Random samples, after the steps of data.prepare, and the predictions for them of a run's model, or of one with the
        weights of a file."""
        made = json.loads(self.run_program(name, str(samples), *weights, program=PREDICTIONS).stdout)
        steps = json.loads((self.folder / f"{name}.json").read_text())["job"]["data"].get("prepare", [])
        for tensor in made["inputs"].values():
            for step in steps:
                images = numpy.array(tensor["values"]).reshape(-1, *tensor["shape"])
                (kind, settings), = step.items()
                images = {"center_crop": center_crop, "resize": resize}[kind](images, settings["size"])
                tensor.update(shape=list(images.shape[1:]), values=images.reshape(samples, -1).tolist())
        return made


def center_crop(images, size):
    height, width = size * 2 if len(size) == 1 else size
    top, left = ((has - wanted) // 2 for has, wanted in zip(images.shape[1:3], (height, width)))
    return images[:, top:top + height, left:left + width]


def resize(images, size):
    """By triangles as wide as the step between the new pixels, each axis rounded to bytes."""
    for axis, wanted in enumerate(size, 1):
        step = images.shape[axis] / wanted
        centres = (numpy.arange(wanted) + 0.5) * step - 0.5
        weights = numpy.maximum(0, max(1, step) - abs(numpy.arange(images.shape[axis]) - centres[:, None]))
        mixed = numpy.tensordot(weights / weights.sum(1, keepdims=True), images, (1, axis))
        images = numpy.floor(numpy.moveaxis(mixed, 0, axis) + 0.5)
    return images
