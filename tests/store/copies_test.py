#!/usr/bin/env python3
"""Copies of checkpoints in an object store: a run whose disk is gone goes on from them, with the same bits."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import s3_server

PROGRAM = os.environ["LOCKSTEP"]
JOB = """job:
  name: digits
  run_directory: runs/digits
  model: {layers: [flatten, {linear: {features: 10}}]}
  data: {train: {digits: 320}, validation: {digits: {count: 40, first: 1000}}}
  batch_size: 40
  micro_batches: 4
  steps: 40
  evaluate: {every: 10 steps}
  metrics: accuracy
"""
PARTS = "checkpoint={every: 10 steps, keep: 2, best: accuracy, part_bytes: 1000, copy_to: s3://runs/team}"
ABOVE = "team/runs/digits/checkpoints/"


class Copies(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.run = self.folder / "runs/digits"
        self.server = s3_server.Server("runs")
        (self.folder / "job.yaml").write_text(JOB)

    def tearDown(self):
        self.server.stop()
        self.temporary.cleanup()

    def train(self, *words, head=("train",), ranks="1", copies="s3://runs/team", code=0, options=(), **variables):
        """The events and what was said to people."""
        checkpoint = f"checkpoint={{every: 10 steps, keep: 2, best: accuracy{', copy_to: ' + copies if copies else ''}}}"
        environment = {**os.environ, **self.server.environment, **variables}
        result = subprocess.run([PROGRAM, *head, "job.yaml", checkpoint, *words, "--ranks", ranks, "--log", "json", *options],
                                cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
                                stdin=subprocess.DEVNULL, env=environment)
        self.assertEqual(result.returncode, code, f"{words}: {result.stdout[-2000:]}\n{result.stderr}")
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr

    @staticmethod
    def named(events, name):
        return [event for event in events if event["event"] == name]

    def place(self):
        """Of the copies of the only job that has some."""
        places = {ABOVE + key[len(ABOVE):].partition("/")[0] + "/" for key in self.server.objects}
        self.assertEqual(len(places), 1, places)
        return places.pop()

    def copied(self):
        """Names of the checkpoints that are whole in the store, of all jobs."""
        return sorted(key[len(ABOVE):].split("/")[1] for key in self.server.objects if key.endswith("manifest.json"))

    def damage(self, name):
        key = f"{self.place()}{name}/model.safetensors"
        self.server.objects[key] = self.server.objects[key][:-1] + bytes([self.server.objects[key][-1] ^ 1])

    def steps(self, *steps, **options):
        """Trains to each of the steps, so that each is copied."""
        for step in steps:
            events, _ = self.train("--stop-at", str(step), code=75, **options)
        return events

    def test_a_run_goes_on_where_its_disk_is_gone(self):
        quiet, _ = self.train(copies="")
        expected = self.named(quiet, "end")[0]["parameters_sha256"]
        shutil.rmtree(self.run)
        first, _ = self.train("--stop-at", "20", ranks="2", code=75)
        self.assertEqual({event["step"] for event in self.named(first, "copy")} | {20}, {10, 20})
        self.assertIn("step-00000020", self.copied())
        shutil.rmtree(self.run)
        second, _ = self.train(ranks="3")
        fetched = self.named(second, "copy")[0]
        self.assertEqual((fetched["step"], fetched["fetched"]), (20, True))
        self.assertRegex(fetched["path"], r"^s3://runs/team/runs/digits/checkpoints/[0-9a-f]{12}/step-00000020$")
        self.assertEqual(self.named(second, "restart")[0]["step"], 20)
        self.assertEqual(self.named(second, "end")[0]["parameters_sha256"], expected)

    def test_copies_follow_the_run_directory(self):
        self.train()
        here = {path.name for path in (self.run / "checkpoints").glob("step-*")}
        self.assertEqual(set(self.copied()) - here, set())  # what came while another was copied may be left out
        self.assertIn("step-00000040", self.copied())
        for key, body in self.server.objects.items():
            self.assertEqual((self.run / "checkpoints" / key[len(self.place()):]).read_bytes(), body, key)

    def test_the_manifest_is_written_last(self):
        self.train()
        written, place = {}, self.place()
        for method, key, _ in self.server.asked:
            name, _, file = key[len(place):].partition("/")
            if method == "PUT" and file:
                written.setdefault(name, []).append(file)
        self.assertIn("step-00000040", written)
        for name, files in written.items():
            self.assertGreater(len(files), 1, name)
            self.assertEqual(files.index("manifest.json"), len(files) - 1, f"{name}: {files}")

    def test_a_copy_that_was_cut_off_is_none(self):
        """What there is without a manifest is not asked for; the copy before it is."""
        quiet, _ = self.train(copies="")
        shutil.rmtree(self.run)
        for step in ("10", "20"):
            self.train("--stop-at", step, code=75)
        place = self.place()
        del self.server.objects[place + "step-00000020/manifest.json"]
        shutil.rmtree(self.run)
        self.server.asked.clear()
        events, _ = self.train()
        self.assertEqual((self.named(events, "copy")[0]["step"], self.named(events, "copy")[0]["fetched"]), (10, True))
        self.assertEqual([key for method, key, _ in self.server.asked if method == "GET" and key.startswith(place + "step-00000020/")], [])
        self.assertEqual(self.named(events, "end")[0]["parameters_sha256"], self.named(quiet, "end")[0]["parameters_sha256"])

    def test_the_best_one_is_fetched_too(self):
        self.train()
        best = (self.run / "checkpoints/best").read_text().strip()
        shutil.rmtree(self.run)
        self.train("steps=50")
        self.assertTrue((self.run / "checkpoints" / best / "manifest.json").is_file())

    def test_each_copy_is_tried(self):
        quiet, _ = self.train(copies="")
        shutil.rmtree(self.run)
        self.steps(10, 20)
        self.damage("step-00000020")
        shutil.rmtree(self.run)
        events, _ = self.train()
        self.assertIn("passed over a damaged checkpoint", self.named(events, "warning")[0]["message"])
        self.assertEqual([event["step"] for event in self.named(events, "copy") if event.get("fetched")], [20, 10])
        self.assertEqual(self.named(events, "restart")[0]["step"], 10)
        self.assertEqual(self.named(events, "end")[0]["parameters_sha256"], self.named(quiet, "end")[0]["parameters_sha256"])
        self.assertEqual([key for key in self.server.objects if key.endswith("superseded")], [])

    def test_damaged_ones_alone_are_no_reason_to_begin_anew(self):
        self.steps(10)
        self.damage("step-00000010")
        shutil.rmtree(self.run)
        before = dict(self.server.objects)
        _, said = self.train(code=65)
        self.assertRegex(said, r"lockstep: runs/digits: expected a sound checkpoint, found damaged ones only: runs/digits/checkpoints/"
                               r"step-00000010/model.safetensors: .*; restore one, or begin anew in another run_directory\n$")
        self.assertEqual(self.server.objects, before)

    def test_a_run_directory_that_stayed_behind_gets_the_newest(self):
        """On a node with the checkpoint of step 10 only, while another has gone on to step 30."""
        self.steps(10)
        behind = self.folder / "behind"
        shutil.copytree(self.run, behind)
        self.steps(20, 30)
        shutil.rmtree(self.run)
        behind.rename(self.run)
        events, _ = self.train("--stop-at", "20", code=75)
        self.assertEqual(self.named(events, "restart")[0]["step"], 30)
        self.assertEqual(self.copied(), ["step-00000030", "step-00000031"])

    def test_milestones_are_copied_where_the_store_is_slow(self):
        self.server.http.put_seconds = 0.2
        self.train("checkpoint={every: 10 steps, keep: 1, keep_every: 20 steps, copy_to: s3://runs/team}", "steps=50")
        self.assertEqual(self.copied(), ["step-00000020", "step-00000040", "step-00000050"])

    def test_each_answer_of_a_slow_store_is_progress(self):
        self.steps(10)
        shutil.rmtree(self.run)
        self.server.http.answer_seconds = 2
        events, _ = self.train("steps=20", head=("launch", "--hang-limit", "3", "--start-limit", "30"))
        self.assertEqual([(event["step"], event.get("reason")) for event in self.named(events, "restart")], [(10, None)])

    def test_milestones_stay_where_the_disk_is_new(self):
        kept = "checkpoint={every: 10 steps, keep: 1, keep_every: 20 steps, copy_to: s3://runs/team}"
        for step in (10, 20, 30):
            self.train(kept, "--stop-at", str(step), code=75)
        shutil.rmtree(self.run)
        self.train(kept, "steps=50")
        self.assertEqual(self.copied(), ["step-00000020", "step-00000040", "step-00000050"])

    def test_jobs_with_one_place_leave_each_other_alone(self):
        self.steps(10, 20)
        expected = self.copied()
        shutil.rmtree(self.run)
        events, _ = self.train("seed=7")
        self.assertRegex(self.named(events, "warning")[0]["message"],
                         r"^s3://runs/team/runs/digits/checkpoints/[0-9a-f]{12}: there is no copy of this job, but of 1 other job; "
                         r"training begins with step 1$")
        self.assertEqual([name for name in expected if name not in self.copied()], [])
        shutil.rmtree(self.run)
        events, _ = self.train("clip_norm=1", options=("--change-settings",))
        self.assertEqual(self.named(events, "restart")[0]["step"], 20, "the same run, with another setting")

    def test_copies_of_another_course_are_set_aside(self):
        self.steps(10, 20, 30)
        back = "runs/digits/checkpoints/step-00000020"
        self.train("--stop-at", "20", options=("--resume", back), code=75)
        self.assertNotIn("step-00000030", self.copied(), "once there are as many newer ones as are kept")
        shutil.rmtree(self.run)
        events, _ = self.train("--stop-at", "30", code=75)
        self.assertEqual(self.named(events, "restart")[0]["step"], 21)
        self.assertIn("step-00000030", self.copied())
        self.assertEqual([key for key in self.server.objects if key.endswith("superseded")], [])

    def test_copies_of_earlier_versions_are_found(self):
        """They were written above the identity."""
        self.steps(10)
        place = self.place()
        self.server.objects = {ABOVE + key[len(place):]: body for key, body in self.server.objects.items()}
        shutil.rmtree(self.run)
        events, _ = self.train("--stop-at", "20", code=75)
        self.assertEqual(self.named(events, "restart")[0]["step"], 10)
        self.assertIn(ABOVE + "step-00000010/manifest.json", self.server.objects)

    def test_a_key_does_not_lead_out_of_the_run_directory(self):
        self.steps(10)
        place = self.place()
        for key in ("step-00000010/../../../../escaped", "../escaped", "step-00000099/x/manifest.json"):
            self.server.objects[place + key] = b"escaped"
        shutil.rmtree(self.run)
        events, _ = self.train("--stop-at", "20", code=75)
        self.assertIn(f"s3://runs/{place}step-00000010: left out '../../../../escaped', which leads out of the folder; find "
                      "out who wrote it", [event["message"] for event in self.named(events, "warning")])
        self.assertEqual([str(path) for path in self.folder.rglob("*escaped*")], [])

    def test_a_store_that_fails_does_not_stop_training(self):
        self.server.http.failures[:] = [0] * 4 + [503]  # the run looks for copies, then cannot make the first
        events, _ = self.train(LOCKSTEP_STORE_PATIENCE="0")
        warning = self.named(events, "warning")[0]["message"]
        self.assertRegex(warning, r"^step 10: no copy of the checkpoint: s3://runs/team/runs/digits/checkpoints/[0-9a-f]{12}/"
                                  r"step-00000010/\S+: the object store has failed once to \w+ it: 503; training goes on$")
        self.assertIn("step-00000040", self.copied())

    def test_a_run_without_its_last_copy_fails_and_makes_it_then(self):
        self.train("--stop-at", "20", code=75)
        self.server.http.refused = True
        _, said = self.train(code=1)
        self.assertRegex(said, "the last checkpoint could not be copied: s3://runs/team/runs/digits/checkpoints/[0-9a-f]{12}/step-00000040")
        self.server.http.refused = False
        events, _ = self.train()
        self.assertEqual([event["step"] for event in self.named(events, "copy")], [40])
        self.assertIn("step-00000040", self.copied())

    def test_what_is_copied_is_not_sent_again(self):
        self.train()
        self.server.asked.clear()
        self.train()
        self.assertEqual([key for method, key, _ in self.server.asked if method == "PUT"], [])

    def test_a_copy_that_was_cut_off_is_completed(self):
        words = ("model={layers: [flatten, {linear: {features: 64}}, relu, {linear: {features: 10}}]}", PARTS)
        self.train(*words)
        place = self.place()
        manifest = place + "step-00000040/manifest.json"
        files = sorted({key for key in self.server.objects if key.startswith(place + "step-00000040/")} - {manifest})
        self.assertGreater(len(files), 2)
        for key in (manifest, files[0]):
            del self.server.objects[key]
        self.server.objects[files[1]] = self.server.objects[files[1]][::-1]
        self.server.digests[files[1]] = "another"
        self.server.asked.clear()
        self.train(*words)
        sent = {key for method, key, _ in self.server.asked if method == "PUT"} - {place + "best"}
        self.assertEqual(sent, {*files[:2], manifest})

    def test_large_files_go_in_parts(self):
        large = ("model={layers: [flatten, {linear: {features: 280000}}, relu, {linear: {features: 10}}]}", "optimizer={sgd: {momentum: 0}}",
                 "checkpoint={every: 1 steps, part_bytes: 256 MiB, copy_to: s3://runs/team}", "evaluate=never", "metrics=[]")
        self.train(*large, "steps=2", "--stop-at", "1", code=75)
        parts = [key for method, key, _ in self.server.asked if method == "POST"]
        self.assertTrue(parts)
        self.assertEqual(sorted(parts), sorted([*set(parts)] * 2), "each is begun, and put together")
        self.assertEqual(self.server.uploads, {})
        shutil.rmtree(self.run)
        self.server.asked.clear()
        events, _ = self.train(*large, "steps=2")
        self.assertEqual(self.named(events, "restart")[0]["step"], 1)
        read = [wanted for method, key, wanted in self.server.asked if method == "GET" and key == parts[0]]
        self.assertIn(f"bytes={32 << 20}-{(64 << 20) - 1}", read)
        self.assertGreaterEqual(len(read), 3)

    def test_resume_never_refuses_a_place_with_copies(self):
        self.train()
        shutil.rmtree(self.run)
        _, said = self.train(options=("--resume", "never"), code=73)
        self.assertRegex(said, "s3://runs/team/runs/digits/checkpoints/[0-9a-f]{12}: it holds checkpoints of an earlier run, and "
                               "--resume never asks for a new one")

    def test_another_place_is_a_mistake(self):
        _, said = self.train(copies="/tmp/copies", code=78)
        self.assertIn("command line: checkpoint.copy_to: expected s3://BUCKET/KEY, found '/tmp/copies'", said)


if __name__ == "__main__":
    unittest.main()
