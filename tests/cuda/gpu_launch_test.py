"""`lockstep launch` with GPUs: a rank that dies or hangs is started again, and no bit is lost. Runs on a machine
without a GPU, with stand-ins for the driver and for the CUDA module, whose GPU is the host.

    gpu_launch_test.py MODULE_WITH_THE_CPUS_KERNELS DRIVER_FOLDER
"""
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launches import Launch, quiet_hash  # noqa: E402  pylint: disable=wrong-import-position

MODULE, DRIVER = sys.argv[1:3]
STAND_INS = {"LD_LIBRARY_PATH": DRIVER, "LOCKSTEP_CUDA_MODULE": MODULE, "STAND_IN_GPUS": "3", "STAND_IN_SAME": "1"}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.quiet = quiet_hash(cls.folder.name)  # on the CPU: the stand-in's kernels are the CPU's

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def launch(self, *words, **settings):
        launch = Launch(f"{self.folder.name}/{self.id().rsplit('.', 1)[-1]}", "--ranks", "3", "device=cuda", *words,
                        environment={**STAND_INS, **settings})
        self.addCleanup(launch.abandon)
        return launch

    def restarts(self, launch):
        return [(event["reason"], event["rank"]) for event in launch.events("restart") if "reason" in event]

    def test_a_killed_rank(self):
        launch = self.launch()
        launch.wait_for_step(25)
        os.kill(launch.process_of_rank(2), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(self.restarts(launch), [("death", 2)])
        self.assertIn("Stand-in", launch.events("start")[-1]["device"])

    def test_a_rank_that_is_stopped_for_good(self):
        launch = self.launch("--hang-limit", "8")
        launch.wait_for_step(15)
        os.kill(launch.process_of_rank(1), signal.SIGSTOP)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(self.restarts(launch), [("hang", 1)])
        dump = (launch.directory / "logs/attempt-1/rank-0.json").read_text(encoding="utf-8")
        self.assertIn('"peer": 1', dump)

    def test_messages_that_fail(self):
        """They fail each time, so the supervisor gives up; the rank's flight record is beside its log."""
        launch = self.launch("--max-restarts", "1", "--retry-for", "0", STAND_IN_FAILS="1:3")
        launch.end(1)
        self.assertEqual(self.restarts(launch), [("error", 1), ("given up", 1)])
        for attempt, event in enumerate((e for e in launch.events("restart") if "reason" in e), 1):
            self.assertRegex(event["message"], r"rank 1, GPU 1 \(Stand-in, \S+\): the messages of step 3 failed$")
            dump = json.loads((launch.directory / f"logs/attempt-{attempt}/rank-1.json").read_text(encoding="utf-8"))
            self.assertEqual((dump["activity"]["name"], dump["activity"]["step"]), ("reduce", 3))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
