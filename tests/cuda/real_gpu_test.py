"""Whole jobs on a real GPU: the same hash on any number of ranks and after a stop and a resume, and a loss like the
CPU's; also the beginning of each example. Several ranks share a GPU if there are too few, so nothing is said about
speed.

Skipped if doctor finds no GPU.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from pretended_hosts import TWO_HOSTS
from real_gpu import LOCKSTEP, how_many, why_none

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAME_BITS = ROOT / "examples" / "same-bits.yaml"
# Sockets between ranks of one host: NCCL's other transports refuse ranks that claim to be on different hosts.
NCCL = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0",
        "NCCL_NVLS_ENABLE": "0", "NCCL_RAS_ENABLE": "0", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple",
        "NCCL_MAX_NCHANNELS": "2"}
GPT = """
job:
  model: {gpt: {layers: 2, heads: 2, width: 64, dropout: 0}}
  data:
    train: {text: {path: text.txt, tokenizer: characters, context: 64}}
    validation: {fraction: 0.1}
  batch_size: 8
  micro_batches: 4
  steps: 4
  loss: cross_entropy
  optimizer: adamw
  learning_rate: 0.001
"""


def setUpModule():
    if why := why_none():
        print("skipped:", why)
        sys.exit(77)


class Gpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, *words, job=SAME_BITS, ranks=1, prefix=(), code=0, shared=True):
        start = [*prefix, LOCKSTEP, "train"] if prefix else [LOCKSTEP, "train", "--ranks", str(ranks)]
        settings = {**NCCL, "LOCKSTEP_SHARE_GPUS": "1"} if shared else {}
        done = subprocess.run([*start, str(job), "--log", "json", *words], cwd=self.folder,
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=500, env={**os.environ, **settings})
        self.assertEqual(done.returncode, code, done.stderr)
        return {line["event"]: line for line in map(json.loads, done.stdout.splitlines())}

    def end(self, *words, **options):
        return self.train("device=cuda", *words, **options)["end"]


class Bits(Gpu):
    STEPS = ("steps=6", "evaluate.every=3 steps")

    def test_one_hash_on_any_number_of_ranks_and_streams(self):
        expected = self.end(*self.STEPS)["parameters_sha256"]
        for ranks, threads in ((1, 1), (2, 1), (3, 2)):
            with self.subTest(ranks=ranks, threads=threads):
                end = self.end(*self.STEPS, f"threads={threads}", ranks=ranks)
                self.assertEqual(end["parameters_sha256"], expected)

    def test_one_hash_with_a_gpu_for_each_rank(self):
        """With the transports that NCCL chooses: NVLink, PCIe, shared memory."""
        gpus = how_many()
        if gpus == 1:
            self.skipTest("one GPU here")
        expected = self.end(*self.STEPS)["parameters_sha256"]
        end = self.end(*self.STEPS, ranks=gpus, shared=False)
        self.assertEqual(end["parameters_sha256"], expected)

    def test_one_hash_on_hosts_of_several_ranks(self):
        """Gradients are first summed inside a host."""
        expected = self.end(*self.STEPS, "run_directory=one")["parameters_sha256"]
        end = self.end(*self.STEPS, "run_directory=four", prefix=TWO_HOSTS)
        self.assertEqual(end["parameters_sha256"], expected)
        self.assertEqual(end["bytes_sent_by_rank"], end["bytes_by_formula_by_rank"])

    def test_resumed_at_another_size(self):
        words = (*self.STEPS, "checkpoint.every=1 step")
        expected = self.end(*words, "run_directory=whole")["parameters_sha256"]
        self.train("device=cuda", *words, "run_directory=cut", "--stop-at", "3", code=75)
        self.assertEqual(self.end(*words, "run_directory=cut", ranks=2)["parameters_sha256"], expected)

    def test_graphs_change_no_bit(self):
        one, other = (self.end(*self.STEPS, f"cuda_graphs={graphs}", f"run_directory=graphs-{graphs}")["parameters_sha256"]
                      for graphs in ("true", "false"))
        self.assertEqual(one, other)

    def test_where_images_are_augmented_changes_no_bit(self):
        words = (*self.STEPS, "data.augment=[{crop: {padding: 2}}, flip]")
        one, other = (self.end(*words, f"data.cache={cache}", f"run_directory=cache-{cache}")["parameters_sha256"]
                      for cache in ("device", "none"))
        self.assertEqual(one, other)

    def test_what_it_did_is_recorded(self):
        self.end(*self.STEPS, "run_directory=run", "--profile", "4-5")
        subprocess.run([LOCKSTEP, "trace", "merge", self.folder / "run"], check=True, stdout=subprocess.DEVNULL)
        events = json.loads((self.folder / "run/trace/merged.json").read_text(encoding="utf-8"))["traceEvents"]
        rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        spans = [event for event in events if event["ph"] == "X"]
        kernels = [span for span in spans if rows[span["tid"]].startswith("GPU")]
        self.assertGreater(len(kernels), 20)
        first = min(span["ts"] for span in spans if not rows[span["tid"]].startswith("GPU"))
        self.assertGreaterEqual(min(span["ts"] for span in kernels), first)

    def test_the_loss_is_that_of_the_cpu(self):
        losses = [self.train(f"device={device}", *self.STEPS)["end"]["loss"] for device in ("cpu", "cuda")]
        self.assertAlmostEqual(losses[0], losses[1], delta=0.01 * losses[0])

    def test_one_hash_in_other_precisions(self):
        whole = self.end(*self.STEPS)["loss"]
        for precision in ("tf32", "bf16", "fp16"):
            with self.subTest(precision=precision):
                words = (*self.STEPS, f"precision={precision}")
                one, two = self.end(*words), self.end(*words, ranks=2)
                self.assertEqual(one["parameters_sha256"], two["parameters_sha256"])
                self.assertAlmostEqual(one["loss"], whole, delta=0.05 * whole)

    def test_a_transformer_in_two_bytes(self):
        """Attention, gelu between two linear layers, and norms; with sizes that cuBLASLt and cuDNN support."""
        words = ("precision=bf16", "evaluate.every=4 steps")
        job = self.folder / "gpt.yaml"
        text = " ".join(f"word{i % 97}" for i in range(4000))
        (self.folder / "text.txt").write_text(text, encoding="utf-8")
        job.write_text(GPT, encoding="utf-8")
        one, two = (self.end(*words, f"run_directory=gpu{ranks}", job=job, ranks=ranks) for ranks in (1, 2))
        self.assertEqual(one["parameters_sha256"], two["parameters_sha256"])
        cpu = self.train("device=cpu", *words, "run_directory=cpu", job=job)["end"]["loss"]
        self.assertAlmostEqual(one["loss"], cpu, delta=0.05 * cpu)

    def test_sums_that_are_not_exact(self):
        end = self.end(*self.STEPS, "exact=never", ranks=2)
        self.assertAlmostEqual(end["loss"], self.end(*self.STEPS)["loss"], delta=0.02 * end["loss"])


class Examples(unittest.TestCase):
    """Digits to their goal; the beginning of the others, to check that no kernel is missing."""

    def test_each(self):
        for example, words in (("digits", ()), ("mnist-cnn", ("steps=20",)), ("two-towers", ("steps=20",)),
                               ("shakespeare-gpt", ("steps=20",)), ("cifar10-resnet20", ("steps=20",))):
            with self.subTest(example=example):
                done = subprocess.run([sys.executable, str(ROOT / "scripts" / "accuracy.py"),
                                       *(["--report-only"] if words else []), example, "device=cuda", *words],
                                      capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=900)
                if done.returncode == 77:
                    self.skipTest(done.stdout.strip())
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
