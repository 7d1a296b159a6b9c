"""The scripts that judge other tests, and the one that installs dependencies."""
import hashlib
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"

REPORT = """<testsuite>
  <testcase name="core.a" status="run"/>
  <testcase name="core.b" status="{status}"><system-out>{said}</system-out></testcase>
</testsuite>"""


def summary(*statuses, said="one\ntwo"):
    with tempfile.TemporaryDirectory() as folder:
        for i, status in enumerate(statuses):
            pathlib.Path(folder, f"{i}.xml").write_text(REPORT.format(status=status, said=said))
        done = subprocess.run([sys.executable, SCRIPTS / "test_summary.py", folder], capture_output=True, text=True,
                              check=False)
    return done.returncode, done.stdout.splitlines()


class TestSummary(unittest.TestCase):
    def test_all_passed(self):
        self.assertEqual(summary("run", "run"), (0, ["4 passed, 0 failed, 0 skipped"]))

    def test_a_failure_is_named_and_fails(self):
        self.assertEqual(summary("run", "fail"), (1, ["FAILED   core.b", "3 passed, 1 failed, 0 skipped"]))

    def test_a_skipped_test_is_named_with_its_reason(self):
        self.assertEqual(summary("notrun"), (0, ["skipped  core.b: two", "1 passed, 0 failed, 1 skipped"]))

    def test_a_figure_is_printed_of_each_test_that_has_one(self):
        self.assertEqual(summary("run", said="begins\nfigure: 3 of 4 parts\nends\nno figure: 5"),
                         (0, ["figure   core.b: 3 of 4 parts", "2 passed, 0 failed, 0 skipped"]))

    def test_no_test_is_a_failure(self):
        self.assertEqual(summary(), (1, ["0 passed, 0 failed, 0 skipped"]))


def children_seconds():
    """CPU time: wall-clock time says little on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class InstallDependencies(unittest.TestCase):
    def run_script(self, *arguments, **environment):
        return subprocess.run([SCRIPTS / "install-dependencies.sh", *arguments], capture_output=True, text=True,
                              env={**os.environ, **environment}, check=False)

    def test_does_nothing_fast_where_all_is_there(self):
        start = children_seconds()
        done = self.run_script("--test")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertLess(children_seconds() - start, 0.5)

    def test_an_unknown_option(self):
        done = self.run_script("--tests")
        self.assertEqual((done.returncode, done.stderr), (
            1, "install-dependencies: unknown option '--tests'; expected --build, --run, --test, --portable, --long, "
               "--k8s, --slurm, --fuzz, --lint or --docs\n"))


class CudaToolkit(unittest.TestCase):
    """The script, run in a separate tree: what it prints if nothing can be downloaded."""
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name).resolve()
        (self.root / "scripts").mkdir()
        for name in ("cuda-toolkit.sh", "cuda-toolkit.txt"):
            shutil.copy(SCRIPTS / name, self.root / "scripts" / name)

    def run_script(self, *arguments, **environment):
        return subprocess.run([self.root / "scripts" / "cuda-toolkit.sh", *arguments], capture_output=True, text=True,
                              env={**os.environ, **environment}, check=False)

    def leftovers(self):
        return sorted(path.name for path in (self.root / "build").iterdir())

    def make_kit(self):
        """A folder with the stamp of a current toolkit."""
        text = b"".join((self.root / "scripts" / f"cuda-toolkit.{end}").read_bytes() for end in ("sh", "txt"))
        kit = self.root / "build" / "cuda-toolkit"
        kit.mkdir(parents=True)
        (kit / "stamp").write_text(hashlib.sha256(text).hexdigest() + "\n")

    def test_a_current_kit_is_left_alone(self):
        self.make_kit()
        for arguments in ((), ("--check",)):
            done = self.run_script(*arguments, PIP_NO_INDEX="1")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_kit_of_other_pins_is_not_current(self):
        self.make_kit()
        with (self.root / "scripts" / "cuda-toolkit.txt").open("a") as pins:
            pins.write("# another line\n")
        done = self.run_script("--check")
        self.assertEqual((done.returncode, done.stderr), (
            1, "cuda-toolkit: build/cuda-toolkit is missing or of other versions; scripts/cuda-toolkit.sh makes it\n"))

    def test_no_network(self):
        done = self.run_script(PIP_NO_INDEX="1", PIP_FIND_LINKS="")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cuda-toolkit: the wheels could not be fetched; see above. A network, or a mirror in pip's "
                      "settings (pip config), is needed\n", done.stderr)
        self.assertEqual(self.leftovers(), ["cuda-toolkit.lock"])

    def test_no_room(self):
        tools = self.root / "tools"
        tools.mkdir()
        (tools / "df").write_text("#!/bin/sh\necho Avail\necho 1234\n")
        (tools / "df").chmod(0o755)
        done = self.run_script(PATH=f"{tools}:{os.environ['PATH']}")
        self.assertEqual((done.returncode, done.stderr), (
            1, f"cuda-toolkit: expected 4000 MiB free for {self.root}/build, found 1234; make room, or link build to a "
               "larger disk\n"))

    def test_an_unknown_option(self):
        done = self.run_script("--fetch")
        self.assertEqual(done.returncode, 64)
        self.assertIn("scripts/cuda-toolkit.sh --check", done.stdout)


if __name__ == "__main__":
    unittest.main()
