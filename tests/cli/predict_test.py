#!/usr/bin/env python3
"""`lockstep predict`: the same bytes on any number of ranks and from any form of the input; generated text with and
without kept keys and values, from stdin, up to a stop; a tokenizer that the checkpoint remembers."""
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

PROGRAM = os.environ["LOCKSTEP"]
DIGITS = """job:
  name: digits
  model: {mlp: {hidden: [8]}}
  data: {train: {digits: 200}}
  batch_size: 20
  micro_batches: 4
  steps: 5
  run_directory: run
"""
TEXT = """job:
  name: text
  model: {MODEL}
  data: {train: {text: {path: text.txt, context: 70TOKENIZER}}}
  batch_size: 4
  micro_batches: 2
  steps: 3
  learning_rate: 0.01
  run_directory: RUN
"""
MODELS = {"gpt": "gpt: {layers: 2, heads: 2, width: 16}", "llama": "llama: {layers: 2, heads: 4, kv_heads: 2, width: 32}"}


def byte_tokenizer():
    """A tokenizer.json of all bytes and two pairs."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters = {b: chr(b) for b in printable}
    characters.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)})
    vocabulary = {characters[b]: b for b in range(256)}
    vocabulary.update({"he": 256, "Ġt": 257})
    return {"added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": ["h e", "Ġ t"]}}


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_program(cls, *words, code=0, stdin=b""):
        result = subprocess.run([PROGRAM, *map(str, words)], cwd=cls.folder, capture_output=True, timeout=300,
                                check=False, input=stdin)
        assert result.returncode == code, f"{words}: {result.returncode}\n{result.stderr.decode()}"
        return result.stdout if code == 0 else result.stderr.decode()

    @classmethod
    def train(cls, name, text):
        (cls.folder / f"{name}.yaml").write_text(text)
        cls.run_program("train", f"{name}.yaml", "--log", "json")


class Images(Predict):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.train("digits", DIGITS)
        (cls.folder / "photos" / "more").mkdir(parents=True)
        cls.names = ["photos/a.png", "photos/b.PNG", "photos/more/c.png"]
        for i, name in enumerate(cls.names):
            (cls.folder / name).write_bytes(png(28, 28, i))
        (cls.folder / "photos" / "notes.txt").write_text("no picture")

    def test_folders_patterns_and_lists_are_the_same(self):
        listed = self.run_program("predict", "run", *self.names, "--log", "json")
        self.assertEqual(len(listed.splitlines()), 3)
        self.assertEqual(self.run_program("predict", "run", "photos", "--log", "json"), listed)
        self.assertEqual(self.run_program("predict", "run", "photos/*.*[gG]", "photos/more", "--log", "json"), listed)
        (self.folder / "list.csv").write_text("image\n" + "".join(f"{n}\n" for n in self.names))
        (self.folder / "list.jsonl").write_text("".join(json.dumps({"image": n}) + "\n" for n in self.names))
        for name in ("list.csv", "list.jsonl"):
            self.assertEqual(self.run_program("predict", "run", name, "--log", "json"), listed)

    def test_what_is_passed_over_is_named(self):
        folder = self.folder / "mixed"
        folder.mkdir()
        for name in ("a.webp", "b.bmp", "c.gif", "d.tif", ".hidden"):
            (folder / name).write_bytes(b"other")
        others = ("4 files that are not called .jpg, .jpeg or .png: mixed/a.webp, mixed/b.bmp, mixed/c.gif and 1 more")
        self.assertIn(f"predict: 'mixed': expected JPEG or PNG files in this folder, found {others}\n",
                      self.run_program("predict", "run", "mixed", code=64))
        (folder / "e.png").write_bytes(png(28, 28, 1))
        for ranks in ("1", "2"):
            result = subprocess.run([PROGRAM, "predict", "run", "mixed", "--ranks", ranks], cwd=self.folder,
                                    capture_output=True, timeout=300, check=True, text=True)
            self.assertEqual(result.stderr.count(f"warning: mixed: no prediction for {others}\n"), 1, result.stderr)
        (folder / "f.png").symlink_to("gone.png")
        self.assertIn("mixed/f.png: cannot open; expected a JPEG or PNG file",
                      self.run_program("predict", "run", "mixed", code=65))

    def test_an_orientation_is_said(self):
        upright = png(28, 28, 1)
        exif = b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
        chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
        (self.folder / "turned.png").write_bytes(upright[:33] + chunk + upright[33:])
        (self.folder / "upright.png").write_bytes(upright)
        for ranks in ("1", "2"):
            result = subprocess.run([PROGRAM, "predict", "run", "turned.png", "upright.png", "--ranks", ranks], timeout=300,
                                    cwd=self.folder, capture_output=True, check=True, text=True)
            self.assertEqual(result.stderr.count("warning: 1 of 2 images has an Exif orientation, which is not applied: they "
                                                 "are read as they are stored, as torchvision reads them\n"), 1)

    def test_a_pipe_is_read_once(self):
        image = self.folder / "piped.png"
        image.write_bytes(png(28, 28, 1))
        command = f"{PROGRAM} predict run piped.png --log csv; {PROGRAM} predict run <(cat piped.png) piped.png --log csv"
        found = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, timeout=300, check=True,
                               text=True).stdout.splitlines()
        scores = [row.split(",", 1)[1] for row in found if "/" in row or "piped" in row]
        self.assertEqual(scores, scores[:1] * 3)
        os.mkfifo(self.folder / "fifo")
        self.assertIn("fifo: expected a file, found a pipe, which only one of 2 ranks can read; leave out --ranks\n",
                      self.run_program("predict", "run", "fifo", "--ranks", "2", code=64))
        (self.folder / "rows.yaml").write_text("job: {model: {mlp: [2]}, data: {train: {table: {path: fifo, target: z}}}, "
                                               "batch_size: 2, epochs: 1}\n")
        self.assertIn("fifo: expected a file, found a pipe; write it to a file, and name that\n",
                      self.run_program("check", "rows.yaml", code=65))

    def test_weights_without_a_job(self):
        (self.folder / "model.onnx").write_bytes(b"other")
        self.assertEqual(self.run_program("predict", "model.onnx", "photos/a.png", code=64),
                         "lockstep: predict: expected a run's directory or a job file first, found 'model.onnx', a file of "
                         "weights; give it behind the job, --checkpoint FILE.safetensors\n")

    def test_images_of_another_size_are_prepared_as_the_job_does(self):
        for i in range(8):
            path = self.folder / "plain" / "ab"[i % 2] / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(12, 12, i / 3, slope=0))
        job = ("job:\n  model: {layers: [flatten, {linear: 2}]}\n  data: {train: {images: plain}, prepare: PREPARE}\n"
               "  batch_size: 4\n  micro_batches: 2\n  steps: 3\n  run_directory: ")
        self.train("resized", job.replace("PREPARE", "[{resize: [8, 8]}]") + "resized\n")
        self.train("as_is", job.replace("PREPARE", "[]") + "as_is\n")
        for size, name in (((12, 12), "same"), ((30, 41), "other")):
            (self.folder / f"{name}.png").write_bytes(png(*size, 1, slope=0))
        same, other = (self.run_program("predict", "resized", f"{name}.png", "--log", "csv").decode().split(",")
                       for name in ("same", "other"))
        self.assertEqual(same[-2:], other[-2:])  # of one shade, so their size is all that differs
        self.assertIn("other.png: expected an image of [12, 12, 1], as in the training data, found [41, 30, 1]; resize it "
                      "first", self.run_program("predict", "as_is", "other.png", code=65))

    def test_ranks_change_nothing(self):
        many = self.names * 9
        for log in ("json", "csv", "people"):
            alone = self.run_program("predict", "run", *many, "--log", log)
            for ranks in (2, 3):
                self.assertEqual(self.run_program("predict", "run", *many, "--log", log, "--ranks", ranks), alone)

    def test_csv_has_all_classes(self):
        header, *rows = self.run_program("predict", "run", "photos", "--log", "csv").decode().splitlines()
        self.assertEqual(header, "image,0,1,2,3,4,5,6,7,8,9")
        self.assertEqual([row.split(",")[0] for row in rows], self.names)
        for row in rows:
            self.assertAlmostEqual(sum(map(float, row.split(",")[1:])), 1, places=6)
        logits = self.run_program("predict", "run", "photos", "--log", "csv", "--scores", "logits").decode()
        self.assertNotAlmostEqual(sum(map(float, logits.splitlines()[1].split(",")[1:])), 1, places=3)

    def test_messages(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        (self.folder / "bad.jsonl").write_text('{"image": "a.png"}\n{"picture": "b.png"}\n')
        for words, code, message in (
                (["empty"], 64, "lockstep predict: predict: 'empty': expected JPEG or PNG files in this folder, found none"),
                (["none*.png"], 64, "lockstep predict: predict: 'none*.png': expected files that match, found none"),
                (["bad.jsonl"], 65, 'bad.jsonl:2: expected an object with a file "image", found {"picture": "b.png"}'),
                (["a.png", "--top-p", "0"], 64,
                 "lockstep predict: --top-p: expected a number above 0 and up to 1, found '0'"),
                (["a.png", "--stop", ""], 64, "lockstep predict: --stop: expected a text, found ''")):
            self.assertIn(message.removeprefix("lockstep predict: "),
                          self.run_program("predict", "run", *words, code=code))


SCORED = """job:
  model: {layers: [LAYERS]}
  data: {train: SOURCE}
  loss: LOSS
  batch_size: 12
  micro_batches: 4
  steps: 8
  optimizer: adam
  learning_rate: 0.05
  run_directory: RUN
"""


def softmax(logits):
    sizes = [math.exp(logit - max(logits)) for logit in logits]
    return [size / sum(sizes) for size in sizes]


def sigmoids(logits):
    return [1 / (1 + math.exp(-logit)) for logit in logits]


class Scores(Predict):
    """Probabilities are those of the logits, whatever is predicted from, in CSV and in JSON."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows, calls = ["petal,sepal,kind,tall,wet"], ["text,label"]
        for i in range(36):
            rows.append(f"{1 + i % 3 + i % 7 / 20},{5 - i % 3},{('rose', 'iris', 'daisy')[i % 3]},{i % 2},{i % 5 // 3}")
            calls.append(f"{('meow', 'woof', 'moo')[i % 3]} {'!' * (i % 4)},{('cat', 'dog', 'cow')[i % 3]}")
        (cls.folder / "table.csv").write_text("\n".join(rows) + "\n")
        (cls.folder / "texts.csv").write_text("\n".join(calls) + "\n")
        (cls.folder / "picture.png").write_bytes(png(28, 28, 1))

    def scored(self, run, source, layers, loss, inputs):
        """Logits and probabilities of each sample, which have the same numbers in both forms of output."""
        self.train(run, SCORED.replace("LAYERS", layers).replace("SOURCE", source).replace("LOSS", loss).replace("RUN", run))
        both = []
        for scores in ("logits", "probabilities"):
            words = ["predict", run, inputs, "--top", 10, "--scores", scores, "--log"]
            of_csv = [[float(field) for field in line.split(",")[1:]]
                      for line in self.run_program(*words, "csv").decode().splitlines()[1:]]
            of_json = [self.of_event(json.loads(line), scores) for line in self.run_program(*words, "json").splitlines()]
            self.assertEqual(of_json, of_csv)
            both.append(of_csv)
        return zip(*both, strict=True)

    def of_event(self, event, scores):
        if "classes" not in event:
            self.assertEqual("probabilities" in event, scores == "probabilities")
            return event[("values", "probabilities")[scores == "probabilities"]]
        name = ("value", "probability")[scores == "probabilities"]
        numbers = {one["index"]: one[name] for one in event["classes"]}
        return [numbers[index] for index in range(len(numbers))]

    def check(self, link, size, *job):
        compared = list(self.scored(*job))
        self.assertGreater(max(abs(logit) for logits, _ in compared for logit in logits), 0.01)
        for logits, probabilities in compared:
            self.assertEqual((len(logits), len(probabilities)), (size, size))
            for expected, found in zip(link(logits), probabilities):
                self.assertAlmostEqual(found, expected, places=6)

    def test_classes_of_images(self):
        self.check(softmax, 10, "images", "{digits: 200}", "flatten, {linear: 10}", "cross_entropy", "picture.png")

    def test_classes_of_tables(self):
        source = "{table: {path: table.csv, target: kind, features: [petal, sepal]}}"
        self.check(softmax, 3, "kinds", source, "{linear: 8}, tanh, {linear: 3}", "cross_entropy", "table.csv")

    def test_classes_of_texts(self):
        layers = "{embedding: {vocabulary: 256, width: 8}, inputs: tokens}, {gru: 6}, {last: {inputs: [previous, length]}}, {linear: 3}"
        self.check(softmax, 3, "calls", "{texts: {path: texts.csv, context: 8}}", layers, "cross_entropy", "texts.csv")

    def test_yes_or_no(self):
        source = "{table: {path: table.csv, target: TARGET, features: [petal, sepal]}}"
        for run, target, size in (("one", "tall", 1), ("several", "[tall, wet]", 2)):
            self.check(sigmoids, size, run, source.replace("TARGET", target), f"{{linear: 8}}, tanh, {{linear: {size}}}",
                       "binary_cross_entropy", "table.csv")


class Chosen(Predict):
    """The best checkpoint is not the newest one."""

    def predict(self, *words, log="csv"):
        done = subprocess.run([PROGRAM, "predict", "run", "a.png", "--scores", "logits", "--log", log, *words], cwd=self.folder,
                              capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    def test_it_says_which_checkpoint_it_takes(self):
        job = DIGITS.replace("{digits: 200}", "{digits: 200}, validation: {fraction: 0.2}").replace("20\n", "16\n")
        self.train("job", job + "  optimizer: adam\n  learning_rate: 1\n  evaluate: {every: 1 step}\n"
                   "  early_stop: {metric: loss, patience: 9}\n  checkpoint: {best: loss, keep: 1}\n")
        (self.folder / "a.png").write_bytes(png(28, 28, 1))
        best_name = (self.folder / "run/checkpoints/best").read_text().strip()
        best, said_best = self.predict("--checkpoint", "best")
        newest, said_newest = self.predict("--checkpoint", "newest")
        self.assertNotEqual(best_name, "step-00000005")
        self.assertNotEqual(best, newest)
        self.assertEqual(said_best, f"checkpoint: run/checkpoints/{best_name}, the best\n")
        self.assertEqual(said_newest, "checkpoint: run/checkpoints/step-00000005, the newest\n")
        path = f"run/checkpoints/{best_name}"
        self.assertEqual(self.predict("--checkpoint", path, log="csv"), (best, f"checkpoint: {path}\n"))
        self.assertEqual(self.predict(), (newest, said_newest))
        self.assertEqual(self.predict("early_stop.restore_best=true", "--ranks", "2"), (best, said_best))
        self.assertEqual(self.predict(log="json")[1], "")


NUMBERS = """
job:
  model: {layers: [flatten, {linear: 2}]}
  data: {train: {csv: {path: shades.csv, target: [shade, height]}}, validation: {fraction: 0.25}, normalize: never}
  loss: mean_squared_error
  metrics: [mae]
  batch_size: 8
  micro_batches: 4
  epochs: 30
  optimizer: adam
  learning_rate: 0.01
"""


class Numbers(Predict):
    """Numbers of an image, which a CSV says."""

    def test_learning_and_predicting(self):
        (self.folder / "shades").mkdir()
        lines = ["image,height,shade"]
        for i in range(32):
            (self.folder / f"shades/{i}.png").write_bytes(png(6, 6, i / 40))
            lines.append(f"shades/{i}.png,{i % 4 / 4},{i / 32}")
        (self.folder / "shades.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "numbers.yaml").write_text(NUMBERS)
        ends = [json.loads(self.run_program("train", "numbers.yaml", f"run_directory=numbers{ranks}", "--ranks", ranks,
                                            "--log", "json").splitlines()[-1]) for ranks in (1, 3)]
        self.assertEqual(*(end["parameters_sha256"] for end in ends))
        lines = self.run_program("predict", "numbers1", "shades/8.png", "shades.csv", "--log", "json").decode().splitlines()
        self.assertEqual(len(lines), 33)
        first = json.loads(lines[0])
        self.assertEqual(first["files"], ["shades/8.png"])
        self.assertAlmostEqual(first["values"][0], 0.25, delta=0.1)
        text = self.run_program("predict", "numbers1", "shades/8.png").decode()
        self.assertEqual(text, "shades/8.png  shade {:.6g}  height {:.6g}\n".format(*first["values"]))
        header = self.run_program("predict", "numbers1", "shades/8.png", "--log", "csv").decode().splitlines()[0]
        self.assertEqual(header, "image,shade,height")


def png(width, height, shade, slope=1):
    """A grey picture."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(int(slope * (x * 9 + y * 5) + shade * 60) % 256 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Text(Predict):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "text.txt").write_text("the other one, then he and the others.\n" * 60)
        (cls.folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
        for name, model in MODELS.items():
            cls.train(name, TEXT.replace("MODEL", model).replace("RUN", name).replace("TOKENIZER", ""))
        cls.train("pairs", TEXT.replace("MODEL", MODELS["gpt"]).replace("RUN", "pairs")
                  .replace("TOKENIZER", ", tokenizer: tokenizer.json"))
        (cls.folder / "tokenizer.json").unlink()  # the checkpoint has it
        (cls.folder / "text.txt").unlink()

    def generate(self, run, *words, **options):
        return self.run_program("predict", run, "--tokens", 100, "--temperature", 1, *words, **options)

    def test_kept_keys_and_values_change_nothing(self):
        """Also beyond the context of 70 tokens."""
        for name in MODELS:
            for prompt in ("t", "the other one, then", "the others" * 6, "the others" * 9):
                kept = self.generate(name, "--prompt", prompt)
                self.assertEqual(len(kept.decode()), len(prompt) + 101)
                self.assertEqual(self.generate(name, "--prompt", prompt, "--no-cache"), kept)
                self.assertEqual(self.generate(name, "--prompt", prompt, "threads=2"), kept)
        self.assertEqual(self.generate("gpt", "--prompt", "the", "--ranks", 2), self.generate("gpt", "--prompt", "the"))

    def test_prompt_from_stdin(self):
        self.assertEqual(self.generate("gpt", "--prompt", "-", stdin=b"the\nother"),
                         self.generate("gpt", "--prompt", "the\nother"))

    def test_tokens_come_as_they_are_made(self):
        """All of the text would fit into one write; it comes in many, while the program still computes."""
        words = [PROGRAM, "predict", "gpt", "--prompt", "the", "--tokens", "1500", "--temperature", "1", "--no-cache"]
        pieces = []
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE) as process:
            while piece := os.read(process.stdout.fileno(), 65536):
                pieces.append(piece)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(b"".join(pieces)), len("the") + 1500 + 1)
        self.assertTrue(pieces[0].startswith(b"the"))
        self.assertGreater(len(pieces), 20)

    def test_stop(self):
        whole = self.generate("gpt", "--prompt", "the").decode()
        ending = whole[40:42]
        stopped = self.generate("gpt", "--prompt", "the", "--stop", "never\x01", "--stop", ending).decode()
        self.assertEqual(stopped, whole[:whole.index(ending, 3)] + "\n")
        event = json.loads(self.generate("gpt", "--prompt", "the", "--stop", ending, "--log", "json"))
        self.assertEqual(event["text"] + "\n", stopped)

    def test_the_checkpoint_has_the_tokenizer(self):
        text = self.generate("pairs", "--prompt", "then he")
        self.assertTrue(text.startswith(b"then he"))
        self.assertEqual(self.generate("pairs", "--prompt", "then he", "--no-cache"), text)


if __name__ == "__main__":
    unittest.main()
