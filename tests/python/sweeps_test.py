#!/usr/bin/env python3
"""lockstep_reader on a real sweep, and on predictions of images, a table and a text."""
import csv
import importlib.util
import json
import struct
import unittest

from reading import ROOT, SMALL, InFolder, program, reader

SWEEP = """
job:
  model: {layers: [flatten, {linear: {features: 10}}]}
  data: {train: {digits: {count: 64}}, validation: {digits: {count: 32, first: 100000}}}
  batch_size: 16
  micro_batches: 2
  steps: 4
  evaluate: {every: 2 steps}
  metrics: accuracy
sweep:
  metric: loss
  budget: 4
  parameters:
    learning_rate: {log_uniform: {low: 0.001, high: 0.1}}
    optimizer: {choice: [sgd, adam]}
    optimizer.sgd.momentum: {uniform: {low: 0, high: 0.9}, when: {optimizer: sgd}}
"""
REMEDY = "name the directory of a sweep, sweeps/<name> by default"


class Sweeps(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "sweep.yaml").write_text(SWEEP)
        program("sweep", "sweep.yaml", "--directory", "out", "--ranks", "1", folder=cls.folder)
        cls.path = cls.folder / "out"
        cls.sweep = reader.open_sweep(cls.path)

    def test_trials_are_those_of_both_files(self):
        whole = json.loads((self.path / "trials.json").read_text())
        self.assertEqual((self.sweep.method, self.sweep.metric, self.sweep.direction), ("random", "loss", "minimize"))
        self.assertEqual([trial.value for trial in self.sweep.trials], [trial["value"] for trial in whole["trials"]])
        for trial, row in zip(self.sweep.trials, reader.read_trials_csv(self.path / "trials.csv")):
            for field in ("number", "state", "value", "steps", "settings", "metrics", "failures", "message",
                          "parameters_sha256"):
                self.assertEqual(getattr(row, field), getattr(trial, field), field)
            self.assertAlmostEqual(row.device_seconds, trial.device_seconds, 3)

    def test_the_best_trial_and_its_run(self):
        best = self.sweep.best
        self.assertEqual(best.value, min(trial.value for trial in self.sweep.trials))
        self.assertEqual(self.sweep.ranked()[0], best)
        run = best.run()
        self.assertEqual(run.parameters_sha256, best.parameters_sha256)
        self.assertEqual(run.best("loss").value, min(run.validation()["loss"]))
        self.assertEqual(run.validation()["loss"][-1], best.value)
        self.assertEqual(run.job()["name"], json.loads((self.path / f"trials/{best.number:04}/job.yaml").read_text())
                         ["job"]["name"])

    def test_copies_of_a_population_say_what_they_are_copies_of(self):
        text = SWEEP.replace("budget: 4", "method: {population: {members: 2, every: 2}}")
        text = text[:text.index("    optimizer:")]
        (self.own / "population.yaml").write_text(text)
        program("sweep", "population.yaml", "--directory", "out", "--ranks", "1", folder=self.own)
        trials = reader.open_sweep(self.own / "out").trials
        worst, best = sorted(trials[:2], key=lambda trial: trial.steps)
        self.assertEqual([trial.copied for trial in trials], [None, None, (best.number, 2)])
        self.assertEqual((worst.steps, worst.state), (2, "paused"))
        for trial, row in zip(trials, reader.read_trials_csv(self.own / "out/trials.csv")):
            self.assertEqual((row.copied, row.settings), (trial.copied, trial.settings))

    def test_as_a_table(self):
        table = self.sweep.table()
        self.assertEqual(table.height, 4)
        with open(self.path / "trials.csv", newline="", encoding="utf-8") as file:
            self.assertEqual([str(value) for value in table["learning_rate"]],
                             [row["learning_rate"] for row in csv.DictReader(file)])
        self.assertEqual([value is None for value in table["optimizer.sgd.momentum"]],
                         [optimizer == "adam" for optimizer in table["optimizer"]])

    def test_what_is_not_there_or_damaged(self):
        self.says(reader.MissingError, f"{self.own}/trials.json: expected the trials of a sweep, found no such file; {REMEDY}",
                  reader.open_sweep, self.own)
        self.says(reader.MissingError, f"{self.own}/trials.csv: expected the trials of a sweep, found no such file; {REMEDY}",
                  reader.read_trials_csv, self.own / "trials.csv")
        (self.own / "trials.json").write_text('{"sweep": "s"}')
        self.says(reader.DamagedError, f"{self.own}/trials.json: expected the trials of a sweep, found something else "
                  "(KeyError: 'trials'); run the sweep's command again, which writes it anew", reader.open_sweep, self.own)
        (self.own / "trials.csv").write_text("trial,state\n1,done\n")
        self.says(reader.DamagedError, f"{self.own}/trials.csv: expected columns trial, state, value, steps, device_seconds, "
                  "failures, message, parameters_sha256, found something else (KeyError: 'value'); run the sweep's command "
                  "again, which writes it anew", reader.read_trials_csv, self.own / "trials.csv")
        run = self.sweep.trials[0]
        self.says(reader.MissingError, "trials/0000: expected a run directory, found no such folder; name the job's "
                  "run_directory, runs/<name> by default", reader.read_trials_csv(self.path / "trials.csv")[0].run)
        self.assertEqual(run.directory, f"{self.path}/trials/0000")


class Predictions(InFolder):
    def test_images(self):
        spec = importlib.util.spec_from_file_location("bad_data", ROOT / "tests/bad/bad_data.py")
        bad_data = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(bad_data)
        (self.own / "a.png").write_bytes(bad_data.png(28, 28))
        program("train", *SMALL, "steps=2", "run_directory=run", folder=self.own)
        printed, _ = program("predict", "run", "a.png", "--top", "3", "--log", "json", folder=self.own)
        (self.own / "predictions.jsonl").write_text(printed)
        (prediction,) = reader.read_predictions(self.own / "predictions.jsonl")
        self.assertEqual([prediction], reader.read_predictions(printed.splitlines()))
        self.assertEqual((prediction.files, len(prediction.classes), prediction.values), (["a.png"], 3, []))
        shown = program("predict", "run", "a.png", "--top", "1", folder=self.own)[0].split()
        self.assertEqual(shown[1:], [f"{prediction.best.probability:.4f}", prediction.best.name])

    def test_a_table(self):
        (self.own / "rows.csv").write_text("area,price\n" + "".join(f"{i},{2 * i}\n" for i in range(64)))
        (self.own / "job.yaml").write_text("job: {model: {layers: [{linear: 1}]}, loss: mean_squared_error, batch_size: 16, "
                                           "steps: 2, data: {train: {table: {path: rows.csv, target: price}}}}\n")
        program("train", "job.yaml", "run_directory=run", folder=self.own)
        printed, _ = program("predict", "run", "rows.csv", "--log", "json", folder=self.own)
        predictions = reader.read_predictions(printed.splitlines())
        self.assertEqual([one.row for one in predictions][:2], ["rows.csv:2", "rows.csv:3"])
        self.assertEqual((len(predictions), len(predictions[0].values), predictions[0].best), (64, 1, None))

    def test_a_text(self):
        (self.own / "corpus.bin").write_bytes(b"".join(struct.pack("<H", (i * i + 3 * i) % 50) for i in range(600)))
        (self.own / "job.yaml").write_text("job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, batch_size: 8, steps: 2, "
                                           "data: {train: {tokens: {path: corpus.bin, context: 16}}}}\n")
        program("train", "job.yaml", "run_directory=run", folder=self.own)
        printed, _ = program("predict", "run", "--prompt", "18 47", "--tokens", "3", "--log", "json", folder=self.own)
        (prediction,) = reader.read_predictions(printed.splitlines())
        self.assertEqual(prediction.prompt, "18 47")
        self.assertRegex(prediction.text, r"^18 47( \d+){3}$")

    def test_what_is_no_prediction(self):
        path = self.own / "predictions.jsonl"
        self.says(reader.MissingError, f"{path}: expected predictions, found no such file; write it with lockstep predict RUN "
                  "FILES --log json >FILE", reader.read_predictions, path)
        path.write_text('{"event":"predict","row":"a:2","values":[1]}\n\na:3  1.5\n')
        self.says(reader.DamagedError, f"{path}:3: expected a prediction, as lockstep predict --log json prints it, found "
                  "'a:3  1.5'; write it anew with --log json", reader.read_predictions, path)


if __name__ == "__main__":
    unittest.main()
