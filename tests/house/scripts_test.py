"""The scripts that judge other tests, and the one that installs."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"

REPORT = """<testsuite>
  <testcase name="core.a" status="run"/>
  <testcase name="core.b" status="{status}"><system-out>one\ntwo</system-out></testcase>
</testsuite>"""


def summary(*statuses):
    with tempfile.TemporaryDirectory() as folder:
        for i, status in enumerate(statuses):
            pathlib.Path(folder, f"{i}.xml").write_text(REPORT.format(status=status))
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

    def test_no_test_is_a_failure(self):
        self.assertEqual(summary(), (1, ["0 passed, 0 failed, 0 skipped"]))


def children_seconds():
    """Processor time: the clock on the wall says little on a busy machine."""
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
            1, "install-dependencies: unknown option '--tests'; expected --build, --test or --lint\n"))


if __name__ == "__main__":
    unittest.main()
