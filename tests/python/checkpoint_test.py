#!/usr/bin/env python3
"""lockstep_reader on checkpoints, without numpy: every tensor, and every damage, by its exact message."""
import array
import hashlib
import json
import pathlib
import shutil
import struct
import sys
import unittest

from reading import SMALL, InFolder, program, reader

REMEDY = "take another checkpoint of the run; 'lockstep checkpoint verify RUN' says which are sound"
GONE = "it may have been removed meanwhile (checkpoint.keep): take a newer one"
OPTIMIZER = ("conv1.weight:first_moment", "conv1.weight:second_moment")


def seal(folder, change):
    """Changes a manifest and makes it sound again, as somebody would who means harm."""
    path = pathlib.Path(folder, "manifest.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    del manifest["manifest_sha256"]
    text = json.dumps(manifest, indent=1)[:-2] + ",\n "
    path.write_text(f'{text}"manifest_sha256": "{hashlib.sha256(text.encode()).hexdigest()}"\n}}\n')


class Checkpoints(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        program("train", *SMALL, "steps=4", "--ranks", "3", "evaluate.every=2 steps",
                "checkpoint={every: 2 steps, part_bytes: 20000}", f"run_directory={cls.folder}/run")
        program("checkpoint", "export", "run", "model.safetensors", folder=cls.folder)
        cls.first = cls.folder / "run/checkpoints/step-00000004"

    def setUp(self):
        super().setUp()
        shutil.copytree(self.folder / "run", self.own / "run")
        self.path = self.own / "run/checkpoints/step-00000004"

    def test_every_tensor(self):
        checkpoint, model = reader.open_checkpoint(self.path), reader.open_weights(self.folder / "model.safetensors")
        self.assertEqual(checkpoint.step, 4)
        self.assertEqual(len(checkpoint), 18)
        self.assertEqual(checkpoint.weights(), model.shapes())
        self.assertEqual(checkpoint.shapes("state"), {})
        self.assertEqual(checkpoint.shapes("parameter")["conv2.weight"], (32, 16, 3, 3))
        self.assertEqual([name for name in checkpoint.shapes("optimizer") if name.startswith("conv1.weight")],
                         list(OPTIMIZER))
        cut = 0
        for name, tensor in model.items():
            self.assertEqual(checkpoint[name], tensor)
            cut += len(checkpoint.manifest.tensors[name].pieces) > 1
        self.assertGreater(cut, 0)
        self.assertTrue(any(checkpoint[OPTIMIZER[0]].array()))
        self.assertEqual(checkpoint.data["features"][0]["shape"], [28, 28, 1])
        self.assertEqual(model.metadata["format"], "lockstep")
        self.assertEqual(json.loads(model.metadata["data"]), checkpoint.data)

    def test_a_tensor(self):
        tensor = reader.open_checkpoint(self.path)["conv1.bias"]
        self.assertEqual((tensor.dtype, tensor.shape, len(tensor.data)), ("F32", (16,), 64))
        self.assertEqual(tensor.array(), array.array("f", tensor.data))
        weight = reader.open_checkpoint(self.path)["conv1.weight"]
        self.assertEqual(weight.memoryview().shape, (16, 1, 3, 3))
        self.assertEqual(weight.memoryview()[1, 0, 2, 0], weight.array()[9 + 6])
        self.assertEqual(repr(tensor), "Tensor(name='conv1.bias', dtype='F32', shape=(16,))")

    def test_types_of_other_programs(self):
        values = [0.0, 1.0, -2.5, 1024.0]
        kinds = {"F32": "4f", "F64": "4d", "F16": "4e", "I64": "4q", "U8": "4B"}
        data, header = b"", {}
        for dtype, form in kinds.items():
            packed = struct.pack(f"<{form}", *(values if form[-1] in "fde" else [0, 1, 2, 255]))
            header[dtype] = {"dtype": dtype, "shape": [2, 2], "data_offsets": [len(data), len(data) + len(packed)]}
            data += packed
        packed = b"".join(struct.pack("<f", value)[2:] for value in values)
        header["BF16"] = {"dtype": "BF16", "shape": [4], "data_offsets": [len(data), len(data) + len(packed)]}
        header["F8_E4M3"] = {"dtype": "F8_E4M3", "shape": [0], "data_offsets": [0, 0]}
        text = json.dumps(header).encode()
        path = self.own / "other.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + data + packed)
        file = reader.open_weights(path)
        for name in ("F32", "F64", "F16", "BF16"):
            self.assertEqual(list(file[name].array()), values)
        for name in ("I64", "U8"):
            self.assertEqual(file[name].memoryview().tolist(), [[0, 1], [2, 255]])
        self.says(reader.UnsupportedError, "tensor 'BF16': expected a type that Python has, found BF16; take array() or "
                  "numpy()", file["BF16"].memoryview)
        self.says(reader.UnsupportedError, f"{path}: tensor 'F8_E4M3': expected one of F32, F64, F16, BF16, I64, I32, I16, "
                  "I8, U16, U8, BOOL, found F8_E4M3; convert it first", file.read, "F8_E4M3")
        self.says(reader.MissingError, f"{path}: expected a tensor 'x', found none among BF16, F16, F32, F64, F8_E4M3, I64, "
                  "U8; its shapes() has all names", file.read, "x")

    def file_of(self, name):
        return self.path / reader.open_checkpoint(self.path).manifest.tensors[name].pieces[0].file

    def change(self, path, at, sound=None):
        """Flips a bit; returns the SHA-256 of the range `sound`."""
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
        return hashlib.sha256(data[sound] if sound else data).hexdigest()

    def test_a_damaged_tensor(self):
        file = self.file_of("conv1.bias")
        with open(file, "rb") as opened:
            entry = reader.safetensors.read_header(opened, str(file), "").entries["conv1.bias"]
        expected = reader.open_checkpoint(self.path).manifest.tensors["conv1.bias"].pieces[0].sha256
        found = self.change(file, entry.begin + 5, slice(entry.begin, entry.end))
        message = f"{file}: tensor 'conv1.bias': expected the manifest's SHA-256, {expected}, found {found}; {REMEDY}"
        checkpoint = reader.open_checkpoint(self.path)
        self.says(reader.DamagedError, message, checkpoint.read, "conv1.bias")
        self.says(reader.DamagedError, message, checkpoint.verify)
        self.says(reader.DamagedError, message, checkpoint.parameters_sha256)
        self.assertEqual(checkpoint.damage(), [message])
        checkpoint.read("conv1.weight")  # what is sound can be read

    def test_a_truncated_file(self):
        file = self.file_of("conv1.bias")
        size = file.stat().st_size
        with open(file, "r+b") as opened:
            opened.truncate(100)
        self.says(reader.DamagedError, f"{file}: expected {size:,} bytes, as the manifest says, found 100, it is truncated; "
                  f"{REMEDY}", reader.open_checkpoint, self.path)
        file.write_bytes(b"x" * (size + 1))
        self.says(reader.DamagedError, f"{file}: expected {size:,} bytes, as the manifest says, found {size + 1:,}, it is "
                  f"longer than it was written; {REMEDY}", reader.open_checkpoint, self.path)
        file.write_bytes(b"\xff" * size)
        self.says(reader.DamagedError, f"{file}: expected a safetensors file, which begins with a header, found {size:,} "
                  f"bytes without one; {REMEDY}", reader.open_checkpoint(self.path).read, "conv1.bias")

    def test_a_damaged_header(self):
        file = self.file_of("conv1.bias")
        expected = reader.open_checkpoint(self.path).manifest.files[file.name].header_sha256
        data = file.read_bytes()
        at = data.index(b"lockstep")
        header = slice(0, 8 + struct.unpack_from("<Q", data)[0])
        self.says(reader.DamagedError, f"{file}: header: expected the manifest's SHA-256, {expected}, found "
                  f"{self.change(file, at, header)}; {REMEDY}", reader.open_checkpoint(self.path).read, "conv1.bias")

    def test_files_that_are_gone(self):
        file = self.file_of("conv1.bias")
        size = file.stat().st_size
        checkpoint = reader.open_checkpoint(self.path)
        file.unlink()
        self.says(reader.MissingError, f"{file}: expected the {size:,} bytes that the manifest lists, found no such file; "
                  f"{GONE}", reader.open_checkpoint, self.path)
        self.says(reader.MissingError, f"{file}: expected a safetensors file, found no such file; {GONE}", checkpoint.read,
                  "conv1.bias")
        (self.path / "manifest.json").unlink()
        self.says(reader.MissingError, f"{self.path}/manifest.json: expected the manifest of a checkpoint, found no such "
                  "file; name a folder such as RUN/checkpoints/step-00000100; one without a manifest was not finished",
                  reader.open_checkpoint, self.path)

    def test_a_damaged_manifest(self):
        path = self.path / "manifest.json"
        text = path.read_bytes()
        expected = json.loads(text)["manifest_sha256"]
        changed = text.replace(b'"seed": 1,', b'"seed": 2,')
        found = hashlib.sha256(changed[:changed.rindex(b'"manifest_sha256"')]).hexdigest()
        path.write_bytes(changed)
        self.says(reader.DamagedError, f"{path}: expected the SHA-256 of its last line, {expected}, found {found}; {REMEDY}",
                  reader.open_checkpoint, self.path)
        path.write_bytes(text[:1000])
        self.says(reader.DamagedError, f"{path}: expected the JSON that was written, found 1,000 bytes of something else; "
                  f"{REMEDY}", reader.open_checkpoint, self.path)

    def test_manifests_that_mean_harm(self):
        path = self.path / "manifest.json"
        text = path.read_bytes()

        def outside(manifest):
            manifest["files"]["../../events.jsonl"] = {"bytes": 1}

        def hole(manifest):
            manifest["tensors"]["conv1.bias"]["pieces"][0]["end"] = 15

        def huge(manifest):
            manifest["tensors"]["conv1.bias"]["shape"] = [1 << 60]

        def elsewhere(manifest):
            manifest["tensors"]["conv1.bias"]["pieces"][0]["file"] = "/etc/passwd"

        def newer(manifest):
            manifest["format"] = 3

        for change, kind, message in (
                (outside, reader.DamagedError, f"expected names of files beside it, found '../../events.jsonl'; {REMEDY}"),
                (hole, reader.DamagedError, f"expected pieces that make tensor 'conv1.bias' of [16] whole, found 0 to 15; "
                 f"{REMEDY}"),
                (huge, reader.DamagedError, f"expected pieces that make tensor 'conv1.bias' of [{1 << 60}] whole, found 0 to "
                 f"16; {REMEDY}"),
                (elsewhere, reader.DamagedError, "expected tensor 'conv1.bias' in files that it lists, found '/etc/passwd'; "
                 f"{REMEDY}"),
                (newer, reader.UnsupportedError, "expected a format from 1 to 2, found 3; take a newer lockstep_reader")):
            with self.subTest(change=change.__name__):
                path.write_bytes(text)
                seal(self.path, change)
                self.says(kind, f"{path}: {message}", reader.open_checkpoint, self.path)

    def test_the_program_finds_the_same_damage(self):
        reader.open_checkpoint(self.path).verify()
        files = sorted(self.path.glob("*.safetensors"))
        damaged = [files[0], files[-1]]
        for file in damaged:
            self.change(file, file.stat().st_size - 1)
        said = reader.open_checkpoint(self.path).damage()
        self.assertEqual([line.partition(": ")[0] for line in said], list(map(str, damaged)))
        out, err = program("checkpoint", "verify", self.path, code=65)
        for file in damaged:
            self.assertIn(file.name, out + err)

    def test_the_newest_one_that_is_sound(self):
        run = reader.open_run(self.own / "run")
        file = self.file_of("conv1.bias")
        self.change(file, file.stat().st_size - 1)
        self.assertEqual(run.checkpoint().step, 4)  # sizes are right
        self.assertEqual(run.checkpoint(verify=True).step, 2)
        with open(file, "r+b") as opened:
            opened.truncate(100)
        self.assertEqual(run.checkpoint().step, 2)
        shutil.rmtree(self.own / "run/checkpoints/step-00000002")
        size = reader.open_checkpoint(self.first).manifest.files[file.name].bytes
        self.says(reader.MissingError, f"{self.own}/run/checkpoints: expected a checkpoint, found only damaged ones: {file}: "
                  f"expected {size:,} bytes, as the manifest says, found 100, it is truncated; {REMEDY}; wait for the first "
                  "one, or train the job", run.checkpoint)
        self.says(reader.MissingError, f"{self.own}/run/checkpoints/best: expected the name of the best checkpoint, found no "
                  "such file; set checkpoint.best to a metric when training", run.checkpoint, "best")

    def test_format_1(self):
        """Of the first lockstep: a SHA-256 of each file, no list of tensors, no seal."""
        sound = reader.open_checkpoint(self.path)
        manifest = json.loads((self.path / "manifest.json").read_text())
        del manifest["manifest_sha256"], manifest["tensors"]
        manifest["format"] = 1
        (self.own / "one").mkdir()
        names = [name for name in manifest["files"] if name.startswith("optimizer")]
        for name in names:  # whose tensors happen to be whole
            shutil.copy(self.path / name, self.own / "one")
        manifest["files"] = {name: {"bytes": (self.path / name).stat().st_size,
                                    "sha256": hashlib.sha256((self.path / name).read_bytes()).hexdigest()} for name in names}
        (self.own / "one/manifest.json").write_text(json.dumps(manifest))
        checkpoint = reader.open_checkpoint(self.own / "one")
        whole = [name for name in checkpoint if "[" not in name]
        self.assertGreater(len(whole), 4)
        for name in whole:
            self.assertEqual(checkpoint[name], sound[name])
        checkpoint.verify()
        file = self.own / "one" / names[0]
        expected = manifest["files"][names[0]]["sha256"]
        found = self.change(file, file.stat().st_size - 1)
        self.says(reader.DamagedError, f"{file}: expected the manifest's SHA-256, {expected}, found {found}; {REMEDY}",
                  checkpoint.verify)

    def test_files_that_are_no_safetensors(self):
        path, remedy = self.own / "file", "write it again, such as with lockstep checkpoint export RUN FILE"
        self.says(reader.MissingError, f"{path}: expected a safetensors file, found no such file; {remedy}",
                  reader.open_weights, path)
        for data, found in ((b"", "0 bytes without one"), (b"PK\x03\x04" + bytes(60), "a zip archive (.pt, .npz or .keras)")):
            path.write_bytes(data)
            self.says(reader.DamagedError, f"{path}: expected a safetensors file, which begins with a header, found {found}; "
                      f"{remedy}", reader.open_weights, path)
        path.write_bytes(struct.pack("<Q", 4) + b"what")
        self.says(reader.DamagedError, f"{path}: expected a header of JSON, as the safetensors format asks for, found another "
                  f"text; {remedy}", reader.open_weights, path)
        text = json.dumps({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
        self.says(reader.DamagedError, f"{path}: tensor 'a': expected 12 bytes for F32 [3] within the file's "
                  f"{len(text) + 16}, found bytes {len(text) + 8} to {len(text) + 16}; {remedy}", reader.open_weights, path)

    @unittest.skipIf("numpy" in sys.modules, "numpy is there")
    def test_without_numpy(self):
        sys.modules["numpy"] = None
        self.addCleanup(sys.modules.pop, "numpy")
        self.says(reader.UnsupportedError, "numpy() of tensor 'conv1.bias': expected the Python package 'numpy', found none; "
                  "install it, or use what works without numpy", reader.open_checkpoint(self.path)["conv1.bias"].numpy)


if __name__ == "__main__":
    unittest.main()
