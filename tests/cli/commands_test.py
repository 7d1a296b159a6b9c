#!/usr/bin/env python3
"""The commands after a very short training on digits: show, eval, predict, data, and every exit code."""
import fcntl
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import zipfile

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


def load_bad_data():
    path = pathlib.Path(__file__).resolve().parent.parent / "bad" / "bad_data.py"
    spec = importlib.util.spec_from_file_location("bad_data", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        bad_data = load_bad_data()
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

    def test_predict_says_what_to_give(self):
        error = run("predict", *self.job, code=64).stderr
        self.assertEqual(error, "lockstep: predict: expected image files, 1 for each sample (image), or a CSV file, found "
                                "0; give them after the job\n")
        error = run("predict", *self.job, "--prompt", "a", code=64).stderr
        self.assertEqual(error, "lockstep: --prompt: this job trains on digits (synthetic), not on text; give image files "
                                "instead\n")

    def test_predict_says_that_a_mistyped_run_does_not_exist(self):
        typo = f"{self.folder.name}/typo"
        text = (f"lockstep: predict: '{typo}' does not exist; expected a run's directory, a job file (.yaml, .yml, .json) "
                "or image files\n")
        self.assertEqual(run("predict", typo, "x.png", code=64).stderr, text)
        self.assertEqual(run("predict", *self.job, typo, "x.png", code=64).stderr, text)
        self.assertEqual(run("predict", typo, "--prompt", "a", code=64).stderr, text)
        error = run("predict", f"{self.folder.name}/run", typo, code=65).stderr
        self.assertEqual(error, f"lockstep: {typo}: cannot open; expected a JPEG or PNG file\n")

    def test_weights_of_pytorch_are_named_as_such(self):
        weights = pathlib.Path(self.folder.name) / "model.pt"
        with zipfile.ZipFile(weights, "w") as file:
            file.writestr("model/data.pkl", b"\x80\x02}q\x00.")
        convert = (f"lockstep: {weights}: expected a safetensors file, found a PyTorch checkpoint (a pickle, as torch.save "
                   "writes it); convert it in Python: safetensors.torch.save_file({k: v.float().contiguous() for k, v in "
                   f"torch.load('{weights}', map_location='cpu').items()}}, 'weights.safetensors', "
                   "metadata={'format': 'pt'})\n")
        picture = pathlib.Path(self.folder.name) / "for_weights.png"
        picture.write_bytes(load_bad_data().png(28, 28))
        error = run("predict", *self.job, str(picture), "--checkpoint", str(weights), code=65).stderr
        self.assertEqual(error, convert)
        error = run("train", *SMALL, f"run_directory={self.folder.name}/new", f"initialize.from={weights}", code=65).stderr
        self.assertIn(convert.removeprefix("lockstep: "), error)

    def test_a_run_directory_stands_for_its_job(self):
        directory = f"{self.folder.name}/run"
        self.assertEqual(run("show", directory).stdout, run("show", *self.job).stdout)
        by_job = json.loads(run("eval", *self.job, "--log", "json").stdout)
        for words in ([directory], [by_job["checkpoint"]]):
            line = json.loads(run("eval", *words, "--log", "json").stdout)
            self.assertEqual((line["loss"], line["metrics"]), (by_job["loss"], by_job["metrics"]))
        error = run("eval", self.folder.name, code=65).stderr
        self.assertEqual(error, f"lockstep: {self.folder.name}: expected a job file, or the directory of a run or "
                                "checkpoint, found a folder with no checkpoints in it\n")

    def test_a_run_that_exists_is_not_begun_anew(self):
        self.assertIn("--resume never", run("train", *self.job, "--resume", "never", code=73).stderr)

    def test_a_locked_run_directory(self):
        with open(f"{self.folder.name}/run/lock", "r+", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another run uses this directory", run("train", *self.job, code=73).stderr)

    def test_another_job_in_the_same_directory(self):
        error = run("train", *self.job, "seed=2", code=78).stderr
        self.assertRegex(error, r"^lockstep: .*/run/checkpoints/step-\d+: this checkpoint is of another job:\n"
                         r"  job\.seed: 1, now 2\nrestore the old values, or choose a new run_directory\n$")

    def test_checkpoints_are_listed_verified_compared_and_exported(self):
        directory = f"{self.folder.name}/run"
        lines = [json.loads(line) for line in run("checkpoint", "list", directory, "--log", "json").stdout.splitlines()]
        self.assertEqual(lines[0]["step"], 10)
        self.assertTrue(any(line["best"] for line in lines))
        self.assertIn("step-00000010  sound\n", run("checkpoint", "verify", directory).stdout)
        newest, best = lines[0]["path"], f"{directory}/checkpoints/best"
        self.assertEqual(run("checkpoint", "diff", directory, newest).stdout, "the same bits: 18 tensors, step 10\n")
        self.assertIn("step: 10 and 8\n", run("checkpoint", "diff", directory, f"{directory}/checkpoints/step-00000008",
                                              code=65).stdout)
        model = f"{self.folder.name}/model.safetensors"
        run("checkpoint", "export", best, model)
        self.assertIn("model.safetensors: the file exists; remove it, choose another name, or add --force",
                      run("checkpoint", "export", directory, model, code=73).stderr)
        run("checkpoint", "export", directory, model, "--force")
        lines = [json.loads(run("eval", *self.job, "--checkpoint", which, "--log", "json").stdout)
                 for which in ("newest", model)]
        self.assertEqual(lines[0]["parameters_sha256"], lines[1]["parameters_sha256"])

    def test_a_damaged_checkpoint_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(f"{self.folder.name}/run", f"{folder}/run")
            job = [*self.job, f"run_directory={folder}/run"]
            file = pathlib.Path(f"{folder}/run/checkpoints/step-00000010/model.safetensors")
            bad = bytearray(file.read_bytes())
            bad[-1] ^= 1
            file.write_bytes(bad)
            damage = f"{file}: damaged: tensor 'linear1.bias': its SHA-256 is not the manifest's"
            result = run("checkpoint", "verify", f"{folder}/run", code=65)
            self.assertEqual(result.stderr, f"lockstep: {damage}\n")
            self.assertIn("step-00000010  damaged\n", result.stdout)
            self.assertIn("step-00000008  sound\n", result.stdout)
            self.assertEqual(run("checkpoint", "export", str(file.parent), f"{folder}/x", code=65).stderr,
                             f"lockstep: {damage}\n")
            events = [json.loads(line) for line in run("train", *job, "--log", "json").stdout.splitlines()]
            by_name = {event["event"]: event for event in events}
            self.assertEqual(by_name["warning"]["message"], f"passed over a damaged checkpoint: {damage}")
            self.assertEqual(by_name["restart"]["step"], 8)
            self.assertEqual(by_name["end"]["parameters_sha256"],
                             json.loads(self.trained[-1])["parameters_sha256"])


class WithoutData(unittest.TestCase):
    """What a trained run can do without its training data."""

    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.home.name)
        (self.folder / "data").mkdir()

    def tearDown(self):
        self.home.cleanup()

    def train(self, text, *words):
        (self.folder / "job.yaml").write_text(text, encoding="utf-8")
        run("train", "job.yaml", "run_directory=run", *words, folder=self.folder)

    def images(self, count):
        bad_data = load_bad_data()
        for i in range(count):
            (self.folder / "data" / f"{i}.png").write_bytes(bad_data.png(8, 8, shade=i))

    def test_two_images_a_sample_and_csv(self):
        self.images(8)
        rows = [f"{i}.png,{(i + 1) % 8}.png,{('same', 'other')[i % 2]}" for i in range(8)]
        table = self.folder / "data" / "pairs.csv"
        table.write_text("\n".join(["left,right,label", *rows]) + "\n", encoding="utf-8")
        self.train("job: {model: {inputs: [left, right], layers: [{flatten: {}, inputs: left, name: a}, {flatten: {}, "
                   "inputs: right, name: b}, {concat: {inputs: [a, b]}}, {linear: {features: 2}}]}, data: {train: {csv: "
                   "data/pairs.csv}}, batch_size: 4, micro_batches: 4, steps: 3, optimizer: adam, learning_rate: 0.01}\n")
        before = run("predict", "job.yaml", "run_directory=run", "data/pairs.csv", folder=self.folder).stdout
        moved = self.folder / "moved"
        (self.folder / "data").rename(moved)
        self.assertEqual(run("predict", "run", "moved/pairs.csv", folder=self.folder).stdout,
                         before.replace("data/", "moved/"))
        files = [f"moved/{name}.png" for i in range(8) for name in (i, (i + 1) % 8)]
        lines = run("predict", "run", *files, "--log", "json", folder=self.folder).stdout.splitlines()
        self.assertEqual(len(lines), 8)
        first = json.loads(lines[0])
        self.assertEqual(first["files"], ["moved/0.png", "moved/1.png"])
        self.assertEqual(sorted(entry["name"] for entry in first["classes"]), ["other", "same"])
        self.assertIn("258 parameters", run("show", "run", folder=self.folder).stdout)  # 128 pixels, 2 classes
        error = run("predict", "run", "moved/0.png", code=64, folder=self.folder).stderr
        self.assertEqual(error, "lockstep: predict: expected image files, 2 for each sample (left, right), or a CSV file, "
                                "found 1; give them after the job\n")
        (moved / "odd.csv").write_text("left,rihgt\n0.png,1.png\n", encoding="utf-8")
        error = run("predict", "run", "moved/odd.csv", code=65, folder=self.folder).stderr
        self.assertEqual(error, "lockstep: moved/odd.csv:1: expected a column 'right', found left, rihgt; did you mean "
                                "'rihgt'?\n")

    def test_a_target_that_is_an_image(self):
        job = ("job: {model: {unet: {width: 4, depth: 1}, inputs: image}, data: {train: {digits: {count: 64, masks: true}}, "
               "validation: {fraction: 0.25}, normalize: never}, batch_size: 16, micro_batches: 4, steps: 3, metrics: [iou, r2], "
               "loss: {binary_cross_entropy: {}, target: mask}, learning_rate: 0.01}\n")
        self.train(job)
        lines = [json.loads(run("eval", "run", "--ranks", ranks, "--log", "json", folder=self.folder).stdout)
                 for ranks in ("1", "3")]
        self.assertEqual(sorted(lines[0]["metrics"]), ["iou", "r2"])
        self.assertEqual(lines[0]["metrics"], lines[1]["metrics"])
        error = run("eval", "run", "--details", folder=self.folder, code=64).stderr
        self.assertEqual(error, "lockstep: eval --details: expected a model that predicts one class, some labels or some "
                                "numbers for each sample, found one that predicts [28, 28, 1]; leave out --details\n")
        (self.folder / "data" / "0.png").write_bytes(load_bad_data().png(28, 28))
        error = run("predict", "run", "data/0.png", code=64, folder=self.folder).stderr
        self.assertEqual(error, "lockstep: predict: expected a model that predicts classes or numbers, found one that "
                                "predicts [28, 28, 1] for each sample; for images give a folder to write them to, "
                                "--to FOLDER\n")
        out = run("predict", "run", "data/0.png", "--to", "masks", "--ranks", "2", folder=self.folder).stdout
        self.assertEqual(out, "wrote masks/0.png\n")
        self.assertEqual((self.folder / "masks/0.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        error = run("predict", "run", "data/0.png", "--to", "masks", code=73, folder=self.folder).stderr
        self.assertEqual(error, "lockstep: masks/0.png: is there already; choose another folder\n")
        error = run("predict", "run", "data/0.png", "data/0.png", "--to", "more", code=64, folder=self.folder).stderr
        self.assertEqual(error, "lockstep: --to: expected files of different names, found two that make more/0.png; predict "
                                "them one after the other, into folders of their own\n")

    def test_evaluation_needs_the_set_alone(self):
        self.images(6)
        for name in ("train", "test"):
            rows = [f"{i}.png,{'abc'[i % 3]}" for i in range(6)]
            (self.folder / "data" / f"{name}.csv").write_text("\n".join(["image,label", *rows]), encoding="utf-8")
        self.train("job: {model: {layers: [flatten, {linear: {features: 3}}]}, data: {train: {csv: data/train.csv}}, "
                   "batch_size: 3, micro_batches: 3, steps: 2, metrics: accuracy, learning_rate: 0.01}\n")
        words = ["eval", "run", "data.test.csv=data/te*.csv", "--set", "test", "--log", "json"]
        before = json.loads(run(*words, folder=self.folder).stdout)
        self.assertEqual(before["samples"], 6)
        (self.folder / "data" / "train.csv").unlink()
        self.assertEqual(json.loads(run(*words, folder=self.folder).stdout)["loss"], before["loss"])
        self.assertIn("nothing at 'data/train.csv'",
                      run("eval", "run", "--set", "train", folder=self.folder, code=65).stderr)

    def test_text(self):
        corpus = self.folder / "data" / "corpus.txt"
        corpus.write_text("to be or not to be, that is the question. " * 40, encoding="utf-8")
        self.train("job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, data: {train: {text: {path: data/corpus.txt, "
                   "context: 16}}}, batch_size: 8, micro_batches: 4, steps: 4, optimizer: adamw, learning_rate: 0.01}\n")
        corpus.unlink()
        text = run("predict", "run", "--prompt", "to be", "--tokens", "20", folder=self.folder).stdout
        self.assertTrue(text.startswith("to be"))
        self.assertEqual(len(text), 26)

    def test_masked_text_and_an_average_of_the_weights(self):
        (self.folder / "data" / "corpus.txt").write_text("to be or not to be, that is the question. " * 40, encoding="utf-8")
        job = ("job: {model: {bert: {layers: 1, heads: 2, width: 16}}, data: {train: {text: {path: data/corpus.txt, context: "
               "16, masked: 0.15}}}, batch_size: 8, micro_batches: 4, steps: 4, optimizer: {lamb: {}, average: 0.5}, learning_rate: "
               "0.01, loss: {cross_entropy: {ignored_index: -100}}}\n")
        self.train(job)
        (self.folder / "data" / "corpus.txt").unlink()
        self.assertEqual(run("predict", "run", "--prompt", "to be", folder=self.folder, code=64).stderr,
                         "lockstep: predict: layer 'block1.attention' sees the tokens that come after (causal: false), so this "
                         "model cannot generate text\n")
        for weights in ("auto", "average", "trained"):
            run("checkpoint", "export", "run", weights, "--weights", weights, folder=self.folder)
        written = {name: (self.folder / name).read_bytes() for name in ("auto", "average", "trained")}
        self.assertEqual(written["auto"], written["average"])
        self.assertNotEqual(written["auto"], written["trained"])
        (self.folder / "data" / "corpus.txt").write_text("to be or not to be, that is the question. " * 40, encoding="utf-8")
        run("train", "job.yaml", "run_directory=plain", "optimizer=lamb", folder=self.folder)
        self.assertEqual(run("checkpoint", "export", "plain", "x", "--weights", "average", folder=self.folder, code=65).stderr,
                         "lockstep: --weights average: plain/checkpoints/step-00000004 has no average of its weights; train "
                         "with optimizer.average, or choose --weights trained\n")


class Check(unittest.TestCase):
    def test_a_batch_with_more_micro_batches_is_told_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "job.yaml").write_text(
                "job: {model: mlp, data: {train: {digits: {count: 256}}}, batch_size: 67, steps: 1}\n")
            text = run("check", "job.yaml", folder=folder).stdout
            self.assertIn("which one thread of one rank computes; batch_size=64 would be 8 micro-batches\n", text)
            self.assertEqual(text.count("64"), 1, text)
            text = run("check", "job.yaml", "micro_batches=1", folder=folder).stdout
            self.assertIn("\nbatch_size 64 can be 8 micro-batches of 8 samples: steps of 12.5 %\n", text)

    def test_a_file_with_an_equals_sign_is_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "lr=0.1.yaml")
            path.write_text("job: {model: mlp, data: {train: {digits: {count: 64}}}, batch_size: 8, steps: 3}\n")
            self.assertIn("steps", run("check", path.name, "steps=5", folder=folder).stdout)
            path.unlink()
            self.assertEqual(run("check", path.name, folder=folder, code=78).stderr, "lockstep: command line: lr: expected a "
                             "known key, found 'lr'; did you mean 'learning_rate'?\n")

    def test_check_tells_memory_that_is_not_there(self):
        done = run("check", "model={mlp: {hidden: [100000, 200000]}}", "data.train.digits.count=200",
                   "data.validation.digits.count=50")
        self.assertRegex(done.stderr, r"warning: one rank needs 1197\.\d+ GiB, and this machine has \d+\.\d+ [GT]iB; `lockstep "
                         r"plan` says what fits\n")
        self.assertRegex(done.stdout, r"\nmemory 1197\.\d+ GiB on one rank\n")

    def test_without_data(self):
        """What the job alone tells is told, as with data; else one line says what is missing."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)

            def check(job, *words, code=0):
                (folder / "job.yaml").write_text("job: {" + job + ", batch_size: 8, steps: 2}\n")
                return run("check", "job.yaml", *words, folder=folder, code=code)

            def without(job, *words):
                return check(job, "--no-data", *words).stdout

            drawn = [re.sub(r"memory \d\d\.", "memory 00.", check("model: lenet, data: {train: digits}", *words).stdout)
                     for words in ((), ("--no-data",))]
            self.assertEqual(*(re.sub(r"\.\d MiB", " MiB", text) for text in drawn))
            self.assertIn("12000 training samples, 0 validation samples, 61706 parameters\nmemory ", drawn[1])
            gpt = "model: {gpt: {layers: 2, width: 32, heads: 2%s}}, loss: cross_entropy, data: {train: {%s: {path: x.txt, context: 32%s}}}"
            cases = [("model: {layers: [{linear: 1}]}, loss: mean_squared_error, data: {train: {table: {path: x.csv, target: t}}}",
                      "the columns of the table"),
                     ("model: lenet, data: {train: {images: x}}", "the size of the images"),
                     ("model: lenet, data: {train: {packed: x}}", "what was packed"),
                     ("model: {resnet: 20}, data: {train: {cifar: x}}", "the number of classes"),
                     (gpt % ("", "text", ""), "the number of distinct tokens"),
                     (gpt % ("", "tokens", ""), "the number of distinct tokens"),
                     ("model: bert, loss: cross_entropy, data: {train: {texts: {path: x, context: 8, tokenizer: bytes}}}",
                      "the number of classes")]
            for job, missing in cases:
                with self.subTest(missing=missing):
                    self.assertIn(f"memory not known without the data: it depends on {missing}\n", without(job))
            (folder / "x.txt").write_bytes(bytes(range(256)) * 40)
            for job in (gpt % ("", "text", ", tokenizer: bytes"), gpt % (", vocabulary: 65536", "tokens", ""),
                        (gpt % ("", "text", ", tokenizer: bytes, masked: 0.2")).replace("gpt", "bert").replace(
                            "loss: cross_entropy", "loss: {cross_entropy: {ignored_index: -100}}")):
                with self.subTest(job=job):
                    with_data, alone = check(job).stdout, without(job)
                    count = re.search(r"(\d+ parameters)\n", alone)[1]
                    self.assertIn(count, with_data)
                    found, kept = (float(re.search(r"memory ([\d.]+) MiB on one rank", text)[1]) for text in (alone, with_data))
                    self.assertLess(abs(found - kept), 3)
                    self.assertIn(" MiB on one rank, besides the data that are kept\n", alone)
            cifar = "model: {resnet: {depth: 20, classes: 10}}, data: {train: {cifar: x}, augment: [flip]}"
            self.assertRegex(without(cifar), r"^2\d{5} parameters\nmemory [\d.]+ MiB on one rank, besides the data that are kept\n")
            error = check(cifar.replace("resnet: {depth: 20", "vit: {patch: 5"), "--no-data", code=78).stderr
            self.assertRegex(error, r"^lockstep: job\.yaml:1:\d+: job\.model[^ ]*: ")


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
        for words in ("train", "launch", "eval", "predict", "check", "show", "data", "data info", "data pack",
                      "data fetch", "checkpoint", "checkpoint list", "checkpoint verify", "checkpoint diff",
                      "checkpoint export",
                      "report", "trace merge", "schema", "metrics", "events", "doctor", "completion", "version"):
            text = run(*words.split(), "--help").stdout
            self.assertIn("Example", text, words)
            self.assertIn(f"Usage: lockstep {words} ", text, words)

    def test_help_and_version_in_other_words(self):
        self.assertEqual(run("help", "data", "info").stdout, run("data", "info", "--help").stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "trian", code=64).stderr,
                         "lockstep: unknown command 'trian'; did you mean 'train'?\nTry: lockstep --help\n")
        self.assertEqual(run("--version").stdout, run("version").stdout.splitlines()[0] + "\n")

    def test_doctor(self):
        text = run("doctor").stdout
        self.assertIn("lockstep can train on this machine", text)
        version = run("version").stdout
        self.assertRegex(version, r"^lockstep [0-9.]+\noneDNN [0-9.]+\nfingerprint: kernels [0-9a-f]{16}, oneDNN [0-9.]+, "
                                  r"math [0-9a-f]{8}, jpeg [0-9a-f]{8}, lockstep [0-9.]+\n$")
        self.assertIn("fingerprint    " + version.split("fingerprint: ")[1], text)

    @unittest.skipIf(pathlib.Path("/dev/infiniband").exists(), "this machine has RDMA")
    def test_a_host_without_rdma_where_it_is_required(self):
        lacks = ("expected an RDMA device (uverbs) in /dev/infiniband on {}, found none; see that the device plugin gives one to the pod, or "
                 "train without RDMA (network.profile: tcp)\n")
        environment = {**os.environ, "LOCKSTEP_RDMA": "required"}
        done = subprocess.run([PROGRAM, "train", "steps=1", "checkpoint=never"], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (79, "lockstep: " + lacks.format(socket.gethostname())))
        done = subprocess.run([PROGRAM, "doctor"], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 79)
        self.assertIn("missing        RDMA: " + lacks.format("this host"), done.stdout)


class Text(unittest.TestCase):
    def test_text_goes_on_from_a_prompt_and_repeats(self):
        with tempfile.TemporaryDirectory() as folder:
            corpus = pathlib.Path(folder) / "corpus.txt"
            corpus.write_text("to be or not to be, that is the question. " * 40, encoding="utf-8")
            job = pathlib.Path(folder) / "job.yaml"
            job.write_text("job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, "
                           "data: {train: {text: {path: corpus.txt, context: 16}}}, batch_size: 8, micro_batches: 4, steps: 4, "
                           "optimizer: adamw, learning_rate: 0.01}\n", encoding="utf-8")
            run("train", str(job), folder=folder)
            words = ["predict", str(job), "--prompt", "to be", "--tokens", "30"]
            first = run(*words, folder=folder).stdout
            self.assertEqual(len(first), 36)
            self.assertTrue(first.startswith("to be"))
            self.assertEqual(first, run(*words, folder=folder).stdout)
            self.assertNotEqual(first, run(*words, "--seed", "2", folder=folder).stdout)
            self.assertIn("found 'Z'", run("predict", str(job), "--prompt", "Z", folder=folder, code=64).stderr)

    def test_numbers_of_tokens_are_kept_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            corpus = pathlib.Path(folder) / "corpus.bin"
            corpus.write_bytes(b"".join(struct.pack("<H", (i * i + 3 * i) % 50) for i in range(600)))
            job = pathlib.Path(folder) / "job.yaml"
            job.write_text("job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, "
                           "data: {train: {tokens: {path: corpus.bin, context: 16}}}, batch_size: 8, steps: 2}\n",
                           encoding="utf-8")
            run("train", str(job), folder=folder)
            written = []
            for prompt in ("18 47 40", "18 47 40 "):
                written.append(run("predict", str(job), "--prompt", prompt, "--tokens", "4", folder=folder).stdout)
                line = json.loads(run("predict", str(job), "--prompt", prompt, "--tokens", "4", "--log", "json",
                                      folder=folder).stdout)
                self.assertEqual(line["text"] + "\n", written[-1])
            self.assertEqual(written[0], written[1])
            self.assertRegex(written[0], r"^18 47 40( \d+){4}\n$")
            alone = run("predict", str(job), "--tokens", "3", folder=folder).stdout
            self.assertRegex(alone, r"^\d+( \d+){2}\n$")


if __name__ == "__main__":
    unittest.main()
