#!/usr/bin/env python3
"""`lockstep ensemble`: members trained, killed and resumed, and what is made of them, on any number of ranks."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
JOB = """
job:
  name: small
  model: {layers: [flatten, {linear: {features: 16}}, batch_norm, relu, {linear: {features: 10}}]}
  data:
    train: {digits: {count: 400}}
    validation: {fraction: 0.25}
    test: {digits: {count: 100, first: 100000}}
  batch_size: 20
  micro_batches: 2
  steps: 60
  evaluate: {every: 20 steps}
  checkpoint: {every: 20 steps}
  metrics: accuracy
  optimizer: adam
  learning_rate: 0.01
  device: cpu
"""
HOUSES = """
job:
  model: {layers: [{linear: {features: 8}}, relu, {linear: {features: 1}}]}
  data: {train: {table: {path: rows.csv, target: z}}, validation: {fraction: 0.3}}
  loss: mean_squared_error
  batch_size: 8
  micro_batches: 2
  steps: 20
  device: cpu
"""


def lockstep(folder, *words, code=0):
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == code, f"{words}: expected {code}, found {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def png(path, pixels):
    """A grey image of rows of bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(row) for row in pixels))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def without_seconds(text):
    return re.sub(r'"seconds":[^,}]*', "", text)


class Ensembles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "job.yaml").write_text(JOB, encoding="utf-8")
        lockstep(cls.folder, "ensemble", "train", "job.yaml", "--members", "3", "--by", "bootstrap", "--ranks", "2",
                 "--directory", "e")
        for i in range(3):
            png(cls.folder / f"{i}.png", [[(x * y * (i + 3)) % 256 for x in range(28)] for y in range(28)])

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def trials(self, directory="e"):
        return json.loads((self.folder / directory / "trials.json").read_text(encoding="utf-8"))["trials"]

    def hashes(self, directory="e"):
        return [trial["parameters_sha256"] for trial in self.trials(directory)]

    def eval(self, *words):
        return lockstep(self.folder, "ensemble", "eval", *words, "--log", "json")

    def test_members_are_runs_that_differ(self):
        self.assertEqual([trial["state"] for trial in self.trials()], ["done"] * 3)
        self.assertEqual([trial["settings"] for trial in self.trials()], [{"seed": seed} for seed in (1, 2, 3)])
        self.assertEqual(len(set(self.hashes())), 3)
        own = self.folder / "e/trials/0001/job.yaml"
        self.assertIn('"resample": "bootstrap"', own.read_text(encoding="utf-8"))
        # The member's job is an ordinary one: other ranks, the same bits.
        lockstep(self.folder, "train", "e/trials/0001/job.yaml", "run_directory=again", "--ranks", "2")
        self.assertEqual(events_of(self.folder / "again", "end")[-1]["parameters_sha256"], self.hashes()[1])

    def test_killed_and_resumed(self):
        words = [PROGRAM, "ensemble", "train", "job.yaml", "--members", "3", "--by", "bootstrap", "--ranks", "1",
                 "--directory", "killed"]
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: any(event["step"] >= 25
                                   for event in events_of(self.folder / "killed/trials/0001", "step")), "step 25")
            process.kill()
        lockstep(self.folder, *words[1:])
        self.assertEqual(self.hashes("killed"), self.hashes())
        self.assertEqual(len(events_of(self.folder / "killed/trials/0000", "start")), 1)  # not repeated

    def test_a_larger_ensemble_keeps_its_members(self):
        words = ["ensemble", "train", "job.yaml", "--directory", "grows", "--members"]
        lockstep(self.folder, *words, "2")
        before = self.hashes("grows")
        lockstep(self.folder, *words, "3")
        self.assertEqual(self.hashes("grows")[:2], before)
        self.assertEqual(len(events_of(self.folder / "grows/trials/0000", "start")), 1)

    def test_a_sweep_over_seeds_is_an_ensemble(self):
        lockstep(self.folder, "ensemble", "train", "job.yaml", "--members", "3", "--directory", "by-seed")
        sweep = "sweep: {method: grid, metric: accuracy, parameters: {seed: {choice: [1, 2, 3]}}}\n"
        (self.folder / "seeds.yaml").write_text(sweep + JOB, encoding="utf-8")
        lockstep(self.folder, "sweep", "seeds.yaml", "data.split_seed=1", "--directory", "seeds", "--ranks", "2")
        self.assertEqual(self.hashes("seeds"), self.hashes("by-seed"))
        of_sweep, of_ensemble = (json.loads(self.eval(directory, "--set", "test", "--ranks", "2"))
                                 for directory in ("seeds", "by-seed"))
        self.assertEqual(of_sweep["combined"], of_ensemble["combined"])

    def test_the_same_evaluation_on_any_number_of_ranks(self):
        one = self.eval("e", "--set", "test")
        for ranks in ("2", "3", "5"):
            self.assertEqual(without_seconds(self.eval("e", "--set", "test", "--ranks", ranks)), without_seconds(one))
        self.assertEqual(without_seconds(self.eval("e", "threads=1", "--set", "test")), without_seconds(one))
        result = json.loads(one)
        self.assertEqual(result["samples"], 100)
        for number, member in enumerate(result["members"]):
            alone = json.loads(lockstep(self.folder, "eval", f"e/trials/{number:04}", "--set", "test", "--log", "json"))
            self.assertEqual((member["loss"], member["metrics"]), (alone["loss"], alone["metrics"]))
            self.assertEqual(member["parameters_sha256"], self.hashes()[number])
        self.assertEqual([row["by"] for row in result["combined"]], ["mean", "vote", "weighted"])
        mean = result["combined"][0]
        losses = [member["loss"] for member in result["members"]]
        self.assertLess(mean["loss"], sum(losses) / 3)  # by Jensen's inequality
        self.assertEqual(sum(row["count"] for row in mean["bins"]), 100)
        error = sum(row["count"] / 100 * abs(row["accuracy"] - row["confidence"]) for row in mean["bins"])
        self.assertAlmostEqual(error, mean["calibration_error"])
        right = sum(row["count"] * row["accuracy"] for row in mean["bins"]) / 100
        self.assertAlmostEqual(right, mean["metrics"]["accuracy"])
        pairs = result["disagreement"]["pairs"]
        self.assertEqual(pairs, [list(column) for column in zip(*pairs)])

    def test_weights_are_fitted_on_validation(self):
        result = json.loads(self.eval("e", "--ranks", "2"))
        self.assertEqual(result["samples"], 100)
        self.assertAlmostEqual(sum(result["weights"]), 1)
        self.assertGreaterEqual(min(result["weights"]), 0)
        by = {row["by"]: row for row in result["combined"]}
        self.assertLessEqual(by["weighted"]["loss"], by["mean"]["loss"])
        kept = json.loads((self.folder / "e/weights.json").read_text(encoding="utf-8"))
        self.assertEqual(kept, {"weights": result["weights"], "parameters_sha256": self.hashes()})

    def test_predictions(self):
        self.eval("e")
        images = ["0.png", "1.png", "2.png"]
        members = [[json.loads(line) for line in lockstep(self.folder, "predict", f"e/trials/{m:04}", *images, "--top", "10",
                                                          "--log", "json").splitlines()] for m in range(3)]
        weights = json.loads((self.folder / "e/weights.json").read_text(encoding="utf-8"))["weights"]
        for by, shares in (("mean", [1 / 3] * 3), ("weighted", weights)):
            words = ["ensemble", "predict", "e", *images, "--top", "10", "--combine", by, "--log", "json"]
            one = lockstep(self.folder, *words)
            self.assertEqual(lockstep(self.folder, *words, "--ranks", "2"), one)
            for i, line in enumerate(one.splitlines()):
                for found in json.loads(line)["classes"]:
                    wanted = sum(share * entry["probability"] for share, member in zip(shares, members)
                                 for entry in member[i]["classes"] if entry["index"] == found["index"])
                    self.assertAlmostEqual(found["probability"], wanted, places=5)
        votes = lockstep(self.folder, "ensemble", "predict", "e", "0.png", "--combine", "vote", "--top", "10", "--log", "json")
        shares = [entry["probability"] for entry in json.loads(votes)["classes"]]
        self.assertAlmostEqual(sum(shares), 1)
        self.assertTrue(all(abs(share * 3 - round(share * 3)) < 1e-12 for share in shares))

    def test_regression(self):
        rows = [(x, y, x * 2 - y) for x in range(8) for y in range(8)]
        (self.folder / "rows.csv").write_text("x,y,z\n" + "".join(f"{x},{y},{z}\n" for x, y, z in rows), encoding="utf-8")
        (self.folder / "new.csv").write_text("x,y\n1,2\n7,3\n", encoding="utf-8")
        (self.folder / "houses.yaml").write_text(HOUSES, encoding="utf-8")
        lockstep(self.folder, "ensemble", "train", "houses.yaml", "--members", "2", "--directory", "h")
        one = self.eval("h")
        self.assertEqual(without_seconds(self.eval("h", "--ranks", "3")), without_seconds(one))
        result = json.loads(one)
        self.assertEqual([row["by"] for row in result["combined"]], ["mean", "weighted"])
        self.assertLessEqual(result["combined"][1]["loss"], result["combined"][0]["loss"] + 1e-6)
        alone = [[json.loads(line)["values"][0] for line in lockstep(
            self.folder, "predict", f"h/trials/{m:04}", "new.csv", "--log", "json").splitlines()] for m in range(2)]
        together = [json.loads(line)["values"][0] for line in lockstep(
            self.folder, "ensemble", "predict", "h", "new.csv", "--log", "json").splitlines()]
        for found, *of_members in zip(together, *alone):
            self.assertAlmostEqual(found, sum(of_members) / 2, places=5)
        self.assertEqual(
            lockstep(self.folder, "ensemble", "predict", "h", "new.csv", "--combine", "vote", code=64),
            "lockstep: --combine vote: expected members that predict classes, found the loss mean_squared_error; choose "
            "mean or weighted\n")

    def test_soup(self):
        soup = self.folder / "soup.safetensors"
        lockstep(self.folder, "ensemble", "soup", "e", "--to", soup.name)
        made = json.loads(lockstep(self.folder, "eval", "e/trials/0000", "--checkpoint", soup.name, "--log", "json"))
        self.assertNotIn(made["parameters_sha256"], self.hashes())
        lockstep(self.folder, "train", "job.yaml", "initialize={from: soup.safetensors}", "run_directory=warm", "steps=1")
        # The average of a model with itself is that model; batch norm's running statistics are averaged, too.
        lockstep(self.folder, "ensemble", "soup", "e/trials/0000", "e/trials/0000", "--to", "same.safetensors")
        lockstep(self.folder, "checkpoint", "export", "e/trials/0000", "own.safetensors")
        same = (self.folder / "same.safetensors").read_bytes()
        self.assertEqual(same, (self.folder / "own.safetensors").read_bytes())
        self.assertIn(b"running_mean", same)
        # A greedy soup is at least as good as each member on the validation set, in the place of the first.
        said = lockstep(self.folder, "ensemble", "soup", "e", "--to", "greedy.safetensors", "--greedy", "--ranks", "2")
        self.assertRegex(said, r"^wrote greedy.safetensors: the average of members [0-2](, [0-2])*\n$")
        def accuracy(weights):
            found = lockstep(self.folder, "eval", "e/trials/0000", "--checkpoint", weights, "--log", "json")
            return json.loads(found)["metrics"]["accuracy"]
        for member in range(3):
            lockstep(self.folder, "checkpoint", "export", f"e/trials/{member:04}", f"member{member}.safetensors")
            self.assertGreaterEqual(accuracy("greedy.safetensors"), accuracy(f"member{member}.safetensors"))
        self.assertEqual(lockstep(self.folder, "ensemble", "soup", "e", "--to", soup.name, code=73),
                         "lockstep: soup.safetensors: the file exists; remove it, choose another name, or add --force\n")

    def test_distilled(self):
        lockstep(self.folder, "ensemble", "distill", "e", "--to", "student", "--weight", "0.5", "--temperature", "2",
                 "--ranks", "2")
        lockstep(self.folder, "ensemble", "distill", "e", "--to", "other", "--weight", "0.5", "--temperature", "2")
        self.assertEqual((self.folder / "student/teacher.safetensors").read_bytes(),
                         (self.folder / "other/teacher.safetensors").read_bytes())
        lockstep(self.folder, "train", "student/job.yaml")
        lockstep(self.folder, "train", "student/job.yaml", "run_directory=student2", "--ranks", "2")
        ends = [events_of(self.folder / name, "end")[-1]["parameters_sha256"] for name in ("student", "student2")]
        self.assertEqual(ends[0], ends[1])
        alone = json.loads(lockstep(self.folder, "eval", "student", "--set", "test", "--log", "json"))
        self.assertGreater(alone["metrics"]["accuracy"], 0.3)
        self.assertEqual(
            lockstep(self.folder, "train", "student/job.yaml", "run_directory=wrong", "data.split_seed=7", code=65),
            "lockstep: student/teacher.safetensors: expected probabilities [300, 10] of this job's training set, found "
            "[300, 10] of another set, or another split of it; make it with `lockstep ensemble distill`\n")

    def test_listed_jobs(self):
        (self.folder / "wide.yaml").write_text(JOB.replace("features: 16", "features: 24"), encoding="utf-8")
        lockstep(self.folder, "ensemble", "train", "job.yaml", "wide.yaml", "steps=20", "--directory", "two")
        self.assertEqual([trial["settings"] for trial in self.trials("two")], [{"job": "job.yaml"}, {"job": "wide.yaml"}])
        self.assertEqual(json.loads(self.eval("two"))["samples"], 100)
        self.assertIn("expected 'linear1.weight' [16, 784], as in the first member, found 'linear1.weight' [24, 784]; only "
                      "weights of one model can be averaged",
                      lockstep(self.folder, "ensemble", "soup", "two", "--to", "x.safetensors", code=78))
        (self.folder / "elsewhere.yaml").write_text(JOB.replace("fraction: 0.25", "fraction: 0.5"), encoding="utf-8")
        self.assertEqual(
            lockstep(self.folder, "ensemble", "train", "job.yaml", "elsewhere.yaml", "--directory", "x", code=78),
            "lockstep: elsewhere.yaml:6:5: job.data: expected the training and validation set of job.yaml, since members "
            "are combined on samples that none has trained on, found another; give the jobs the same data.train, "
            "data.validation and data.split_seed\n")

    def test_mistakes(self):
        def says(message, code, *words):
            self.assertEqual(lockstep(self.folder, "ensemble", *words, code=code), f"lockstep: {message}\n")
        says("ensemble: expected the directory of an ensemble, or those of two runs or more, found only e/trials/0000; "
             "train one with `lockstep ensemble train`", 64, "eval", "e/trials/0000")
        says("ensemble train: expected one job with --members and --by, or a job for each member, found 2 jobs with "
             "--members", 64, "train", "job.yaml", "job.yaml", "--members", "2")
        says("--combine weighted: expected weights fitted to these members in an ensemble's directory, found none; fit "
             "them with `lockstep ensemble eval DIRECTORY`", 65, "predict", "e/trials/0000", "e/trials/0001", "0.png",
             "--combine", "weighted")
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "trials.json").write_text("{}", encoding="utf-8")
        says("broken/trials.json: expected the trials of an ensemble or a sweep, found something else; train them again",
             65, "eval", "broken")
        (broken / "trials.json").write_text('{"trials": [{"trial": 0, "state": "failed"}]}', encoding="utf-8")
        says("broken: expected members that are trained to their end, found member 0 failed; train them with the same "
             "command as before", 65, "eval", "broken")
        says("e/journal.jsonl: expected the ensemble that was begun in this directory, found another: it differs in "
             "ensemble.by; choose another directory with --directory", 78, "train", "job.yaml", "--directory", "e")


if __name__ == "__main__":
    unittest.main()
