"""What a job on GPUs does besides its bits (faults, data on the GPU, memory, reports), on the stand-ins of
gpu_jobs.py."""
import json
import os
import pathlib
import re

from gpu_jobs import CHECKED, CPU_KERNELS, DRIVER, HOST, JOB, Place, main
from pretended_hosts import TWO_HOSTS


class Faults(Place):
    """What waits on a rank's GPU never ends. The run does, with exit code 1, and reports where it was."""
    WORDS = ("steps=6", "evaluate=never", "data.train.digits.count=400", "device=cuda", "run_directory=run")
    GPU = r"GPU [0-2] \(Stand-in, 0000:[789]0:00.0\)"
    LONG = "timeout=1000"  # longer than run_program waits

    def faulty(self, *words, ranks=2, **settings):
        """What the run prints on stderr, and the flight record of each rank that wrote one."""
        done = self.run_program("train", str(JOB), *self.WORDS, *words, "--ranks", str(ranks), code=1, **settings)
        dumps = [json.loads(path.read_text()) for path in (self.folder / "run" / "flight").glob("rank-*.json")]
        return done.stderr, {dump["rank"]: dump for dump in dumps}

    def test_a_hang_ends_at_the_deadline(self):
        for module in (CPU_KERNELS, CHECKED):
            with self.subTest(module=module):
                said, dumps = self.faulty("timeout=10", module=module, STAND_IN_HANGS="0:3")
                self.assertRegex(said, rf"(?m)^lockstep: rank 0 on host {HOST}: waited [0-9]+\.[0-9] s for the other ranks "
                                 r"in 'reduce' of step 3: slices of gradients have not come to its GPU; look at that rank's "
                                 r"log: it ended, hangs or is much slower than this one \(then raise job\.timeout\)$")
                activity = dumps[0]["activity"]
                self.assertEqual((activity["name"], activity["step"], activity["missing"]),
                                 ("reduce", 3, "slices of gradients on GPUs"))
                self.assertIn("reduce", {entry["kind"] for entry in dumps[0]["entries"]})

    def test_messages_that_do_not_start_on_a_rank(self):
        """The others wait for it and are told at once: rank 0, which reports first, names it."""
        for ranks, rank in ((2, 0), (2, 1), (3, 2)):
            with self.subTest(ranks=ranks, rank=rank):
                said, dumps = self.faulty(self.LONG, ranks=ranks, STAND_IN_REFUSES=str(rank))
                self.assertRegex(said, rf"(?m)^lockstep: rank {rank} has failed: {HOST}, rank {rank}, {self.GPU}: messages "
                                 "refuse to start$")
                self.assertIn(0, dumps)

    def test_an_error_ends_the_run_long_before_the_deadline(self):
        said, dumps = self.faulty(self.LONG, STAND_IN_FAILS="1:2")
        self.assertRegex(said, rf"(?m)^lockstep: {HOST}, rank 1, {self.GPU}: the messages of step 2 failed$")
        self.assertEqual((dumps[1]["activity"]["name"], dumps[1]["activity"]["step"]), ("reduce", 2))


class Data(Place):
    """Data sets that stay on the GPU."""
    MOVES = ("steps=9", "evaluate.every=4 steps", "data.train.digits.count=256",  # two epochs and a bit
             "data.augment=[flip, {crop: {padding: 3}}, {cutout: 9}]")
    DEVICE = (*MOVES, "device=cuda", "data.cache=device")

    def test_where_they_are_changes_no_bit(self):
        expected = self.train(*self.MOVES)
        self.assertNotIn("inputs", expected["start"])
        for ranks in (1, 2, 3):
            for cache in ("device", "memory", "none"):
                with self.subTest(ranks=ranks, cache=cache):
                    events = self.train(*self.DEVICE, f"data.cache={cache}", "--ranks", str(ranks))
                    self.assertEqual(events["end"]["parameters_sha256"], expected["end"]["parameters_sha256"])
                    self.assertEqual(events["eval"]["metrics"], expected["eval"]["metrics"])
                    self.assertEqual(events["eval"]["loss"], expected["eval"]["loss"])
                    inputs = events["start"].get("inputs")
                    self.assertEqual(inputs, None if cache == "none" else "train made on the GPU (202 kB), "
                                     "validation made on the GPU (236 kB)")

    def test_every_access_is_ordered(self):
        words = ("steps=3", "evaluate.every=2 steps", *self.MOVES[2:])
        expected = self.hash(*words)
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                events = self.train(*words, "device=cuda", "data.cache=device", "--ranks", str(ranks), module=CHECKED)
                self.assertEqual(events["end"]["parameters_sha256"], expected)

    def test_resumed_at_another_size_and_another_place(self):
        words = (*self.DEVICE, "run_directory=run", "checkpoint.every=1 step")
        expected = self.hash(*words)
        self.run_program("train", str(JOB), *words, "run_directory=other", "--stop-at", "5", code=75)
        self.assertEqual(self.hash(*words, "run_directory=other", "data.cache=none", "--ranks", "2"), expected)
        self.run_program("train", str(JOB), *words, "run_directory=third", "data.cache=none", "--stop-at", "5", code=75)
        self.assertEqual(self.hash(*words, "run_directory=third", "--ranks", "3"), expected)

    def test_two_images_a_sample(self):
        job = JOB.parent / "two-towers.yaml"
        words = ("steps=3", "evaluate=never", "checkpoint=never", "data.train.digits.count=300", "data.augment=[{crop: 2}]")
        events = self.train(*words, "device=cuda", job=job)
        self.assertIn("train made on the GPU", events["start"]["inputs"])
        self.assertEqual(events["end"]["parameters_sha256"], self.hash(*words, job=job))

    def test_cifar(self):
        folder = os.environ.get("LOCKSTEP_DATA")
        if folder is None or not (pathlib.Path(folder) / "cifar10-train.tar.zst").exists():
            self.skipTest("no cifar10-train.tar.zst in $LOCKSTEP_DATA")
        words = ("steps=2", "evaluate=never", "checkpoint=never", "batch_size=32", "micro_batches=2",
                 f"data.train.images={folder}/cifar10-train.tar.zst")
        job = JOB.parent / "cifar10-resnet20.yaml"
        events = self.train(*words, "device=cuda", "data.cache=device", job=job)
        self.assertIn("train made on the GPU", events["start"]["inputs"])
        self.assertEqual(events["end"]["parameters_sha256"], self.hash(*words, job=job))

    def test_text_is_for_the_host_and_evaluated_on_the_gpu(self):
        self.write_gpt()
        words = ("data.validation.fraction=0.2", "evaluate.every=2 steps")
        events = self.train(*words, job="job.yaml")
        self.assertRegex(events["start"]["inputs"], r"^train made on the host: windows of text change with the epoch, "
                         r"validation made on the GPU \([0-9.]+ kB\)$")
        self.assertEqual(events["end"]["parameters_sha256"], self.hash(*words, "device=cpu", job="job.yaml"))

    def test_what_cannot_be_there_is_made_on_the_host(self):
        """The example rotates images, which a GPU does not do."""
        words = ("steps=1", "device=cuda", "evaluate=never")
        self.assertEqual(self.train(*words)["start"]["inputs"], "train made on the host: `rotate` computes pixels")
        done = self.run_program("train", str(JOB), *words, "data.cache=device", code=78)
        self.assertEqual(done.stderr, "lockstep: command line: data.cache: expected data that a GPU can keep and augment, "
                         "found that train cannot be: `rotate` computes pixels; set data.cache: memory\n")

    def test_what_does_not_fit_is_made_on_the_host(self):
        words = (*self.MOVES[2:], "steps=1", "device=cuda", "batch_size=16", "threads=1", "data.train.digits.count=20000")
        free = {"STAND_IN_FREE": "9000000"}
        inputs = self.train(*words, **free)["start"]["inputs"]
        self.assertEqual(inputs, "train made on the host: it does not fit, validation made on the GPU (236 kB)")
        done = self.run_program("train", str(JOB), *words, "data.cache=device", code=78, **free)
        self.assertRegex(done.stderr, r": expected [0-9.]+ MiB of free memory, found 8.6 MiB; try data.cache: memory\n")
        self.assertRegex(done.stderr, r"\n  data: train +15.0 MiB\n  data: validation +0.2 MiB\n$")

    def test_what_is_drawn_needs_memory_too(self):
        """An id (8 bytes) and what three steps draw (36 bytes each) for 16,384 samples are stored in addition to their
        inputs."""
        words = (*self.MOVES[2:], "steps=1", "device=cuda", "evaluate=never", "threads=1", "batch_size=16384", "micro_batches=1",
                 "data.train.digits.count=20000")
        inputs = []
        for cache in ("none", "device"):
            done = self.run_program("train", str(JOB), *words, f"data.cache={cache}", code=78, STAND_IN_FREE="9000000")
            inputs.append(float(re.search(r"\n  inputs +([0-9.]+) MiB", done.stderr)[1]))
        self.assertAlmostEqual(inputs[1] - inputs[0], (8 + 3 * 36) * 16384 / 2**20, delta=0.11)


class Nvml(Place):
    """The stand-in for NVML is in the driver's folder, under the name of the real one."""
    JOB = ("steps=2", "evaluate=never", "device=cuda")

    def test_a_rank_asks_it_for_the_energy_of_its_own_gpu(self):
        """The stand-in knows the first two of the driver's three GPUs: which one is queried depends on `devices`."""
        for devices, expected in (("0,1", {"0", "1"}), ("2,0", {"1"})):
            end = self.train(*self.JOB, f"devices=[{devices}]", "--ranks", "2")["end"]
            self.assertEqual(set(end["energy_joules_by_rank"]), expected, devices)

    def test_without_it_a_run_goes_on(self):
        (self.folder / "libcuda.so.1").symlink_to(f"{DRIVER}/libcuda.so.1")
        done = self.run_program("train", str(JOB), *self.JOB, "--log", "json", LD_LIBRARY_PATH=str(self.folder))
        events = [json.loads(line) for line in done.stdout.splitlines()]
        said = [event["message"] for event in events if event["event"] == "warning" and "energy" in event["message"]]
        self.assertEqual(said, ["no metrics and no energy of the GPU: libnvidia-ml.so.1: cannot open shared object file: No "
                                "such file or directory"])
        self.assertEqual(events[-1]["parameters_sha256"], self.hash(*self.JOB))
        self.assertNotIn("energy_joules_by_rank", events[-1])

    def test_a_run_on_cpus_does_not_ask(self):
        self.assertNotIn("energy_joules_by_rank", self.train("steps=2", "evaluate=never")["end"])


class Models(Place):
    def test_eval_and_predict(self):
        job = ("steps=4", "evaluate=never", "checkpoint.every=4 steps", "run_directory=run")
        self.train(*job, "device=cuda")
        numbers = [json.loads(self.run_program("eval", str(JOB), *job, f"device={device}", "--log", "json").stdout)
                   for device in ("cpu", "cuda")]
        for key in ("loss", "metrics", "parameters_sha256"):
            self.assertEqual(numbers[0][key], numbers[1][key])

    def test_a_checkpoint_of_a_gpu_is_not_gone_on_with_on_the_cpu(self):
        job = (str(JOB), "steps=4", "evaluate=never", "checkpoint.every=2 steps", "run_directory=run")
        self.run_program("train", *job, "device=cuda", "--stop-at", "2", code=75)
        done = self.run_program("train", *job, "device=cpu", code=64)
        self.assertRegex(done.stderr, r"a processor or libraries that compute other bits; use those of then, or set exact: "
                         r"preferred\n  then: kernels [0-9a-f]{16}, Stand-in, no libraries, driver for CUDA 13.0, sm_90\n  "
                         r"now: kernels [0-9a-f]{16}, oneDNN \S+, first micro-batch [0-9a-f]{16}, \w+\n\Z")


class Reduce(Place):
    def test_bench(self):
        """Every sum is checked by the bench itself."""
        for ranks in ("1", "auto"):
            done = self.run_program("bench", "all-reduce", "--device", "cuda", "--ranks", ranks, "--sizes", "64KiB,3MiB",
                                    "--micro-batches-a-rank", "3", "--rounds", "2", "--log", "json", module=CHECKED)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([(line["way"], line["bytes"]) for line in lines],
                             [(way, size) for size in (64 << 10, 3 << 20) for way in ("exact", "plain", "library", "mpi")])
            self.assertEqual({line["ranks"] for line in lines}, {3 if ranks == "auto" else 1})
            for line in lines:
                self.assertGreater(line["seconds_best"], 0)
        words = ("bench", "all-reduce", "--device", "cuda", "--rounds", "1", "--sizes", "4KiB")
        self.assertIn("          exact all-reduce              exact: never           NCCL all-reduce   MPI all-reduce, on CPUs  ",
                      self.run_program(*words).stdout)
        done = self.run_program(*words, code=78, STAND_IN_GPUS="0")
        self.assertIn(f"job.device: expected a GPU on {HOST}, found none", done.stderr)


    def test_bench_within_and_between_hosts(self):
        done = self.run_program("bench", "all-reduce", "--device", "cuda", "--sizes", "64KiB,3MiB", "--rounds", "2", "--log",
                                "json", "--picture", "all-reduce.svg", module=CHECKED, prefix=TWO_HOSTS)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(line["part"], line["ranks"], line["bytes"], line["way"]) for line in lines],
                         [(part, ranks, size, way) for part, ranks in (("within", 2), ("between", 2), ("all", 4))
                          for size in (64 << 10, 3 << 20) for way in ("exact", "plain", "library", "mpi")])
        for line in lines:
            self.assertGreater(line["seconds_best"], 0)
        drawn = (self.folder / "all-reduce.svg").read_text(encoding="utf-8")
        for name in ("NCCL all-reduce", "MPI all-reduce, on CPUs", "exact, within hosts", "exact, between hosts"):
            self.assertIn(f">{name}</text>", drawn)


class Hosts(Place):
    """`lockstep bench hosts`, whose output `helm test` shows."""
    WORDS = ("bench", "hosts", "--device", "cuda")

    def test_a_report_on_gpus(self):
        text = self.run_program(*self.WORDS, "--ranks", "auto", module=CHECKED).stdout
        self.assertRegex(text, r"""^3 ranks on 1 host

rank  host +computes on
   0  \S+ +Stand-in
   1  \S+ +Stand-in
   2  \S+ +Stand-in

kinds       3 x Stand-in
bits        kernels [0-9a-f]{16}, Stand-in, no libraries, driver for CUDA 13\.0, math [0-9a-f]{8}, jpeg [0-9a-f]{8}, lockstep \S+
all-reduce  all sums right; 16 MiB in \d+\.\d\d ms, \S+ [kMG]B/s per rank; NCCL's all-reduce takes \d+\.\d\d ms
clocks      at most 0\.000 ms from rank 0's, measured to 0\.000 ms

no problems found
$""")

    def test_between_hosts(self):
        text = self.run_program(*self.WORDS, module=CHECKED, prefix=TWO_HOSTS).stdout
        self.assertIn("4 ranks on 2 hosts\n", text)
        self.assertIn("\n   3  h1    Stand-in\n", text)
        self.assertIn("NCCL's all-reduce takes", text)

    def test_a_job_on_cpus_looks_at_no_gpu(self):
        text = self.run_program("bench", "hosts").stdout
        self.assertNotIn("Stand-in", text)
        self.assertRegex(text, r"\nbits        kernels [0-9a-f]{16}, oneDNN ")

    def test_fewer_gpus_than_ranks(self):
        done = self.run_program(*self.WORDS, "--ranks", "2", STAND_IN_GPUS="1", code=64)
        self.assertRegex(done.stdout, r"""^2 ranks on 1 host

rank  host +computes on
   0  \S+ +no usable GPU
   1  \S+ +no usable GPU

kinds       2 x no usable GPU
all-reduce  not timed: not every rank has a GPU
clocks      at most 0\.000 ms from rank 0's, measured to 0\.000 ms
$""")
        wrong = (f"rank {rank} on {HOST}: expected a GPU for each rank, found 1 there; all ranks of a job need the "
                 "same kind of device; see gpusPerNode and slots" for rank in (0, 1))
        self.assertIn("lockstep: " + "\n  ".join(wrong) + "\n", done.stderr)

    def test_no_driver_that_fits(self):
        done = self.run_program(*self.WORDS, "--ranks", "2", STAND_IN_DRIVER="12040", code=78)
        self.assertIn(f"lockstep: job.device: expected a driver for CUDA 13.0 or later on {HOST}, found one for CUDA 12.4; "
                      "update the driver, or set device: cpu\n", done.stderr)
        self.assertEqual(done.stderr.count("expected a driver"), 1)

    def test_two_models_of_gpus(self):
        done = self.run_program(*self.WORDS, "--ranks", "3", STAND_IN_SAME="0", code=64)
        self.assertIn(f"lockstep: rank 2 on {HOST}: expected Stand-in 1, as on rank 0, found Stand-in 0; use one kind of "
                      "node, or set exact: preferred in the job\n", done.stderr)
        self.run_program(*self.WORDS, "--ranks", "3", "--exact", "preferred", STAND_IN_SAME="0")


class Memory(Place):
    def test_a_job_that_does_not_fit(self):
        done = self.run_program("train", str(JOB), "batch_size=640", "device=cuda", "evaluate=never", code=78,
                                STAND_IN_FREE="4000000")
        self.assertRegex(
            done.stderr,
            rf"^lockstep: {HOST}, rank 0, GPU 0 \(Stand-in, 0000:70:00.0\): expected [0-9.]+ MiB of free memory, found "
            r"3.8 MiB; try more micro-batches \(one has 40 samples now\), or threads: 1\n"
            r"  parameters and states +[0-9.]+ MiB\n"
            r"  gradient +[0-9.]+ MiB\n"
            r"  optimizer +[0-9.]+ MiB   2 x [0-9.]+ MiB\n"
            r"  tables of the update +[0-9.]+ MiB\n"
            r"  all-reduce of gradients +[0-9.]+ MiB\n"
            r"  activations +[0-9.]+ MiB   2 x [0-9.]+ MiB\n"
            r"  inputs +[0-9.]+ MiB   2 x [0-9.]+ MiB\n"
            r"  libraries and graphs +0.1 MiB\n$")

    def test_evaluations_need_inputs_of_their_own(self):
        done = self.run_program("train", str(JOB), "batch_size=640", "device=cuda", "threads=1", code=78,
                                STAND_IN_FREE="4000000")
        lines = re.findall(r"^  inputs(?: of evaluations)? +([0-9.]+) MiB$", done.stderr, re.MULTILINE)
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertEqual(lines[0], lines[1])

    def test_no_rank_gets_more_than_its_gpu_can_hold(self):
        """Of 8 micro-batches a rank has 4; with 5 or 6 it stores one more sum, with 7 or 8 two. Rank 1 is said to be the
        faster one."""
        words = ("device=cuda", "--ranks", "2", "threads=1", "micro_batches=8", "balance=auto", "data.augment=[]", "evaluate=never",
                 "data.cache=none", "model={mlp: [2000]}", "checkpoint.every=1 step", "batch_size=16")
        refused = self.run_program("train", str(JOB), *words, code=78, STAND_IN_FREE="4000000").stderr
        needed, gradient = (2**20 * float(re.search(pattern, refused)[1])
                            for pattern in (r"expected ([0-9.]+) MiB", r"\n  gradient +([0-9.]+) MiB"))
        for room, shares in ((0.6, None), (1.4, {"0": 2, "1": 6}), (2.4, {"0": 0, "1": 8})):
            with self.subTest(room=room):
                free = {"STAND_IN_FREE": str(int((needed + room * gradient) * 65 / 64))}
                run = f"run_directory=run{room}"
                self.train(*words, run, "--stop-at", "1", code=75, **free)
                record = self.folder / f"run{room}/balance.json"
                record.write_text(json.dumps({**json.loads(record.read_text()), "seconds_per_micro_batch": [1, 0.1]}))
                events = self.train(*words, run, "--stop-at", "2", code=75, **free)
                self.assertEqual(events.get("balance", {}).get("shares_by_rank"), shares)


if __name__ == "__main__":
    main()
