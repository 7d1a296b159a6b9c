#!/usr/bin/env python3
"""Where the trials of a sweep compute, on stand-ins for GPUs: GPUs of their own, GPUs that they share, slices (MIG).

    gpu_sweep_test.py MODULE_WITH_THE_CPUS_KERNELS MODULE_WITH_GRIDS CHECKED_MODULE DRIVER_FOLDER
"""
import csv
import json

from gpu_jobs import JOB, Place, main

SWEEP = f"""
sweep:
  job: {JOB}
  method: grid
  metric: loss
  parameters: {{seed: {{choice: [1, 2, 3, 4]}}}}
"""
WORDS = ("steps=4", "evaluate={every: 4 steps}", "checkpoint={every: 4 steps}", "device=cuda")


class Sweeps(Place):
    def sweep(self, *words, name="out", **settings):
        (self.folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
        return self.run_program("sweep", "sweep.yaml", "--directory", name, *WORDS, *words, **settings)

    def hashes(self, name="out"):
        with open(self.folder / name / "trials.csv", newline="", encoding="utf-8") as file:
            return [row["parameters_sha256"] for row in csv.DictReader(file)]

    def gpus(self, name="out"):
        """Name and bus of each trial's GPU."""
        found = []
        for trial in range(4):
            lines = (self.folder / f"{name}/trials/{trial:04}/events.jsonl").read_text(encoding="utf-8").splitlines()
            gpu, = (event for event in map(json.loads, lines) if event["event"] == "gpu")
            found.append((gpu["model"], gpu["pci_bus"]))
        return found

    def test_each_trial_has_a_gpu_of_its_own(self):
        self.sweep()
        self.assertEqual(len(set(self.gpus()[:3])), 3)  # the first trials, one for each GPU

    def test_trials_share_gpus_where_the_operator_says_so(self):
        self.sweep("--trials-per-gpu", "2", STAND_IN_GPUS="2")
        self.assertEqual(len(set(self.gpus())), 2)
        self.sweep(name="alone")
        self.assertEqual(self.hashes(), self.hashes("alone"))

    def test_each_trial_has_a_slice(self):
        self.sweep(CUDA_VISIBLE_DEVICES="MIG-a,MIG-b")
        self.assertEqual({name for name, _ in self.gpus()}, {"Stand-in MIG-a", "Stand-in MIG-b"})
        self.sweep("--trials-per-gpu", "2", name="shared", CUDA_VISIBLE_DEVICES="MIG-a,MIG-b")
        self.assertEqual(sorted(name for name, _ in self.gpus("shared")), ["Stand-in MIG-a"] * 2 + ["Stand-in MIG-b"] * 2)

    def test_what_is_refused(self):
        for words, settings, message in (
                (("--ranks", "4"), {}, "--ranks: expected at most the 3 GPUs of this machine, found 4; where they may be shared, "
                 "--trials-per-gpu says by how many"),
                (("--ranks", "7", "--trials-per-gpu", "2"), {}, "--ranks: expected at most 6, 2 on each of the 3 GPUs of this "
                 "machine, found 7"),
                (("--ranks", "3"), {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}, "--ranks: expected at most the 2 slices in "
                 "CUDA_VISIBLE_DEVICES, found 3; where they may be shared, --trials-per-gpu says by how many"),
                (("--ranks-per-trial", "2"), {"CUDA_VISIBLE_DEVICES": "MIG-a,MIG-b"}, "--ranks-per-trial: expected 1 on slices of "
                 "GPUs, which NCCL does not join, found 2"),
                (("--ranks-per-trial", "2", "--trials-per-gpu", "2"), {}, "--ranks-per-trial: expected 1 with --trials-per-gpu 2, "
                 "since NCCL does not join ranks that share a GPU, found 2"),
                (("--hosts", "a:2", "--ranks-per-trial", "2", "--trials-per-gpu", "2"), {}, "--ranks-per-trial: expected 1 with "
                 "--trials-per-gpu 2, since NCCL does not join ranks that share a GPU, found 2"),
                (("--trials-per-gpu", "2", "device=cpu"), {}, "--trials-per-gpu: expected 1 without device: cuda, found 2; leave "
                 "it out")):
            with self.subTest(words=words, **settings):
                self.assertEqual(self.sweep(*words, code=64, **settings).stderr, f"lockstep: {message}\n")

    def test_members_of_an_ensemble_share_gpus(self):
        done = self.run_program("ensemble", "train", str(JOB), "--members", "2", "--members-per-gpu", "2", "--ranks-per-member", "2",
                                *WORDS, code=64)
        self.assertEqual(done.stderr, "lockstep: --ranks-per-member: expected 1 with --members-per-gpu 2, since NCCL does not join "
                         "ranks that share a GPU, found 2\n")
        self.run_program("ensemble", "train", str(JOB), "--members", "2", "--members-per-gpu", "2", *WORDS, STAND_IN_GPUS="1")


if __name__ == "__main__":
    import sys
    main()
