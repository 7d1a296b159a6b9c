#!/usr/bin/env python3
"""The image with the CUDA module on a machine without a GPU: the module loads, the missing driver is reported by name,
and the CPU trains to the same bits."""
import unittest

from image_test import JOB, BuiltImage, here, main, trained_hash


class CudaImage(BuiltImage):
    name = "localhost/lockstep:cuda"

    def test_the_module_loads_and_only_the_driver_is_missed(self):
        report = self.inside("lockstep", "doctor").stdout
        self.assertRegex(report, r"(?m)^CUDA module +for CUDA 13")
        self.assertRegex(report, r"(?m)^GPUs +none: NVIDIA's driver is not installed")
        self.assertRegex(report, r"(?m)^lockstep can train on this machine$")

    def test_without_a_driver_device_cuda_ends_with_78(self):
        done = self.inside("sh", "-c", f"cd /tmp && lockstep train device=cuda {' '.join(JOB)}")
        self.assertEqual(done.returncode, 78)
        self.assertIn("expected NVIDIA's driver on ", done.stderr)

    def test_the_cpu_trains_to_the_same_bits(self):
        there = self.inside("sh", "-c", f"cd /tmp && lockstep train --ranks 2 device=cpu {' '.join(JOB)}")
        self.assertEqual(trained_hash(there), here())


if __name__ == "__main__":
    main("--cuda")
