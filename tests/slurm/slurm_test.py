#!/usr/bin/env python3
"""The scripts of examples/slurm on a real Slurm: srun and launch, time limits, preemption, arrays, hosts that die. Each
job ends with the hash of the same job on one rank of this machine."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import slurm_accounting
from slurm_cluster import SlurmCluster, missing

if missing():
    print(f"skipped: {missing()}")
    sys.exit(77)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from launches import PROGRAM, wait_until  # noqa: E402  pylint: disable=wrong-import-position
from run_events import events_of, records_of  # noqa: E402  pylint: disable=wrong-import-position

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "examples/slurm"
# Small batches: a step costs little, and the messages between ranks take time.
SMALL = ["data.train.digits.count=64", "data.validation.digits.count=16", "batch_size=8",
         "micro_batches=8", "threads=1", "learning_rate=0.002", "evaluate=never"]

SWEEP = """
sweep: {metric: loss, budget: 8, parameters: {learning_rate: {log_uniform: {low: 0.0001, high: 0.01}}}}
job: {model: lenet, data: {train: {digits: {}}, validation: {digits: {first: 100000}}}}
"""


def words(steps):
    return [*SMALL, f"steps={steps}", "checkpoint={every: 10 steps}"]


class Slurm(unittest.TestCase):
    hashes = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cluster = cls.enterClassContext(SlurmCluster(3))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.directory = pathlib.Path(self.folder.name).resolve() / self.id().rsplit(".", 1)[-1]

    def local_hash(self, *changes):
        if changes not in self.hashes:
            done = subprocess.run([PROGRAM, "train", *changes, "checkpoint=never", "--log", "json",
                                   f"run_directory={self.directory}-local"], capture_output=True, text=True, check=True)
            self.hashes[changes] = json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]
        return self.hashes[changes]

    def submit(self, script, *arguments, options=(), cluster=None, program=PROGRAM):
        return (cluster or self.cluster).submit(
            f"--output={self.directory}.log", *options, SCRIPTS / script, *arguments,
            environment={"LOCKSTEP": str(program), "RUN_DIRECTORY": str(self.directory)})

    def events(self, name, directory=None):
        return events_of(directory or self.directory, name)

    def wait_for_step(self, step):
        wait_until(lambda: any(event["step"] >= step for event in self.events("step")), f"step {step}: {self.log()}")

    def log(self):
        file = pathlib.Path(f"{self.directory}.log")
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def completed(self, job, cluster=None):
        shown = (cluster or self.cluster).wait(job, "COMPLETED|FAILED|TIMEOUT|NODE_FAIL|CANCELLED")
        self.assertEqual((shown["JobState"], shown["ExitCode"]), ("COMPLETED", "0:0"), self.log())
        return shown

    def ends_with(self, expected, ranks):
        *interrupted, end = self.events("end")
        self.assertEqual(end["parameters_sha256"], expected)
        self.assertEqual(len(end["micro_batches_by_rank"]), ranks)
        return interrupted

    def test_srun_on_two_nodes(self):
        shown = self.completed(self.submit("srun.sbatch", *words(100)))
        self.assertEqual(self.ends_with(self.local_hash(*SMALL, "steps=100"), 4), [])
        self.assertEqual(shown["NumNodes"], "2")
        self.assertRegex(shown["Comment"], r"^step 100, 0\.\d{4} device-hours$")

    def test_launch_on_the_allocations_hosts(self):
        shown = self.completed(self.submit("launch.sbatch", *words(100)))
        self.assertEqual(self.ends_with(self.local_hash(*SMALL, "steps=100"), 4), [])
        launched, = self.events("launch")
        self.assertEqual(launched["on"], f"{self.cluster.names[0]}:2,{self.cluster.names[1]}:2", shown["NodeList"])
        self.assertRegex(shown["Comment"], r"^step 100, 0\.\d{4} device-hours$")

    def test_what_sacct_knows_of_a_job(self):
        if slurm_accounting.missing():
            self.skipTest(slurm_accounting.missing())
        with SlurmCluster(2, accounting=True) as cluster:
            job = self.submit("srun.sbatch", *words(100), cluster=cluster)
            comment = self.completed(job, cluster)["Comment"]
            self.assertRegex(comment, r"^step 100, 0\.\d{4} device-hours$")

            def stored():
                return cluster.command("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}",
                                       "--format=state,comment").stdout.strip()
            wait_until(lambda: stored() == f"COMPLETED|{comment}", f"the comment in the database: {stored()}")

    def test_mpirun_in_a_batch_script(self):
        script = self.directory.with_suffix(".sh")
        script.write_text(f"#!/bin/sh\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\nexec mpirun {PROGRAM} "
                          f"train {' '.join(SMALL)} steps=100 checkpoint=never run_directory={self.directory} --log json "
                          f">{self.directory}.json\n", encoding="utf-8")
        shown = self.completed(self.cluster.submit(f"--output={self.directory}.log", "--nodes=2", "--ntasks-per-node=2", script))
        self.assertEqual(shown["NumNodes"], "2")
        end = json.loads(pathlib.Path(f"{self.directory}.json").read_text(encoding="utf-8").splitlines()[-1])
        self.assertEqual(end["parameters_sha256"], self.local_hash(*SMALL, "steps=100"))
        self.assertEqual(len(end["micro_batches_by_rank"]), 4)

    def test_ranks_on_this_machine_leave_the_other_hosts_alone(self):
        script = self.directory.with_suffix(".sh")
        script.write_text(f"#!/bin/sh\nexec {PROGRAM} train --ranks 3 {' '.join(SMALL)} steps=20 'checkpoint={{every: "
                          f"10 steps}}' run_directory={self.directory}\n", encoding="utf-8")
        self.completed(self.cluster.submit(f"--output={self.directory}.log", "--nodes=2", script))
        self.ends_with(self.local_hash(*SMALL, "steps=20"), 3)

    def test_a_job_at_its_time_limit_goes_on_with_the_same_bits_on_other_nodes(self):
        # Slurm looks at limits every 30 s: the job must take longer than that.
        expected = self.local_hash(*SMALL, "steps=15000")
        job = self.submit("launch.sbatch", *words(15000), options=("--time=1", "--signal=B:TERM@55"))
        self.wait_for_step(20)
        before = self.cluster.job(job)["NodeList"]
        self.cluster.command("scontrol", "update", f"NodeName={before}", "State=DRAIN", "Reason=test")
        self.addCleanup(self.cluster.command, "scontrol", "update", f"NodeName={before}", "State=RESUME")
        self.cluster.wait(job, "PENDING")
        self.cluster.command("scontrol", "update", f"JobId={job}", "TimeLimit=30", "NumNodes=1", "NumTasks=2")
        shown = self.completed(job)
        self.assertEqual(shown["NodeList"], self.cluster.names[2])
        self.assertGreaterEqual(int(shown["Restarts"]), 1)
        interrupted = self.ends_with(expected, 2)
        self.assertGreaterEqual(len(interrupted), 1)
        self.assertTrue(all(end["interrupted"] for end in interrupted))

    def preempted(self, script):
        expected = self.local_hash(*SMALL, "steps=1000")
        job = self.submit(script, *words(1000))
        self.wait_for_step(20)
        urgent = self.cluster.submit("--partition=urgent", "--nodes=3", "--exclusive", f"--output={self.directory}.urgent",
                                     "--wrap", "sleep 1")
        self.cluster.wait(urgent, "COMPLETED")
        shown = self.completed(job)
        self.assertEqual(shown["Restarts"], "1")
        first, = self.ends_with(expected, 4)
        self.assertTrue(first["interrupted"], "it had the time to write a checkpoint")

    def test_srun_gives_way_to_a_job_of_higher_priority(self):
        self.preempted("srun.sbatch")

    def test_launch_gives_way_to_a_job_of_higher_priority(self):
        self.preempted("launch.sbatch")

    def houses(self):
        job_file = self.directory.with_suffix(".yaml")
        job_file.write_text((SCRIPTS.parent / "houses.yaml").read_text(encoding="utf-8").replace(
            "houses.csv", str(SCRIPTS.parent / "houses.csv")), encoding="utf-8")
        return job_file

    def test_an_array_of_three_trials(self):
        job_file = self.houses()
        job = self.submit("array.sbatch", job_file, "seed", "1", "2", "3", options=("--array=0-2",))
        for index in range(3):
            self.cluster.wait(f"{job}_{index}", "COMPLETED")
            end = self.events("end", self.directory / str(index))[-1]
            self.assertEqual(end["parameters_sha256"], self.local_hash(str(job_file), f"seed={index + 1}"))
        self.assertEqual(len(set(self.hashes[(str(job_file), f"seed={i}")] for i in (1, 2, 3))), 3)

    def array_on(self, gres, most):
        """Four trials on one node, which has room for as many at the same time. Returns which GPUs they were shown."""
        program = self.directory.with_suffix(".program")
        program.write_text(f"""#!/bin/sh
for turn in $(seq {most // 2}); do
  at={self.directory}.$CUDA_VISIBLE_DEVICES.$turn
  if mkdir "$at"; then
    {PROGRAM} "$@"
    code=$?
    echo "$CUDA_VISIBLE_DEVICES" >>{self.directory}.shown
    rmdir "$at"
    exit $code
  fi
done
exit 70
""", encoding="utf-8")
        program.chmod(0o755)
        job = self.submit("array.sbatch", self.houses(), "seed", "1", "2", "3", "4", program=program,
                          options=("--array=0-3", f"--gres={gres}", f"--nodelist={self.cluster.names[0]}"))
        for index in range(4):
            self.completed(f"{job}_{index}")
        return pathlib.Path(f"{self.directory}.shown").read_text(encoding="utf-8").split()

    def test_trials_on_slices_of_gpus(self):
        self.assertEqual(set(self.array_on("gpu:1g.10gb:1", most=2)), {"0", "1"})

    def test_trials_that_share_gpus(self):
        self.assertLessEqual(set(self.array_on("shard:1", most=4)), {"0", "1"})

    def test_a_sweep_gives_way_to_a_job_of_higher_priority(self):
        """On two nodes. No trial that had ended is repeated, and all have the bits of one rank on one machine."""
        file = self.directory.with_suffix(".yaml")
        file.write_text(SWEEP, encoding="utf-8")
        changes = (*[word for word in SMALL if not word.startswith("learning_rate")], "steps=400", "evaluate={every: 400 steps}",
                   "checkpoint={every: 10 steps}")
        job = self.submit("sweep.sbatch", file, *changes)
        wait_until(lambda: self.records("result"), f"the end of a trial: {self.log()}")
        urgent = self.cluster.submit("--partition=urgent", "--nodes=3", "--exclusive", f"--output={self.directory}.urgent",
                                     "--wrap", "sleep 1")
        self.cluster.wait(urgent, "COMPLETED")
        finished = len(self.records("result"))
        self.assertLess(finished, 8)
        shown = self.completed(job)
        self.assertEqual(shown["Restarts"], "1")
        self.assertRegex(shown["Comment"], r"^8 trials done, 0\.\d{4} device-hours$")
        self.assertEqual(sorted(record["trial"] for record in self.records("result")), list(range(8)))
        self.assertEqual(self.records("failure"), [])
        local = f"{self.directory}-local"
        subprocess.run([PROGRAM, "sweep", file, *changes, "--ranks", "1", "--directory", local], capture_output=True, check=True)
        self.assertEqual(self.trial_hashes(self.directory), self.trial_hashes(local))

    @staticmethod
    def trial_hashes(directory):
        trials = json.loads(pathlib.Path(directory, "trials.json").read_text(encoding="utf-8"))["trials"]
        return [trial["parameters_sha256"] for trial in trials]

    def records(self, kind):
        return records_of(self.directory, kind)

    def test_a_host_that_dies_under_srun_has_the_job_requeued(self):
        with SlurmCluster(3) as cluster:
            job = self.submit("srun.sbatch", *words(1000), cluster=cluster)
            self.wait_for_step(50)
            cluster.fail(1)
            shown = self.completed(job, cluster)
            self.assertEqual(shown["NodeList"], f"{cluster.names[0]},{cluster.names[2]}")
        self.assertGreaterEqual(int(shown["Restarts"]), 1)
        self.ends_with(self.local_hash(*SMALL, "steps=1000"), 4)

    def test_a_host_that_dies_under_launch_is_left_out(self):
        with SlurmCluster(2) as cluster:
            job = self.submit("launch.sbatch", *words(1000), "--hang-limit", "5", cluster=cluster)
            self.wait_for_step(50)
            cluster.fail(1)
            shown = self.completed(job, cluster)
        self.assertEqual(shown["Restarts"], "0", "the same Slurm job went on")
        self.ends_with(self.local_hash(*SMALL, "steps=1000"), 2)
        self.assertEqual([event["ranks"] for event in self.events("launch")], [4, 2])


if __name__ == "__main__":
    unittest.main()
