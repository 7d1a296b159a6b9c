"""Runs lockstep for the tests of exports: small trainings, their exports, and what their models predict."""
import csv
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from lockstep_reader.raw_images import prepared  # noqa: E402  pylint: disable=wrong-import-position

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

    def predicted(self, name, *files):
        """What `lockstep predict` says of raw samples: names of the numbers, and these by sample."""
        text = self.run_program("predict", name, *files, "--log", "csv").stdout
        header, *rows = csv.reader(text.splitlines())
        first = 1 if header[0] == "row" else len(files) // len(rows)
        return header[first:], numpy.array([row[first:] for row in rows], float)

    def predictions(self, name, *weights, samples=3):
        """Random samples, after the steps of data.prepare, and the predictions for them of a run's model, or of one with the
        weights of a file."""
        made = json.loads(self.run_program(name, str(samples), *weights, program=PREDICTIONS).stdout)
        steps = json.loads((self.folder / f"{name}.json").read_text())["job"]["data"].get("prepare", [])
        for tensor in made["inputs"].values():
            if steps:
                images = numpy.array(tensor["values"], numpy.uint8).reshape(-1, *tensor["shape"])
                images = numpy.stack([prepared(image, image.shape[2], steps, numpy) for image in images])
                tensor.update(shape=list(images.shape[1:]), values=images.reshape(samples, -1).tolist())
        return made


def write_image(path, pixels):
    """A PNG file of bytes [height, width, 1 or 3]."""
    height, width, channels = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
