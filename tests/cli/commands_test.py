#!/usr/bin/env python3
"""The commands on digits after a very short training: show, eval, predict, data, and every exit code."""
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=256", "data.validation.digits.count=100", "batch_size=32", "steps=10",
         "learning_rate=0.002"]


def run(*words, code=0, folder=None):
    result = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=folder, timeout=120, check=False,
                            stdin=subprocess.DEVNULL)
    assert result.returncode == code, f"{words}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def wait_for(path, process):
    for _ in range(1200):
        if path.exists() or process.poll() is not None:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


class Trained(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.job = [*SMALL, f"run_directory={cls.folder.name}/run", "checkpoint.best=accuracy"]
        cls.trained = run("train", *cls.job, "--log", "json").stdout.splitlines()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_eval_repeats_the_last_evaluation_on_any_ranks(self):
        end = json.loads(self.trained[-1])
        results = []
        for ranks in ("1", "2", "3"):
            line = json.loads(run("eval", *self.job, "--log", "json", "--ranks", ranks).stdout)
            results.append((line["loss"], line["metrics"]["accuracy"]))
            self.assertEqual(line["parameters_sha256"], end["parameters_sha256"])
        self.assertEqual(results[0][1], end["metrics"]["accuracy"])
        self.assertEqual(len(set(results)), 1)

    def test_eval_on_the_best_checkpoint(self):
        line = json.loads(run("eval", *self.job, "--checkpoint", "best", "--log", "json").stdout)
        self.assertEqual(line["samples"], 100)
        self.assertTrue(line["checkpoint"].startswith(self.folder.name))

    def test_predict_classifies_a_picture(self):
        sys_path = pathlib.Path(__file__).resolve().parent.parent / "bad"
        import importlib.util
        spec = importlib.util.spec_from_file_location("bad_data", sys_path / "bad_data.py")
        bad_data = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bad_data)
        picture = pathlib.Path(self.folder.name) / "picture.png"
        picture.write_bytes(bad_data.png(28, 28))
        line = json.loads(run("predict", *self.job, str(picture), "--top", "10", "--log", "json").stdout)
        shares = [entry["probability"] for entry in line["classes"]]
        self.assertEqual(len(shares), 10)
        self.assertAlmostEqual(sum(shares), 1, places=6)
        self.assertEqual(shares, sorted(shares, reverse=True))
        picture.write_bytes(bad_data.png(8, 8))
        error = run("predict", *self.job, str(picture), code=65).stderr
        self.assertIn("expected an image of [28, 28, 1]", error)

    def test_a_run_that_exists_is_not_begun_anew(self):
        self.assertIn("--resume never", run("train", *self.job, "--resume", "never", code=73).stderr)

    def test_a_locked_run_directory(self):
        with open(f"{self.folder.name}/run/lock", "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another run uses this directory", run("train", *self.job, code=73).stderr)

    def test_another_job_in_the_same_directory(self):
        error = run("train", *self.job, "seed=2", code=78).stderr
        self.assertIn("another job", error)


class Codes(unittest.TestCase):
    def test_sigterm_leaves_a_checkpoint_and_75(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ["train", *SMALL[:-2], "steps=100000", "learning_rate=0.001", f"run_directory={folder}/run"]
            with subprocess.Popen([PROGRAM, *words], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as process:
                checkpoints = pathlib.Path(folder) / "run" / "checkpoints"
                wait_for(checkpoints, process)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(60), 75)
            self.assertTrue(list(checkpoints.glob("step-*/manifest.json")))

    def test_a_full_disk_is_worth_trying_again(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with tempfile.TemporaryDirectory() as folder:
            step = pathlib.Path(folder) / "run" / "checkpoints" / "step-00000002"
            step.mkdir(parents=True)
            (step / "model.safetensors.partial").symlink_to("/dev/full")
            words = ["train", *SMALL[:-2], "steps=2", "learning_rate=0.001", f"run_directory={folder}/run"]
            self.assertIn("No space left on device", run(*words, code=1).stderr)


class Tables(unittest.TestCase):
    def test_show(self):
        text = run("show").stdout
        self.assertIn("total", text)
        self.assertIn("20,490 parameters", text)

    def test_show_dot(self):
        text = run("show", "--dot", "-").stdout
        self.assertTrue(text.startswith('digraph "digits" {'))
        self.assertTrue(text.endswith("}\n"))

    def test_data_info_and_pack(self):
        with tempfile.TemporaryDirectory() as folder:
            text = run("data", "info", "digits=50", "--picture", f"{folder}/p.png").stdout
            self.assertIn("samples      50", text)
            self.assertTrue(pathlib.Path(f"{folder}/p.png").read_bytes().startswith(b"\x89PNG"))
            run("data", "pack", "digits=50", f"{folder}/d.pack")
            self.assertIn("samples      50", run("data", "info", f"packed={folder}/d.pack").stdout)

    def test_every_command_has_help_with_an_example(self):
        for words in ("train", "eval", "predict", "check", "show", "data", "data info", "data pack", "data fetch",
                      "schema", "doctor", "completion", "version"):
            text = run(*words.split(), "--help").stdout
            self.assertIn("Example", text, words)
            self.assertIn(f"Usage: lockstep {words} ", text, words)

    def test_doctor(self):
        self.assertIn("lockstep can train on this machine", run("doctor").stdout)


class Text(unittest.TestCase):
    def test_text_goes_on_from_a_prompt_and_repeats(self):
        with tempfile.TemporaryDirectory() as folder:
            corpus = pathlib.Path(folder) / "corpus.txt"
            corpus.write_text("to be or not to be, that is the question. " * 40, encoding="utf-8")
            job = pathlib.Path(folder) / "job.yaml"
            job.write_text("job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, "
                           "data: {train: {text: {path: corpus.txt, context: 16}}}, batch_size: 8, shards: 4, steps: 4, "
                           "optimizer: adamw, learning_rate: 0.01}\n", encoding="utf-8")
            run("train", str(job), folder=folder)
            words = ["predict", str(job), "--prompt", "to be", "--tokens", "30"]
            first = run(*words, folder=folder).stdout
            self.assertEqual(len(first), 36)
            self.assertTrue(first.startswith("to be"))
            self.assertEqual(first, run(*words, folder=folder).stdout)
            self.assertNotEqual(first, run(*words, "--seed", "2", folder=folder).stdout)
            self.assertIn("found 'Z'", run("predict", str(job), "--prompt", "Z", folder=folder, code=64).stderr)


if __name__ == "__main__":
    unittest.main()
