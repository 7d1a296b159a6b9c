"""What the program says about GPUs on a machine without one, with stand-ins for the driver and for the CUDA module.

gpu_messages_test.py MODULE DRIVER_FOLDER
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

LOCKSTEP = os.environ["LOCKSTEP"]
MODULE, DRIVER = sys.argv[1:3]
HOST = socket.gethostname()

JOB = "job:\n  model: lenet\n  data: {train: digits}\n  steps: 1\n  device: cuda\n"
CUDA = "job.yaml:5:11: job.device: "
FIRST = "Stand-in 1, 9.0 GiB, compute capability 9.0, 0000:80:00.0"
SECOND = "Stand-in 0, 8.0 GiB, compute capability 9.0, 0000:90:00.0"


def run(*words, driver=True, module=MODULE, **settings):
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("CUDA_VISIBLE_DEVICES", "LOCKSTEP_CUDA_MODULE", "LD_LIBRARY_PATH")}
    environment["LOCKSTEP_CUDA_MODULE"] = module
    if driver:
        environment["LD_LIBRARY_PATH"] = DRIVER
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "job.yaml").write_text(JOB)
        done = subprocess.run([LOCKSTEP, *words], cwd=folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env={**environment, **settings}, timeout=120)
    return done


class Train(unittest.TestCase):
    def expect(self, message, *words, code=78, **options):
        done = run("train", "job.yaml", *words, **options)
        self.assertEqual((done.returncode, done.stderr), (code, f"lockstep: {message}\n"))
        self.assertEqual(done.stdout, "")

    def test_no_module(self):
        self.expect(CUDA + "expected the CUDA module, found none at /nowhere/x.so; build lockstep with -D "
                    "LOCKSTEP_CUDA=ON, or set device: cpu", module="/nowhere/x.so")

    @unittest.skipIf("libcuda.so.1" in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                                                     check=False).stdout, "there is a driver")
    def test_no_driver(self):
        self.expect(CUDA + f"expected NVIDIA's driver on {HOST}, found none (libcuda.so.1: cannot open shared object "
                    "file: No such file or directory); install one for CUDA 13.0 or later, start a container with its "
                    "GPUs (--gpus all), or set device: cpu", driver=False)

    def test_a_driver_that_does_not_work(self):
        self.expect(f"expected NVIDIA's driver to work on {HOST}, found: cuInit failed with 803 "
                    "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH); see the output of nvidia-smi, or set device: cpu",
                    STAND_IN_INIT="803", code=79)

    def test_no_fabric_manager(self):
        self.expect(f"expected NVIDIA's driver to work on {HOST}, found: cuInit failed with 802 "
                    "(CUDA_ERROR_SYSTEM_NOT_READY); GPUs with NVSwitch need NVIDIA's fabric manager: start it with systemctl "
                    "start nvidia-fabricmanager, of the driver's version, or set device: cpu", STAND_IN_INIT="802", code=79)

    def test_an_old_driver(self):
        self.expect(CUDA + f"expected a driver for CUDA 13.0 or later on {HOST}, found one for CUDA 12.4; update the "
                    "driver, or set device: cpu", STAND_IN_DRIVER="12040")

    def test_no_gpu(self):
        self.expect(CUDA + f"expected a GPU on {HOST}, found none: see nvidia-smi -L, or set device: cpu",
                    STAND_IN_GPUS="0")

    def test_no_visible_gpu(self):
        self.expect(CUDA + f"expected a GPU on {HOST}, found none: CUDA_VISIBLE_DEVICES is ''; unset it, or set "
                    "device: cpu", CUDA_VISIBLE_DEVICES="")

    def test_a_device_that_is_not_there(self):
        self.expect(f"command line: devices: expected GPUs of {HOST}, numbered 0 to 1: device 3 asked for, 2 "
                    "present; leave it out", "devices=[0,3]")

    def test_an_old_gpu(self):
        self.expect(CUDA + "expected a GPU of compute capability 8.0 or later for rank 0 on "
                    f"{HOST}, found {FIRST.replace('9.0, 0000', '7.0, 0000')}; leave it out by devices, or set device: "
                    "cpu", STAND_IN_MAJOR="7")

    def test_which_gpu_it_took(self):
        for words, gpu in (((), "Stand-in 1"), (("devices=[1]",), "Stand-in 0")):
            done = run("train", "job.yaml", "data.train.digits.count=128", "checkpoint=never", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"device {gpu}, sm_90, no libraries, driver for CUDA 13.0\n", done.stderr)

    def test_auto_is_the_cpu(self):
        words = ("train", "job.yaml", "data.train.digits.count=128", "checkpoint=never")
        for gpus, found in (("2", "2 GPUs (Stand-in 1)"), ("1", "a GPU (Stand-in 0)")):
            done = run(*words, "device=auto", STAND_IN_GPUS=gpus)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"warning: job.device: auto trains on the CPU, and {HOST} has {found} that stay idle; set device: cuda, or "
                          "device: cpu if that is meant\n", done.stderr)
        for options in ({"STAND_IN_GPUS": "0"}, {"driver": False}):
            self.assertNotIn("warning", run(*words, "device=auto", **options).stderr)
        self.assertNotIn("warning", run(*words, "device=cpu").stderr)


class Doctor(unittest.TestCase):
    def test_gpus_in_order_of_their_bus(self):
        text = run("doctor").stdout
        self.assertIn("CUDA module    for CUDA 13.0\n", text)
        self.assertIn("CUDA libraries no libraries, no NCCL\n"
                      "GPU code       its kernels are tested by interpreting nvcc's PTX; it has run on one H200, not on several GPUs\n", text)
        self.assertIn("GPU driver     550.54.15, for CUDA 13.0\n"
                      f"GPU 0          {FIRST}\nGPU 1          {SECOND}\n", text)

    def test_a_driver_that_does_not_say_its_version(self):
        text = run("doctor", NVML_STAND_IN="no_driver").stdout
        self.assertIn("GPU driver     for CUDA 13.0\n", text)

    def test_visible_devices(self):
        text = run("doctor", CUDA_VISIBLE_DEVICES="").stdout
        self.assertIn("visible        CUDA_VISIBLE_DEVICES is ''\nGPUs           none visible to this process\n", text)

    def test_a_gpu_without_a_module(self):
        text = run("doctor", module="/nowhere/x.so").stdout
        self.assertIn("missing        a matching CUDA module: scripts/cuda-toolkit.sh fetches the toolkit to build it with, see "
                      "docs/gpu.md\n", text)

    def test_an_old_driver(self):
        text = run("doctor", STAND_IN_DRIVER="12040").stdout
        self.assertIn("missing        a driver for CUDA 13.0: update NVIDIA's driver\n", text)

    def test_nothing_is_missing_without_a_driver(self):
        done = run("doctor", driver=False, module="/nowhere/x.so")
        self.assertEqual(done.returncode, 0)
        self.assertFalse(re.search("missing .*(GPU|CUDA|driver)", done.stdout), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
