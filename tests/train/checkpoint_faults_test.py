#!/usr/bin/env python3
"""The real program under faults: killed at every call that changes a file, a full disk, a read-only one, one that
vanishes; and a checkpoint of several ranks read by Python alone. checkpoint_faults_test.py SHIM"""
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SHIM = None
JOB = ["data.train.digits.count=64", "data.validation.digits.count=32", "batch_size=32", "micro_batches=2", "threads=1",
       "optimizer=sgd", "optimizer.sgd.momentum=0.9", "learning_rate=0.01"]
SIGKILL = -9


def lockstep(*words, environment=None, prefix=()):
    return subprocess.run([*prefix, PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})


def train(directory, *words, faults=None, prefix=()):
    environment = {"LD_PRELOAD": SHIM, "FAULT_PATH": "/checkpoints", **faults} if faults is not None else {}
    return lockstep("train", *JOB, f"run_directory={directory}", "--log", "json", *words, environment=environment,
                    prefix=prefix)


def events(result, name):
    return [line for line in map(json.loads, result.stdout.splitlines()) if line["event"] == name]


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.quiet = f"{self.folder.name}/quiet"
        self.run_directory = f"{self.folder.name}/run"
        self.addCleanup(self.folder.cleanup)

    def newest(self):
        lines = lockstep("checkpoint", "list", self.run_directory, "--log", "json").stdout.splitlines()
        return json.loads(lines[0])["step"] if lines else 0

    def names(self):
        return sorted(path.name for path in pathlib.Path(self.run_directory, "checkpoints").iterdir())

    def test_killed_at_every_call(self):
        words = ["steps=3", "checkpoint={every: 1 steps, keep: 1}"]
        count = pathlib.Path(self.folder.name) / "count"
        result = train(self.quiet, *words, "checkpoint.keep=3", faults={"FAULT_COUNT": str(count)})
        self.assertEqual(result.returncode, 0, result.stderr)
        train(self.run_directory, *words, faults={"FAULT_COUNT": str(count)})
        calls = int(count.read_text())
        self.assertGreater(calls, 45)
        reached, steps_found = 0, set()
        for at in range(1, calls + 1):
            shutil.rmtree(self.run_directory)
            killed = train(self.run_directory, *words, faults={"FAULT_AT": str(at)})
            reached += killed.returncode == SIGKILL
            safe = max((event["step"] for event in events(killed, "checkpoint")), default=0)
            steps = sorted(pathlib.Path(self.run_directory).glob("checkpoints/step-*/manifest.json"))
            if not steps:
                self.assertEqual(safe, 0, f"call {at}: a checkpoint was lost")
                continue
            # A manifest whose directory was being removed may lack files: it is passed over.
            verify = lockstep("checkpoint", "verify", str(steps[-1].parent))
            self.assertEqual(verify.returncode, 0, f"call {at}: {verify.stderr}")
            step = int(steps[-1].parent.name[5:])
            self.assertGreaterEqual(step, safe, f"call {at}: a checkpoint was lost")
            same = lockstep("checkpoint", "diff", f"{self.quiet}/checkpoints/{steps[-1].parent.name}",
                            str(steps[-1].parent))
            self.assertEqual(same.returncode, 0, f"call {at}: {same.stdout}{same.stderr}")
            steps_found.add(step)
        print(f"killed at {reached} of {calls} calls")
        self.assertEqual(reached, calls)
        self.assertEqual(steps_found, {1, 2, 3})
        end = events(train(self.run_directory, *words), "end")[0]  # and it goes on
        self.assertEqual(end["parameters_sha256"], events(result, "end")[0]["parameters_sha256"])

    def test_a_file_of_the_best_one_that_names_none(self):
        words = ["checkpoint={every: 1 steps, best: loss}", "evaluate={every: 1 steps}"]
        train(self.run_directory, *words, "steps=1")
        best = pathlib.Path(self.run_directory, "checkpoints/best")
        for text, found in (("garbage\n", "'garbage'"), ("", "nothing"), ("../step-00000001", "'../step-00000001'")):
            best.write_text(text)
            damage = f"{best}: expected the name of a checkpoint, such as step-00000120, found {found}"
            self.assertEqual(lockstep("eval", self.run_directory, "--checkpoint", "best").stderr,
                             f"lockstep: {damage}; write that of the best one, or take the newest\n")
        resumed = train(self.run_directory, *words, "steps=2")
        self.assertEqual([event["message"] for event in events(resumed, "warning")],
                         [damage + ": the best checkpoint so far is not known"])

    def test_a_disk_that_cannot_be_read_for_a_moment(self):
        """No checkpoint is skipped or set aside, and no run starts from the beginning: the start fails, and the next
        one resumes."""
        words = ["steps=4", "checkpoint={every: 1 steps, keep: 9}"]
        quiet = events(train(self.quiet, *words), "end")[0]["parameters_sha256"]
        self.assertEqual(train(self.run_directory, *words, "--stop-at", "2").returncode, 75)
        kept = self.names()
        for number, (place, code, reason) in enumerate([
                ("/checkpoints", 5, "{}: cannot list the folder: Input/output error; try again when its disk answers"),
                ("/checkpoints", 116,
                 "{}: cannot list the folder: Stale file handle; try again when its disk answers"),
                ("/step-00000002/manifest.json", 5,
                 "{}: cannot open: Input/output error; try again when its disk answers"),
                ("/step-00000002/model.safetensors", 5,
                 "{}: cannot open: Input/output error; try again when its disk answers"),
                ("/checkpoints", 13,
                 "{}: cannot list the folder: Permission denied; give this user the right to read it")]):
            with self.subTest(place=place, code=code):
                once = f"{self.folder.name}/once-{number}"
                failed = train(self.run_directory, *words, faults={
                    "FAULT_READ": str(code), "FAULT_READ_PATH": place, "FAULT_READ_ONCE": once})
                path = f"{self.run_directory}/checkpoints" + place.removeprefix("/checkpoints")
                self.assertEqual(failed.stderr, f"lockstep: {reason.format(path)}\n")
                self.assertEqual(failed.returncode, 73 if code == 13 else 1)
                self.assertEqual(kept, self.names())
        copy = f"{self.folder.name}/copy"
        shutil.copytree(self.run_directory, copy)
        again = train(self.run_directory, *words)
        self.assertEqual([event["step"] for event in events(again, "step")], [3, 4])
        self.assertEqual(events(again, "end")[0]["parameters_sha256"], quiet)
        launched = lockstep("launch", *JOB, f"run_directory={copy}", "--ranks", "2", *words, environment={
            "LD_PRELOAD": SHIM, "FAULT_READ": "5", "FAULT_READ_PATH": "/checkpoints",
            "FAULT_READ_ONCE": f"{self.folder.name}/launched"})
        self.assertEqual(launched.returncode, 0, launched.stdout + launched.stderr)
        self.assertIn(f"parameters sha256: {quiet}", launched.stdout + launched.stderr)
        log = pathlib.Path(copy, "events.jsonl").read_text()
        self.assertIn("cannot list the folder: Input/output error", log)

    def test_a_disk_that_is_slower_than_the_deadline(self):
        """Looking for checkpoints and reading them is work, not a hang, whatever job.timeout says."""
        words = ["steps=4", "checkpoint={every: 1 steps, keep: 9}", "timeout=2", "--ranks", "2"]
        quiet = events(train(self.quiet, *words), "end")[0]["parameters_sha256"]
        self.assertEqual(train(self.run_directory, *words, "--stop-at", "2").returncode, 75)
        again = train(self.run_directory, *words,
                      faults={"FAULT_SLOW": "4", "FAULT_READ_PATH": "/step-00000002/"})
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([event["step"] for event in events(again, "step")], [3, 4])
        self.assertEqual(events(again, "end")[0]["parameters_sha256"], quiet)

    def test_a_disk_that_is_full_for_a_while(self):
        self.failing_for_a_while("28", "No space left on device")

    def test_a_disk_that_is_read_only_for_a_while(self):
        self.failing_for_a_while("30", "Read-only file system")

    def failing_for_a_while(self, error, reason):
        words = ["steps=6", "checkpoint={every: 1 steps, keep: 9}"]
        result = train(self.run_directory, *words,
                       faults={"FAULT_AT": "24", "FAULT_FOR": "3", "FAULT_ERROR": error})
        self.assertEqual(result.returncode, 0, result.stderr)
        written = [event["step"] for event in events(result, "checkpoint")]
        warnings = [event["message"] for event in events(result, "warning")]
        self.assertGreaterEqual(len(warnings), 1)
        self.assertEqual(len(written) + len(warnings), 6)
        self.assertEqual(written[0], 1)
        self.assertEqual(written[-1], 6)
        self.assertEqual(events(result, "end")[0]["checkpoints_failed"], len(warnings))
        self.assertIn(reason, warnings[0])
        self.assertIn("training goes on, the newest checkpoint is ", warnings[0])
        self.assertEqual(lockstep("checkpoint", "verify", self.run_directory).returncode, 0)

    def test_a_small_disk(self):
        inside = ["unshare", "-rm"]
        os.mkdir(self.run_directory)
        mount = f"mount -t tmpfs -o size=300k none {self.run_directory}"
        if subprocess.run([*inside, "sh", "-c", mount], capture_output=True, check=False).returncode != 0:
            self.skipTest("this kernel lets nobody mount a tmpfs")
        words = ["steps=4", "checkpoint={every: 1 steps}"]
        last = ": the last checkpoint could not be written: "

        def script(meanwhile):
            return (f'{mount} && ("$@" & p=$!; ({meanwhile}) & wait $p); code=$?; '
                    f'cp -r {self.run_directory} {self.folder.name}/copy; exit $code')
        with self.subTest("a signal gives the result up"):
            result = train(self.run_directory, *words, prefix=[*inside, "sh", "-c", script("sleep 6; kill $p"), "-"])
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("the last checkpoint could not be written: ", result.stderr)
            self.assertIn("No space left on device", result.stderr)
            self.assertIn("; a signal ended the waiting for its disk\n", result.stderr)
            self.assertEqual([event["step"] for event in events(result, "step")], [1, 2, 3, 4])
            self.assertEqual(len(events(result, "warning")), 3)
            verify = lockstep("checkpoint", "verify", f"{self.folder.name}/copy")
            self.assertEqual(verify.returncode, 0, verify.stderr)
            self.assertIn("step-00000001  sound", verify.stdout)
        shutil.rmtree(f"{self.folder.name}/copy")
        with self.subTest("with room again, the result is written"):
            room = f"sleep 6; mount -o remount,size=9m {self.run_directory}"
            result = train(self.run_directory, *words, prefix=[*inside, "sh", "-c", script(room), "-"])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([event["step"] for event in events(result, "step")], [1, 2, 3, 4])
            self.assertEqual([event["step"] for event in events(result, "checkpoint")], [1, 4])
            self.assertIn(last, events(result, "warning")[-1]["message"])
            verify = lockstep("checkpoint", "verify", f"{self.folder.name}/copy")
            self.assertIn("step-00000004  sound", verify.stdout)

    def test_locks_that_fail(self):
        """A file system without locks is for the user to change; another error may be temporary."""
        without = "/lock: its file system has no locks ({}); choose another with run_directory=PATH"
        for error, code, message in (
                (errno.ENOSYS, 73, f"{self.run_directory}" + without.format(os.strerror(errno.ENOSYS))),
                (errno.EOPNOTSUPP, 73, f"{self.run_directory}" + without.format(os.strerror(errno.EOPNOTSUPP))),
                (errno.ENOLCK, 1, f"{self.run_directory}/lock: cannot lock it: {os.strerror(errno.ENOLCK)}")):
            with self.subTest(error=error):
                result = train(self.run_directory, "steps=1", faults={"FAULT_FLOCK": str(error)})
                self.assertEqual((result.returncode, result.stderr), (code, f"lockstep: {message}\n"))

    def test_a_directory_that_vanishes(self):
        words = ["steps=400", "checkpoint={every: 50 steps, keep: 9}"]
        with subprocess.Popen([PROGRAM, "train", *JOB, f"run_directory={self.run_directory}", *words, "--log", "json"],
                              stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if json.loads(line)["event"] == "checkpoint":
                    shutil.rmtree(self.run_directory, ignore_errors=True)
                    break
            process.stdout.read()
            self.assertEqual(process.wait(60), 0)
        self.assertEqual(self.newest(), 400)
        self.assertEqual(lockstep("checkpoint", "verify", self.run_directory).returncode, 0)
        self.assertTrue(pathlib.Path(self.run_directory, "lock").exists())
        last = pathlib.Path(self.run_directory, "events.jsonl").read_text().splitlines()[-1]
        self.assertEqual(json.loads(last)["event"], "end")


if __name__ == "__main__":
    SHIM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
