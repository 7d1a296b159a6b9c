"""The bits of a job on the GPU's code path through exec and train, on a machine without a GPU, with stand-ins for the
driver and for the CUDA module, whose GPU is the host. Arguments: see gpu_jobs.py.
"""
import json

from gpu_jobs import CHECKED, CPU_KERNELS, GRIDS, HOST, JOB, Place, main
from pretended_hosts import TWO_HOSTS


class Training(Place):
    STEPS = ("steps=4", "evaluate.every=2 steps")

    def test_the_way_changes_no_bit(self):
        """The stand-in's kernels are the CPU's: only everything around them differs."""
        expected = self.hash(*self.STEPS)
        for ranks, threads in ((1, 1), (1, 2), (2, 1), (3, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                self.assertEqual(self.hash(*self.STEPS, "device=cuda", "--ranks", str(ranks), f"threads={threads}"),
                                 expected)

    def test_hosts_of_several_gpus_change_no_bit(self):
        """Two hosts of two ranks: gradients are first summed inside a host. On fakes that know what orders each
        access."""
        words = ("steps=3", "evaluate=never", "data.train.digits.count=400")
        expected = self.hash(*words, "run_directory=cpu")
        end = self.train(*words, "device=cuda", "run_directory=gpu", module=CHECKED, prefix=TWO_HOSTS)["end"]
        self.assertEqual(end["parameters_sha256"], expected)
        self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_every_access_is_ordered(self):
        """A whole job on fakes that access only their own memory, and end a run at the first access that nothing
        orders."""
        words = ("steps=3", "evaluate.every=2 steps", "checkpoint.every=2 steps", "data.train.digits.count=400")
        for norm in ("1.0", "never"):  # the host waits for a norm: without it more work is in flight
            expected = self.hash(*words, f"clip_norm={norm}", f"run_directory=cpu-{norm}")
            for ranks in (1, 2):
                with self.subTest(norm=norm, ranks=ranks):
                    self.assertEqual(self.hash(*words, f"clip_norm={norm}", f"run_directory=gpu-{norm}-{ranks}",
                                               "device=cuda", "--ranks", str(ranks), module=CHECKED), expected)

    def test_a_rank_for_each_gpu(self):
        for words, ranks in (((), 3), (("devices=[2, 0]",), 2), (("micro_batches=1", "batch_size=16"), 1)):
            with self.subTest(words=words):
                events = self.train("steps=1", "evaluate=never", "device=cuda", "--ranks", "auto", *words)
                self.assertEqual(events["start"]["ranks"], ranks)

    def test_ranks_that_see_one_gpu_each(self):
        """As if Slurm, or a wrapper, had set CUDA_VISIBLE_DEVICES for each rank."""
        own = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", "sh", "-c",
               'STAND_IN_FIRST=$OMPI_COMM_WORLD_RANK exec "$0" "$@"')
        words = ("steps=1", "evaluate=never", "device=cuda")
        done = self.run_program("train", str(JOB), "--log", "json", *words, prefix=own, STAND_IN_GPUS="1")
        gpus = [event["pci_bus"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "gpu"]
        self.assertEqual(gpus, ["0000:90:00.0", "0000:80:00.0"])
        self.run_program("train", str(JOB), *words, "--ranks", "2", STAND_IN_GPUS="1", code=64)

    def test_sums_that_are_not_exact(self):
        words = (*self.STEPS, "exact=never")
        expected = self.hash(*words)
        self.assertEqual(self.hash(*words, "device=cuda"), expected)
        self.assertNotEqual(self.hash(*words, "device=cuda", "--ranks", "3"), expected)

    def test_resumed_at_another_size(self):
        words = (*self.STEPS, "device=cuda", "run_directory=run", "checkpoint.every=1 step")
        expected = self.hash(*words)
        self.run_program("train", str(JOB), *words, "run_directory=other", "steps=4", "--stop-at", "3", code=75)
        self.assertEqual(self.hash(*words, "run_directory=other", "--ranks", "2"), expected)

    def test_bfloat16_changes_no_bit_either(self):
        """Casts, sums and the copies of parameters are the GPU's, kernels the CPU's."""
        words = (*self.STEPS, "precision=bf16")
        expected = self.hash(*words)
        self.assertNotEqual(expected, self.hash(*self.STEPS))
        for ranks, threads in ((1, 1), (3, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                self.assertEqual(self.hash(*words, "device=cuda", "--ranks", str(ranks), f"threads={threads}"), expected)
        words = ("steps=3", "precision=bf16", "evaluate.every=2 steps", "data.train.digits.count=400")
        self.assertEqual(self.hash(*words, "device=cuda", "--ranks", "2", module=CHECKED), self.hash(*words))

    def test_the_scale_of_float16_goes_on_under_graphs(self):
        """The scale falls when gradients overflow and grows again; graphs captured with one scale run with others."""
        words = ("steps=8", "precision={fp16: {initial_scale: 16777216, growth_interval: 2}}", "evaluate=never",
                 "data.train.digits.count=400")
        expected = self.hash(*words)
        for module in (CPU_KERNELS, CHECKED):
            with self.subTest(module=module):
                self.assertEqual(self.hash(*words, "device=cuda", "--ranks", "2", module=module), expected)

    def test_recomputation_changes_no_bit(self):
        words = ("steps=4", "evaluate=never", "data.train.digits.count=400")
        self.assertEqual(self.hash(*words, "device=cuda", "recompute=cheap", "--ranks", "2", module=CHECKED),
                         self.hash(*words))

    def test_recomputation_of_blocks_changes_no_bit(self):
        words = ("model.resnet=20", "steps=1", "evaluate=never", "data.train.digits.count=400")
        self.assertEqual(self.hash(*words, "device=cuda", "recompute=blocks", "--ranks", "2", module=CHECKED),
                         self.hash(*words))

    def test_a_relu_in_a_convolution(self):
        words = ("model={lenet: {}}", "steps=2", "evaluate=never", "data.train.digits.count=200")
        expected = self.hash(*words)
        for module in (CPU_KERNELS, CHECKED):
            self.assertEqual(self.hash(*words, "device=cuda", module=module), expected)
        for precision in ("fp32", "bf16"):
            hashes = {self.hash(*words, "device=cuda", f"precision={precision}", "--ranks", str(ranks), module=GRIDS)
                      for ranks in (1, 2)}
            self.assertEqual(len(hashes), 1)

    def test_bfloat16_by_kernels_made_for_gpus(self):
        words = ("steps=2", "evaluate=never", "device=cuda", "data.train.digits.count=200", "precision=bf16")
        hashes = {self.hash(*words, "--ranks", str(ranks), module=GRIDS) for ranks in (1, 2, 3)}
        self.assertEqual(len(hashes), 1)

    def test_kernels_made_for_gpus(self):
        """Bodies of GPU kernels over their whole grids: the same hash on any number of ranks."""
        hashes = {self.hash("steps=2", "evaluate=never", "device=cuda", "data.train.digits.count=200",
                            "--ranks", str(ranks), module=GRIDS) for ranks in (1, 3)}
        self.assertEqual(len(hashes), 1)

    def transformer(self, *words, **options):
        """The hash of a GPT of two blocks."""
        self.write_gpt()
        return self.hash(*words, job="job.yaml", **options)

    def test_a_transformer_of_kernels_made_for_gpus(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision=precision):
                hashes = {self.transformer(f"precision={precision}", "--ranks", str(ranks), module=GRIDS)
                          for ranks in (1, 2)}
                self.assertEqual(len(hashes), 1)

    def test_fused_gelu_changes_no_bit_of_a_transformer(self):
        """On the CPU gelu is a separate op."""
        expected = self.transformer("device=cpu")
        for module, ranks in ((CPU_KERNELS, 1), (CPU_KERNELS, 2), (CHECKED, 2)):
            with self.subTest(module=module, ranks=ranks):
                self.assertEqual(self.transformer("--ranks", str(ranks), module=module), expected)

    def test_fused_gelu_rounds_less_in_bfloat16(self):
        """Other bits than the CPU's three ops, and the same on any number of ranks."""
        hashes = {self.transformer("precision=bf16", "--ranks", str(ranks), module=module)
                  for module, ranks in ((CPU_KERNELS, 1), (CPU_KERNELS, 2), (CHECKED, 2))}
        self.assertEqual(len(hashes), 1)
        self.assertNotIn(self.transformer("precision=bf16", "device=cpu"), hashes)

    def test_two_models_of_gpus(self):
        done = self.run_program("train", str(JOB), "steps=1", "device=cuda", "--ranks", "3", STAND_IN_SAME="0", code=64)
        self.assertRegex(done.stderr, r"^lockstep: rank 2 on \S+: its fingerprint differs: expected kernels .* Stand-in 1, "
                         r".* found kernels .* Stand-in 0, .*; use one kind of processor or GPU and one version of the "
                         r"libraries, or set exact: preferred\n")
        self.assertEqual(done.stderr.count("lockstep: "), 1)  # Open MPI 5 adds its own messages

    def test_gpus_that_differ_are_told(self):
        done = self.run_program("train", str(JOB), "steps=1", "evaluate=never", "device=cuda", "--ranks", "3",
                                "exact=preferred", STAND_IN_SAME="0")
        host, named = (f"{text:<{max(4, len(HOST))}}" for text in ("host", HOST))  # as wide as the wider one
        row = (f"  {named}  Stand-in {{}}  {{:>8}}                 9.0              132  1980 MHz  0000:{{}}:00.0  "
               "550.54.15, for CUDA 13.0\n")
        self.assertIn(f"\n  gpu    rank  {host}  model         memory  compute capability  multiprocessors  "
                      "   clock  PCI address   driver\n"
                      "            0" + row.format(1, "10.0 GiB", 70) + "            1" + row.format(1, "9.0 GiB", 80)
                      + "            2" + row.format(0, "8.0 GiB", 90), done.stderr)
        self.assertIn("warning: the GPUs differ in model (rank 0: Stand-in 1, rank 2: Stand-in 0), memory (rank 0: 10.0 "
                      "GiB, rank 1: 9.0 GiB); with balance: auto each rank gets micro-batches by its speed (docs/balancing.md)\n",
                      done.stderr)

    def test_drivers_that_differ_are_told(self):
        """By the driver's own version, although all are for the same CUDA version."""
        drivers = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", "sh", "-c",
                   'NVML_STAND_IN_DRIVER=580.65.0$OMPI_COMM_WORLD_RANK exec "$0" "$@"')
        done = self.run_program("train", str(JOB), "steps=1", "evaluate=never", "device=cuda", prefix=drivers)
        self.assertIn("warning: the GPUs differ in memory (rank 0: 10.0 GiB, rank 1: 9.0 GiB), driver (rank 0: 580.65.00, "
                      "for CUDA 13.0, rank 1: 580.65.01, for CUDA 13.0); with balance: auto each rank gets micro-batches by its speed "
                      "(docs/balancing.md)\n", done.stderr)

    def test_what_libraries_chose_is_told_and_must_be_the_same_everywhere(self):
        words = ("steps=1", "evaluate=never", "device=cuda", "data.train.digits.count=200", "--ranks", "2")
        start = self.train(*words, module=CHECKED, STAND_IN_ALGORITHMS="the first")["start"]
        self.assertIn("linear 'linear1': the first", start["algorithms"].splitlines())
        self.assertRegex(start["fingerprint"], "^kernels [0-9a-f]{16}, algorithms [0-9a-f]{16}, Stand-in, ")
        start = self.train(*words, module=CHECKED, STAND_IN_ALGORITHMS="that of rank %",
                           STAND_IN_ALGORITHMS_TAKEN="1")["start"]
        self.assertIn("linear 'linear1': that of rank 0", start["algorithms"].splitlines())
        done = self.run_program("train", str(JOB), *words, module=CHECKED, STAND_IN_ALGORITHMS="that of rank %", code=64)
        self.assertRegex(done.stderr, r"^lockstep: rank 1 on \S+: its fingerprint differs: expected kernels (\w{16}), "
                         r"algorithms \w{16}, .* found kernels \1, algorithms \w{16}, ")

    def test_evaluations_compute_by_the_algorithms_of_rank_0(self):
        """The stand-in ends a run whose evaluation uses other algorithms."""
        words = ("steps=1", "evaluate.every=1 step", "device=cuda", "data.train.digits.count=200",
                 "data.validation.digits.count=100", "checkpoint.every=1 step", "run_directory=run")
        of_rank = {"module": CHECKED, "STAND_IN_ALGORITHMS": "that of rank %", "STAND_IN_ALGORITHMS_TAKEN": "1"}
        loss = self.train(*words, "--ranks", "2", **of_rank)["eval"]["loss"]
        line = self.run_program("eval", "run", "--ranks", "2", "--log", "json", **of_rank).stdout
        self.assertEqual(json.loads(line)["loss"], loss)

    def test_what_a_run_says_of_its_device(self):
        events = self.train("steps=1", "device=cuda", "evaluate=never")
        self.assertEqual(events["start"]["device"], "Stand-in, sm_90, no libraries, driver for CUDA 13.0")
        self.assertRegex(events["start"]["fingerprint"],
                         "^kernels [0-9a-f]{16}, Stand-in, no libraries, driver for CUDA 13.0, math [0-9a-f]{8}, "
                         "jpeg [0-9a-f]{8}, lockstep [0-9.]+$")
        gpu = events["gpu"]
        self.assertEqual((gpu["rank"], gpu["model"], gpu["pci_bus"]), (0, "Stand-in", "0000:70:00.0"))
        self.assertEqual((gpu["multiprocessors"], gpu["clock_mhz"], gpu["driver"]), (132, 1980, "13.0"))
        self.assertEqual(gpu["driver_version"], "550.54.15")
        self.assertEqual(events["warning"]["message"],
                         "this version's code for GPUs: its kernels are tested by interpreting nvcc's PTX; it has run on "
                         "one H200, not on several GPUs; compare what it trains with device: cpu (docs/gpu.md)")
        self.assertEqual(events["start"]["threads"], 2)


if __name__ == "__main__":
    main()
