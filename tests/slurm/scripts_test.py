#!/usr/bin/env python3
"""The batch scripts of examples/slurm without Slurm: for each code that the program may end with, whether they queue the
job again, and that they end, whatever signals come."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shared import wait_until  # noqa: E402  pylint: disable=wrong-import-position

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "examples/slurm"
FOR_GOOD = (0, 64, 65, 70, 73, 76, 78, 126, 127)
AGAIN = (1, 75, 79, 129, 130, 134, 137, 138, 139, 143)
# Ends with 75 after a signal and with 143 after another one, each of which it takes a moment to notice.
STUBBORN = """#!/bin/bash
trap 'signals=$((signals + 1))' TERM
signals=0
touch ready
until [ "$signals" -ge "$SIGNALS" ]; do sleep 0.05; touch "seen-$signals"; done
[ "$signals" -eq 1 ] && exit 75
exit 143
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.write("scontrol", '#!/bin/bash\n[ "$1" != requeue ] || echo "$2" >> requeued\n')
        self.write("srun", '#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec "$@"\n')

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def start(self, script, **variables):
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "LOCKSTEP": "./lockstep", "SLURM_JOB_ID": "7",
                       "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0", **variables}
        job = subprocess.Popen(  # pylint: disable=consider-using-with
            ["bash", script, "job.yaml", "seed", "1"], cwd=self.folder, env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(job.kill)
        return job

    def requeued(self):
        path = self.folder / "requeued"
        lines = path.read_text(encoding="utf-8").split() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def test_every_code(self):
        for script in sorted(SCRIPTS.glob("*.sbatch")):
            for code in FOR_GOOD + AGAIN:
                self.write("lockstep", f"#!/bin/bash\nexit {code}\n")
                with self.subTest(script=script.name, code=code):
                    self.assertEqual(self.start(script).wait(60), code)
                    self.assertEqual(self.requeued(), [] if code in FOR_GOOD else ["7"])

    def test_a_job_is_not_queued_for_ever(self):
        self.write("lockstep", "#!/bin/bash\nexit 75\n")
        for script in SCRIPTS.glob("*.sbatch"):
            self.assertEqual(self.start(script, SLURM_RESTART_COUNT="100").wait(60), 75)
            self.assertEqual(self.requeued(), [])

    def test_signals(self):
        self.write("lockstep", STUBBORN)
        for name in ("launch", "sweep"):
            for signals, code in ((1, 75), (2, 143)):
                with self.subTest(name=name, signals=signals):
                    for file in ("ready", "seen-1"):
                        (self.folder / file).unlink(missing_ok=True)
                    job = self.start(SCRIPTS / f"{name}.sbatch", SIGNALS=str(signals))
                    self.wait_for("ready")
                    for number in range(1, signals + 1):
                        job.send_signal(signal.SIGTERM)
                        if number < signals:
                            self.wait_for(f"seen-{number}")
                    self.assertEqual(job.wait(60), code)
                    self.assertEqual(self.requeued(), ["7"])

    def wait_for(self, name):
        wait_until((self.folder / name).exists, name)


if __name__ == "__main__":
    unittest.main()
