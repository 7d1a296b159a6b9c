"""The example's plugin in all commands: the same bits on any number of ranks, its file held in runs and checkpoints, and
what is said of libraries that are no plugins.

plugin_test.py PLUGINS MODULE DRIVER_FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from run_events import events_of  # noqa: E402  pylint: disable=wrong-import-position

LOCKSTEP = os.environ["LOCKSTEP"]
PLUGINS, MODULE, DRIVER = pathlib.Path(sys.argv.pop(1)), sys.argv.pop(1), sys.argv.pop(1)
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
       "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
SHORT = ["epochs=4", "evaluate.every=2 epochs", "checkpoint.every=2 epochs"]
PLACE = "pendulum.yaml:5:12: job.plugins: "
MAKE = "make it with lockstep_add_plugin (docs/plugins.md)"


class PluginTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("pendulum.yaml", "pendulum.libsvm"):
            shutil.copy(ROOT / "examples/plugin" / name, self.folder)
        (self.folder / "build").mkdir()
        self.file = self.folder / "build/libpendulum.so"
        shutil.copy(PLUGINS / "libpendulum.so", self.file)

    def program(self, *words, code=0, **settings):
        done = subprocess.run([LOCKSTEP, *map(str, words)], cwd=self.folder, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300, env={**os.environ, **MPI, "LOCKSTEP_PLUGINS": "always", **settings})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}\n{done.stderr}")
        return done

    def train(self, *words, **options):
        return self.program("train", "pendulum.yaml", *SHORT, *words, **options)

    def hash_of(self, run):
        return events_of(self.folder / run, "end")[-1]["parameters_sha256"]

    def digest(self):
        return subprocess.run(["sha256sum", self.file], capture_output=True, text=True, check=True).stdout[:16]

    def use_another_file(self):
        """With the same code: what follows an ELF file's end is not loaded."""
        with self.file.open("ab") as file:
            file.write(b"another")


class Commands(PluginTest):
    def test_trains_evaluates_and_predicts_on_any_number_of_ranks(self):
        evaluations, predictions, hashes = set(), set(), set()
        for ranks in ("1", "2"):
            run = f"runs/{ranks}"
            self.assertIn(f"\n  plugin libpendulum.so {self.digest()}\n",
                          self.train("--ranks", ranks, f"run_directory={run}").stderr)
            hashes.add(self.hash_of(run))
            start = events_of(self.folder / run, "start")[0]
            self.assertEqual(start["plugins"], f"libpendulum.so {self.digest()}")
            self.assertEqual(start["higher_is_better"], "")
            line = json.loads(self.program("eval", run, "--ranks", ranks, "--log", "json").stdout)
            self.assertEqual(set(line["metrics"]), {"percent_error"})
            evaluations.add((line["loss"], line["metrics"]["percent_error"]))
            predictions.add(self.program("predict", run, "pendulum.libsvm", "--ranks", ranks).stdout)
        self.assertEqual([len(all_ranks) for all_ranks in (hashes, evaluations, predictions)], [1, 1, 1])
        self.assertRegex(predictions.pop(), r"^pendulum\.libsvm:1  [0-9.]+\npendulum\.libsvm:2  ")

    def test_learns(self):
        self.program("train", "pendulum.yaml", "run_directory=run")
        self.assertLess(events_of(self.folder / "run", "eval")[-1]["metrics"]["percent_error"], 2.5)

    def test_a_launch_and_a_resumed_run_end_with_the_same_bits(self):
        self.train("run_directory=whole")
        self.program("launch", "pendulum.yaml", *SHORT, "--ranks", "2", "run_directory=launched")
        self.train("run_directory=halves", "--stop-at", "37", code=75)
        self.train("run_directory=halves")
        self.assertEqual({self.hash_of(run) for run in ("whole", "launched", "halves")}, {self.hash_of("whole")})

    def test_reports_need_no_plugin(self):
        for seed in ("1", "2"):
            self.train(f"seed={seed}", f"run_directory=run{seed}")
        self.file.unlink()
        self.program("report", "run1")
        self.assertIn(f"libpendulum.so {events_of(self.folder / 'run1', 'start')[0]['plugins'].split()[1]}",
                      (self.folder / "run1/report.html").read_text())
        self.program("report", "run1", "run2", "--output", "both.html")
        row = re.search("<tr><th>best validation percent error</th>(.*?)(</tr>|</table>)",
                        (self.folder / "both.html").read_text(), re.DOTALL)[1]
        values = [(float(number.replace(",", "")), "best" in kind) for kind, number in re.findall(
            r'<td class="(n[^"]*)">([0-9.,]+)', row)]
        self.assertEqual(len(values), 2)
        self.assertTrue(min(values)[1] and not max(values)[1], values)  # less is better

    def test_what_looks_at_a_job(self):
        self.assertIn("pendulum.yaml: ok", self.program("check", "pendulum.yaml").stdout)
        (self.folder / "pendulum.libsvm").rename(self.folder / "elsewhere")
        self.assertIn("pendulum.yaml: ok", self.program("check", "pendulum.yaml", "--no-data").stdout)
        (self.folder / "elsewhere").rename(self.folder / "pendulum.libsvm")
        self.assertRegex(self.program("show", "pendulum.yaml").stdout, r"(?m)^ *mish1 ")
        self.assertIn("LIBSVM", self.program("data", "info", "pendulum.yaml").stdout)
        self.assertIn("ms", self.program("plan", "pendulum.yaml", "--ranks", "2").stdout)
        self.assertIn("recommended", self.program("tune", "threads", "pendulum.yaml", "--steps", "4").stdout)

    def test_sweeps_and_ensembles(self):
        (self.folder / "sweep.yaml").write_text(
            "sweep:\n  job: pendulum.yaml\n  method: grid\n  metric: percent_error\n"
            "  parameters: {loss.log_cosh.width: {choice: [0.5, 1]}}\n")
        self.program("sweep", "sweep.yaml", "epochs=1", "--ranks", "1")
        trials = json.loads((self.folder / "sweeps/sweep/trials.json").read_text())
        self.assertEqual(len(trials["trials"]), 2)
        self.program("ensemble", "train", "pendulum.yaml", "epochs=1", "--members", "2", "--ranks", "1",
                     "data.split_seed=1")
        self.assertIn("percent_error", self.program("ensemble", "eval", "ensembles/pendulum").stdout)
        self.program("ensemble", "predict", "ensembles/pendulum", "pendulum.libsvm")

    def test_exports_weights_but_no_op_that_others_lack(self):
        self.train("run_directory=run")
        checkpoint = sorted((self.folder / "run/checkpoints").glob("step-*"))[-1]
        self.program("checkpoint", "export", checkpoint, "weights.safetensors")
        again = self.train("run_directory=again", "initialize.from=weights.safetensors", "--log", "json")
        self.assertIn("6 tensors of weights.safetensors", again.stdout)
        self.assertIn("mish", self.program("checkpoint", "export", checkpoint, "model.onnx", "--to", "onnx", code=64).stderr)


class OtherFiles(PluginTest):
    def test_a_resumed_run_wants_the_same_file(self):
        self.train("run_directory=run", "--stop-at", "37", code=75)
        before = self.digest()
        self.use_another_file()
        difference = (f"run/checkpoints/step-00000037: it was written with the plugins libpendulum.so {before}, but here "
                      f"they are libpendulum.so {self.digest()}")
        self.assertEqual(self.train("run_directory=run", code=64).stderr.splitlines()[-1],
                         f"lockstep: {difference}; the bits may differ: restore the files, or set exact: preferred")
        self.train("run_directory=run", "exact=preferred")
        self.assertEqual([event["message"] for event in events_of(self.folder / "run", "warning")], [difference])
        self.assertEqual(events_of(self.folder / "run", "start")[-1]["exactness"], "exact gradient, not bitwise")

    def test_evaluation_and_prediction_warn(self):
        self.train("run_directory=run")
        before = self.digest()
        self.use_another_file()
        warning = (f"warning: run/checkpoints/step-00000080: it was written with the plugins libpendulum.so {before}, but "
                   f"here they are libpendulum.so {self.digest()}\n")
        self.assertEqual(self.program("eval", "run", "--ranks", "2").stderr, warning)
        self.assertEqual(self.program("predict", "run", "pendulum.libsvm").stderr,
                         warning + "checkpoint: run/checkpoints/step-00000080, the newest\n")
        self.assertEqual(self.program("eval", "run", f"plugins={PLUGINS / 'libpendulum.so'}").stderr, "")

    def test_a_saved_job_runs_no_plugin_unasked(self):
        """Who passes on a model must not run a program by it."""
        self.train("run_directory=run")
        refusal = ("lockstep: run/checkpoints/step-00000080/manifest.json:14:10: job.plugins[0]: expected plugins that "
                   "you name yourself, since this job comes out of a saved model, found 'build/libpendulum.so'; a plugin is a "
                   "program: if you trust it, add plugins=build/libpendulum.so, or set LOCKSTEP_PLUGINS=always in the "
                   "environment\n")
        for words in (["eval", "run"], ["predict", "run", "pendulum.libsvm"], ["show", "run"],
                      ["checkpoint", "export", "run", "w.safetensors", "--to", "torch"], ["ensemble", "eval", "run", "run"]):
            error = self.program(*words, code=78, LOCKSTEP_PLUGINS="").stderr
            self.assertEqual(re.sub(r"json:\d+:\d+:", "json:14:10:", error), refusal)
        self.program("eval", "run", "plugins=build/libpendulum.so", LOCKSTEP_PLUGINS="")
        self.train("run_directory=run", LOCKSTEP_PLUGINS="")

    def test_ensembles_warn_of_each_member(self):
        for seed in (1, 2):
            self.train(f"seed={seed}", f"run_directory=run{seed}", "data.split_seed=1")
        before = self.digest()
        self.use_another_file()
        warnings = "".join(f"warning: run{seed}/checkpoints/step-00000080: it was written with the plugins libpendulum.so {before}, "
                           f"but here they are libpendulum.so {self.digest()}\n" for seed in (1, 2))
        self.assertEqual(self.program("ensemble", "eval", "run1", "run2", "--ranks", "2").stderr, warnings)
        self.assertEqual(self.program("ensemble", "predict", "run1", "run2", "pendulum.libsvm").stderr, warnings)

    def test_ranks_want_the_same_file(self):
        for name in ("one", "two"):
            (self.folder / name).mkdir()
            shutil.copy(self.file, self.folder / name / "mine.so")
        one = self.digest()
        self.use_another_file()
        shutil.copy(self.file, self.folder / "two/mine.so")
        job = [LOCKSTEP, "train", str(self.folder / "pendulum.yaml"), "plugins=./mine.so", "exact=preferred",
               f"run_directory={self.folder}/run"]
        done = subprocess.run(["mpirun", "-n", "1", "-wdir", self.folder / "one", *job, ":", "-n", "1", "-wdir",
                               self.folder / "two", *job], capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, **MPI})
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertRegex(done.stderr, f"rank 1 on [^ ]+: its set of plugins differs: expected mine.so {one}, found mine.so "
                                      f"{self.digest()}; copy the same files to every host\n")


class Messages(PluginTest):
    def says(self, message, *words, code=78, **settings):
        done = self.program("check", "pendulum.yaml", "--no-data", *words, code=code, **settings)
        self.assertEqual(done.stderr, f"lockstep: {message}\n")

    def given(self, name):
        shutil.copy(PLUGINS / name, self.file)

    def test_there_is_none(self):
        self.file.unlink()
        self.says(PLACE + "expected a plugin, found none at 'build/libpendulum.so'; check the path")
        self.says("command line: plugins[0]: expected a plugin, found none at './no.so'; check the path",
                  "plugins=[./no.so]")

    def test_another_file(self):
        self.file.write_text("#!/bin/sh\necho a shell script that is longer than the header of a library\n")
        self.says(PLACE + f"expected a plugin that loads, found: {self.file}: invalid ELF header; {MAKE}")

    def test_another_library(self):
        shutil.copy(pathlib.Path(DRIVER) / "libcuda.so.1", self.file)
        self.says(PLACE + f"expected a plugin of lockstep, found another library at 'build/libpendulum.so'; {MAKE}")

    def test_another_build(self):
        self.given("libplugin_other_build.so")
        done = self.program("train", "pendulum.yaml", code=78)
        self.assertRegex(done.stderr, re.escape("lockstep: " + PLACE) + r"expected a plugin of this build \([0-9a-f]{16}-"
                         r"libstdc\+\+\d+-32\.24\), found one of build 0123456789abcdef-libstdc\+\+7 at 'build/libpendulum\.so'; "
                         "build it again with this lockstep\n$")

    def test_names_that_are_taken(self):
        fails = "expected a plugin that adds what it has, found one at 'build/libpendulum.so' that fails: "
        self.given("libplugin_taken_name.so")
        self.says(PLACE + fails + "the op 'relu' is registered twice")
        self.given("libplugin_taken_reader.so")
        self.says(PLACE + fails + "the reader 'images' is registered twice")
        self.given("libplugin_throws.so")
        self.says(PLACE + fails + "no licence for this host")

    def test_plugins_may_be_forbidden(self):
        self.says(PLACE + "expected no plugins, since LOCKSTEP_PLUGINS is never, found 'build/libpendulum.so'; unset it if "
                  "you trust the plugin", LOCKSTEP_PLUGINS="never")

    def test_what_is_no_path(self):
        self.says("command line: plugins[0]: expected the path of a shared library, found 3", "plugins=[3]")
        self.says("command line: plugins[1]: expected each item once, found 'build/libpendulum.so' again",
                  "plugins=[build/libpendulum.so, build/libpendulum.so]")

    def test_without_it_its_names_are_unknown(self):
        done = self.program("check", "pendulum.yaml", "--no-data", "plugins=[]", code=78)
        self.assertIn("job.model.layers[1]: expected", done.stderr)
        self.assertIn("found 'mish'", done.stderr)
        self.assertIn("libsvm", done.stderr)

    def test_mistakes_in_what_it_adds_are_told_like_others(self):
        done = self.program("check", "pendulum.yaml", "--no-data", "loss.log_cosh.width=0", "metrics=percent_eror", code=78)
        self.assertEqual(done.stderr, "lockstep: command line: loss.log_cosh.width: expected a number above 0, found 0\n"
                         "command line: metrics: expected one of accuracy, "
                         + re.search(r"expected one of accuracy, (.*)\n", done.stderr)[1] + "\n")
        self.assertIn("found 'percent_eror'; did you mean 'percent_error'?", done.stderr)

    def test_a_damaged_file_of_its_reader(self):
        lines = (self.folder / "pendulum.libsvm").read_text().splitlines()
        for text, problem in (("1.5 1:x", "expected 'target index:value ...', found '1.5 1:x'"),
                              ("1.5 4:2", "expected indices up to 3, found 4; set features")):
            (self.folder / "pendulum.libsvm").write_text("\n".join([*lines[:6], text, *lines[7:]]) + "\n")
            done = self.program("check", "pendulum.yaml", code=65)
            self.assertEqual(done.stderr, "lockstep: pendulum.yaml:15:21: job.data.train.libsvm: pendulum.libsvm:7: "
                                          f"{problem}\n")

    def test_its_op_has_no_kernel_for_gpus(self):
        done = self.program("train", "pendulum.yaml", "device=cuda", code=78, LOCKSTEP_CUDA_MODULE=MODULE,
                            LD_LIBRARY_PATH=DRIVER)
        self.assertIn("mish 'mish1': expected a kernel of op 'mish' for GPUs, found none", done.stderr)

    def test_its_optimizer_has_no_kernel_for_gpus(self):
        self.given("libplugin_own_optimizer.so")
        (self.folder / "job.yaml").write_text("job:\n  plugins: build/libpendulum.so\n  model: lenet\n"
                                              "  data: {train: digits}\n  steps: 1\n  optimizer: own\n")
        self.program("train", "job.yaml")
        expected = "expected an optimizer that GPUs can compute"
        done = self.program("train", "job.yaml", "device=cuda", code=78)
        self.assertEqual(done.stderr, f"lockstep: job.yaml:6:14: job.optimizer: {expected}, since device is cuda, found 'own'; "
                         "set device: cpu\n")
        done = self.program("plan", "job.yaml", "--devices", "8xH100", code=78)
        self.assertEqual(done.stderr, f"lockstep: plan: {expected}, found 'own'; predict it for CPUs\n")


class Schema(PluginTest):
    def test_knows_of_plugins(self):
        job = yaml.safe_load((self.folder / "pendulum.yaml").read_text())

        def accepts(schema, **changes):
            return jsonschema.Draft7Validator(schema).is_valid({"job": {**job["job"], **changes}})

        plain = json.loads(self.program("schema").stdout)
        self.assertTrue(accepts(plain))
        self.assertTrue(accepts(plain, loss="log_cos"))
        self.assertFalse(accepts(plain, batch_size=0))
        without = {key: value for key, value in job["job"].items() if key != "plugins"}
        self.assertFalse(jsonschema.Draft7Validator(plain).is_valid({"job": without}))
        own = json.loads(self.program("schema", "--plugin", "build/libpendulum.so").stdout)
        self.assertTrue(accepts(own))
        for wrong in ({"loss": "log_cos"}, {"loss": {"log_cosh": {"width": 0}}}, {"metrics": "percent"},
                      {"data": {"train": {"libsvm": "a"}}}):
            self.assertFalse(accepts(own, **wrong), wrong)
        self.assertIn("ln cosh", self.program("schema", "--plugin", "build/libpendulum.so", "--markdown").stdout)
        self.assertEqual(self.program("schema", "--plugin", "no.so", code=78).stderr,
                         "lockstep: --plugin: expected a plugin, found none at 'no.so'; check the path\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
