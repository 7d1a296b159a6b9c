"""`lockstep launch` with interpreted GPUs: a rank that is killed takes the others with it, all are started again from the
last checkpoint, and the job ends with the hash of the quiet run, which is that of the same kernels on the CPU.
"""
import os
import pathlib
import signal
import sys

import ranks_test
from interpreted import REPORTS, environment, main, problems

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "launch"))
from launches import Launch  # noqa: E402  pylint: disable=wrong-import-position


class Killed(ranks_test.Ranks):
    STEPS, KILLED_AFTER = 24, 6

    def test_a_killed_rank(self):
        words = (f"steps={self.STEPS}", "checkpoint.every=2 steps")
        expected = self.end_with_grids("convolutions", f"steps={self.STEPS}")["parameters_sha256"]
        launch = Launch(self.folder / "run", "--ranks", "3", job=[str(self.folder / "convolutions.yaml"), *words],
                        environment=environment(STAND_IN_GPUS="3"))
        self.addCleanup(launch.abandon)
        launch.wait_for_step(self.KILLED_AFTER)
        os.kill(launch.process_of_rank(2), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], expected)
        restarts = launch.events("restart")
        self.assertEqual([(event["reason"], event["rank"]) for event in restarts if "reason" in event], [("death", 2)])
        self.assertTrue([event for event in restarts if event.get("step", 0) >= self.KILLED_AFTER - 2],
                        "it went on from a checkpoint")
        self.assertIn("Stand-in", launch.events("start")[-1]["device"])
        self.assertEqual(problems(), [])
        self.assertGreaterEqual(len(list(REPORTS.glob("*.report"))), 3, "each rank of the second attempt has a report")


if __name__ == "__main__":
    main()
