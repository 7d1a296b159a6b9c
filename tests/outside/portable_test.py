#!/usr/bin/env python3
"""The packed program, unpacked where there is only the C library and a shell: it trains on two ranks to the same bits
as the program on this machine."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
JOB = ["train", "--log", "json", "data.train.digits.count=256", "data.validation.digits.count=64",
       "epochs=1"]
TOOLS = ["sh", "dirname", "readlink"]
INSIDE = """
for part in proc sys dev; do mount --rbind /$part {0}/$part || exit; done; cd {0} && exec env -i HOME=/tmp PATH=/usr/bin:/usr/sbin \\
chroot {0} /usr/bin/sh -c 'cd /tmp && exec "$@"' sh "$@"
"""
# Records the command, and runs it on this machine; but starts no daemon.
AGENT = """#!/bin/sh
echo "$@" >>/tmp/asked
shift
case "$*" in *orted*) exit 1 ;; esac
exec sh -c "$*"
"""


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)


def libraries(program):
    """The libraries that a program loads, including the loader."""
    return [word for word in run("ldd", program).stdout.split() if word.startswith("/")]


def bare_root(folder):
    """Only the C library, where the loader looks, and the tools."""
    for name in ("usr/bin", "usr/lib", "proc", "sys", "dev", "tmp", "opt"):
        (folder / name).mkdir(parents=True)
    for name in ("bin", "lib"):
        (folder / name).symlink_to(f"usr/{name}")
    (folder / "lib64").symlink_to("usr/lib")
    for name in TOOLS:
        shutil.copy2(os.path.realpath(shutil.which(name)), folder / "usr/bin" / name)
    for file in {library for name in TOOLS for library in libraries(shutil.which(name))}:
        shutil.copy2(file, folder / "usr/lib")
    c_library = pathlib.Path(next(file for file in libraries(shutil.which("sh")) if "/libc.so" in file)).parent
    for name in ("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2", "libutil.so.1"):
        shutil.copy2(c_library / name, folder / "usr/lib")
    return folder


def trained(done):
    """The hash of the parameters."""
    ends = [line for line in map(json.loads, done.stdout.splitlines()) if line["event"] == "end"]
    return ends[0]["parameters_sha256"]


class Portable(unittest.TestCase):
    def test_trains_where_there_is_nothing_else(self):
        with tempfile.TemporaryDirectory() as temporary:
            packed = run(sys.executable, str(ROOT / "scripts/portable.py"), "--build", str(BUILD), "--output", temporary)
            self.assertEqual(packed.returncode, 0, packed.stderr)
            self.assertRegex(packed.stdout, r"-portable\.tar\.gz: \d+ MiB, for machines with glibc 2\.\d+ or later\n$")
            root = bare_root(pathlib.Path(temporary) / "root")
            self.assertEqual(run("tar", "xf", packed.stdout.split(":")[0], "-C", str(root / "opt")).returncode, 0)
            unpacked = next(root.glob("opt/*"))
            unpacked.rename(root / "opt/moved")

            def inside(*words):
                return run("unshare", "--map-root-user", "--mount", "sh", "-c", INSIDE.format(root), "sh", *words)
            expected = trained(run(os.environ["LOCKSTEP"], *JOB, "--ranks", "2", cwd=temporary))
            for ranks in ("1", "2"):
                done = inside("/opt/moved/bin/lockstep", *JOB, "--ranks", ranks, f"run_directory=run{ranks}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(trained(done), expected)

            agent = root / "opt/agent"  # starts programs on other hosts, in place of ssh
            agent.write_text(AGENT)
            agent.chmod(0o755)
            done = inside("/opt/moved/bin/lockstep", "launch", "--agent", "/opt/agent", "--hosts", "one:1,two:1",
                          "--max-restarts", "0", "steps=1", "run_directory=run3")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("/opt/moved/bin/orted", (root / "tmp/asked").read_text())


def missing():
    """Why this cannot be tested here; empty if it can."""
    version = run("mpirun", "--version").stdout.split("\n", maxsplit=1)[0]
    if " 4." not in version:
        return f"only Open MPI 4 is packed, here is {version}"
    if not shutil.which("patchelf"):
        return "patchelf is not installed"
    if run("unshare", "--map-root-user", "--mount", "true").returncode != 0:
        return "the kernel forbids mounts of one's own"
    return ""


if __name__ == "__main__":
    if reason := missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main(verbosity=2)
