#!/usr/bin/env python3
"""Files that are changed while the program trains on them: it ends, however many ranks it has, and resumes when they are
restored."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
COMMON = ("batch_size: 8, micro_batches: 4, threads: 1, steps: 1000000, learning_rate: 0.001, evaluate: never, "
          "run_directory: run, checkpoint: {every: 5 steps}")
JOBS = {"images": "model: {mlp: {hidden: [4]}}, data: {train: {images: images}, normalize: never, cache: none}, ",
        "table": 'model: {mlp: {hidden: [4]}}, data: {train: {table: {path: rows.csv, target: "y"}}}, loss: mean_squared_error, '}


def png(value):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" + bytes([value] * 4)) * 4
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


class ChangedFiles(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        for i in range(16):
            path = self.folder / f"images/{'cat' if i % 2 else 'dog'}/{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(i))
        (self.folder / "rows.csv").write_text("a,b,y\n" + "".join(f"{i},{i * 7 % 5},{i % 3}\n" for i in range(16)))

    def start(self, *words):
        return subprocess.Popen([PROGRAM, "train", "job.yaml", "--log", "json", *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True,
                                cwd=self.folder, env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})

    def change_during(self, kind, ranks, change):
        """The messages of a run in which `change` is called when it has a checkpoint."""
        (self.folder / "job.yaml").write_text("job: {" + JOBS[kind] + COMMON + "}\n")
        run = self.start("--ranks", str(ranks))
        try:
            while run.poll() is None and not list(self.folder.glob("run/checkpoints/*/manifest.json")):
                time.sleep(0.01)
            change()
            said = run.communicate(timeout=120)[1]
        finally:
            run.kill()
        self.assertEqual(run.returncode, 65, said)
        return said

    def test_an_image_is_replaced(self):
        for ranks in (1, 2):
            path = self.folder / "images/cat/5.png"
            before, state = path.read_bytes(), path.stat()
            other = self.folder / "other.png"
            other.write_bytes(png(77))
            os.utime(other, ns=(state.st_mtime_ns, state.st_mtime_ns))
            said = self.change_during("images", ranks, lambda: os.replace(other, path))
            self.assertIn("images: cat/5.png: images/cat/5.png: has been modified or replaced since the data set was "
                          "indexed", said)
            path.write_bytes(before)
            steps = [event["step"] for event in events_of(self.folder / "run", "checkpoint")]
            again = self.start("--stop-at", str(max(steps) + 2))
            self.assertEqual((again.communicate(timeout=120)[1], again.returncode), ("", 75))
            subprocess.run(["rm", "-r", self.folder / "run"], check=True)

    def test_a_table_grows(self):
        for ranks in (1, 2):
            rows = self.folder / "rows.csv"
            before = rows.read_text()

            def grow(rows=rows):
                with rows.open("a") as file:
                    file.write("1,2,3\n")
            said = self.change_during("table", ranks, grow)
            self.assertRegex(said, rf"step \d+: rows.csv has changed: it had {len(before)} bytes, modified at "
                             rf"[-0-9]+ [:0-9]+ UTC, and now has {len(before) + 6} bytes, modified at [-0-9]+ [:0-9]+ UTC; "
                             "steps since the newest checkpoint may have read both, so none is written. Restore the file "
                             "and run again to resume from there, or choose a new run_directory\n")
            self.assertEqual(said.count("has changed"), 1, said)
            rows.write_text(before)
            subprocess.run(["rm", "-r", self.folder / "run"], check=True)


if __name__ == "__main__":
    unittest.main()
