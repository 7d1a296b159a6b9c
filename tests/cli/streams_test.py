#!/usr/bin/env python3
"""Output that cannot be written, streams that are closed, jobs that come through a pipe."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=128", "data.validation.digits.count=32", "batch_size=32", "steps=4", "threads=1"]
JOB = ("job: {name: p, model: {mlp: 4}, data: {train: {digits: {count: 64}}}, batch_size: 8, micro_batches: 4, "
       "steps: 2, optimizer: sgd, learning_rate: 0.01}\n")
FULL = "lockstep: cannot write to stdout: No space left on device; what was printed is not complete\n"


class Streams(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_shell(self, script, code=0):
        """`lockstep` in the script is the program."""
        words = ["bash", "-c", f'lockstep() {{ "{PROGRAM}" "$@"; }}\n{script}']
        done = subprocess.run(words, cwd=self.folder, timeout=300, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def train(self, name):
        self.run_shell(f"lockstep train {' '.join(SMALL)} run_directory={name}")

    def test_a_full_disk_is_1_for_every_command(self):
        self.train("run")
        commands = ["schema", "events", "metrics", "completion bash", "show", "check", "data info digits=20", "version",
                    "--version", "help train", "eval run", "eval run --log json", "checkpoint list run",
                    "checkpoint list run --log json", "checkpoint verify run", "plan", "show --dot -", "bench goodput",
                    f"train --ranks 2 {' '.join(SMALL)} run_directory=again --log json"]
        for command in commands:
            with self.subTest(command=command):
                error = self.run_shell(f"lockstep {command} > /dev/full", code=1).stderr
                self.assertEqual(error.count("No space left on device"), 1, error)
        self.assertEqual(self.run_shell("lockstep version > /dev/full", code=1).stderr, FULL)

    def test_another_error_keeps_its_code(self):
        self.run_shell("lockstep eval nowhere > /dev/full", code=78)

    def test_errors_that_cannot_be_reported_keep_their_code(self):
        self.run_shell("lockstep tran 2> /dev/full", code=64)
        self.run_shell("lockstep check nowhere.yaml 2> /dev/full", code=78)
        self.run_shell("lockstep check nowhere.yaml 2>&-", code=78)

    def test_closed_streams(self):
        """Else the first files of a run would get what is printed."""
        words = f"{' '.join(SMALL)} run_directory"
        for number, closed in enumerate(("2>&-", ">&- 2>&-", "<&- >&- 2>&-")):
            for way in ("train", "train --log json", "launch --ranks 2"):
                name = f"{way.replace(' ', '')}{number}"
                with self.subTest(way=way, closed=closed):
                    self.run_shell(f"lockstep {way} {words}={name} {closed}")
                    self.assertEqual((self.folder / name / "lock").read_text(), "")
                    lines = (self.folder / name / "events.jsonl").read_text().splitlines()
                    self.assertEqual(json.loads(lines[-1])["event"], "end")
                    for line in lines:
                        json.loads(line)

    def test_a_reader_that_leaves_ends_a_command_silently(self):
        self.assertEqual(self.run_shell("lockstep schema | head -n 1; exit ${PIPESTATUS[0]}", code=141).stderr, "")

    def test_a_job_through_a_pipe(self):
        (self.folder / "job.yaml").write_text(JOB, encoding="utf-8")
        for number, words in enumerate(("<(cat job.yaml)", "/dev/stdin < <(cat job.yaml)", "- < job.yaml")):
            with self.subTest(words=words):
                self.run_shell(f"lockstep train run_directory=run{number} {words}")
                self.assertTrue(list(self.folder.glob(f"run{number}/checkpoints/step-*2/manifest.json")))
        self.run_shell("mkfifo f; cat job.yaml > f & lockstep check f")
        for command in ("launch", "train --ranks 2", "tune lr"):
            self.assertEqual(self.run_shell(f"lockstep {command} - < job.yaml", code=64).stderr,
                             "lockstep: -: expected a file, which every rank reads, found a pipe; write the job to a "
                             "file\n")

    def test_a_mistake_in_a_piped_job_has_its_place(self):
        error = self.run_shell("echo 'job: {stepz: 3}' | lockstep check -", code=78).stderr
        self.assertIn("stdin:1:7: job.stepz: expected a known key, found 'stepz'; did you mean 'steps'?\n", error)


if __name__ == "__main__":
    unittest.main()
