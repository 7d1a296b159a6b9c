#!/usr/bin/env python3
"""The program on small data sets of every kind: the index that is built once, and what each rank reads."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import make_data

PROGRAM = os.environ["LOCKSTEP"]
BATCH, SAMPLES = 8, 64
FIRST_MICRO_BATCH = 2  # samples of the first micro-batch, which every rank reads at the start to compare bits
MODEL = {"image": "mlp: {hidden: [4]}", "tokens": "gpt: {layers: 1, heads: 1, width: 8}"}


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.cache = self.folder / "cache"

    def tearDown(self):
        self.temporary.cleanup()

    def run_program(self, *words, code=0, cache=None):
        environment = {**os.environ, "LOCKSTEP_CACHE": str(cache or self.cache)}
        result = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                                check=False, stdin=subprocess.DEVNULL, env=environment)
        self.assertEqual(result.returncode, code, f"{words}: {result.stdout}\n{result.stderr}")
        return result

    def info(self, *words, **options):
        """The lines of `data info` by name; of repeated names the last one."""
        text = self.run_program("data", "info", *words, **options).stdout
        return {line[2:14].strip(): line[15:] for line in text.splitlines() if line.startswith("  ")}

    def train(self, source, *words, model="image", ranks="1", code=0):
        """The events, by name, of one epoch on `source` without evaluation."""
        job = self.folder / "job.yaml"
        job.write_text(f"job: {{model: {{{MODEL[model]}}}, data: {{train: {{{source}}}, threads: 1}}, "
                       f"batch_size: {BATCH}, micro_batches: 4, epochs: 1, learning_rate: 0.001, checkpoint: never}}\n")
        result = self.run_program("train", "job.yaml", "--log", "json", "--ranks", ranks, *words, code=code)
        events = [json.loads(line) for line in result.stdout.splitlines()]
        warnings = [event["message"] for event in events if event["event"] == "warning"]
        return {event["event"]: event for event in events} | {"warnings": warnings}


class Index(Folder):
    def setUp(self):
        super().setUp()
        make_data.folder(self.folder / "set", SAMPLES)

    def test_a_second_look_does_not_index(self):
        first, second = self.info("images=set"), self.info("images=set")
        self.assertTrue(first["index"].startswith(f"built now, cached in {self.cache}/index-"), first["index"])
        self.assertTrue(second["index"].startswith(f"from the cache, {self.cache}/index-"), second["index"])
        self.assertEqual(second["bytes read"], "0")
        for name in ("samples", "digest", "mean", "std", "classes"):
            self.assertEqual(first[name], second[name])

    def test_a_second_run_does_not_index(self):
        first = self.train("images: set", "run_directory=a")
        second = self.train("images: set", "run_directory=b", ranks="2")
        self.assertEqual((first["start"]["index"], second["start"]["index"]), ("made", "cached"))
        self.assertEqual(first["end"]["parameters_sha256"], second["end"]["parameters_sha256"])
        self.assertEqual(sum(second["end"]["bytes_read_by_rank"].values()), (SAMPLES + 2 * FIRST_MICRO_BATCH) * len(make_data.png(8, 8, 0)))

    def test_data_that_need_no_index_say_nothing_of_one(self):
        events = self.train("digits: 64")
        self.assertNotIn("index", events["start"])
        self.assertFalse(self.cache.exists())

    def test_a_changed_file_is_seen(self):
        before = self.info("images=set")
        (self.folder / "set/cat/0000.png").write_bytes(make_data.png(8, 8, 99))
        after = self.info("images=set")
        self.assertTrue(after["index"].startswith("built now"))
        self.assertNotEqual(before["digest"], after["digest"])
        (self.folder / "set/cat/new.png").write_bytes(b"no image")
        self.assertIn("cat/new.png: not a JPEG or PNG", self.run_program("data", "info", "images=set", code=65).stderr)

    def test_a_damaged_cache_is_made_anew(self):
        before = self.info("images=set")
        (file,) = self.cache.iterdir()
        contents = bytearray(file.read_bytes())
        contents[len(contents) // 2] ^= 1
        file.write_bytes(contents)
        after = self.info("images=set")
        self.assertTrue(after["index"].startswith("built now, cached in"))
        self.assertEqual(before["digest"], after["digest"])
        self.assertTrue(self.info("images=set")["index"].startswith("from the cache"))

    def test_no_cache_is_no_error(self):
        (self.folder / "file").write_text("")
        self.assertEqual(self.info("images=set", cache=self.folder / "file/x")["index"],
                         f"built now, not cached: {self.folder}/file/x: cannot create the folder: Not a directory")
        self.assertEqual(self.info("images=set", cache="none")["index"],
                         "built now, not cached: there is no cache directory")

    def test_what_is_skipped_is_named_at_the_start(self):
        for name in ("cat/x.png", "dog/y.png"):
            (self.folder / "set" / name).write_bytes(b"no image")
        for ranks in ("1", "2"):
            events = self.train("images: {path: set, bad_samples: skip}", f"run_directory=run{ranks}", ranks=ranks)
            for message in (
                    "train: 2 samples are skipped: cat/x.png: not a JPEG or PNG file (begins with 6e 6f 20 69); "
                    "dog/y.png: not a JPEG or PNG file (begins with 6e 6f 20 69)",
                    "train: 2 of 66 samples, 3.0 %, are bad and skipped; look at what is wrong with them"):
                self.assertIn(message, events["warnings"])

    def test_a_bad_sample_ends_all_ranks_with_one_message(self):
        (self.folder / "set/cat/x.png").write_bytes(b"no image")
        (self.folder / "job.yaml").write_text("job: {model: mlp, data: {train: {images: set}}, batch_size: 8, micro_batches: "
                                              "4, epochs: 1}\n")
        error = self.run_program("train", "job.yaml", "--ranks", "2", code=65).stderr
        self.assertEqual(error.count("cat/x.png: not a JPEG or PNG file"), 1, error)


class BytesRead(Folder):
    """A rank reads the samples of its micro-batches, each once per epoch, and the heads of files. Only the rank that indexes
    reads more, and only if there is no index yet."""

    def check(self, source, sample, head, model="image"):
        per_rank = (SAMPLES // 2 + FIRST_MICRO_BATCH) * sample + head
        def bytes_read(directory):
            end = self.train(source, f"run_directory={directory}", "balance=equal", ranks="2", model=model)["end"]
            return end["bytes_read_by_rank"]
        first = bytes_read("first")
        self.assertGreater(first["0"], per_rank, "rank 0 indexes")
        self.assertEqual(first["1"], per_rank)
        self.assertEqual(bytes_read("second"), {"0": per_rank, "1": per_rank})

    def test_folder(self):
        self.check("images: set", make_data.folder(self.folder / "set", SAMPLES), 0)

    def test_plain_tar(self):
        sample = make_data.folder(self.folder / "set", SAMPLES)
        make_data.tar(self.folder / "set.tar", self.folder / "set")
        self.check("images: set.tar", sample, 512)

    def test_csv(self):
        sample = make_data.folder(self.folder / "set", SAMPLES)
        rows = "".join(f"{file.relative_to(self.folder)},{file.parent.name}\n"
                       for file in sorted((self.folder / "set").rglob("*.png")))
        (self.folder / "set.csv").write_text("image,label\n" + rows)
        self.check("csv: set.csv", sample, len("image,label\n" + rows) + 2)

    def test_tokens(self):
        make_data.tokens(self.folder / "set.bin", SAMPLES * 8 + 1)
        words = ("tokens: {path: set.bin, context: 8}", "run_directory=")
        read = self.train(words[0], words[1] + "a", "balance=equal", ranks="2", model="tokens")["end"]["bytes_read_by_rank"]
        window = 2 * 9
        self.assertGreater(read["0"], (SAMPLES // 2 + FIRST_MICRO_BATCH) * window + 4, "rank 0 indexes")
        self.assertIn(read["1"] - (SAMPLES // 2 + FIRST_MICRO_BATCH) * window, (0, 2, 4), "2: the window that joins the end to the beginning")
        read = self.train(words[0], words[1] + "b", ranks="2", model="tokens")["end"]["bytes_read_by_rank"]
        self.assertIn(sum(read.values()) - (SAMPLES + 2 * FIRST_MICRO_BATCH) * window, (0, 2, 4, 6))

    def test_cifar(self):
        make_data.cifar(self.folder, SAMPLES, 10)
        self.check("cifar: cifar-10-batches-bin", 3072, 2 * 2 + len("\n".join(make_data.CIFAR_CLASSES)) + 1)

    def test_idx(self):
        make_data.idx(self.folder / "mnist", SAMPLES, 10)
        self.check("idx: mnist", 16, 2 + 16 + 2 + 8 + SAMPLES)

    def test_packed(self):
        """Every rank reads the file's own index; a record is a sample with a checksum."""
        sample = make_data.folder(self.folder / "set", SAMPLES)
        self.run_program("data", "pack", "images=set", "set.pack")
        size = (self.folder / "set.pack").stat().st_size
        record = sample + 1 + 4  # the label: its rank, no dimension, 4 bytes
        index = size - SAMPLES * record
        per_rank = index + (SAMPLES // 2 + FIRST_MICRO_BATCH) * record
        read = self.train("packed: set.pack", "data.normalize=never", "balance=equal",  # moved micro-batches are read twice
                          ranks="2")["end"]["bytes_read_by_rank"]
        self.assertEqual(read, {"0": per_rank, "1": per_rank})
        self.assertTrue(self.info("packed=set.pack")["index"].startswith("built now"), "mean and std")
        again = self.info("packed=set.pack")
        self.assertEqual((again["index"][:14], again["bytes read"]), ("from the cache", f"{index:,}"))


class Counts(Folder):
    def test_more_than_there_are(self):
        """A source of fewer samples than the job asks for is taken whole, and every command says so."""
        make_data.idx(self.folder / "set", SAMPLES, 10)
        said = f"count: expected at most the {SAMPLES} samples that there are, found {SAMPLES + 1}: all of them are taken"
        whole = self.info("idx=set")
        more = self.info("idx=set", f"count={SAMPLES + 1}")
        self.assertEqual(more.pop("warning"), said)
        self.assertEqual({**whole, "index": more["index"], "bytes read": more["bytes read"]}, more)
        self.assertEqual(self.train(f"idx: {{path: set, count: {SAMPLES + 1}}}")["warnings"], ["train: " + said])
        self.assertNotIn("warning", self.info("idx=set", f"count={SAMPLES}"))
        self.run_program("train", "job.yaml", "checkpoint={}", "run_directory=run", f"data.train.idx.count={SAMPLES}")
        for command in (("eval", "run", "--set", "test"), ("eval", "run", "--set", "test", "--ranks", "2")):
            told = self.run_program(*command, f"data.test={{idx: {{path: set, part: train, count: {SAMPLES + 1}}}}}").stderr
            self.assertEqual(told.count(f"warning: {said}"), 1)


class SamplesThatTrainingHas(Folder):
    def test_raw_images(self):
        """Those of training in another order and under another name."""
        make_data.idx(self.folder / "mnist", SAMPLES, 10)
        make_data.idx(self.folder / "other", SAMPLES, 10)
        for name, head, size in (("train-images-idx3-ubyte", 16, 16), ("train-labels-idx1-ubyte", 8, 1)):
            whole = (self.folder / "mnist" / name).read_bytes()
            records = [whole[at:at + size] for at in range(head, len(whole), size)]
            (self.folder / "other" / name).write_bytes(whole[:head] + b"".join(records[::-1]))
        job = "job: {model: {mlp: {hidden: [4]}}, batch_size: 8, epochs: 1, data: {train: {idx: mnist}, validation: {idx: %s}}}\n"
        for path in ("other", "mnist"):
            (self.folder / "job.yaml").write_text(job % f"{{path: {path}, part: train}}")
            for _ in ("indexed", "noted"):
                self.assertIn(f"warning: validation: {SAMPLES} of {SAMPLES} samples are in the training set, too: ",
                              self.run_program("check", "job.yaml").stderr)


class Columns(Folder):
    """What a CSV's columns are taken for."""

    def features(self, header, rows, *words):
        (self.folder / "a.png").write_bytes(make_data.png(8, 6, 1))
        (self.folder / "b.png").write_bytes(make_data.png(8, 6, 2, channels=1))
        (self.folder / "set.csv").write_text("\n".join([header, *rows]) + "\n")
        out = self.run_program("data", "info", "csv=set.csv", *words).stdout
        return [line.strip() for line in out.splitlines() if line.startswith(("  feature ", "  classes ", "     "))]

    def test_images_and_a_class(self):
        self.assertEqual(self.features("image,label", ["a.png,cat", "b.png,dog", "a.png,cat"]),
                         ["feature      image (image): u8 [6, 8, 3]", "feature      label (label): i32 []", "classes      2", "2  cat",
                          "1  dog"])

    def test_two_images(self):
        self.assertEqual(self.features("left,right,label", ["b.png,b.png,0", "b.png,b.png,1"]),
                         ["feature      left (image): u8 [6, 8, 1]", "feature      right (image): u8 [6, 8, 1]",
                          "feature      label (label): i32 []", "classes      2", "1  0", "1  1"])

    def test_numbers(self):
        rows = ["a.png,1.5,2", "b.png,0,-3"]
        self.assertEqual(self.features("image,x,z", rows, "target=[x, z]"),
                         ["feature      image (image): u8 [6, 8, 3]", "feature      label (tensor): f32 [2]"])
        self.assertEqual(self.features("image,label", ["a.png,1.5", "b.png,0"], "target=label"),
                         ["feature      image (image): u8 [6, 8, 3]", "feature      label (tensor): f32 []"])
        error = self.run_program("data", "info", "csv=set.csv", code=65).stderr
        self.assertEqual(error, "lockstep: set.csv:2: label '1.5': expected the number of a class, 0 to 99999, as the other labels are "
                         "numbers; write classes as whole numbers from 0, or all of them as words; numbers to predict are named by "
                         "`target`, as in `target: label`\n")

    def test_numbers_that_are_missing_or_all_the_same(self):
        for row, told in (("a.png,", "found nothing"), ("a.png,NA", "found 'NA', which stands for a missing value")):
            (self.folder / "a.png").write_bytes(make_data.png(8, 6, 1))
            (self.folder / "set.csv").write_text(f"image,y\na.png,1\n{row}\n")
            self.assertIn(f"set.csv:3: column 'y': expected a target, {told}",
                          self.run_program("data", "info", "csv=set.csv", "target=y", code=65).stderr)
        (self.folder / "set.csv").write_text("image,y\na.png,1.5\na.png,1.5\n")
        self.assertEqual(self.info("csv=set.csv", "target=y")["warning"],
                         "column 'y': the target is 1.5 in all rows, so nothing is to be learnt")
        (self.folder / "set.csv").write_text("image,label\nb\\a.png,1\n")
        self.assertIn("set.csv:2: b\\a.png: No such file or directory; write slashes instead of backslashes",
                      self.run_program("data", "info", "csv=set.csv", code=65).stderr)

    def test_a_mask(self):
        (self.folder / "m.png").write_bytes(make_data.png(8, 6, 0, channels=1))
        classes = ", ".join("abcdefghijklm")  # the mask's pixels are 0 to 12
        self.assertEqual(self.features("image,mask", ["a.png,m.png"], "mask=mask", f"classes=[{classes}]"),
                         ["feature      image (image): u8 [6, 8, 3]", "feature      mask (mask): u8 [6, 8, 1]"])


class FoundLater(Folder):
    def test_a_sample_that_is_damaged_later_ends_all_ranks(self):
        make_data.folder(self.folder / "set", SAMPLES)
        self.run_program("data", "pack", "images=set", "set.pack")
        contents = bytearray((self.folder / "set.pack").read_bytes())
        contents[100] ^= 1  # in the first record
        (self.folder / "set.pack").write_bytes(contents)
        (self.folder / "job.yaml").write_text("job: {model: mlp, data: {train: {packed: set.pack}, normalize: never}, "
                                              "batch_size: 8, micro_batches: 4, epochs: 1}\n")
        for ranks in ("1", "2"):
            error = self.run_program("train", "job.yaml", "--ranks", ranks, f"run_directory=run{ranks}", code=65).stderr
            self.assertIn("set.pack: cat/0000.png: the checksum differs: the file is damaged", error)


class Parts(Folder):
    """The official archive as downloaded: its training batches for training, its test batch for testing."""

    def check(self, kind, path, train, test):
        (self.folder / "job.yaml").write_text(
            f"job: {{model: mlp, data: {{train: {{{kind}: {path}}}, validation: {{{kind}: {path}}}, "
            f"test: {{{kind}: {path}}}}}, batch_size: 8, epochs: 1}}\n")
        text = self.run_program("data", "info", "job.yaml").stdout
        samples = [line.split()[1] for line in text.splitlines() if line.startswith("  samples ")]
        self.assertEqual(samples, [str(train), str(test), str(test)])
        self.assertEqual(self.info(f"{kind}={path}")["samples"], str(train))
        self.assertEqual(self.info(f"{kind}={path}", "part=test")["samples"], str(test))

    def test_cifar_archive(self):
        folder = make_data.cifar(self.folder / "x", 20, 6)
        make_data.tar(self.folder / "cifar-10-binary.tar.gz", folder.parent, "w:gz")
        self.check("cifar", "cifar-10-binary.tar.gz", 20, 6)
        self.assertEqual(self.info("cifar=cifar-10-binary.tar.gz/test_batch.bin")["samples"], "6")
        (self.folder / "job.yaml").write_text(
            "job: {model: mlp, data: {train: {cifar: cifar-10-binary.tar.gz/data_batch_1.bin}, test: {cifar: "
            "cifar-10-binary.tar.gz/test_batch.bin}}, batch_size: 4, steps: 1}\n")
        text = self.run_program("data", "info", str(self.folder / "job.yaml")).stdout
        self.assertIn("  samples      10\n", text)

    def test_mnist_folder(self):
        make_data.idx(self.folder / "mnist", 20, 6)
        self.check("idx", "mnist", 20, 6)


class RealData(unittest.TestCase):
    """LOCKSTEP_DATA names a folder with cifar10-train.tar.zst and tinyshakespeare.txt; otherwise these are skipped."""

    def info(self, source, file):
        path = pathlib.Path(os.environ.get("LOCKSTEP_DATA", "")) / file
        if "LOCKSTEP_DATA" not in os.environ or not path.exists():
            self.skipTest(f"LOCKSTEP_DATA names no folder with {file}")
        return subprocess.run([PROGRAM, "data", "info", f"{source}={path}"], capture_output=True, text=True, timeout=300,
                              check=True).stdout

    def test_cifar10(self):
        text = self.info("images", "cifar10-train.tar.zst")
        self.assertIn("  samples      50,000\n", text)
        self.assertIn("u8 [32, 32, 3]", text)
        self.assertEqual(text.count("    5,000  "), 10)
        self.assertIn("  skipped      none\n", text)

    def test_shakespeare(self):
        text = self.info("text", "tinyshakespeare.txt")
        self.assertIn("  vocabulary   65\n", text)
        self.assertIn("  samples      17,428\n", text)  # (1,115,394 - 1) / 64


if __name__ == "__main__":
    unittest.main()
