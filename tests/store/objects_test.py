#!/usr/bin/env python3
"""Training from an object store: the bits of the same data on disk, what is requested, and what is said when it fails.

With `--real-server` the data sets are read from versitygw, instead of from the test's own."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("data", ".")]
import make_data
import s3_server
from shared import PATIENCE, wait_until

PROGRAM = os.environ["LOCKSTEP"]
MODEL = {"image": "mlp: {hidden: [4]}", "tokens": "gpt: {layers: 1, heads: 1, width: 8}",
         "table": "layers: [{linear: {features: 1}}]"}
BLOCK = 4 << 20


class Stored(unittest.TestCase):
    """A folder with data sets, which are also objects below s3://data/sets."""
    new_server = s3_server.Server

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.sets = self.folder / "sets"
        self.sets.mkdir()
        self.server = self.new_server()
        self.environment = {**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache"), **self.server.environment}

    def tearDown(self):
        self.server.stop()
        self.temporary.cleanup()

    def put(self):
        self.server.put_tree(self.sets, "sets")

    def run_program(self, *words, code=0, **variables):
        result = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                                check=False, stdin=subprocess.DEVNULL, env={**self.environment, **variables})
        self.assertEqual(result.returncode, code, f"{words}: {result.stdout}\n{result.stderr}")
        return result

    def train(self, source, *words, model="image", ranks="1", code=0, loss="", **variables):
        """The SHA-256 of the parameters after an epoch on `source`; of a run that fails, what it says."""
        job = self.folder / "job.yaml"
        job.write_text(f"job: {{model: {{{MODEL[model]}}}, data: {{train: {{{source}}}}}, batch_size: 8, micro_batches: 4, {loss}"
                       "epochs: 1, learning_rate: 0.001, checkpoint: never}\n")
        result = self.run_program("train", "job.yaml", "--log", "json", "--ranks", ranks, *words, code=code, **variables)
        if code:
            return result.stderr.strip()
        end = [json.loads(line) for line in result.stdout.splitlines()][-1]
        return end["parameters_sha256"]

    def train_both(self, source, **options):
        """`source` has {} where the folder of data sets stands."""
        here = self.train(source.format(self.sets), **options)
        self.assertEqual(self.train(source.format("s3://data/sets"), **options), here, source)


class EveryKind(Stored):
    def test_images(self):
        make_data.folder(self.sets / "images", 64)
        make_data.tar(self.sets / "images.tar", self.sets / "images")
        make_data.tar(self.sets / "images.tar.gz", self.sets / "images", "w:gz")
        (self.sets / "list.csv").write_text("image,label\n" + "".join(
            f"images/{('cat', 'dog')[i % 2]}/{i:04}.png,{'ab'[i % 2]}\n" for i in range(64)))
        self.run_program("data", "pack", "images=sets/images", "sets/images.pack")
        self.put()
        for source in ("images: {{path: {}/images}}", "images: {{path: {}/images.tar}}", "images: {{path: {}/images.tar.gz}}",
                       "csv: {{path: {}/list.csv}}", "packed: {{path: {}/images.pack}}"):
            with self.subTest(source):
                self.train_both(source)
                self.train_both(source, ranks="2")

    def test_letters_that_macos_decomposes(self):
        classes = ("ko\u0308pek", "kedi")
        make_data.folder(self.sets / "images", 16, classes)
        (self.sets / "list.csv").write_text("image,label\n" + "".join(
            f"images/{classes[i % 2]}/{i:04}.png,{'ab'[i % 2]}\n" for i in range(16)))
        self.put()
        told = [self.run_program("data", "info", f"images={path}/images").stdout for path in ("sets", "s3://data/sets")]
        self.assertIn(" k\u00f6pek\n", told[1])
        self.assertEqual(*(text.split("digest")[1] for text in told))
        for source in ("images: {{path: {}/images}}", "csv: {{path: {}/list.csv}}"):
            with self.subTest(source):
                self.train_both(source)
                self.train_both(source)  # the names are noted
        make_data.folder(self.sets / "images", 16, ("k\u00f6pek", "kedi"))
        self.put()
        self.assertIn("s3://data/sets/images: expected files of different names, found two called k\u00f6pek/0000.png",
                      self.run_program("data", "info", "images=s3://data/sets/images", code=65).stderr)

    def test_raw_images(self):
        make_data.cifar(self.sets, 48, 16)
        make_data.idx(self.sets / "idx", 32, 8)
        with tarfile.open(self.sets / "cifar.tar.gz", "w:gz") as archive:
            archive.add(self.sets / "cifar-10-batches-bin", arcname="cifar-10-batches-bin")
        self.put()
        for source in ("cifar: {{path: {}/cifar-10-batches-bin}}", "cifar: {{path: {}/cifar.tar.gz}}",
                       "cifar: {{path: {}/cifar.tar.gz/data_batch_1.bin}}",
                       "cifar: {{path: {}/cifar-10-batches-bin/data_batch_1.bin}}", "idx: {{path: {}/idx}}"):
            with self.subTest(source):
                self.train_both(source)

    def test_text_tokens_and_tables(self):
        for i in range(5):
            make_data.tokens(self.sets / f"part-{i}.bin", 400 + i)
        (self.sets / "words.txt").write_text("to be or not to be, that is the question\n" * 40)
        (self.sets / "houses.csv").write_text("size,price\n" + "".join(f"{i},{3 * i + 1}\n" for i in range(64)))
        self.put()
        self.train_both("tokens: {{path: {}/part-*.bin, context: 8}}", model="tokens")
        self.train_both("text: {{path: {}/words.txt, context: 8}}", model="tokens")
        self.train_both("table: {{path: {}/houses.csv, target: price}}", model="table", loss="loss: mean_squared_error, ")


class Requests(Stored):
    def setUp(self):
        super().setUp()
        if isinstance(self.server, s3_server.Server):
            make_data.folder(self.sets / "images", 16)
            make_data.tar(self.sets / "images.tar", self.sets / "images")
            self.put()
        else:
            self.skipTest("what is asked is known of the test's own server")

    def data_requests(self):
        asked = [(key, wanted) for method, key, wanted in self.server.asked if method == "GET" and wanted]
        self.server.asked.clear()
        return asked

    def test_a_host_fetches_each_part_once_for_all_ranks_and_runs(self):
        self.train("images: {path: s3://data/sets/images}", ranks="2")
        asked = self.data_requests()
        self.assertEqual(len(asked), 16)
        self.assertEqual(len(set(asked)), 16)
        self.train("images: {path: s3://data/sets/images}", "seed=2")
        self.assertEqual(self.data_requests(), [])

    def test_large_objects_are_read_in_parts(self):
        rows = "".join(f"{i},{i % 7}\n" for i in range(1 << 20))
        self.server.objects["sets/large.csv"] = ("a,b\n" + rows).encode()
        size = len(self.server.objects["sets/large.csv"])
        self.run_program("data", "info", "table=s3://data/sets/large.csv", "target=b")
        parts = [f"bytes={at}-{min(at + BLOCK, size) - 1}" for at in range(0, size, BLOCK)]
        self.assertEqual([wanted for _, wanted in self.data_requests()], parts)

    def test_without_a_cache_what_is_read_is_requested(self):
        expected = self.train("images: {path: s3://data/sets/images}")
        self.server.asked.clear()
        self.assertEqual(self.train("images: {path: s3://data/sets/images}", LOCKSTEP_CACHE="none"), expected)
        self.assertGreaterEqual(len(self.data_requests()), 16)

    def test_a_small_cache_is_kept_small(self):
        disk = shutil.disk_usage(self.folder)
        if disk.free < disk.total / 20 + (100 << 20):
            self.skipTest(f"{self.folder}: less than a twentieth of the disk is free, so that nothing is kept")
        self.server.objects["sets/tokens.bin"] = bytes(50 * (1 - i % 2) for i in range(5 * BLOCK))
        self.run_program("data", "info", "tokens=s3://data/sets/tokens.bin", LOCKSTEP_CACHE_LIMIT="9MiB")
        kept = sum(path.stat().st_size for path in (self.folder / "cache/objects").iterdir())
        self.assertLessEqual(kept, 9 << 20)
        self.assertGreater(kept, 0)

    def test_a_public_bucket_needs_no_key(self):
        self.server.http.public = True
        self.environment.pop("AWS_ACCESS_KEY_ID")
        self.environment.pop("AWS_SECRET_ACCESS_KEY")
        self.train("images: {path: s3://data/sets/images}", AWS_SHARED_CREDENTIALS_FILE="/dev/null")

    def test_keys_in_a_file(self):
        (self.folder / "keys").write_text("[other]\naws_access_key_id = nobody\n[work]\n"
                                          f"aws_access_key_id = {s3_server.KEY_ID}\n"
                                          f"aws_secret_access_key = {s3_server.SECRET}\n")
        self.environment.pop("AWS_ACCESS_KEY_ID")
        self.environment.pop("AWS_SECRET_ACCESS_KEY")
        self.train("images: {path: s3://data/sets/images}", AWS_SHARED_CREDENTIALS_FILE=str(self.folder / "keys"),
                   AWS_PROFILE="work")

    def test_failures_that_pass(self):
        expected = self.train("images: {path: sets/images}")
        self.server.http.failures[:] = [503, 0, "close", 0, 0, 500, 429]
        self.assertEqual(self.train("images: {path: s3://data/sets/images}"), expected)
        self.assertEqual(self.server.http.failures, [])

    def test_a_stop_is_not_held_up_by_a_store_that_fails(self):
        (self.folder / "job.yaml").write_text("job: {model: {mlp: {hidden: [4]}}, data: {train: {images: {path: "
                                              "s3://data/sets/images}}}, batch_size: 8, epochs: 1, learning_rate: 0.001}\n")
        self.server.http.failures[:] = [503] * 1000
        with subprocess.Popen([PROGRAM, "launch", "job.yaml", "--ranks", "1"], cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env={**self.environment, "LOCKSTEP_STORE_PATIENCE": "100000"}) as process:
            wait_until(lambda: len(self.server.asked) > 2, "requests")
            process.terminate()
            said = process.communicate(timeout=PATIENCE)[1]
        self.assertEqual(process.returncode, 1)
        self.assertRegex(said, r"s3://data/sets/images: the object store has failed \d+ times, for \d+ s, to read it: 503")


class Messages(Stored):
    def setUp(self):
        super().setUp()
        make_data.folder(self.sets / "images", 16)
        make_data.tar(self.sets / "images.tar", self.sets / "images")
        self.put()

    def say(self, expected, path="s3://data/sets/images", code=65, kind="images", **variables):
        said = self.train(f"{kind}: {{path: {path}}}", code=code, **variables)
        self.assertIn(expected, said)

    def test_nothing_there(self):
        self.say("s3://data/sets/nothing: there is no such object", "s3://data/sets/nothing")
        self.say("s3://data/sets/n*.bin: no object matches the pattern", "s3://data/sets/n*.bin", kind="tokens")

    def test_no_bucket(self):
        self.say("s3:///sets: expected s3://BUCKET/KEY, found no bucket", "s3:///sets", code=78)
        self.say("s3://other/x: the object store could not list it: 404, NoSuchBucket: The specified bucket does not exist.",
                 "s3://other/x")

    def test_no_permission(self):
        self.say("s3://data/sets/images: expected the permission to read it, found 403, AccessDenied: Access Denied.; the key is nobody",
                 AWS_ACCESS_KEY_ID="nobody")
        self.say("object store: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found only the first", code=78,
                 AWS_SECRET_ACCESS_KEY="")

    def test_a_server_that_does_not_answer(self):
        self.server.stop()
        self.say("s3://data/sets/images: the object store has failed once to read it: Failed to connect to 127.0.0.1", code=1,
                 LOCKSTEP_STORE_PATIENCE="0")

    def test_a_server_that_goes_on_failing(self):
        self.server.http.failures[:] = [503] * 60
        said = self.train("images: {path: s3://data/sets/images}", code=1, LOCKSTEP_STORE_PATIENCE="2")
        self.assertRegex(said, r"s3://data/sets/images: the object store has failed [34] times, for \d s, to read it: 503$")

    def test_an_object_that_is_replaced(self):
        self.train("images: {path: s3://data/sets/images.tar}", LOCKSTEP_CACHE="none")
        self.server.http.replace_after = ("sets/images.tar", 3)
        self.say("s3://data/sets/images.tar: has been replaced since it was opened or indexed; start again to use what is "
                 "there now", "s3://data/sets/images.tar", LOCKSTEP_CACHE="none")

    def test_a_limit_that_is_none(self):
        self.say("LOCKSTEP_CACHE_LIMIT: expected bytes, as in 20GiB or 500MiB, found 'much'", code=78,
                 LOCKSTEP_CACHE_LIMIT="much")


if __name__ == "__main__":
    if "--real-server" in sys.argv:
        import real_server
        Stored.new_server = real_server.VersityGateway
        unittest.main(argv=[sys.argv[0], "EveryKind"])
    unittest.main()
