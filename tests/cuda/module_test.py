"""The CUDA module and the program on a machine without a GPU: what they link, share and print.

module_test.py MODULE CHECK_PROGRAM
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

LOCKSTEP = os.environ["LOCKSTEP"]
MODULE, CHECK = sys.argv[1:3]
OPS = pathlib.Path(__file__).resolve().parents[2] / "src" / "ops"


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def needed(file):
    return re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", file))


class Module(unittest.TestCase):
    def test_the_program_needs_no_cuda_library(self):
        self.assertTrue(needed(LOCKSTEP))
        for library in re.findall(r"^\s*(\S+)", output("ldd", LOCKSTEP), re.MULTILINE):
            self.assertNotRegex(library, "^lib(cud|cublas|nccl|nv)")

    def test_the_module_needs_cuda_and_nothing_that_only_the_cpu_uses(self):
        libraries = needed(MODULE)
        for name in ("libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13", "libnccl.so.2"):
            self.assertIn(name, libraries)
        for library in libraries:
            self.assertNotRegex(library, "libcuda.so|mpi|dnnl|yaml|curl|archive|crypto")

    def test_the_module_exports_its_entries_alone(self):
        names = re.findall(r"^\S+ [A-Z] (\S+)", output("nm", "-D", "--defined-only", MODULE), re.MULTILINE)
        self.assertEqual(sorted(names), ["lockstep_cuda_" + name for name in (
            "build_id", "libraries", "make_gather_kernels", "make_gpu", "make_profiler", "make_transport",
            "make_update_kernels", "register", "transport_library", "version")])

    def test_the_module_has_no_state_of_ours(self):
        """Rooms are linked into both program and module; a variable would exist twice, with two values."""
        symbols = re.findall(r"^\S+ [bBdDuG] (.*)", output("nm", "-C", "--defined-only", MODULE), re.MULTILINE)
        constant = ("vtable for ", "typeinfo for ", "typeinfo name for ", "VTT for ", "construction vtable for ")
        self.assertTrue(symbols)
        ours = [name for name in symbols if "lockstep::" in name and "__device_stub__" not in name]  # except nvcc's own
        # CUPTI's callbacks get no pointer of ours. The file belongs to the module, not to a room.
        self.assertEqual([name for name in ours if not name.startswith(constant)], ["lockstep::device::cupti_reader"])

    def test_kernels_of_every_file_are_registered(self):
        lines = output(CHECK, MODULE).splitlines()
        defined = re.compile(r"^std::unique_ptr<Kernel> make_(\w+)_(?:grid|cuda)\(const KernelRequest& request\) {", re.MULTILINE)
        ops = {name for pattern in ("*/*_grid.hpp", "*/*_cuda.cu") for path in OPS.glob(pattern)
               for name in defined.findall(path.read_text())}
        table = (OPS / "activations/activations.hpp").read_text()
        ops |= set(re.findall(r"^  USE\(\w+, (\w+)\)", table, re.MULTILINE))
        self.assertGreater(len(ops), 10)
        self.assertEqual(lines, sorted(ops) + ["caught 70"])

    def test_code_for_each_architecture(self):
        data = pathlib.Path(MODULE).read_bytes()
        for text in (b"sm_80", b"sm_90", b"compute_90"):
            self.assertIn(text, data, "see CMAKE_CUDA_ARCHITECTURES in cmake/Cuda.cmake")

    def test_the_program_starts_without_a_driver_and_finds_its_module(self):
        environment = {key: value for key, value in os.environ.items() if key != "LOCKSTEP_CUDA_MODULE"}
        done = subprocess.run([LOCKSTEP, "doctor"], capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"CUDA module +for CUDA 13\.\d\n"
                         r"CUDA libraries CUDA runtime 13\d+, cuBLASLt 13\d+, cuDNN 9\d+, NCCL 2\.\d+\.\d+\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
