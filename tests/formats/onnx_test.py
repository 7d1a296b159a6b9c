#!/usr/bin/env python3
"""Exported ONNX files: what onnx's checker and onnxruntime say of them, beside lockstep's own predictions."""
import csv
import datetime
import json
import pathlib
import sys
import unittest

import numpy
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from jobs import FLATS, JOBS, NEW_FLATS, image_job  # noqa: E402  pylint: disable=wrong-import-position
from program import WithProgram, write_image  # noqa: E402  pylint: disable=wrong-import-position
import lockstep_reader as reader  # noqa: E402  pylint: disable=wrong-import-position


def fed(inputs):
    """Random samples as the graph takes them: images as bytes, a table's columns one by one."""
    made = {}
    for name, tensor in inputs.items():
        values = numpy.array(tensor["values"])
        if name == "features":
            made |= {column: values[:, i:i + 1].astype(numpy.float64) for i, column in enumerate("ab")}
        else:
            dtype = numpy.uint8 if len(tensor["shape"]) == 3 else numpy.int32
            made[name] = values.reshape(-1, *tensor["shape"]).astype(dtype)
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
                self.assertEqual(json.loads(metadata["lockstep.data"])["prepare"], job["data"].get("prepare", []))
                found, = self.session(name).run(["prediction"], fed(expected["inputs"]))
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

    def session(self, name):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        path = str(self.folder / f"{name}.onnx")
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def export(self, run, *words):
        self.run_program("checkpoint", "export", run, f"{run}.onnx", "--to", "onnx", "--force", *words)
        onnx.checker.check_model(onnx.load(str(self.folder / f"{run}.onnx")), full_check=True)
        return self.session(run)

    @staticmethod
    def ports(ports):
        return {port.name: (port.type, port.shape) for port in ports}

    def test_values_that_are_written_otherwise(self):
        """2.0 and True are the categories 2 and true, as pandas and Python write them; dates are texts or objects."""
        lines = [f"{('true', 'false', '')[i % 3]},{('1', '2', '')[i // 2 % 3]},2021-0{i % 9 + 1}-11,{i * 7 % 11}\n"
                 for i in range(60)]
        (self.folder / "codes.csv").write_text("sure,code,day,price\n" + "".join(lines))
        new = [("TRUE", "2.0", "2021-03-11"), ("False", "1", "2021-03-12 06:00:00"), ("true", "1.0", "2022-01-01T12:00:00Z"),
               ("", "2", ""), ("True", "", "2021-02-03T04:05:06.789012+02:00"), ("odd", "3", "1969-12-31")]
        (self.folder / "new.csv").write_text("sure,code,day\n" + "".join(",".join(row) + "\n" for row in new))
        self.train("codes", {
            "model": {"layers": [{"linear": 8}, "tanh", {"linear": 1}]}, "batch_size": 8, "steps": 30,
            "loss": "mean_squared_error", "metrics": [], "seed": 3, "telemetry": {"tensorboard": False},
            "data": {"train": {"table": {"path": "codes.csv", "target": "price", "categorical": ["code"],
                                         "unknown": "ignore"}}}})
        session = self.export("codes")
        _, expected = self.predicted("codes", "new.csv")
        schema = reader.schema_of(session)
        rows = [dict(zip(("sure", "code", "day"), row)) for row in new]
        of_texts = {name: values for name, values in schema.raw_inputs(rows).items() if name == "day"}
        for name in ("sure", "code"):
            of_texts[name] = numpy.array([[row[name]] for row in rows], object)
        of_objects = [{**row, "sure": {"TRUE": True, "False": False}.get(row["sure"], row["sure"]),
                       "code": float(row["code"]) if row["code"] else None,
                       "day": datetime.datetime.fromisoformat(row["day"].replace("Z", "+00:00")) if row["day"] else None}
                      for row in rows]
        for inputs in (of_texts, schema.raw_inputs(rows), schema.raw_inputs(of_objects)):
            numpy.testing.assert_allclose(session.run(["prediction"], inputs)[0], expected, rtol=1e-5, atol=1e-5)

    def test_a_table_of_numbers_categories_and_missing_values(self):
        """A raw row in, what `predict` says of it out. A column is called as a parameter, others as outputs."""
        (self.folder / "flats.csv").write_text(FLATS)
        (self.folder / "new.csv").write_text(NEW_FLATS)
        rows = list(csv.DictReader(NEW_FLATS.splitlines()))
        columns = list(rows[0])
        for target, loss, more, last in (
                ("kind", "cross_entropy", {}, 3), ("sold", "binary_cross_entropy", {}, 1),
                ("price", "mean_squared_error", {"normalize_target": True}, 1)):
            with self.subTest(target=target):
                self.train(target, {
                    "model": {"layers": [{"linear": 8}, "tanh", {"linear": last}]},
                    "batch_size": 8, "steps": 30, "loss": loss,
                    "data": {"train": {"table": {"path": "flats.csv", "target": target, "features": columns}},
                             "validation": {"fraction": 0.2}, **more},
                    "metrics": [], "seed": 3, "telemetry": {"tensorboard": False}})
                session = self.export(target)
                texts = {"city", "label"}
                self.assertEqual(self.ports(session.get_inputs()), {
                    name: (f"tensor({'string' if name in texts else 'double'})", ["batch", 1])
                    for name in columns})
                fed_rows = {name: numpy.array([[row[name]] for row in rows], object) if name in texts else
                            numpy.array([[float(row[name] or "nan")] for row in rows], numpy.float64)
                            for name in columns}
                names, expected = self.predicted(target, "new.csv")
                schema = reader.schema_of(session)
                self.assertEqual({name: values.tolist() for name, values in schema.raw_inputs(rows).items()}.keys(),
                                 fed_rows.keys())
                raw = dict(zip((port.name for port in session.get_outputs()), session.run(None, fed_rows)))
                again = session.run(["output_prediction"], schema.raw_inputs(rows))[0]
                self.assertEqual(again.tolist(), raw["output_prediction"].tolist())
                if target == "price":
                    self.assertEqual(list(raw), ["output_prediction"])
                    numpy.testing.assert_allclose(raw["output_prediction"], expected, rtol=1e-5)
                    self.assertGreater(expected.min(), 100000)
                    self.assertEqual([one.values for one in schema.answers(again)], again.tolist())
                    continue
                self.assertEqual(list(raw), ["output_label", "probabilities", "output_prediction"])
                classes = {"kind": ["flat", "house", "loft, large"], "sold": ["no", "yes"]}[target]
                self.assertEqual(names, classes if target == "kind" else ["yes"])
                numpy.testing.assert_allclose(raw["probabilities"][:, -len(names):], expected, rtol=1e-4, atol=1e-6)
                self.assertEqual(raw["output_label"].tolist(), [classes[i] for i in raw["probabilities"].argmax(1)])
                self.assertGreater(len(set(raw["output_label"])), 1)
                numpy.testing.assert_allclose(numpy.sum(raw["probabilities"], 1), 1, rtol=1e-5)
                unknown = "column 'city': a value that is no category of the training set"
                with self.assertRaisesRegex(Exception, unknown):
                    session.run(None, fed_rows | {"city": numpy.full((len(rows), 1), "Paris", object)})
                with self.assertRaisesRegex(
                        reader.UnsupportedError, "row 0: column 'city': expected one of Bonn, Köln, as in the "
                        "training set, found 'Paris'; leave the row out"):
                    schema.raw_inputs([rows[0] | {"city": "Paris"}])
                layers = self.export(target, "--raw")
                self.assertEqual(self.ports(layers.get_inputs()), {"features": ("tensor(float)", ["batch", 10])})
                prediction, = layers.run(None, reader.schema_of(layers).inputs(rows))
                numpy.testing.assert_allclose(prediction, raw["output_prediction"], rtol=1e-4, atol=1e-6)

    def test_categories_that_training_lacks(self):
        """With `unknown: ignore` they are none of the others, as for `predict`."""
        (self.folder / "flats.csv").write_text(FLATS)
        new = list(csv.DictReader(NEW_FLATS.splitlines()))
        (self.folder / "new.csv").write_text("\n".join(
            [",".join(new[0]), *(",".join((row | {"city": "Paris"}).values()) for row in new), ",".join(new[0].values())]))
        rows = [*(row | {"city": "Paris"} for row in new), new[0]]
        self.train("rooms", {"model": {"layers": [{"linear": 3}]}, "batch_size": 8, "steps": 30, "data": {"train": {"table": {
            "path": "flats.csv", "target": "kind", "features": list(new[0]), "unknown": "ignore"}}}})
        session = self.export("rooms")
        _, expected = self.predicted("rooms", "new.csv")
        schema = reader.schema_of(session)
        numpy.testing.assert_allclose(session.run(["probabilities"], schema.raw_inputs(rows))[0], expected, rtol=1e-4,
                                      atol=1e-6)
        layers = self.export("rooms", "--raw")
        numpy.testing.assert_allclose(layers.run(None, reader.schema_of(layers).inputs(rows))[0],
                                      session.run(["output_prediction"], schema.raw_inputs(rows))[0], rtol=1e-4, atol=1e-6)

    def test_a_time_series(self):
        """Windows of raw rows in, what `predict` says of them out."""
        (self.folder / "flats.csv").write_text(FLATS)
        self.train("series", {
            "model": {"layers": [{"lstm": {"features": 5}}, "flatten", {"linear": 2}]},
            "batch_size": 8, "steps": 10, "seed": 3, "metrics": [], "loss": "mean_squared_error",
            "data": {"train": {"table": {"path": "flats.csv", "target": "price", "features": ["price", "city", "area"],
                                         "window": 3, "horizon": 2}},
                     "normalize_target": True},
            "telemetry": {"tensorboard": False}})
        session = self.export("series")
        self.assertEqual(self.ports(session.get_inputs()), {
            name: (f"tensor({'string' if name == 'city' else 'double'})", ["batch", 3, 1])
            for name in ("price", "city", "area")})
        rows = list(csv.DictReader(FLATS.splitlines()))[:9]
        schema = reader.schema_of(session)
        found, = session.run(["prediction"], schema.raw_inputs(rows))
        (self.folder / "new.csv").write_text("\n".join(FLATS.splitlines()[:10]) + "\n")
        names, expected = self.predicted("series", "new.csv")
        self.assertEqual((names, len(expected)), (["price+1", "price+2"], 7))
        numpy.testing.assert_allclose(found, expected, rtol=1e-5)
        layers = self.export("series", "--raw")
        prediction, = layers.run(None, reader.schema_of(layers).inputs(rows))
        numpy.testing.assert_allclose(prediction, found, rtol=1e-4)
        with self.assertRaisesRegex(reader.UnsupportedError,
                                    "samples: expected 3 rows for a window, found 2; give more"):
            schema.raw_inputs(rows[:2])

    def test_what_is_around_the_layers_is_of_onnx_alone(self):
        self.train("torch", image_job("lenet"))
        words = ["checkpoint", "export", "torch", "torch.safetensors", "--to", "torch", "--raw"]
        said = self.run_program(*words, code=64).stderr
        self.assertEqual(said.splitlines()[0], "lockstep: --raw: expected --to onnx, found torch; leave it out")

    def test_several_outputs(self):
        (self.folder / "flats.csv").write_text(FLATS)
        (self.folder / "new.csv").write_text(NEW_FLATS)
        rows = list(csv.DictReader(NEW_FLATS.splitlines()))
        self.train("both", {
            "model": {"layers": [{"linear": 8}, {"relu": {}, "name": "body"},
                                 {"linear": {"features": 3, "inputs": ["body"]}, "name": "a"},
                                 {"linear": {"features": 1, "inputs": ["body"]}, "name": "b"}]},
            "loss": [{"cross_entropy": {}, "name": "kind", "output": "a", "target": "kind"},
                     {"mean_squared_error": {}, "name": "price", "output": "b", "target": "price"}],
            "data": {"train": {"table": {"path": "flats.csv", "target": ["kind", "price"],
                                         "features": ["area", "city"]}},
                     "validation": {"fraction": 0.2}, "normalize_target": True},
            "batch_size": 8, "steps": 10, "seed": 3, "metrics": [], "telemetry": {"tensorboard": False}})
        session = self.export("both")
        schema = reader.schema_of(session)
        raw = dict(zip((port.name for port in session.get_outputs()), session.run(None, schema.raw_inputs(rows))))
        names, expected = self.predicted("both", "new.csv")
        self.assertEqual(names, ["kind/flat", "kind/house", "kind/loft, large", "price"])
        self.assertEqual(list(raw), ["kind/label", "kind/probabilities", "price", "prediction"])
        numpy.testing.assert_allclose(raw["kind/probabilities"], expected[:, :3], rtol=1e-4, atol=1e-6)
        numpy.testing.assert_allclose(raw["price"].ravel(), expected[:, 3], rtol=1e-5)
        for answer, row in zip(schema.answers(raw["prediction"]), expected):
            self.assertAlmostEqual(answer["kind"].best.probability, row[:3].max(), 5)
            self.assertAlmostEqual(answer["price"].values[0] / row[3], 1, 5)

    def test_images(self):
        """The bytes of an image in; where the job resizes, after the steps of `prepare`."""
        random = numpy.random.default_rng(3)
        pixels = random.integers(0, 256, (4, 28, 28, 1), numpy.uint8)
        files = [f"{i}.png" for i in range(len(pixels))]
        for file, image in zip(files, pixels):
            write_image(self.folder / file, image)
        for name in ("lenet", "prepared"):
            with self.subTest(model=name):
                self.train(f"raw-{name}", JOBS[name] | {"steps": 20})
                session = self.export(f"raw-{name}")
                schema = reader.schema_of(session)
                names, expected = self.predicted(f"raw-{name}", *files)
                raw = schema.raw_inputs(pixels)
                if name == "lenet":
                    self.assertEqual(raw["image"].tolist(), pixels.tolist())
                label, probabilities, prediction = session.run(["label", "probabilities", "prediction"], raw)
                numpy.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)
                self.assertEqual(label.tolist(), [names[i] for i in expected.argmax(1)])
                for answer, row in zip(schema.answers(prediction), expected):
                    self.assertEqual(answer.best.name, names[row.argmax()])
                    self.assertAlmostEqual(answer.best.probability, row.max(), 5)

    def test_texts(self):
        texts = ["ababa", "ab", "c" * 30]
        for i, text in enumerate(texts):
            (self.folder / f"{i}.txt").write_text(text)
        self.train("raw-texts", JOBS["bert-classes"] | {"steps": 10})
        session = self.export("raw-texts")
        schema = reader.schema_of(session)
        names, expected = self.predicted("raw-texts", *(f"{i}.txt" for i in range(len(texts))))
        label, probabilities = session.run(["label", "probabilities"], schema.raw_inputs(texts))
        numpy.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)
        self.assertEqual(label.tolist(), [names[i] for i in expected.argmax(1)])


if __name__ == "__main__":
    unittest.main()
