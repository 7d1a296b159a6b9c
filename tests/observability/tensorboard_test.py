#!/usr/bin/env python3
"""TensorBoard's event files of a real run, read by TensorBoard: by its library, and by its server with both of its
loaders.

The run has 12 steps on two ranks, with histograms every 4 steps, and is resumed once from the checkpoint of step 8: the
first start's values of steps 9 to 12 are then void.
"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import numpy
from PIL import Image
from tensorboard import program
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.plugins.hparams import metadata, plugin_data_pb2
from tensorboard.util import tensor_util

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position
from lockstep_reader import open_run  # noqa: E402  pylint: disable=wrong-import-position,wrong-import-order

PROGRAM = os.environ["LOCKSTEP"]
JOB = ["model=lenet", "data.train.digits.count=320", "data.validation.digits.count=64", "batch_size=32", "micro_batches=4",
       "steps=12", "evaluate.every=4 steps", "checkpoint.every=4 steps", "clip_norm=1", "balance=equal",
       "model.freeze=conv2.*", "telemetry.tensorboard={histograms: 4 steps}"]
RUN = "small"


def accumulator(folder):
    """Everything, as steps and values; nothing is dropped by sampling."""
    every = {kind: 0 for kind in event_accumulator.DEFAULT_SIZE_GUIDANCE}
    return event_accumulator.EventAccumulator(str(folder), size_guidance=every).Reload()


class Board(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.run_directory = pathlib.Path(cls.folder.name) / RUN
        cls.board = cls.run_directory / "tensorboard"
        cls.train()
        cls.weights = cls.weights_at(12)
        cls.first_file = next(cls.board.iterdir())
        cls.once = accumulator(cls.board)
        cls.train("--resume", cls.run_directory / "checkpoints/step-00000008")
        cls.twice = accumulator(cls.board)

    @classmethod
    def train(cls, *words):
        subprocess.run([PROGRAM, "train", "--ranks", "2", *words, *JOB, f"run_directory={cls.run_directory}"],
                       check=True, capture_output=True)

    @classmethod
    def weights_at(cls, step):
        checkpoint = open_run(cls.run_directory).checkpoint(step)
        return {name: tensor.numpy() for name, tensor in checkpoint.items()}

    @classmethod
    def events(cls, name):
        return events_of(cls.run_directory, name)

    def scalars(self, board, tag):
        return [(event.step, event.value) for event in board.Scalars(tag)]

    def test_curves_are_the_run_s_own_numbers(self):
        steps = self.events("step")[:12]
        for tag, value in {"train/loss": lambda e: e["loss"], "train/accuracy": lambda e: e["metrics"]["accuracy"],
                           "train/learning_rate": lambda e: e["learning_rate"],
                           "train/gradient_norm": lambda e: e["gradient_norm"],
                           "work/samples_per_second": lambda e: e["samples_per_second"],
                           "work_seconds_per_micro_batch/rank_1": lambda e: e["micro_batch_seconds"][1]}.items():
            self.assertEqual(self.scalars(self.once, tag),
                             [(e["step"], float(numpy.float32(value(e)))) for e in steps], tag)
        seconds = [value for _, value in self.scalars(self.once, "work/step_seconds")]
        self.assertTrue(all(second > 0 for second in seconds))
        self.assertAlmostEqual(sum(seconds), steps[-1]["seconds"], places=4)
        evals = [e for e in self.events("eval")][:3]
        self.assertEqual(self.scalars(self.once, "validation/loss"),
                         [(e["step"], float(numpy.float32(e["loss"]))) for e in evals])
        self.assertEqual([step for step, _ in self.scalars(self.once, "validation/accuracy")], [4, 8, 12])

    def test_what_everybody_looks_at_comes_first(self):
        """TensorBoard sorts by name the groups of cards, and shows hyper-parameters in their order."""
        tags = [tag for kind in ("scalars", "images", "histograms") for tag in self.once.Tags()[kind]]
        groups = sorted({tag.split("/")[0] for tag in tags})
        self.assertEqual(groups[:2], ["train", "validation"])
        self.assertLessEqual({"view", "weight_gradients", "weights", "work", "work_seconds_per_micro_batch"}, set(groups[2:]))
        content = self.once.summary_metadata["_hparams_/experiment"].plugin_data.content
        names = [info.name for info in plugin_data_pb2.HParamsPluginData.FromString(content).experiment.hparam_infos]
        self.assertEqual([name.split(".")[0] for name in names][:2], ["learning_rate"] * 2)
        first = {name.split(".")[0] for name in names[:10]}
        self.assertTrue({"learning_rate", "batch_size", "optimizer"} <= first, names)
        self.assertLess(names.index("batch_size"), names.index("name"))

    def test_a_resume_doubles_no_step(self):
        self.assertEqual(len(list(self.board.iterdir())), 2)
        self.assertEqual(set(self.twice.Tags()["scalars"]), set(self.once.Tags()["scalars"]))
        for tag in ("train/loss", "validation/loss"):  # the same bits both times
            self.assertEqual(self.scalars(self.twice, tag), self.scalars(self.once, tag))
        for tag in self.once.Tags()["scalars"]:
            steps = [step for step, _ in self.scalars(self.twice, tag)]
            self.assertEqual(steps, sorted(set(steps)), tag)
        again = [event.wall_time for event in self.twice.Scalars("train/loss")][8:]
        before = [event.wall_time for event in self.once.Scalars("train/loss")][8:]
        self.assertTrue(all(new > old for new, old in zip(again, before)))
        for tag in self.once.Tags()["histograms"]:
            self.assertEqual([event.step for event in self.twice.Histograms(tag)], [4, 8, 12], tag)
        self.assertEqual(len(self.twice.Tensors("job")), 1)
        self.assertEqual(len(self.twice.Images("view/inputs")), 1)

    def test_histograms_are_of_the_checkpoint_s_weights(self):
        tags = self.once.Tags()["histograms"]
        parameters = [name for name in self.weights if "/" not in name and f"weights/{name.replace('.', '/')}" in tags]
        self.assertGreaterEqual(len(parameters), 10, tags)
        self.assertEqual(len([tag for tag in tags if tag.startswith("weights/")]), len(parameters))
        for name in parameters:
            event = self.once.Histograms(f"weights/{name.replace('.', '/')}")[-1]
            values, shown = self.weights[name].astype(numpy.float64).ravel(), event.histogram_value
            self.assertEqual((event.step, shown.min, shown.max, shown.num),
                             (12, values.min(), values.max(), values.size), name)
            self.assertAlmostEqual(shown.sum, values.sum(), places=9)
            self.assertAlmostEqual(shown.sum_squares, (values ** 2).sum(), places=9)
            self.assertEqual(sum(shown.bucket), values.size)

    def test_gradients_are_those_of_the_step_and_frozen_ones_have_none(self):
        names = [tag for tag in self.once.Tags()["histograms"] if tag.startswith("weight_gradients/")]
        self.assertIn("weight_gradients/conv1/weight", names)
        self.assertNotIn("weight_gradients/conv2/weight", names)
        self.assertIn("weights/conv2/weight", self.once.Tags()["histograms"])
        for index, step in enumerate((4, 8, 12)):  # after clipping to 1
            norm = sum(self.once.Histograms(name)[index].histogram_value.sum_squares for name in names) ** 0.5
            before = dict(self.scalars(self.once, "train/gradient_norm"))[step]
            self.assertAlmostEqual(norm, min(1, before), places=3)

    def test_images(self):
        inputs, filters = self.once.Images("view/inputs"), self.once.Images("view/first_filters")
        self.assertEqual([event.step for event in inputs], [0])
        self.assertEqual([event.step for event in filters], [4, 8, 12])
        for event in (inputs[0], filters[0]):
            with Image.open(io.BytesIO(event.encoded_image_string)) as picture:
                self.assertEqual((picture.format, picture.mode, picture.size), ("PNG", "RGB", (event.width, event.height)))
                self.assertGreater(len(numpy.unique(numpy.asarray(picture))), 20)
        weight = self.weights["conv1.weight"]
        brightest = numpy.unravel_index(abs(weight).argmax(), weight.shape)
        with Image.open(io.BytesIO(filters[-1].encoded_image_string)) as picture:
            pixels = numpy.asarray(picture)
        self.assertIn(255 if weight[brightest] > 0 else 0, pixels)

    def test_the_job(self):
        text = self.once.Tensors("job")[0]
        shown = tensor_util.make_ndarray(text.tensor_proto).item().decode()
        self.assertTrue(shown.startswith("```\n{") and shown.endswith("}\n```"))
        job = json.loads(shown.strip("`"))
        self.assertEqual(job["job"]["steps"], 12)
        self.assertEqual(self.once.summary_metadata["job"].plugin_data.plugin_name, "text")

    def test_the_graph(self):
        graph = self.once.Graph()
        nodes = {node.name: node for node in graph.node}
        self.assertEqual(len(nodes), len(graph.node))
        self.assertEqual(nodes["conv1"].op, "conv")
        self.assertIn("conv1/weight", nodes["conv1"].input)
        self.assertEqual(nodes["conv1/weight"].op, "parameter")
        shape = [dim.size for dim in nodes["conv1/weight"].attr["_output_shapes"].list.shape[0].dim]
        self.assertEqual(shape, list(self.weights["conv1.weight"].shape))
        for node in graph.node:
            for name in node.input:
                self.assertIn(name.split(":")[0], nodes)

    def test_hyper_parameters(self):
        read = {}
        for tag in ("experiment", "session_start_info", "session_end_info"):
            content = self.once.summary_metadata[f"_hparams_/{tag}"].plugin_data
            self.assertEqual(content.plugin_name, metadata.PLUGIN_NAME)
            data = plugin_data_pb2.HParamsPluginData.FromString(content.content)
            self.assertEqual(data.WhichOneof("data"), tag)
            read[tag] = getattr(data, tag)
        values = {name: getattr(value, value.WhichOneof("kind"))
                  for name, value in read["session_start_info"].hparams.items()}
        self.assertEqual(values["batch_size"], 32)
        self.assertEqual(values["clip_norm"], 1)
        self.assertIs(values["telemetry.tensorboard.enabled"], True)
        self.assertEqual({info.name for info in read["experiment"].hparam_infos}, set(values))
        self.assertEqual([info.name.tag for info in read["experiment"].metric_infos],
                         ["train/loss", "validation/loss", "validation/accuracy"])
        self.assertEqual(read["session_end_info"].status, 1)

    def test_checksums_are_checked_and_right(self):
        """TensorBoard's reader stops at a record with a wrong checksum, and says so in its log."""
        whole = list(event_file_loader.RawEventFileLoader(str(self.first_file)).Load())
        self.assertGreater(len(whole), 12)
        data = bytearray(self.first_file.read_bytes())
        data[-10] ^= 1  # in the data of the last record
        with tempfile.TemporaryDirectory() as folder:
            damaged = pathlib.Path(folder) / self.first_file.name
            damaged.write_bytes(data)
            self.assertEqual(list(event_file_loader.RawEventFileLoader(str(damaged)).Load()), whole[:-1])

    def ask(self, url, path, body=None):
        request = urllib.request.Request(url + path, data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def check_server(self, fast):
        server = program.TensorBoard()
        server.configure(argv=[None, "--logdir", self.folder.name, "--port", "0", "--host", "127.0.0.1",
                               f"--load_fast={fast}", "--reload_interval", "0", "--samples_per_plugin",
                               "scalars=1000,histograms=100,images=100"])
        url = server.launch().rstrip("/")
        name = f"{RUN}/tensorboard"
        for _ in range(1800):  # it loads in the background
            shown = []
            if "train/loss" in self.ask(url, "/data/plugin/scalars/tags").get(name, {}):
                shown = self.ask(url, f"/data/plugin/scalars/scalars?run={name}&tag=train/loss")
            if len(shown) >= 12:
                break
            time.sleep(0.1)
        self.assertEqual([(step, value) for _, step, value in shown], self.scalars(self.once, "train/loss"))
        self.assertIn("weights/conv1/weight", self.ask(url, "/data/plugin/histograms/tags")[name])
        self.assertIn("view/inputs", self.ask(url, "/data/plugin/images/tags")[name])
        self.assertEqual(self.ask(url, f"/data/plugin/text/text?run={name}&tag=job")[0]["step"], 0)
        self.assertTrue(self.ask(url, "/data/plugin/graphs/info")[name]["run_graph"])
        experiment = self.ask(url, "/data/plugin/hparams/experiment", b'{"experimentName": ""}')
        self.assertIn("optimizer.adam.beta1", [info["name"] for info in experiment["hparamInfos"]])

    def test_the_server(self):
        self.check_server("false")

    def test_the_fast_server(self):
        self.check_server("true")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
