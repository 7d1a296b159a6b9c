#!/usr/bin/env python3
"""`lockstep plan` says what a job needs, finds what fits, and is compared with a run; `train` refuses what cannot
fit."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=256", "data.validation.digits.count=100", "batch_size=32", "steps=10", "threads=1",
         "learning_rate=0.002"]


def run(*words, code=0, limit=None, program=PROGRAM):
    command = [program, *words]
    if limit:
        command = ["bash", "-c", f'ulimit -d {limit}; exec "$@"', "bash", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def unequal_profiles(folder, **rates):
    """Words for ranks of these rates."""
    words = []
    for name, rate in rates.items():
        path = pathlib.Path(folder, f"{name}.json")
        path.write_text(json.dumps({
            "format": 1, "device": "a processor", "cores": 2, "memory_bytes": 2**34, "message_seconds": 1e-4,
            **{f"{what}_per_second": rate for what in
               ("matmul_flops", "convolution_flops", "elementwise_bytes", "gradient_add_bytes", "update_bytes",
                "message_bytes")}}), encoding="utf-8")
        words += ["--profile", str(path)]
    return words


class Plan(unittest.TestCase):
    def test_for_people(self):
        text = run("plan", *SMALL, "--ranks", "2", "--memory", "1GiB").stdout
        self.assertTrue(text.startswith("digits on 2 ranks, 1 thread each, 8 micro-batches of 4 samples\n"), text)
        self.assertIn("each layer's kernel, the update and sums were timed here, on ", text)
        self.assertIn("a message between ranks is assumed to take 50 us and ", text)
        self.assertIn("\nas the job says: 1 part, recompute: never\n", text)
        self.assertIn("MiB, rank  parameters  gradients  optimizer  activations  kernels  data  checkpoint  process  total",
                      text)
        self.assertIn("ms, rank  micro-batches  compute  waiting  reduction  update  gradients sent", text)
        self.assertIn("\nother placements, of ranks with 1.00 GiB each\n", text)
        self.assertRegex(text, r"\n  a step takes [\d.]+ ms: [\d,.]+ samples/s, \d+ % of 2 times one rank\n")
        self.assertRegex(text, r"\nrecommended: [12] parts?, ")
        self.assertRegex(text, r"\nrunner-up: [12] parts?, .*: \d+\.\d\d times as long\n")

    def test_for_programs(self):
        plan = json.loads(run("plan", *SMALL, "--ranks", "2", "--json").stdout)
        self.assertEqual((plan["job"], plan["ranks"], plan["threads"]), ("digits", 2, 1))
        self.assertEqual({candidate["parts"] for candidate in plan["candidates"]}, {1, 2})
        own = plan["placement"]
        self.assertEqual([rank["micro_batches"] for rank in own["ranks"]], [4, 4])
        for rank in own["ranks"]:
            kinds = rank["memory_bytes"]
            self.assertEqual(kinds["total"], sum(size for kind, size in kinds.items() if kind != "total"))
            self.assertEqual(kinds["parameters"], 81984)  # 20,490 floats, each tensor padded to whole cache lines

    def test_what_does_not_fit(self):
        done = run("plan", *SMALL, "--memory", "1MiB", code=78)
        self.assertRegex(done.stderr, r"^lockstep: plan: expected a placement that fits 1\.0 MiB a rank, found none; the "
                                      r"nearest is 1 part, recompute: never, which needs \d+\.\d MiB; try more ranks, more "
                                      r"micro-batches of fewer samples, or a smaller model\n$")
        self.assertIn("does not fit", done.stdout)
        done = run("plan", *SMALL, "--memory", "64KiB", code=78)
        self.assertIn(", which needs ", done.stderr)
        self.assertRegex(done.stderr, r"; \w+ '\w+' alone takes 0\.\d MiB, with its weights, what it reads and what it makes, "
                                      r"and no part is smaller than a layer: try more memory, more micro-batches of fewer samples, "
                                      r"or a smaller layer\n$")

    def test_devices(self):
        text = run("plan", *SMALL, "--devices", "2xH100,A100-40").stdout
        self.assertTrue(text.startswith("digits on 3 ranks, 1 thread each, 8 micro-batches of 4 samples\n"), text)
        self.assertIn("predicted from the makers' figures, assuming 40 % of the peak of products in fp32, 70 % of the "
                      "memory's bandwidth, 60 % of the links', 8 GB/s from part to part through the host's "
                      "memory, one host", text)
        self.assertRegex(text, r"\n  [23] parts, \d micro-batches in flight, recompute: never +[\d.]+ ms +[\d.]+ MiB\n")
        self.assertIn("sharding: optimizer", text)
        self.assertRegex(text, r"\n  1 part, recompute: never, sharding: parameters +[\d.]+ ms")
        self.assertRegex(text, r"\n  2 parts, .*sharding: parameters +[\d.]+ ms")

    def plan_of_cluster(self, text, *words, code=0):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "cluster.yaml")
            path.write_text(text, encoding="utf-8")
            done = run("plan", *SMALL, "--cluster", str(path), *words, code=code)
            return done.stdout if code == 0 else done.stderr.replace(folder + "/", "")

    def test_a_cluster(self):
        text = self.plan_of_cluster("network: 25e9\nhosts:\n  - {count: 2, ranks: 2, device: H100}\n"
                                    "  - {device: A100-40, network: 1e9}\n")
        self.assertTrue(text.startswith("digits on 5 ranks, 1 thread each, 8 micro-batches of 4 samples\n"
                                        "  2 hosts with 2 ranks each: H100, 15 GB/s to other hosts\n"
                                        "  1 host with 1 rank each: A100-40, 600 MB/s to other hosts\n"), text)
        # The same GPUs in one host have no slow network between them.
        seconds = {}
        for name, hosts in (("one", "{ranks: 4, device: H100}"), ("four", "{count: 4, device: H100}")):
            plan = json.loads(self.plan_of_cluster(f"network: 1e8\nhosts: [{hosts}]\n", "--json"))
            seconds[name] = plan["placement"]["step_seconds"]
        self.assertGreater(seconds["four"], 2 * seconds["one"])

    def test_mistakes_in_a_cluster(self):
        for text, message in (
                ("hosts:\n  - {ranks: 2}\n",
                 "cluster.yaml:2:5: cluster.hosts[0].device: expected device, a GPU's name, or profile, a file of "
                 "`lockstep bench device`, found neither"),
                ("hosts:\n  - {device: H101}\n",
                 "cluster.yaml:2:5: cluster.hosts[0]: device: expected one of V100-32, A100-40, A100-80, L40S, H100, H200, "
                 "found 'H101'"),
                ("hosts:\n  - {device: H100}\n  - {profile: here.json}\n",
                 "cluster.yaml:3:5: cluster.hosts[1]: expected device, as the first hosts have, found profile"),
                ("network: 0\nhosts: [{device: H100}]\n",
                 "cluster.yaml:1:10: cluster.network: expected a number above 0, found 0")):
            self.assertEqual(self.plan_of_cluster(text, code=78), f"lockstep: {message}\n")

    def test_profile_of_this_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "here.json")
            text = run("bench", "device", "--ranks", "2", "--out", str(path)).stdout
            self.assertRegex(text, r"\d cores?, .*; 2 ranks measured at once, one thread each\n")
            for name in ("matrix products", "convolutions", "elementwise kernels", "adding gradients", "updates (AdamW)",
                         "a message", "long messages"):
                self.assertIn(name, text)
            profile = json.loads(path.read_text(encoding="utf-8"))
            self.assertEqual(profile["format"], 1)
            self.assertGreater(profile["matmul_flops_per_second"], 1e8)
            text = run("plan", *SMALL, "--ranks", "2", "--profile", str(path)).stdout
            self.assertIn(f"by the rates of {path} (", text)

    def test_balance_is_the_jobs(self):
        def micro_batches(balance, *words):
            plan = json.loads(run("plan", *SMALL, f"balance={balance}", *words, "--json").stdout)
            return [rank["micro_batches"] for rank in plan["placement"]["ranks"]]
        with tempfile.TemporaryDirectory() as folder:
            ranks = ["--ranks", "2", *unequal_profiles(folder, a=3e9, b=1e9)]
            self.assertEqual(micro_batches("auto", *ranks), [6, 2])
            self.assertEqual(micro_batches("equal", *ranks), [4, 4])
            self.assertEqual(micro_batches("{weights: {a: 1, b: 7}}", *ranks), [1, 7])
            error = run("plan", *SMALL, "balance={weights: {gpu7: 2}}", *ranks, code=78).stderr
            self.assertRegex(error, r"^lockstep: .*balance.weights.*: expected a host or a processor of this run, found 'gpu7'; "
                                    r"the hosts are a, b; the processors are .* \(a part of the name will do\); correct the entry "
                                    r"or leave it out\n$")
        self.assertEqual(micro_batches("{weights: {A100: 1, H100: 3}}", "--devices", "H100,A100-40"), [6, 2])
        error = run("plan", *SMALL, "balance={weights: {gpu7: 2}}", "--devices", "2xH100", code=78).stderr
        self.assertIn("found 'gpu7'; the processors are ", error)

    def test_against_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            job = [*SMALL, f"run_directory={folder}/run", "balance=equal"]
            run("train", *job, "--ranks", "2", "--log", "json")
            held = json.loads(run("plan", *job, "--against", f"{folder}/run", "--json").stdout)
            self.assertEqual(list(held), ["step", "memory of rank 0", "memory of rank 1"])
            for rank in (0, 1):  # wide bounds, for builds with other libraries
                self.assertLess(abs(held[f"memory of rank {rank}"]["error_percent"]), 30)
            text = run("plan", *job, "--against", f"{folder}/run").stdout
            self.assertRegex(text, r"(?m)^  memory of rank 1 +\d+\.\d MiB +\d+\.\d MiB +[+-]\d+\.\d %$")

    def test_against_a_run_in_parts(self):
        """A run that knows no speeds cuts its model for equal ranks, whatever profiles say."""
        model = "model={mlp: {hidden: [64, 64, 64]}}"
        with tempfile.TemporaryDirectory() as folder:
            job = [*SMALL, model, f"run_directory={folder}/run", "parallel={parts: 2}", "balance=auto"]
            run("train", *job, "--ranks", "3", "--log", "json")
            profiles = unequal_profiles(folder, a=1e9, b=5e9, c=1e9)
            held = json.loads(run("plan", *job, "--against", f"{folder}/run", *profiles, "--json").stdout)
            self.assertEqual(list(held), ["step", *[f"memory of rank {rank}" for rank in range(3)]])
            job = [*SMALL, "model={layers: [flatten, {linear: {features: 8}}, {relu: {}, name: cut}, {linear: {features: 10}}]}",
                   f"run_directory={folder}/other"]
            run("train", *job, "parallel={parts: [{until: cut, ranks: 1}, {ranks: 2}]}", "--ranks", "3")
            error = run("plan", *job, "parallel={parts: 2}", "--against", f"{folder}/other", code=64).stderr
            self.assertEqual(error, "lockstep: --against: expected a run whose model is cut for equal ranks, or for the speeds "
                                    "that are assumed here, found one that is cut for others; give the profiles of its "
                                    "devices, or set balance.weights as it has\n")

    def test_bytes_that_parts_send(self):
        """Activations of 64 floats for each of 320 samples, and as many gradients; a tenth in each step, by the plan."""
        job = [*SMALL, "evaluate=never", "checkpoint=never", "parallel={parts: [{until: cut, ranks: 1}, {ranks: 1}]}",
               "model={layers: [flatten, {linear: {features: 64}}, {relu: {}, name: cut}, {linear: {features: 10}}]}"]
        text = run("train", *job, "--ranks", "2").stderr
        self.assertIn("\n  sent        81.9 kB, 81.9 kB\n", text)
        self.assertNotIn("\n  by formula ", text)
        text = run("plan", *job, "--ranks", "2").stdout
        self.assertRegex(text, r"(?m)^  ms, rank  part  micro-batches .* gradients sent  activations sent$")
        self.assertRegex(text, r"(?m)^  0 +0 +8 .* 0 B +8\.19 kB$")
        plan = json.loads(run("plan", *job, "--ranks", "2", "--json").stdout)
        for rank in plan["placement"]["ranks"]:
            self.assertEqual((rank["gradient_bytes_sent"], rank["activation_bytes_sent"]), (0, 8192))

    def test_a_run_that_cannot_fit_does_not_start(self):
        wide = [*SMALL, "model={mlp: {hidden: [4096, 4096, 4096]}}", "checkpoint=never", "optimizer=adam"]
        done = run("train", *wide, code=78, limit=400_000)  # KiB
        self.assertRegex(done.stderr, r"rank 0 on \S+: expected room for \d+\.\d MiB at least \(1 part, recompute: never\), "
                                      r"found 390\.6 MiB, RLIMIT_DATA \(ulimit -d\); on so many ranks nothing fits, "
                                      r"parallel\.parts=1 recompute=never needs \d+\.\d MiB: try more ranks, more micro-batches of "
                                      r"fewer samples, or a smaller model\n  MiB, rank  parameters  gradients  optimizer")
        self.assertNotIn("step 1", done.stdout + done.stderr)

    def test_the_table_of_a_run_that_cannot_fit_has_its_weights(self):
        """With 7 of 8 micro-batches a rank keeps sums of 4, 2 and 1 of them; with an equal deal, of 4 only."""
        wide = [*SMALL, "model={mlp: {hidden: [4096, 4096]}}", "checkpoint=never", "balance={weights: {a: 7, b: 1}}"]
        ranks = [word for host in "ab" for word in
                 (":", "-n", "1", "-x", f"LOCKSTEP_HOST_ID={host}", PROGRAM, "train", *wide)]
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        done = run("--oversubscribe", *as_root, *ranks[1:], program="mpirun", code=78, limit=200_000)
        (first, second) = re.findall(r"^  [01] +([\d.]+) +([\d.]+) ", done.stderr, re.MULTILINE)
        self.assertEqual(first[0], second[0])
        sums = (float(first[1]) - float(second[1])) / float(first[0])
        self.assertGreater(sums, 1.5, done.stderr)

    def test_mistakes(self):
        for words, message in (
                (["--devices", "8xH101"], "--devices: expected devices such as 8xH100,4xA100-40, found '8xH101'; known are "
                                          "V100-32, A100-40, A100-80, L40S, H100, H200"),
                (["--memory", "much"], "--memory: expected bytes, such as 8GiB or 500MiB, found 'much'"),
                (["--profile", "/nowhere.json"],
                 "--profile: expected a file of `lockstep bench device`, found none at /nowhere.json"),
                (["--against", "/nowhere"], "--against: expected the events of a run, found no /nowhere/events.jsonl; name "
                                            "the directory of a run that has started")):
            self.assertEqual(run("plan", *SMALL, *words, code=64).stderr, f"lockstep: {message}\n")


if __name__ == "__main__":
    unittest.main()
