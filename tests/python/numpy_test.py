#!/usr/bin/env python3
"""lockstep_reader with numpy, beside the safetensors library. Run by scripts/python.sh."""
import unittest

import numpy
from safetensors.numpy import load_file, save_file

from reading import SMALL, InFolder, program, reader


class WithNumpy(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program("train", *SMALL, "steps=4", "evaluate.every=2 steps", f"run_directory={cls.folder}/run")
        program("checkpoint", "export", "run", "model.safetensors", folder=cls.folder)
        cls.run_ = reader.open_run(cls.folder / "run")

    def test_tensors_are_those_of_the_library(self):
        expected, checkpoint = load_file(self.folder / "model.safetensors"), self.run_.checkpoint()
        self.assertEqual(expected.keys(), checkpoint.weights().keys())
        for name, values in expected.items():
            found = checkpoint[name].numpy()
            self.assertEqual((found.dtype, found.shape), (values.dtype, values.shape))
            numpy.testing.assert_array_equal(found, values)
            numpy.testing.assert_array_equal(numpy.asarray(checkpoint[name]), values)
        found[...] = 0  # its own memory
        self.assertEqual(numpy.asarray(checkpoint[name], dtype=numpy.float64).dtype, numpy.float64)

    def test_types(self):
        tensors = {kind: numpy.arange(6).reshape(2, 3).astype(kind) for kind in (
            "float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint16", "uint8", "bool")}
        tensors |= {"none": numpy.zeros((0, 3), "float32"), "number": numpy.array(3, "float32")}
        save_file(tensors, self.own / "all.safetensors")
        file = reader.open_weights(self.own / "all.safetensors")
        for name, values in tensors.items():
            found = file[name].numpy()
            self.assertEqual((found.dtype, found.shape), (values.dtype, values.shape))
            numpy.testing.assert_array_equal(found, values)
            numpy.testing.assert_array_equal(numpy.array(file[name].array()), values.ravel())
            if name != "float16":
                self.assertEqual(file[name].memoryview().tolist(), values.tolist() if values.shape else [3.0])

    def test_curves(self):
        curve = self.run_.training().to_numpy()
        self.assertEqual(curve["step"].tolist(), [1, 2, 3, 4])
        self.assertEqual(curve["loss"].dtype, numpy.float64)
        sparse = reader.Columns([{"a": 1, "b": 2.0}, {"a": 2}, {"a": 3, "b": None}]).to_numpy()
        numpy.testing.assert_array_equal(sparse["b"], [2.0, numpy.nan, numpy.nan])


if __name__ == "__main__":
    unittest.main()
