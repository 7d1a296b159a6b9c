"""What each kernel of the CUDA module needs from a GPU, read from the module without one: a block must fit into a
multiprocessor, or the launch fails, and only on a GPU. Also checks how a kernel sets a flag that threads of several
blocks set, and which fuse products with sums.

    kernel_limits_test.py MODULE TOOLKIT_BIN

Skipped if there is no cuobjdump.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

MODULE, TOOLS = sys.argv[1:3]
GRID = pathlib.Path(__file__).resolve().parents[2] / "src" / "device" / "gpu" / "grid.hpp"
CUOBJDUMP = shutil.which("cuobjdump", path=f"{TOOLS}:{os.environ['PATH']}")
# For every GPU since 8.0: registers of a multiprocessor and of a thread, shared memory of a block without opting in,
# and bytes of a kernel's parameters (the CUDA C++ programming guide's table of compute capabilities).
REGISTERS, REGISTERS_OF_A_THREAD, SHARED, PARAMETERS = 65536, 255, 48 * 1024, 4096
# Registers are allocated in units of 256 per warp, so 8 per thread.
UNIT = 8
# Room for up to six registers, saved across the call of a 64-bit division, or spilled so that more blocks run at once.
# More would be an array in memory, or real spilling.
STACK = 24
# Before a kernel's own parameters, its constant bank holds the grid's sizes: 352 bytes on 8.0, 528 on 9.0.
BEFORE_PARAMETERS = {"sm_80": 352, "sm_90": 528}
USAGE = re.compile(r"arch = (?P<arch>sm_\d+)|Function (?P<kernel>\S+):|REG:(?P<registers>\d+) STACK:(?P<stack>\d+) "
                   r"SHARED:(?P<shared>\d+) LOCAL:(?P<local>\d+) .*?CONSTANT\[0\]:(?P<constant>\d+)")


def usages(text):
    """[(architecture, kernel, {what: how much})] from cuobjdump's output; a kernel is listed once for each source
    file."""
    found, arch, kernel = [], None, None
    for match in USAGE.finditer(text):
        if match["arch"]:
            arch = match["arch"]
        elif match["kernel"]:
            kernel = match["kernel"]
        else:
            usage = {name: int(value) for name, value in match.groupdict().items() if value is not None}
            found.append((arch, kernel, usage))
    return found


def problems(usage, arch, threads):
    """In which ways a kernel exceeds the limits."""
    rounded = -(-usage["registers"] // UNIT) * UNIT
    if usage["registers"] > REGISTERS_OF_A_THREAD or rounded * threads > REGISTERS:
        yield f"expected at most {REGISTERS // threads} registers for {threads} threads, found {usage['registers']}"
    if usage["shared"] > SHARED:
        yield f"expected at most {SHARED} bytes of static shared memory, found {usage['shared']}"
    if usage["stack"] > STACK or usage["local"]:
        yield f"expected at most {STACK} bytes of stack, found {usage['stack']} and {usage['local']} of local memory"
    if usage["constant"] - BEFORE_PARAMETERS.get(arch, 0) > PARAMETERS:
        yield f"expected at most {PARAMETERS} bytes of parameters, found {usage['constant']}"


def block_threads():
    return int(re.search(r"kBlockThreads = (\d+);", GRID.read_text(encoding="utf-8"))[1])


class Limits(unittest.TestCase):
    GOOD = {"registers": 32, "stack": 0, "shared": 0, "local": 0, "constant": 400}

    def test_each_kernel_fits(self):
        text = subprocess.run([CUOBJDUMP, "--dump-resource-usage", MODULE], capture_output=True, text=True,
                              check=True).stdout
        kernels = usages(text)
        self.assertEqual(len(kernels), text.count("REG:"), "lines of another form")
        by_arch = {}
        for arch, kernel, _ in kernels:
            by_arch.setdefault(arch, set()).add(kernel)
        for names in by_arch.values():
            self.assertGreater(len(names), 200)
            self.assertEqual(names, next(iter(by_arch.values())), "each architecture has all kernels")
        bad = [f"{kernel} for {arch}: {problem}" for arch, kernel, usage in kernels
               for problem in problems(usage, arch, block_threads())]
        self.assertEqual(bad, [])
        for arch, kernel, usage in kernels:
            if usage["stack"]:
                print(f"{kernel} for {arch} has {usage['stack']} bytes of stack")

    def test_the_flag_of_an_overflow_is_set_atomically(self):
        """By the kernel that gathers gradients (step/optim/update_kernels.hpp); the flag is the only integer that it
        stores."""
        text = subprocess.run([CUOBJDUMP, "--dump-ptx", MODULE], capture_output=True, text=True, check=True).stdout
        kernels = [kernel for kernel in text.split(".entry ")[1:] if "5optim18GatherPartsFunctor" in kernel.split("(")[0]]
        self.assertTrue(kernels)
        for kernel in kernels:
            self.assertRegex(kernel, r"\b(atom|red)\.(\w+\.)*global\.")
            self.assertNotRegex(kernel, r"\bst\.global\.[bsu]\d+")

    def test_products_are_fused_only_where_that_is_said(self):
        """By those whose order of sums it is (SumOrder::fused, device/gpu/product.hpp)."""
        text = subprocess.run([CUOBJDUMP, "--dump-ptx", MODULE], capture_output=True, text=True, check=True).stdout
        fused = [kernel.split("(")[0] for kernel in text.split(".entry ")[1:] if re.search(r"\bfma\.", kernel)]
        self.assertTrue(fused)
        for kernel in fused:
            self.assertRegex(kernel, "7ProductILNS0_8SumOrderE2E")

    def test_what_does_not_fit_is_found(self):
        for more, words in (({"registers": 65}, "expected at most 64 registers for 1024 threads, found 65"),
                            ({"shared": SHARED + 1}, "expected at most 49152 bytes of static shared memory, found 49153"),
                            ({"stack": 32}, "expected at most 24 bytes of stack, found 32 and 0 of local memory"),
                            ({"constant": 4449}, "expected at most 4096 bytes of parameters, found 4449")):
            with self.subTest(more=more):
                self.assertEqual(list(problems({**self.GOOD, **more}, "sm_80", 1024)), [words])
        self.assertEqual(list(problems(self.GOOD, "sm_80", 1024)), [])


if __name__ == "__main__":
    if CUOBJDUMP is None:
        print(f"skipped: no cuobjdump in {TOOLS} and PATH; scripts/cuda-toolkit.sh fetches it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
