#!/usr/bin/env python3
"""`lockstep launch` with every fault that one machine can have: the bits are those of the quiet run, and nothing is
left behind."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from launches import PATIENCE, PROGRAM, SMALL, Launch, processes_of, quiet_hash, replace_by_script, wait_until


def secret_of(rank):
    """The secret that its control socket requires."""
    environment = pathlib.Path(f"/proc/{rank}/environ").read_bytes().decode().split("\0")
    return next(word for word in environment if word.startswith("LOCKSTEP_SUPERVISOR_SECRET=")).split("=")[1]


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.quiet = quiet_hash(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def launch(self, *words, **options):
        launch = Launch(f"{self.folder.name}/{self.id().rsplit('.', 1)[-1]}", *words, **options)
        self.addCleanup(launch.abandon)
        return launch

    def test_a_killed_rank(self):
        launch = self.launch("--ranks", "4", "telemetry.prometheus.port=19850")  # it counts restarts
        launch.wait_for_step(25)
        os.kill(launch.process_of_rank(2), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        restarts = [event for event in launch.events("restart") if "reason" in event]
        self.assertEqual([(event["reason"], event["rank"]) for event in restarts], [("death", 2)])
        self.assertGreaterEqual(restarts[0]["step"], 25)
        self.assertEqual(restarts[0]["host"], os.uname().nodename)
        resumed = [event for event in launch.events("restart") if "path" in event]
        self.assertLessEqual(restarts[0]["step"] - resumed[0]["step"], 20)  # every 10; one may still be being written
        for name in ("job.yaml", "logs/attempt-1/rank-3.log", "logs/attempt-2/rank-0.log"):
            self.assertTrue((launch.directory / name).exists(), name)
        self.assertRegex((launch.directory / "metrics/final.prom").read_text(),
                         r'\nlockstep_restarts_total{rank="0",reason="death",[^}]*} 1\n')

    def test_another_program_is_installed_meanwhile(self):
        """A launch goes on with the one that it was started with."""
        program = pathlib.Path(self.folder.name) / "installed"
        shutil.copy(PROGRAM, program)
        launch = self.launch("--ranks", "2", program=str(program))
        launch.wait_for_step(25)
        replace_by_script(program, "exit 9")
        os.kill(launch.process_of_rank(1), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(launch.attempts(), 2)

    def test_a_run_that_begins_with_a_checkpoint_goes_on_from_it(self):
        """A rank dies before the first checkpoint of its own, and the same command is run again after a signal."""
        job = [*SMALL, "steps=1000000", "checkpoint={every: 100000 steps}"]
        first = self.launch("--ranks", "2", "--stop-at", "20", job=job, head=("train", "--log", "json"))
        first.end(75)
        words = ["--ranks", "2", "--resume", str(first.directory / "checkpoints/step-00000020")]
        name = f"{self.folder.name}/goes-on"
        launch = Launch(name, *words, job=job)
        self.addCleanup(launch.abandon)
        launch.wait_for_step(40)
        os.kill(launch.process_of_rank(1), signal.SIGKILL)
        launch.wait_for_step(30, attempt=2)
        launch.signal(signal.SIGTERM)
        launch.end(75)
        self.assertEqual([event["step"] for event in launch.events("restart") if "path" in event], [20, 20])
        stopped = max(event["step"] for event in launch.events("checkpoint"))
        shutil.rmtree(first.directory)
        again = Launch(name, *words, job=job)
        self.addCleanup(again.abandon)
        again.wait_for_step(stopped + 1)
        again.signal(signal.SIGTERM)
        again.end(75)
        self.assertEqual([event["step"] for event in again.events("restart")], [stopped])
        self.assertEqual(list(again.directory.glob("checkpoints/superseded-*")), [])

    def test_a_rank_that_is_stopped_for_some_seconds(self):
        launch = self.launch("--ranks", "3")
        launch.wait_for_step(5)
        rank = launch.process_of_rank(1)
        os.kill(rank, signal.SIGSTOP)
        time.sleep(3)
        os.kill(rank, signal.SIGCONT)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(launch.attempts(), 1)

    def test_a_rank_that_is_stopped_for_good(self):
        launch = self.launch("--ranks", "3", "--hang-limit", "8")
        launch.wait_for_step(15)
        os.kill(launch.process_of_rank(1), signal.SIGSTOP)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        restarts = [event for event in launch.events("restart") if "reason" in event]
        self.assertEqual([(event["reason"], event["rank"]) for event in restarts], [("hang", 1)])
        self.assertRegex(restarts[0]["message"], r"rank 1 \(host .*\) hangs: no heartbeat for .* s; it is stopped, or")
        states = [event["message"] for event in launch.events("warning")]
        self.assertTrue(any("rank 0: " in state and "waiting for rank 1" in state for state in states), states)
        dump = (launch.directory / "logs/attempt-1/rank-0.json").read_text()
        self.assertIn('"peer": 1', dump)

    def test_a_killed_mpirun(self):
        launch = self.launch("--ranks", "2")
        launch.wait_for_step(15)
        files = launch.shared_files()
        self.assertTrue(files)
        os.kill(launch.mpirun(), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        restarts = [event for event in launch.events("restart") if "reason" in event]
        self.assertEqual([event["reason"] for event in restarts], ["mpirun"])
        self.assertEqual(restarts[0]["message"], "mpirun was killed by signal 9")
        self.assertEqual({file for file in files if file.exists()}, set(), "Open MPI's memory is left")

    def test_a_signal_checkpoints_and_ends_with_75(self):
        launch = self.launch("--ranks", "2", steps=100000, every=100000)
        launch.wait_for_step(5)
        launch.signal(signal.SIGINT)
        self.assertTrue(launch.end(75)["interrupted"])
        self.assertEqual(launch.attempts(), 1)
        self.assertTrue(list(launch.directory.glob("checkpoints/step-*/manifest.json")))

    def test_a_second_signal_ends_at_once(self):
        launch = self.launch("--ranks", "2", "--hang-limit", "1000", steps=100000, every=100000)
        launch.wait_for_step(5)
        os.kill(launch.process_of_rank(1), signal.SIGSTOP)  # so that the first signal alone cannot end it
        launch.signal(signal.SIGTERM)
        launch.wait_for_warning("stopping: ")  # the first signal has been handled
        launch.signal(signal.SIGTERM)
        launch.end(128 + signal.SIGTERM)
        self.assertEqual(launch.attempts(), 1)

    def test_a_killed_supervisor_leaves_nothing(self):
        launch = self.launch("--ranks", "2", steps=100000)
        launch.wait_for_step(5)
        launch.process.kill()
        launch.process.wait()
        wait_until(lambda: not processes_of(launch.directory), "all processes to be gone", 30)

    def test_a_signal_to_the_ranks_is_passed_on(self):
        launch = self.launch("--ranks", "2", steps=100000)
        launch.wait_for_step(5)
        os.kill(launch.process_of_rank(0), signal.SIGUSR1)
        launch.end(75)
        self.assertEqual(launch.attempts(), 1)

    def test_more_slots_take_effect_at_a_checkpoint(self):
        hosts = pathlib.Path(self.folder.name) / "hosts"
        hosts.write_text("localhost slots=2\n", encoding="utf-8")
        launch = self.launch("--hostfile", str(hosts), "--hosts-every", "0.1")
        launch.wait_for_step(3)
        hosts.write_text("localhost slots=3\n", encoding="utf-8")
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [2, 3])
        steps = [event["step"] for event in launch.events("step")]
        self.assertEqual(steps, sorted(set(steps)), "a step was lost or repeated")
        resize = next(event for event in launch.events("restart") if event.get("reason") == "resize")
        self.assertEqual(resize["step"] % 10, 0)

    def test_a_lock_that_a_former_rank_still_holds(self):
        """A killed rank in an uninterruptible write keeps the run directory's lock for a while."""
        launch = self.launch("--ranks", "2")
        launch.wait_for_step(2)
        holder = subprocess.Popen(["flock", str(launch.directory / "lock"), "sleep", "3"])
        time.sleep(0.5)  # it waits for the lock, which it gets when rank 0 dies
        os.kill(launch.process_of_rank(1), signal.SIGKILL)
        self.assertEqual(launch.end()["parameters_sha256"], self.quiet)
        self.assertEqual(holder.wait(30), 0)
        self.assertEqual(launch.attempts(), 2)
        messages = [event["message"] for event in launch.events("warning")]
        self.assertIn(f"{launch.directory}: waiting for a rank of an earlier attempt, which still holds its lock; at "
                      "most 120 s", messages)

    def test_a_slow_discovery_script_keeps_no_heartbeat_waiting(self):
        """It takes longer than a rank may be silent."""
        script = pathlib.Path(self.folder.name, "slow-hosts")
        script.write_text("#!/bin/sh\nsleep 3\necho this is no host >&2\necho localhost slots=2\n", encoding="utf-8")
        script.chmod(0o755)
        launch = self.launch("--discover", str(script), "--hosts-every", "0.5", "--hang-limit", "2", steps=600)
        self.assertEqual(launch.end()["steps"], 600)
        self.assertEqual(launch.attempts(), 1, launch.output())
        self.assertGreater(launch.events("end")[0]["seconds"], 0)


class Ends(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def launch(self, *words, **options):
        launch = Launch(f"{self.folder.name}/run", *words, **options)
        self.addCleanup(launch.abandon)
        return launch

    def test_a_mistake_in_the_data_is_not_retried(self):
        launch = self.launch("--ranks", "2", "--resume", "/nowhere")
        launch.end(65)
        self.assertEqual(launch.attempts(), 1)
        self.assertRegex(launch.output(), r"lockstep: rank . \(host .*\): --resume: expected a checkpoint: /nowhere")

    def test_a_mistake_in_the_job_is_not_retried(self):
        self.launch("--ranks", "2", steps=4).end()
        launch = self.launch("--ranks", "2", "seed=2", steps=4)
        launch.end(78)
        self.assertEqual(launch.attempts(), 1)
        self.assertIn("this checkpoint is of another job", launch.output())

    def test_no_progress_is_given_up(self):
        folder = pathlib.Path(self.folder.name)
        (folder / "mpirun").write_text("#!/bin/sh\necho no network today >&2\nexit 1\n", encoding="utf-8")
        (folder / "mpirun").chmod(0o755)
        launch = self.launch("--ranks", "2", "--max-restarts", "2",
                             environment={"PATH": f"{folder}:{os.environ['PATH']}"})
        launch.end(1)
        self.assertEqual(launch.attempts(), 3)
        self.assertIn("lockstep: given up after 3 failures, none of which got past step -1", launch.output())
        self.assertIn("no network today", launch.output())
        waits = [event["after_seconds"] for event in launch.events("restart")]
        self.assertEqual((len(waits), waits[0], waits[2]), (3, 0, 0))
        self.assertTrue(0.75 <= waits[1] <= 1.25, waits)

    def test_no_secret_stands_on_a_command_line(self):
        """Everyone can read command lines; with the secret of the control socket one could end the run."""
        launch = self.launch("--ranks", "2", steps=100000)
        launch.wait_for_step(2)
        rank = launch.process_of_rank(0)
        secret = secret_of(rank).encode()
        self.assertGreaterEqual(len(secret), 32)
        for command_line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertNotIn(secret, command_line.read_bytes())
            except OSError:
                continue
        launch.signal(signal.SIGTERM)
        launch.end(75)

    @unittest.skipIf(os.geteuid() != 0 or shutil.which("setpriv") is None, "only root can be somebody else (setpriv)")
    def test_another_user_learns_nothing_and_disturbs_nothing(self):
        launch = self.launch("--ranks", "2", steps=100000)
        launch.wait_for_step(2)
        processes = [launch.process.pid, *(process for process, _ in processes_of(launch.directory))]
        self.assertGreaterEqual(len(processes), 4, "the supervisor, mpirun and two ranks")
        (address, port), = launch.listens_at()
        self.assertEqual(address, "127.0.0.1")
        secret = secret_of(launch.process_of_rank(0))
        script = pathlib.Path(__file__).with_name("impostor.py").read_text(encoding="utf-8")  # he may not read the file
        with subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c",
                               script, str(port), *map(str, processes)],
                              cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as impostor:
            line = impostor.stdout.readline()
            self.assertTrue(line, f"he could disturb it:\n{launch.output()}")
            found = json.loads(line)
            # The impostor is still running, with its connections open, while the run continues.
            launch.wait_for_step(launch.events("step")[-1]["step"] + 50)
            impostor.stdin.close()
            self.assertEqual(impostor.wait(PATIENCE), 0)
        self.assertNotIn(secret, " ".join(found.pop("command_lines")))
        for answer in found.pop("answers"):
            self.assertRegex(answer, r"\A(challenge [0-9a-f]{32}\n)?\Z", "who does not know the secret hears no more")
        self.assertEqual(found, {"environments": [], "ended": [], "descriptors": [], "shared": []})
        found = subprocess.run(["grep", "-rsl", secret, launch.directory], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "", "files that others may read hold the secret")
        launch.signal(signal.SIGTERM)
        launch.end(75)
        self.assertEqual(launch.attempts(), 1)

    def test_a_second_launch_into_the_same_directory(self):
        launch = self.launch("--ranks", "2", steps=100000)
        launch.wait_for_step(2)
        second = subprocess.run([*launch.process.args], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(second.returncode, 73)
        self.assertIn("another launch uses this directory", second.stderr)
        launch.signal(signal.SIGTERM)
        launch.end(75)


if __name__ == "__main__":
    unittest.main()
