#!/usr/bin/env python3
"""How runs start and stop under mpirun: what ranks compare, world sizes, different processors, signals."""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["LOCKSTEP"]
SMALL = ["data.train.digits.count=128", "data.validation.digits.count=32", "batch_size=32", "steps=4", "threads=1",
         "learning_rate=0.002"]
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
       "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
VERSION = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
OVERSUBSCRIBE = ["--oversubscribe"] if "(Open MPI) 4" in VERSION else ["--map-by", ":OVERSUBSCRIBE"]
MPIRUN = ["mpirun", *OVERSUBSCRIBE, "--bind-to", "none"]
OTHER = "ONEDNN_MAX_CPU_ISA=SSE41"  # every processor that lockstep supports has more


def run(words, code=0, **settings):
    environment = {**os.environ, **MPI, **settings.pop("env", {})}
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=environment,
                            stdin=subprocess.DEVNULL, **settings)
    assert result.returncode == code, f"{words}: {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def two_ranks(first, second):
    """A command line for two ranks that differ. mpirun's own `:` between them crashes Open MPI 5.0.7."""
    script = f"if [ $OMPI_COMM_WORLD_RANK = 0 ]; then {first}; else {second}; fi"
    return [*MPIRUN, "-n", "2", "sh", "-c", script]


def processes_in(folder):
    """(process id, rank or None) of the processes whose command line contains the folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(folder) in words:  # a zombie has no command line
            ranks = [int(word.split(b"=")[1]) for word in variables if word.startswith(b"OMPI_COMM_WORLD_RANK=")]
            found.append((int(entry.name), ranks[0] if ranks else None))
    return found


def events(result, name):
    lines = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


class OpenMpi(unittest.TestCase):
    def test_its_own_words_are_shown(self):
        """Without `self` a rank cannot even reach itself; only Open MPI knows what is wrong then."""
        with tempfile.TemporaryDirectory() as folder:
            said = run([PROGRAM, "train", *SMALL, f"run_directory={folder}/run", "--ranks", "2"], code=1,
                       env={"OMPI_MCA_btl": "tcp", "OMPI_MCA_pml": "ob1"}).stderr
        self.assertIn("forgetting to\n  specify the \"self\" BTL.\n", said)


class WorldSizes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.train = [PROGRAM, "train", *SMALL, f"run_directory={self.folder.name}/run", "--log", "json"]

    def tearDown(self):
        self.folder.cleanup()

    def test_mpirun_and_ranks_give_the_bits_of_one(self):
        hashes = set()
        for number, command in enumerate(([], [*MPIRUN, "-n", "3"])):
            words = [*command, *self.train, f"run_directory={self.folder.name}/{number}"]
            hashes.add(events(run(words), "end")[0]["parameters_sha256"])
        for ranks in ("auto", "3"):
            result = run([*self.train, "--ranks", ranks, f"run_directory={self.folder.name}/{ranks}"])
            self.assertEqual(events(result, "start")[0]["ranks"], 1 if ranks == "auto" else 3)
            hashes.add(events(result, "end")[0]["parameters_sha256"])
        self.assertEqual(len(hashes), 1)

    def test_another_world_size_is_refused(self):
        run([*self.train, "--ranks", "2", "--expect-world-size", "2"])
        error = run([*MPIRUN, "-n", "3", *self.train, "--expect-world-size", "2"], code=64).stderr
        self.assertIn("lockstep: --expect-world-size: expected 2 ranks, found 3; check the hostfile and the "
                      "launcher's -n\n", error)


class Comparisons(unittest.TestCase):
    """Two ranks, the second of which differs from the first."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.train = [PROGRAM, "train", *SMALL, f"run_directory={self.folder.name}/run", "--log", "json"]

    def tearDown(self):
        self.folder.cleanup()

    def test_a_stale_file_in_another_directory(self):
        for name, text in (("a", "to be or not to be "), ("b", "to be or not so be ")):
            folder = pathlib.Path(self.folder.name) / name
            folder.mkdir()
            (folder / "corpus.txt").write_text(text * 40, encoding="utf-8")
            (folder / "job.yaml").write_text(
                "job: {model: {gpt: {layers: 1, heads: 2, width: 16}}, data: {train: {text: {path: corpus.txt, "
                "context: 16}}}, batch_size: 8, micro_batches: 4, steps: 2, optimizer: adamw, learning_rate: 0.01}\n",
                encoding="utf-8")
        train = shlex.join([PROGRAM, "train", "job.yaml", f"run_directory={self.folder.name}/run"])
        error = run(two_ranks(f"cd {self.folder.name}/a; {train}", f"cd {self.folder.name}/b; {train}"), code=64).stderr
        self.assertRegex(error, r"lockstep: rank 1 on \S+: its data set differs: expected [0-9a-f]{64}, found "
                                r"[0-9a-f]{64}; copy the same data to every host\n")

    def test_another_job(self):
        train = shlex.join(self.train)
        error = run(two_ranks(train, f"{train} seed=2"), code=64).stderr
        self.assertRegex(error, r"rank 1 on \S+: its job differs: expected [0-9a-f]{64}, found [0-9a-f]{64}; give every "
                                r"rank the same job file and overrides\n")

    def test_another_program(self):
        other = pathlib.Path(self.folder.name) / "lockstep"
        other.write_bytes(pathlib.Path(PROGRAM).read_bytes() + b"stale")
        other.chmod(0o755)
        error = run(two_ranks(shlex.join(self.train), shlex.join([str(other), *self.train[1:]])), code=64).stderr
        self.assertRegex(error, r"rank 1 on \S+: its program differs: expected [0-9a-f]{64}, found [0-9a-f]{64}; install "
                                r"the same lockstep on every host\n")

    def mixed(self, code, *words):
        train = shlex.join([*self.train, *words])
        return run(two_ranks(train, f"{OTHER} {train}"), code=code)

    def test_another_instruction_set(self):
        error = self.mixed(64).stderr
        fingerprint = r"kernels [0-9a-f]{16}, oneDNN [0-9.]+, math [0-9a-f]{8}, jpeg [0-9a-f]{8}, lockstep [0-9.]+"
        self.assertRegex(error, rf"lockstep: rank 1 on \S+: its fingerprint differs: expected {fingerprint} \(\w+; libdnnl .*\), "
                                rf"found {fingerprint} \(sse41; libdnnl .*\); use one kind of processor or GPU and one version of the "
                                r"libraries, or set exact: preferred\n")

    def test_another_instruction_set_where_exact_is_preferred(self):
        result = self.mixed(0, "exact=preferred")
        self.assertEqual(events(result, "start")[0]["exactness"], "exact gradient, not bitwise")
        self.assertIn("its fingerprint differs", events(result, "warning")[0]["message"])
        manifest = next(pathlib.Path(self.folder.name).glob("run/checkpoints/*/manifest.json"))
        self.assertEqual(json.loads(manifest.read_text())["exactness"], "exact gradient, not bitwise")

    def test_resuming_on_another_instruction_set(self):
        first = run([*self.train, "--stop-at", "2"], code=75)
        self.assertEqual(events(first, "start")[0]["exactness"], "bitwise")
        other = {"env": dict([OTHER.split("=")])}
        error = run(self.train, code=64, **other).stderr
        self.assertRegex(error, r"step-00000002: a processor or libraries that compute other bits; use those of then, or set "
                                r"exact: preferred\n  then: kernels [0-9a-f]{16}, first micro-batch [0-9a-f]{16}, avx\w+\n  "
                                r"now: kernels [0-9a-f]{16}, first micro-batch [0-9a-f]{16}, sse41\n\Z")
        second = run([*self.train, "exact=preferred"], **other)
        self.assertEqual(events(second, "start")[0]["exactness"], "exact gradient, not bitwise")
        self.assertEqual(events(second, "end")[0]["steps"], 4)

    def test_resuming_after_an_update_of_a_library(self):
        """Another build that computes the same is no obstacle; one that rounds otherwise is refused."""
        quiet = events(run([*self.train, "run_directory=" + self.folder.name + "/quiet"]), "end")[0]["parameters_sha256"]
        run([*self.train, "--stop-at", "2"], code=75)
        error = run(self.train, code=64, env={"LD_PRELOAD": self.library("other_exp")}).stderr
        self.assertRegex(error, r"step-00000002: a processor or libraries that compute other bits; use those of then, or set "
                                r"exact: preferred\n  then: (kernels [0-9a-f]{16}, )?math [0-9a-f]{8}\b.*\n  now: ")
        updated = run(self.train, env={"LD_LIBRARY_PATH": self.rebuilt("libz.so.1", "libm.so.6")})
        self.assertEqual(events(updated, "end")[0]["parameters_sha256"], quiet)
        self.assertEqual(events(updated, "start")[0]["exactness"], "bitwise")

    def library(self, name):
        """One whose exp() is a unit in the last place too great."""
        source, file = f"{self.folder.name}/{name}.c", f"{self.folder.name}/{name}.so"
        pathlib.Path(source).write_text("#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <math.h>\n"
                                        "double exp(double x) {\n"
                                        '  double (*real)(double) = (double (*)(double))dlsym(RTLD_NEXT, "exp");\n'
                                        "  return nextafter(real(x), INFINITY);\n}\n", encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", file, source, "-ldl", "-lm"], check=True)
        return file

    def rebuilt(self, *names):
        """A folder with copies of libraries whose build ids differ from the originals'."""
        folder = pathlib.Path(self.folder.name) / "libraries"
        folder.mkdir()
        listed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
        for name in names:
            path = re.search(rf"{re.escape(name)} => (\S+)", listed)[1]
            content = bytearray(pathlib.Path(path).read_bytes())
            note = content.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")  # sizes, type, name; then the id
            content[note + 16] ^= 0xFF
            (folder / name).write_bytes(content)
        return str(folder)


class Signals(unittest.TestCase):
    def begin(self, folder, *words, checkpoint="checkpoint.every=1000000 steps"):
        command = [PROGRAM, "train", *SMALL, "steps=1000000", f"run_directory={folder}/run", checkpoint, "--log", "json",
                   *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, env={**os.environ, **MPI}, start_new_session=True)
        for line in process.stdout:
            if json.loads(line)["event"] == "step":
                return process
        raise AssertionError(process.stderr.read())

    def test_any_of_three_signals_checkpoints_on_any_ranks(self):
        for ranks, number in (("1", signal.SIGINT), ("1", signal.SIGUSR1), ("2", signal.SIGTERM)):
            with self.subTest(ranks=ranks, number=number), tempfile.TemporaryDirectory() as folder:
                process = self.begin(folder, "--ranks", ranks)
                process.send_signal(number)
                output, error = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 75, error)
                end = json.loads(output.splitlines()[-1])
                self.assertEqual(end["outcome"], "interrupted")
                self.assertTrue(pathlib.Path(end["checkpoint"], "manifest.json").exists())

    def test_a_job_without_checkpoints_is_not_called_resumable(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.begin(folder, checkpoint="checkpoint=never")
            process.send_signal(signal.SIGTERM)
            output, error = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 1, error)
            self.assertNotIn("checkpoint", json.loads(output.splitlines()[-1]))
            self.assertFalse(pathlib.Path(folder, "run").exists())
            for option, value in (("--stop-at", "2"), ("--resume", f"{folder}/x")):
                refused = run([PROGRAM, "train", *SMALL, "checkpoint=never", option, value], code=64).stderr
                self.assertEqual(refused, f"lockstep: {option}: expected a job that writes checkpoints, found checkpoint: "
                                          "never; omit one of the two\n")

    def test_the_second_signal_leaves_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.begin(folder)
            process.send_signal(signal.SIGSTOP)  # so that both arrive before the next step
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGUSR1)
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=120)
            self.assertIn(process.returncode, (128 + signal.SIGTERM, 128 + signal.SIGUSR1))
            self.assertEqual(list(pathlib.Path(folder).glob("run/checkpoints/*/manifest.json")), [])

    def test_the_second_signal_ends_several_ranks_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            process = self.begin(folder, "--ranks", "2")
            ranks = [pid for pid, rank in processes_in(folder) if rank is not None]
            self.assertEqual(len(ranks), 2)
            for pid in ranks:
                os.kill(pid, signal.SIGSTOP)  # so that the first signal alone cannot end them
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
            self.assertIn(process.returncode, (128 + signal.SIGTERM, 128 + signal.SIGINT))
            self.assertEqual(processes_in(folder), [])


if __name__ == "__main__":
    unittest.main()
