#!/usr/bin/env python3
"""lockstep_reader on bytes that somebody else may have written: what is read is what was written, or a ReaderError comes.
Changes are drawn from a fixed seed; LOCKSTEP_SEED=N draws others. The corpora are those of the program's fuzz targets."""
import json
import os
import random
import shutil
import unittest

from reading import ROOT, SMALL, InFolder, program, reader

SEED, CASES = int(os.environ.get("LOCKSTEP_SEED", "1")), 400
CORPUS = ROOT / "tests/fuzz/corpus"


def changed(data, draw):
    """One byte is another, bytes are missing, or some are there twice."""
    at = draw.randrange(len(data))
    way = draw.choice(("byte", "byte", "cut", "gone", "twice"))
    if way == "byte":
        return data[:at] + bytes([data[at] ^ draw.randrange(1, 256)]) + data[at + 1:]
    if way == "cut":
        return data[:at]
    end = min(len(data), at + draw.randrange(1, 100))
    return data[:at] + data[end:] if way == "gone" else data[:end] + data[at:]


class Damage(InFolder):
    def test_a_checkpoint_is_as_it_was_or_refused(self):
        program("train", *SMALL, "steps=2", "evaluate=never", "checkpoint={part_bytes: 20000}",
                f"run_directory={self.own}/run")
        path = self.own / "run/checkpoints/step-00000002"
        files = sorted(path.iterdir())
        sound = {file: file.read_bytes() for file in files}
        expected = dict(reader.open_checkpoint(path).items())
        refused = 0
        for case in range(CASES):
            draw = random.Random(f"{SEED} {case}")
            file = draw.choice(files)
            file.write_bytes(changed(sound[file], draw))
            with self.subTest(seed=SEED, case=case):
                self.assertNotEqual(file.read_bytes(), sound[file])
                with self.assertRaises(reader.ReaderError):
                    reader.open_checkpoint(path).verify()
                try:
                    checkpoint = reader.open_checkpoint(path)
                except reader.ReaderError:
                    refused += 1
                    checkpoint = {}
                for name in checkpoint:
                    try:
                        self.assertEqual(checkpoint[name], expected[name])
                    except reader.ReaderError:
                        refused += 1
            file.write_bytes(sound[file])
        self.assertGreater(refused, CASES)
        reader.open_checkpoint(path).verify()

    def test_corpora(self):
        count = 0
        for file in sorted(CORPUS.glob("safetensors/*")):
            with self.subTest(file=file.name):
                count += self.only_reader_errors(lambda path: list(reader.open_weights(path).values()), file)
        for file in sorted(CORPUS.glob("manifest/*")):
            with self.subTest(file=file.name):
                folder = self.own / file.name
                folder.mkdir()
                shutil.copy(file, folder / "manifest.json")
                count += self.only_reader_errors(lambda path: reader.open_checkpoint(path).verify(), folder)
        for file in sorted(CORPUS.glob("run_events/*")):
            with self.subTest(file=file.name):
                shutil.copy(file, self.own / "events.jsonl")
                count += self.only_reader_errors(reader.read_events, self.own)
                run = reader.open_run(self.own)
                self.only_reader_errors(lambda _: (run.status(), run.training(), run.validation()), self.own)
        self.assertGreater(count, 10)

    @staticmethod
    def only_reader_errors(call, path):
        """Another exception is the test's failure."""
        try:
            call(path)
        except reader.ReaderError:
            pass
        return 1

    def test_events_that_are_changed(self):
        lines = [{"event": "start", "steps": 3, "job": "a"}, {"event": "step", "step": 1, "loss": 1.5, "metrics": {"f1": 1}},
                 {"event": "eval", "step": 1, "set": "validation", "loss": "nan", "metrics": {}},
                 {"event": "checkpoint", "step": 1, "path": "p", "bytes": 3}, {"event": "end", "outcome": "done", "steps": 3}]
        data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        for case in range(CASES):
            (self.own / "events.jsonl").write_bytes(changed(data, random.Random(f"{SEED} {case}")))
            run = reader.open_run(self.own)
            with self.subTest(seed=SEED, case=case):
                self.only_reader_errors(lambda _, run=run: (run.status(), run.training(), run.validation(),
                                                            list(run.follow(timeout=0, every=0))), self.own)
                self.only_reader_errors(lambda _, run=run: run.best(), self.own)


if __name__ == "__main__":
    unittest.main()
