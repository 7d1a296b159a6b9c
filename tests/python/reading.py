"""Shared by the tests of python/lockstep_reader: the package, the program, and folders that go away."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests")]
import lockstep_reader as reader  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
from shared import PATIENCE, wait_until  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=256", "data.validation.digits.count=64", "batch_size=32", "micro_batches=4", "threads=1",
         "learning_rate=0.002"]


def program(*words, code=0, folder=None):
    """What a command of the program has printed: stdout and stderr."""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=PATIENCE,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


class InFolder(unittest.TestCase):
    """Each class has a folder, each test another in it."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name).resolve()

    def setUp(self):
        self.own = self.folder / self.id().rpartition(".")[2]
        self.own.mkdir()

    def says(self, kind, message, call, *words, **named):
        """The call raises an error of this very kind, with exactly this message."""
        with self.assertRaises(kind) as raised:
            call(*words, **named)
        self.assertEqual((type(raised.exception), str(raised.exception)), (kind, message))
        return raised.exception
