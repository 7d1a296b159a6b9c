#!/usr/bin/env python3
"""docs/checkpoints.md by Python alone: the lines that it shows read a checkpoint of three ranks, and so does
safetensors the exported model. Run by scripts/python.sh."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["LOCKSTEP"]


def main():
    snippet = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "checkpoints.md").read_text(), re.DOTALL).group(1)
    with tempfile.TemporaryDirectory() as folder:
        train = [PROGRAM, "train", "--ranks", "3", "data.train.digits.count=96", "data.validation.digits.count=32",
                 "batch_size=48", "micro_batches=3", "steps=2", "learning_rate=0.01", "checkpoint={part_bytes: 20000}",
                 f"run_directory={folder}/run"]
        subprocess.run(train, check=True, capture_output=True)
        subprocess.run([PROGRAM, "checkpoint", "export", f"{folder}/run", f"{folder}/model.safetensors"], check=True,
                       capture_output=True)
        checkpoint = pathlib.Path(folder) / "run" / "checkpoints" / "step-00000002"
        files = list(checkpoint.glob("*.safetensors"))
        assert len(files) > 6, files
        script = pathlib.Path(folder) / "snippet.py"
        script.write_text(snippet + "\nnumpy.savez(sys.argv[2], **tensors)\n")
        subprocess.run([sys.executable, script, checkpoint, f"{folder}/all.npz"], check=True)
        everything = numpy.load(f"{folder}/all.npz")
        model = load_file(f"{folder}/model.safetensors")
        assert len(model) == 6 and len(everything.files) == 18, (list(model), everything.files)
        cut = 0
        for name, tensor in model.items():
            assert tensor.dtype == numpy.float32 and numpy.array_equal(tensor, everything[name]), name
            cut += tensor.nbytes > 20000
        assert cut > 0, "no tensor was cut"
        assert any(everything["conv1.weight:first_moment"].ravel() != 0)
        damaged = files[0].read_bytes()
        files[0].write_bytes(damaged[:-1] + bytes([damaged[-1] ^ 1]))
        assert subprocess.run([sys.executable, script, checkpoint, f"{folder}/no.npz"], capture_output=True,
                              check=False).returncode == 1, "the damage was not noticed"
    print(f"read {len(everything.files)} tensors of {len(files)} files")


if __name__ == "__main__":
    main()
