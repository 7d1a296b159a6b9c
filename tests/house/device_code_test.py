#!/usr/bin/env python3
"""What the compiler does not enforce: no atomics in GPU code, whose order would be undetermined, except for a flag,
whose value is the same in any order; and no conditional compilation in headers, except for features that only some
compilers have."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Comparisons in float_math are written for each side, to the same bits, which cuda.interpreted.ops holds.
CONDITIONAL = {"src/core/host_device.hpp", "src/core/vectorize.hpp", "src/device/float_math.hpp",
               "src/step/optim/update_kernels.hpp"}
FLAGS = {"src/step/optim/update_kernels.hpp": ["atomic", "atomicOr", "atomic_ref"]}  # in its header, CUDA and C++


def code(path):
    """The text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def sources(*patterns, at_least=20):
    found = [path for pattern in patterns for top in ("src", "include") for path in (ROOT / top).rglob(pattern)]
    assert len(found) >= at_least, patterns
    return found


class DeviceCode(unittest.TestCase):
    def test_no_atomics(self):
        for_gpus = [path for path in sources("*.hpp") if "LOCKSTEP_HOST_DEVICE" in code(path)] + sources("*.cu", "*.cuh",
                                                                                                   at_least=5)
        found = {str(path.relative_to(ROOT)): sorted(set(re.findall(r"\w*atomic\w*", code(path), re.IGNORECASE)))
                 for path in for_gpus}
        self.assertEqual({path: names for path, names in found.items() if names}, FLAGS)

    def test_headers_are_the_same_everywhere(self):
        found = {str(path.relative_to(ROOT)) for path in sources("*.hpp", "*.cuh")
                 if re.search(r"^ *# *(if|ifdef|ifndef)\b", code(path), re.MULTILINE)}
        self.assertEqual(found, CONDITIONAL)


if __name__ == "__main__":
    unittest.main(verbosity=2)
