#!/usr/bin/env python3
"""Exported ONNX files: what onnx's checker and onnxruntime say of them, beside lockstep's own predictions."""
import json
import pathlib
import sys
import unittest

import numpy
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from jobs import JOBS, image_job  # noqa: E402  pylint: disable=wrong-import-position
from program import WithProgram  # noqa: E402  pylint: disable=wrong-import-position

def fed(inputs, metadata):
    """Samples as the model wants them: what the file's metadata say is done to them."""
    made = {}
    for name, tensor in inputs.items():
        if len(tensor["shape"]) == 3:
            values = numpy.array(tensor["values"], numpy.float32) / numpy.float32(255)
            values = values.reshape(-1, *tensor["shape"])
            if "mean" in metadata:
                values = (values - numpy.array(json.loads(metadata["mean"]), numpy.float32)) / numpy.array(
                    json.loads(metadata["std"]), numpy.float32)
            made[name] = values.astype(numpy.float32)
        elif name == "features":
            values = numpy.array(tensor["values"], numpy.float32)
            made[name] = ((values - numpy.array(json.loads(metadata["mean"]), numpy.float32)) / numpy.array(
                json.loads(metadata["std"]), numpy.float32)).astype(numpy.float32)
        else:
            made[name] = numpy.array(tensor["values"], numpy.int32).reshape(-1, *tensor["shape"])
    return made


def tokens_of(source):
    """The characters of the texts, in their order, which are the tokens of `tokenizer: characters`."""
    (kind, _), = source.items()
    return {"text": sorted(chr(97 + i) for i in {i * i % 17 for i in range(17)}),
            "texts": [chr(97 + i) for i in range(17)]}.get(kind)


class Onnx(WithProgram):
    def test_every_model_of_the_zoo_has_a_job(self):
        model = json.loads(self.run_program("schema").stdout)["properties"]["job"]["else"]["properties"]["model"]
        keys = next(form for form in model["oneOf"] if form.get("type") == "object")["properties"]
        names = {job["model"] if isinstance(job["model"], str) else next(iter(job["model"])) for job in JOBS.values()}
        self.assertIn("gpt", keys)
        self.assertEqual(set(keys) - {"inputs", "freeze", "lora"} - names, set())

    def test_models(self):
        for name, job in JOBS.items():
            with self.subTest(model=name):
                self.train(name, job)
                self.run_program("checkpoint", "export", name, f"{name}.onnx", "--to", "onnx")
                path = str(self.folder / f"{name}.onnx")
                model = onnx.load(path)
                onnx.checker.check_model(model, full_check=True)
                self.assertEqual([(opset.domain, opset.version) for opset in model.opset_import], [("", 20)])
                metadata = {entry.key: entry.value for entry in model.metadata_props}
                self.assertEqual(json.loads(metadata.get("prepare", "null")), job["data"].get("prepare"))
                self.assertEqual(json.loads(metadata.get("tokens", "null")), tokens_of(job["data"]["train"]))
                expected = self.predictions(name)
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = 1
                session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
                found, = session.run(["prediction"], fed(expected["inputs"], metadata))
                values = numpy.array(expected["predictions"]["values"], numpy.float32)
                self.assertEqual(list(found.shape[1:]), expected["predictions"]["shape"])
                self.assertGreater(numpy.abs(values).max(), 1e-3)
                numpy.testing.assert_allclose(found.reshape(values.shape), values, rtol=1e-4, atol=1e-4)

    def test_layouts(self):
        """Convolutions, norms and elementwise ops in a row have no transposition between them."""
        self.train("row", image_job({"resnet": 20}))
        self.run_program("checkpoint", "export", "row", "row.onnx", "--to", "onnx")
        nodes = onnx.load(str(self.folder / "row.onnx")).graph.node
        self.assertEqual([node.op_type for node in nodes].count("Transpose"), 1)
        metadata = {entry.key: entry.value for entry in onnx.load(str(self.folder / "row.onnx")).metadata_props}
        self.assertEqual(json.loads(metadata["labels"]), list("0123456789"))
        self.assertEqual(metadata["checkpoint"], "row/checkpoints/step-00000002")


if __name__ == "__main__":
    unittest.main()
