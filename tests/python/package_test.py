#!/usr/bin/env python3
"""`pip install ./python`, and the installed package on a run. Skipped where pip cannot get what builds packages."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from reading import ROOT, SMALL, program


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        shutil.copytree(ROOT / "python", here / "python", ignore=shutil.ignore_patterns("__pycache__"))  # pip builds in it
        if subprocess.run([sys.executable, "-m", "venv", here / "venv"], check=False).returncode != 0:
            print("skipped: python3 has no venv here")
            sys.exit(77)
        done = subprocess.run([here / "venv/bin/pip", "install", "--quiet", "--no-input", here / "python"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            print(done.stderr)
            if "No matching distribution found for setuptools" in done.stderr:
                print("skipped: pip cannot get setuptools, which builds the package")
                sys.exit(77)
            sys.exit(1)
        program("train", *SMALL, "steps=2", "evaluate=never", f"run_directory={here}/run")
        script = ("import lockstep_reader as reader, pathlib; run = reader.open_run('run'); "
                  "assert pathlib.Path(reader.__file__).with_name('py.typed').exists(); print(run.parameters_sha256)")
        found = subprocess.run([here / "venv/bin/python", "-c", script], capture_output=True, text=True, cwd=here, check=True)
        shown = subprocess.run([here / "venv/bin/python", "-m", "lockstep_reader", "summary", "run"], capture_output=True,
                               text=True, cwd=here, check=True)
        assert shown.stdout.endswith(f"sha256       {found.stdout}"), shown.stdout
        assert len(found.stdout) == 65, found.stdout
    print("installed and read a run")


if __name__ == "__main__":
    main()
