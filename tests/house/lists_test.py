"""cmake/WriteLists.cmake: what it finds, and that a changed definition is an error instead of a shorter list."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "cmake" / "WriteLists.cmake"
LISTED = ("ops/*/*_op.cpp", "ops/*/*_cases.cpp", "ops/*/*_grid.hpp", "ops/*/*_cuda.cu",
          "ops/activations/activations.hpp", "graph/models/*.cpp", "data/augment_steps/*.cpp", "step/optim/optimizers/*.hpp",
          "step/optim/schedules/*.cpp")


class Lists(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.lists = pathlib.Path(folder.name, "src"), pathlib.Path(folder.name, "lists")
        self.lists.mkdir()
        for pattern in LISTED:
            for file in (ROOT / "src").glob(pattern):
                to = self.source / file.relative_to(ROOT / "src")
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)

    def write(self):
        ran = subprocess.run(["cmake", "-D", f"SOURCE={self.source}", "-D", f"LISTS={self.lists}", "-D",
                              "KERNEL_UNITS=4", "-D", "OPS_TEST=ops_test", "-P", SCRIPT], capture_output=True,
                             text=True)
        return ran.returncode, " ".join(ran.stderr.split())

    def test_lists_every_definition(self):
        self.assertEqual(self.write(), (0, ""))
        for file, folder, line in (("models.cpp", "graph/models/*.cpp", "registry.add(make_{}())"),
                                   ("augmentations.cpp", "data/augment_steps/*.cpp", "registry.add(make_{}())"),
                                   ("ops.cpp", "ops/linear/linear_op.cpp", "registry.add(make_linear())")):
            text = (self.lists / file).read_text()
            for source in self.source.glob(folder):
                self.assertIn(line.format(source.stem), text)

    def test_refuses_what_it_would_lose(self):
        for file, definition, changed in (
            ("ops/softmax/softmax_op.cpp", "OpDef make_softmax() {", "OpDef make_softmax(int width) {"),
            ("ops/softmax/softmax_cases.cpp", "OpCases make_softmax_cases() {", "static OpCases make_softmax_cases() {"),
            ("ops/softmax/softmax_op.cpp", "void softmax_to_onnx(OnnxScope& scope) {",
             "void softmax_to_onnx(const OnnxScope& scope) {"),
            ("graph/models/mlp.cpp", "ModelDef make_mlp() {", "ModelDef make_mlp(int depth) {"),
            ("data/augment_steps/flip.cpp", "AugmentDef make_flip() {", "AugmentDef make_flip() const {"),
            ("step/optim/schedules/cosine.cpp", "ScheduleDef make_cosine() {", "ScheduleDef make_cosine(int) {"),
        ):
            with self.subTest(file):
                path = self.source / file
                text = path.read_text()
                self.assertIn(definition, text)
                path.write_text(text.replace(definition, changed))
                code, error = self.write()
                self.assertEqual(code, 1)
                self.assertIn(f"{path}: expected a definition as in 'cmake/WriteLists.cmake', found '{changed}'", error)
                path.write_text(text.replace(definition, "// nothing\nint x() {"))
                code, error = self.write()
                path.write_text(text)
                if "to_onnx" in definition:  # not every op has one
                    self.assertEqual(code, 0)
                    continue
                self.assertEqual(code, 1)
                self.assertRegex(error, f"{path}: expected '.*', found none; define it, or rename the file")


if __name__ == "__main__":
    unittest.main()
