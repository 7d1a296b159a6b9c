#!/usr/bin/env python3
"""lockstep_reader on run directories of the real program: finished, stopped, resumed, killed, and going on."""
import json
import signal
import subprocess
import sys
import unittest

from reading import PATIENCE, PROGRAM, ROOT, SMALL, InFolder, program, reader, wait_until

JOB = [*SMALL, "steps=30", "evaluate.every=10 steps", "checkpoint={every: 10 steps, keep: 9, best: accuracy}"]


class AFinishedRun(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.folder / "run"
        printed, _ = program("train", *JOB, "--ranks", "2", f"run_directory={cls.path}", "--log", "json")
        cls.printed = [json.loads(line) for line in printed.splitlines()]
        cls.run_ = reader.open_run(cls.path)

    def printed_of(self, kind):
        return [event for event in self.printed if event["event"] == kind]

    def test_curves_are_what_was_printed(self):
        curve, steps = self.run_.training(), self.printed_of("step")
        self.assertEqual(curve.height, 30)
        for name in ("step", "epoch", "loss", "learning_rate", "samples_per_second"):
            self.assertEqual(curve[name], [step[name] for step in steps])
        self.assertEqual(curve["accuracy"], [step["metrics"]["accuracy"] for step in steps])
        self.assertEqual(curve["micro_batch_seconds"][0], {int(r): s for r, s in steps[0]["micro_batch_seconds"].items()})
        validation, evals = self.run_.validation(), self.printed_of("eval")
        self.assertEqual(validation["step"], [10, 20, 30])
        self.assertEqual(validation["loss"], [event["loss"] for event in evals])
        self.assertEqual(validation.rows()[2]["accuracy"], evals[2]["metrics"]["accuracy"])
        self.assertEqual(self.run_.validation("test").height, 0)

    def test_every_event_is_of_its_type(self):
        events = list(self.run_.events(strict=True))
        self.assertEqual([event["event"] for event in events], [event["event"] for event in self.printed])
        for event in events:
            kind = next(kind for kind in reader.event_types.Event.__args__
                        if reader.events.KINDS[event["event"]].keys() == kind.__annotations__.keys())
            self.assertLessEqual(kind.__required_keys__, event.keys())
            self.assertLessEqual(event.keys(), kind.__annotations__.keys())
        self.assertGreater(events[-1]["time"], 1.7e9)
        self.assertEqual(events[-1]["micro_batches_by_rank"].keys(), {0, 1})

    def test_status_best_and_hash(self):
        status, end = self.run_.status(), self.printed_of("end")[0]
        self.assertEqual((status.state, status.step, status.steps, status.starts, status.is_over), ("done", 30, 30, 1, True))
        self.assertEqual(status.loss, end["loss"])
        best = self.run_.best()
        self.assertEqual(best.metric, "accuracy")
        self.assertEqual(self.run_.checkpoint("best").step, best.step)
        self.assertEqual(best.value, max(self.run_.validation()["accuracy"]))
        self.assertEqual(self.run_.best("loss").value, min(self.run_.validation()["loss"]))
        self.assertEqual(self.run_.best("accuracy", "minimize").value, min(self.run_.validation()["accuracy"]))
        self.assertEqual(self.run_.parameters_sha256, end["parameters_sha256"])
        self.assertEqual(self.run_.checkpoint().parameters_sha256(), end["parameters_sha256"])

    def test_job_and_checkpoints(self):
        job = self.run_.job()
        self.assertEqual((job["name"], job["steps"], job["data"]["train"]["digits"]["count"]), ("digits", 30, 256))
        self.assertEqual([path.rpartition("-")[2] for path in self.run_.checkpoints()], ["00000030", "00000020", "00000010"])
        self.assertEqual(self.run_.checkpoint(20).metrics, {"loss": self.run_.validation()["loss"][1],
                                                            "accuracy": self.run_.validation()["accuracy"][1]})

    def test_summary(self):
        done = subprocess.run([sys.executable, "-m", "lockstep_reader", "summary", self.path], cwd=ROOT / "python",
                              capture_output=True, text=True, check=True)
        last, best = self.run_.validation().last(), self.run_.best()
        self.assertEqual(done.stdout.splitlines(), [
            f"run          {self.path}: digits", "state        done, step 30 of 30",
            "ranks        2 on 1 host, 1 thread each; a batch of 32 in 4 micro-batches",
            f"training     loss {self.run_.status().loss:.4f}, epoch 4",
            f"validation   loss {last['loss']:.4f}  accuracy {last['accuracy']:.4f}  at step 30",
            f"best         accuracy {best.value:.4f} at step {best.step}", "checkpoints  30, 20, 10",
            f"sha256       {self.run_.parameters_sha256}"])
        done = subprocess.run([sys.executable, "-m", "lockstep_reader", "summary", self.own], cwd=ROOT / "python",
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (
            65, f"lockstep_reader: {self.own}: expected a run directory, with events.jsonl or checkpoints, found a folder "
                "without them; name the job's run_directory; a job with checkpoint: never leaves nothing there\n"))

    def test_what_is_not_there(self):
        self.says(reader.MissingError, f"{self.own}/no: expected a run directory, found no such folder; name the job's "
                  "run_directory, runs/<name> by default", reader.open_run, self.own / "no")
        self.says(reader.MissingError, f"{self.path}: expected the checkpoint step-00000025, found those of steps 30, 20, "
                  "10; checkpoint.keep says how many stay", self.run_.checkpoint, 25)
        self.says(reader.MissingError, f"{self.path}: checkpoint: expected 'auto', 'newest', 'best' or a step, found '20'; "
                  "open_checkpoint() takes a folder", self.run_.checkpoint, "20")
        self.says(reader.MissingError, f"{self.path}: expected an evaluation with a finite 'rmse', found loss, accuracy; "
                  "name one of the job's metrics, and a job with evaluate", self.run_.best, "rmse")
        self.says(reader.MissingError, "metric 'speed': expected a metric of lockstep's own, found another; say "
                  "direction='maximize' or direction='minimize'", self.run_.best, "speed")
        self.says(reader.MissingError, "direction: expected one of auto, maximize, minimize, found 'up'; auto is the default",
                  self.run_.best, "loss", "up")
        with self.assertRaisesRegex(KeyError, "'x'; the columns are step, loss"):
            _ = self.run_.validation()["x"]


class StoppedAndResumed(InFolder):
    def test_steps_that_were_done_again_are_there_once(self):
        path, quiet = self.own / "run", self.own / "quiet"
        program("train", *JOB, f"run_directory={quiet}")
        program("train", *JOB, f"run_directory={path}", "--stop-at", "25", code=75)
        run = reader.open_run(path)
        self.assertEqual((run.status().state, run.status().step), ("interrupted", 25))
        stopped_at = run.parameters_sha256
        self.assertEqual(stopped_at, run.checkpoint(25).parameters_sha256())
        program("train", *JOB, f"run_directory={path}", "--resume", path / "checkpoints/step-00000010")
        self.assertEqual(len(list(run.events("step"))), 45)
        self.assertEqual(run.training()["step"], list(range(1, 31)))
        self.assertEqual(run.training()["loss"], reader.open_run(quiet).training()["loss"])
        self.assertEqual((run.status().state, run.status().starts), ("done", 2))
        self.assertEqual(run.parameters_sha256, reader.open_run(quiet).parameters_sha256)
        self.assertNotEqual(run.parameters_sha256, stopped_at)


class ARunThatGoesOn(InFolder):
    """The reader looks while the program writes: it never sees half of anything, and nothing that it does is felt."""

    def start(self, path, *words):
        process = subprocess.Popen([PROGRAM, "train", *SMALL, "steps=100000", "evaluate.every=20 steps", *words,
                                    f"run_directory={path}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_it_is_followed_and_its_checkpoints_are_read(self):
        path = self.own / "run"
        process = self.start(path, "checkpoint={every: 5 steps, keep: 1}")
        wait_until((path / "events.jsonl").exists, "the first event")
        run, steps, read = reader.open_run(path), [], 0
        for event in run.follow("step", "end", every=0.01, timeout=PATIENCE):
            if event["event"] == "end":
                self.assertEqual(event["outcome"], "interrupted")
                break
            steps.append(event["step"])
            if event["step"] % 10 == 0 and event["step"] < 400:
                self.assertEqual(run.status().state, "running")
                read += self.checkpoint_is_whole(run)
            if event["step"] == 400:
                process.send_signal(signal.SIGTERM)
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertGreater(read, 5)
        self.assertEqual(process.wait(PATIENCE), 75)
        self.assertEqual(run.training()["step"], steps)
        self.assertEqual(sum(1 for _ in run.events(strict=True)),
                         (path / "events.jsonl").read_bytes().count(b"\n"))

    def checkpoint_is_whole(self, run):
        """Reads the newest checkpoint; with keep: 1 it may be gone meanwhile, and then the error says so."""
        try:
            checkpoint = run.checkpoint()
            checkpoint.verify()
            return 1
        except reader.MissingError as error:
            self.assertIn(error.remedy, (reader.checkpoint.GONE, "wait for the first one, or train the job"))
            return 0

    def test_one_that_was_killed(self):
        path = self.own / "run"
        process = self.start(path, "checkpoint.every=10 steps")
        wait_until(lambda: path.exists() and list(path.glob("checkpoints/step-*/manifest.json")), "a checkpoint")
        process.kill()
        process.wait()
        status = reader.open_run(path).status()
        self.assertEqual((status.state, status.is_over, status.steps), ("unfinished", False, 100000))
        checkpoint = reader.open_run(path).checkpoint(verify=True)
        self.assertEqual(reader.open_run(path).parameters_sha256, checkpoint.parameters_sha256())
        program("train", *SMALL, f"steps={checkpoint.step}", "evaluate=never", f"run_directory={self.own}/quiet")
        self.assertEqual(checkpoint.parameters_sha256(), reader.open_run(self.own / "quiet").parameters_sha256)

    def test_a_line_without_its_end_is_not_read_yet(self):
        log = reader.EventLog(self.own / "events.jsonl", strict=True)
        self.assertEqual(log.new(), [])
        with open(self.own / "events.jsonl", "w", encoding="utf-8") as file:
            for text, expected in (('{"event":"warning","message":"a', []), ('b"}\n{"event":', ["ab"]), ("", []),
                                   ('"warning","message":"c"}\n', ["c"])):
                file.write(text)
                file.flush()
                self.assertEqual([event["message"] for event in log.new()], expected)


if __name__ == "__main__":
    unittest.main()
