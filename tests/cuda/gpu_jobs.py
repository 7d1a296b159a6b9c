"""Shared by tests of whole jobs on stand-ins for GPUs. Their arguments:

MODULE_WITH_THE_CPUS_KERNELS MODULE_WITH_GRIDS CHECKED_MODULE DRIVER_FOLDER
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from gpt_job import write_gpt

LOCKSTEP = os.environ["LOCKSTEP"]
CPU_KERNELS, GRIDS, CHECKED, DRIVER = sys.argv[1:5]
JOB = pathlib.Path(__file__).resolve().parents[2] / "examples" / "same-bits.yaml"
HOST = socket.gethostname()


class Place(unittest.TestCase):
    """A temporary folder in which the program runs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_gpt(self):
        """As job.yaml."""
        write_gpt(self.folder, layers=2, width=32, context=16, micro_batches=8)

    def run_program(self, *words, module=CPU_KERNELS, code=0, prefix=(), **settings):
        # A CPU that multiplies bfloat16 natively computes other bits than upcasts around float32 kernels.
        # Which GPUs this machine shows is nothing to the stand-in.
        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        environment = {**environment, "LD_LIBRARY_PATH": DRIVER, "LOCKSTEP_CUDA_MODULE": module, "STAND_IN_GPUS": "3",
                       "STAND_IN_SAME": "1", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE", **settings}
        done = subprocess.run([*prefix, LOCKSTEP, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env=environment, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def train(self, *words, job=JOB, **options):
        done = self.run_program("train", str(job), "--log", "json", *words, **options)
        return {line["event"]: line for line in map(json.loads, done.stdout.splitlines())}

    def hash(self, *words, **options):
        return self.train(*words, **options)["end"]["parameters_sha256"]


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
