#!/usr/bin/env python3
"""The image, built by the real Dockerfile: what it says about itself, as which user it runs, and that it trains to the
same bits."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ["LOCKSTEP"]
JOB = ["steps=30", "data.train.digits.count=512", "data.validation.digits.count=64", "evaluate=never", "checkpoint=never",
       "threads=1", "--log", "json"]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def trained_hash(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]


def here():
    """The hash of the job from this machine's program."""
    with tempfile.TemporaryDirectory() as folder:
        return trained_hash(run(PROGRAM, "train", *JOB, cwd=folder))


class BuiltImage(unittest.TestCase):
    """A container of the image `name`."""
    name = "localhost/lockstep:test"
    store = []  # buildah's arguments

    @classmethod
    def setUpClass(cls):
        cls.container = run(*cls.store, "from", "--pull-never", cls.name).stdout.strip()
        cls.addClassCleanup(lambda: run(*cls.store, "rm", cls.container))

    def inside(self, *words):
        return run(*self.store, "run", "--isolation", "chroot", self.container, "--", *words)


def main(*options):
    """Builds the image and runs the tests; ends as skipped if image.sh says so."""
    built = run(FOLDER / "image.sh", *options)
    if built.returncode != 0:
        print(built.stderr + built.stdout, end="")
        sys.exit(built.returncode)
    BuiltImage.store = built.stdout.split()
    unittest.main()


class Image(BuiltImage):
    def test_it_says_what_it_is(self):
        image = json.loads(run(*self.store, "inspect", "--type", "image", self.name).stdout)
        config = image["Docker"]["config"]
        self.assertEqual((config["User"], config["Entrypoint"], config["Cmd"]),
                         ("1000:1000", ["/usr/bin/lockstep"], ["pod"]))
        self.assertEqual(config["Healthcheck"]["Test"], ["CMD", "lockstep", "pod", "--probe"])
        labels = {name: value for name, value in config["Labels"].items() if name.startswith("org.opencontainers.image.")}
        self.assertEqual(labels["org.opencontainers.image.title"], "lockstep")
        self.assertEqual(set(labels), {f"org.opencontainers.image.{name}" for name in (
            "title", "description", "licenses", "version", "revision", "created", "source")})

    def test_it_trains_to_the_same_bits(self):
        there = self.inside("sh", "-c", f"cd /tmp && lockstep train --ranks 2 {' '.join(JOB)}")
        self.assertEqual(trained_hash(there), here())

    def test_it_runs_without_rights_and_holds_no_keys(self):
        self.assertEqual(self.inside("id", "-u").stdout, "1000\n")
        self.assertEqual(self.inside("sh", "-c", "ls /etc/ssh/ssh_host_* 2>/dev/null").stdout, "")
        self.assertNotIn("not found", self.inside("ldd", "/usr/bin/lockstep").stdout)
        self.assertEqual(self.inside("sh", "-c", "ls -d /src /usr/include/lockstep 2>/dev/null").stdout, "")

    def test_it_has_a_list_of_what_it_is_made_of(self):
        packages = json.loads(self.inside("cat", "/usr/share/doc/lockstep/sbom.spdx.json").stdout)["packages"]
        self.assertLessEqual({"lockstep", "openmpi-bin", "openssh-server", "ca-certificates", "libc6"}, {package["name"] for package in packages})

    def test_a_pod_without_a_list_of_hosts_says_so(self):
        done = self.inside("lockstep", "pod")
        self.assertIn("lockstep: --hostfile: cannot read '/etc/lockstep/hosts'", done.stderr)
        self.assertEqual(done.returncode, 64)


if __name__ == "__main__":
    main()
