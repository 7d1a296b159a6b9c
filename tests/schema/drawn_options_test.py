#!/usr/bin/env python3
"""Draws options of readers, sensible ones and others, and trains with each: on 1, 2 and 3 ranks, with a cold cache, a warm
one and that of a job with other options, in one go and resumed. All must have the same parameters, or the same refusal.

    tests/schema/drawn_options_test.py 1-60   these draws alone
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/placement"), str(ROOT / "tests")]
import data_files  # noqa: E402  pylint: disable=wrong-import-position
from drawn import Draw  # noqa: E402  pylint: disable=wrong-import-position
from shared import PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
REFUSED = (65, 78)


def some(draw, **choices):
    """Each key, or not, with one of its values."""
    return {key: draw.one(values) for key, values in choices.items() if draw.chance(0.35)}


def table(draw):
    source = {"path": draw.one(("rows.csv", ["rows.csv", "more_rows.csv"])), "target": draw.one(("kind", "color", "kind", "zip"))}
    source |= some(draw, unknown=("ignore", "refuse"), classes=(["b", "c", "a"], ["a", "b"], ["a", "b", "c", "d"]),
                   categorical=(["zip"], ["zip", "y"], ["w"]), features=(["x", "y"], ["y", "zip"], ["day"]),
                   weight=("w", "y"), count=(100, 150), window=(3,))
    source |= {"except": draw.one((["note"], ["note", "zip"], ["n*"], ["nothing"])), "bad_samples": draw.one(("skip", "skip", "stop"))}
    data = {"validation": draw.one(({"fraction": 0.2}, {"fraction": 0.2, "stratify": True},
                                    {"table": {"path": "more_rows.csv", "bad_samples": "skip"}}))}
    return {"model": {"mlp": {"hidden": [6]}}, "data": {"train": {"table": source}, **data}, "metrics": ["accuracy"]}


def series(draw):
    source = {"path": "rows.csv", "target": draw.one(("y", ["y", "w"])), "features": draw.one((["y"], ["y", "w"], ["y", "color"])),
              "window": draw.one((1, 3, 5)), "bad_samples": "skip"} | some(draw, horizon=(1, 3, [2, 4], 0), time=("day", "note"),
                                                                           series=("zip", "color"))
    return {"model": {"mlp": {"hidden": [6]}}, "loss": "huber", "metrics": ["mae"],
            "data": {"train": {"table": source}, "validation": {"fraction": 0.2}}}


def images(draw):
    source = {"path": "shots", "bad_samples": draw.one(("skip", "skip", "stop"))} | some(
        draw, class_folder=("outermost", "innermost"), count=(90, 140), classes=(
            ["bee", "ant"], ["ant", "bee", "cat"], ["camera2", "camera0", "camera1"], ["ant"]))
    data = {"prepare": [{"resize": [8, 8]}], "validation": {"fraction": 0.1}} | some(draw, cache=("none", "memory"))
    return {"model": {"mlp": {"hidden": [6]}}, "data": {"train": {"images": source}, **data}, "metrics": ["accuracy"]}


def masks(draw):
    source = {"path": draw.one(("black.csv", "void.csv")), "mask": "mask", "classes": draw.one(
        (["ground", "thing"], ["ground", "thing", "sky"]))} | some(draw, values=([0, 255], [0, 1], [0, 1, 9]), ignored=(9, 255, 1))
    layers = [{"conv": {"filters": 4, "kernel": 3}}, "relu", {"conv": {"filters": len(source["classes"]), "kernel": 1}}]
    return {"model": {"layers": layers}, "metrics": ["mean_iou"], "loss": {"cross_entropy": {}, "target": "mask"},
            "data": {"train": {"csv": source}, "validation": {"fraction": 0.1}}}


def texts(draw):
    source = {"path": "texts.csv", "context": draw.one((6, 20))} | some(
        draw, classes=(["true", "false"], ["false", "true"], ["true"]), tokenizer=("bytes", "characters"),
        label_column=("label", "text"), text_column=("text", "txt"))
    layers = [{"embedding": {"vocabulary": 256, "width": 8, "inputs": "tokens"}},
              {"global_pool": {"inputs": ["previous", "length"]}}, {"linear": {"features": 2}}]
    validation = draw.one(({"fraction": 0.1}, {"texts": "more_texts.csv"}))
    return {"model": {"layers": layers}, "data": {"train": {"texts": source}, "validation": validation}, "metrics": ["accuracy"]}


def masked(draw):
    source = {"path": "more_text.txt", "context": draw.one((6, 9)), "masked": draw.one((0.2, 0.5))} | some(
        draw, masked_span=(1, 3), mask_token=(5, 500), tokenizer=("bytes", "characters"))
    return {"model": {"bert": {"layers": 1, "heads": 2, "width": 16}}, "metrics": [],
            "loss": {"cross_entropy": {"ignored_index": -100}},
            "data": {"train": {"text": source}, "validation": {"fraction": 0.2}}}


def tokens(draw):
    source = {"path": "tokens.bin", "context": draw.one((5, 17)), "dtype": draw.one(("uint16", "uint32", "int32", "int64"))}
    return {"model": {"gpt": {"layers": 1, "heads": 2, "width": 16, "vocabulary": draw.one((60, 40))}}, "metrics": ["perplexity"],
            "data": {"train": {"tokens": source}, "validation": draw.one(({"fraction": 0.1}, {"tokens": {
                "path": "more_tokens.bin", "dtype": source["dtype"]}}))}}


KINDS = (table, table, series, images, masks, texts, masked, tokens)


class Options:
    def __init__(self, folder):
        self.folder = folder

    def train(self, *words):
        """The exit code, and the hash of the last checkpoint's tensors or the refusal."""
        done = subprocess.run(
            [PROGRAM, "train", "job.yaml", "run_directory=run", *words], cwd=self.folder, capture_output=True, text=True,
            timeout=PATIENCE, check=False, env={**os.environ, "LOCKSTEP_CACHE": str(self.folder / "cache")})
        if done.returncode not in (0, 75):
            said = [re.sub(r"^lockstep: (rank \d+ \(host [^)]*\): )?", "", line) for line in done.stderr.splitlines()
                    if line.startswith("lockstep: ")]
            assert done.returncode in REFUSED and len(said) == 1, f"exit code {done.returncode}: {done.stderr}"
            return done.returncode, said[0]
        newest = max((self.folder / "run/checkpoints").glob("step-*"))
        return done.returncode, {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                                 for path in sorted(newest.glob("*.safetensors"))}

    def forget(self, *names):
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def difference(self, job, other):
        """What a run has that differs from one on one rank with a cold cache; "": nothing. `other`: a job of the same kind."""
        (self.folder / "job.yaml").write_text(json.dumps({"job": job}))
        self.forget("run", "cache")
        expected = self.train()
        if expected[0] == 0:
            self.forget("run")
            code, _ = self.train("--stop-at", "2")
            found = code == 75 and self.train("--ranks", "2")
            if found != expected:
                return f"resumed on 2 ranks: expected {expected}, found {found}"
        for what, ranks in (("warm", 2), ("foreign", 1), ("cold", 3)):
            self.forget("run", *(["cache"] if what != "warm" else []))
            if what == "foreign":
                (self.folder / "job.yaml").write_text(json.dumps({"job": other}))
                self.train("steps=1")
                self.forget("run")
                (self.folder / "job.yaml").write_text(json.dumps({"job": job}))
            found = self.train("--ranks", str(ranks))
            if found != expected:
                return f"cache {what}, {ranks} ranks: expected {expected}, found {found}"
        return ""


def drawn_job(kind, draw):
    settings = {"name": "drawn", "seed": draw.integer(0, 99), "batch_size": 12, "micro_batches": draw.one((3, 4, 6)), "steps": 4,
                "evaluate": {"every": "2 steps"}, "checkpoint": {"every": "2 steps"}, "optimizer": "adam"}
    return {**settings, **kind(draw)}


def main(numbers):
    wrong = trained = 0
    with tempfile.TemporaryDirectory() as name:
        options = Options(pathlib.Path(name))
        data_files.write_all(options.folder)
        for number in numbers:
            draw = Draw(f"options {number}")
            kind = draw.one(KINDS)
            job, other = drawn_job(kind, draw), drawn_job(kind, draw)
            try:
                found = options.difference(job, other)
            except AssertionError as error:
                found = str(error)
            trained += (options.folder / "run/checkpoints").exists()
            if found:
                wrong += 1
                print(f"{number}: {found}\n{json.dumps(job)}\n{json.dumps(other)}", flush=True)
    print(f"{len(numbers)} draws, of which {trained} train: {wrong or 'no'} difference{'s' if wrong > 1 else ''}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    first, _, last = (sys.argv[1] if len(sys.argv) > 1 else "1-20").partition("-")
    main(range(int(first), int(last or first) + 1))
