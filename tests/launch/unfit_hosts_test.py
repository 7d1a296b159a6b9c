#!/usr/bin/env python3
"""`lockstep launch` on emulated hosts of which one cannot run the job: it lacks the run directory or the data, or has
another processor or version. It is named and left out, the others train, and it is tried again later; what passes is
waited for."""
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest

from emulated_hosts import EmulatedHosts, run
from launches import OPEN_MPI, PROGRAM, Launch, replace_by_script, wait_until

TABLE = """
job:
  model: {layers: [{linear: {features: 1}}]}
  data:
    train: {table: {path: FOLDER/data/train.csv, target: t}}
    validation: {table: {path: FOLDER/data/validation.csv, target: t}}
  loss: mean_squared_error
  batch_size: 40
  micro_batches: 4
  threads: 1
  steps: 100000000
  learning_rate: 0.0001
  evaluate: never
  checkpoint: {every: 50 steps}
"""
ENDLESS = 100000000


class UnfitHosts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "runs").mkdir()
        (self.folder / "data").mkdir()
        for name, count in (("train", 400), ("validation", 40)):
            rows = "".join(f"{i % 7 / 7},{i % 5 / 5},{i % 2}\n" for i in range(count))
            (self.folder / f"data/{name}.csv").write_text("a,b,t\n" + rows, encoding="utf-8")

    def launch(self, hosts, *words, agent=None, **options):
        launch = Launch(f"{self.folder}/runs/run", "--agent", agent or hosts.agent, *words, prefix=hosts.prefix(0),
                        **options)
        self.addCleanup(launch.abandon)
        return launch

    def on_the_table(self, hosts, *words):
        job = self.folder / "job.yaml"
        job.write_text(TABLE.replace("FOLDER", str(self.folder)), encoding="utf-8")
        return self.launch(hosts, *words, job=[str(job)])

    def hide(self, hosts, host, folder):
        run(*hosts.prefix(host), "mount", "-t", "tmpfs", "tmpfs", self.folder / folder)

    def reveal(self, hosts, host, folder):
        run(*hosts.prefix(host), "umount", self.folder / folder)

    def agent(self, hosts, lines):
        """The hosts' agent, but on the second one these lines are run before a command."""
        text = pathlib.Path(hosts.agent).read_text(encoding="utf-8")
        path = self.folder / "agent"
        path.write_text(text.replace(f"  {hosts.names[1]}) ", f"  {hosts.names[1]}) {lines}; "), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def faults(self, launch):
        return [event["message"] for event in launch.events("restart") if "reason" in event]

    def stop(self, launch):
        launch.signal(signal.SIGTERM)
        return launch.end(75, gone_within=30)

    def joins(self, hosts, launch):
        """The second host is added to the list of a launch that trains on the first one alone."""
        hostfile = self.folder / "hosts"
        launch.wait_for_step(20)
        hostfile.write_text(f"{hosts.names[0]} slots=1\n{hosts.names[1]} slots=1\n", encoding="utf-8")

    def hostfile(self, hosts):
        path = self.folder / "hosts"
        path.write_text(f"{hosts.names[0]} slots=1\n", encoding="utf-8")
        return ["--hostfile", str(path), "--hosts-every", "0.2", "--ask-again", "1"]

    def test_a_host_without_the_run_directory_joins_when_it_has_it(self):
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            self.hide(hosts, 1, "runs")
            launch = self.launch(hosts, *self.hostfile(hosts), steps=ENDLESS, every=20)
            self.joins(hosts, launch)
            launch.wait_for_warning(
                f"host {hosts.names[1]}: expected this launch's launch.lock in the run directory, found none; mount the "
                "run directory there; it is left out, and asked again every 1 s")
            self.assertEqual(launch.attempts(), 1, "the others are not disturbed")
            self.reveal(hosts, 1, "runs")
            launch.wait_for_step(1, attempt=2)
            self.stop(launch)
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [1, 2])

    def test_one_of_two_hosts_never_had_the_run_directory(self):
        """Ranks cannot know which of the two is wrong; the launch's record is in the right one, also where rank 0 is not."""
        for order in ((0, 1), (1, 0)):
            with self.subTest(order=order), EmulatedHosts(2, connect_timeout=5) as hosts:
                shutil.rmtree(self.folder / "runs/run", ignore_errors=True)
                self.hide(hosts, 1, "runs")
                listed = ",".join(f"{hosts.names[host]}:1" for host in order)
                launch = self.launch(hosts, "--hosts", listed, "--ask-again", "1", steps=ENDLESS, every=20)
                launch.wait_for_step(20, attempt=2)
                self.assertRegex(self.faults(launch)[0], "every host must share the run directory")
                launch.wait_for_warning(f"host {hosts.names[1]} is left out, and tried again after 1 s: ")
                self.stop(launch)
                self.assertTrue(list((self.folder / "runs/run/checkpoints").iterdir()))

    def test_one_of_two_hosts_loses_the_run_directory(self):
        """Ranks cannot know which of the two is wrong, not even the one that leads."""
        with EmulatedHosts(3, connect_timeout=5) as hosts:
            launch = self.launch(hosts, "--hosts", ",".join(f"{name}:1" for name in hosts.names[1:]), "--ask-again", "1",
                                 steps=ENDLESS, every=20)
            launch.wait_for_step(20)
            self.hide(hosts, 1, "runs")
            os.kill(launch.process_of_rank(0), signal.SIGKILL)
            launch.wait_for_warning(f"host {hosts.names[1]} is left out, and tried again after 1 s: expected this launch's "
                                    "launch.lock in the run directory, found none; mount the run directory there")
            launch.wait_for_step(1, attempt=2)
            self.reveal(hosts, 1, "runs")
            launch.wait_for_step(1, attempt=3)
            self.stop(launch)
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [2, 1, 2])

    def test_a_host_with_another_processor_is_left_out(self):
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            agent = self.agent(hosts, "export ONEDNN_MAX_CPU_ISA=SSE41")
            launch = self.launch(hosts, *self.hostfile(hosts), agent=agent, steps=ENDLESS, every=20)
            self.joins(hosts, launch)
            launch.wait_for_warning(f"host {hosts.names[1]}: expected the fingerprint of the others, ")
            launch.wait_for_warning("; use one kind of processor and one version of the libraries, or set exact: "
                                    "preferred; it is left out, and asked again every 1 s")
            self.stop(launch)
        self.assertEqual(launch.attempts(), 1)

    def test_a_host_on_which_the_program_cannot_run(self):
        """It answers there, but as a rank it dies before it can say anything."""
        ways = {"kill -ILL $$": "killed by signal 4 (Illegal instruction); this host's processor lacks instructions that the "
                                "program was built for",
                "echo libx.so: cannot open shared object file >&2; exit 127":
                    "ended with 127: the program cannot be started there:"}
        program, real, other = (self.folder / name for name in ("lockstep", "real", "other"))
        for copy in (program, real):
            shutil.copy(PROGRAM, copy)
        for way, cause in ways.items():
            other.write_text(f'#!/bin/sh\ncase "$*" in train*) {way};; *) exec {real} "$@";; esac\n', encoding="utf-8")
            other.chmod(0o755)
            with self.subTest(way=way), EmulatedHosts(2, connect_timeout=5) as hosts:
                run(*hosts.prefix(1), "mount", "--bind", other, program)
                launch = self.launch(hosts, "--hosts", hosts.slots(1), "--ask-again", "1", steps=ENDLESS, every=20,
                                     program=str(program))
                launch.wait_for_step(1, attempt=2)
                launch.wait_for_warning(f"host {hosts.names[1]} is left out, and tried again after 1 s: rank 1 (host "
                                        f"{hosts.names[1]}) died: {cause}")
                self.stop(launch)

    def test_the_host_of_most_ranks_gets_another_processor(self):
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            other = self.folder / "other"
            agent = self.agent(hosts, f"[ ! -e {other} ] || export ONEDNN_MAX_CPU_ISA=SSE41")
            launch = self.launch(hosts, "--hosts", f"{hosts.names[0]}:1,{hosts.names[1]}:2", "--ask-again", "1", agent=agent,
                                 steps=ENDLESS, every=20)
            launch.wait_for_step(20)
            other.touch()
            os.kill(launch.process_of_rank(2), signal.SIGKILL)
            launch.wait_for_warning(f"host {hosts.names[1]} is left out, and tried again after 1 s: expected the fingerprint "
                                    "of the others, ")
            launch.wait_for_step(1, attempt=2)
            other.unlink()
            launch.wait_for_step(1, attempt=3)
            self.stop(launch)
        self.assertEqual([event["ranks"] for event in launch.events("launch")], [3, 1, 3])

    def test_another_processor_from_the_start(self):
        with EmulatedHosts(3, connect_timeout=5) as hosts:
            agent = self.agent(hosts, "export ONEDNN_MAX_CPU_ISA=SSE41")
            launch = self.launch(hosts, "--hosts", hosts.slots(1), "--ask-again", "1", agent=agent, steps=ENDLESS,
                                 every=20)
            launch.wait_for_step(20, attempt=2)
            launch.wait_for_warning(f"host {hosts.names[1]}: expected the fingerprint of the others, ")
            self.stop(launch)
        self.assertEqual([event["on"] for event in launch.events("launch")],
                         [hosts.slots(1), f"{hosts.names[0]}:1,{hosts.names[2]}:1"])
        left_out = launch.events("warning")[0]["message"]
        self.assertRegex(left_out, rf"^host {hosts.names[1]} is left out, and tried again after 1 s: rank \d "
                                   rf"\(host \S+\): rank 1 on {hosts.names[1]}: its fingerprint differs: expected ")

    def test_another_version_until_it_is_the_same(self):
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            old = self.folder / "old"
            old.touch()
            other = 'case "$*" in *version*) echo lockstep 0.0.1; exit 0;; esac'
            agent = self.agent(hosts, f"[ ! -e {old} ] || {{ {other}; }}")
            launch = self.launch(hosts, *self.hostfile(hosts), agent=agent, steps=ENDLESS, every=20)
            self.joins(hosts, launch)
            launch.wait_for_warning(", which the others have, found 0.0.1; install the same version there; it is left "
                                    "out, and asked again every 1 s")
            self.assertEqual(launch.attempts(), 1)
            old.unlink()
            launch.wait_for_step(1, attempt=2)
            self.stop(launch)

    def test_an_upgrade_of_all_hosts_while_a_launch_runs(self):
        """The supervisor's own host goes on with the program that it has begun with, the other one has none."""
        program = self.folder / "lockstep"
        shutil.copy(PROGRAM, program)
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            launch = self.launch(hosts, "--hosts", hosts.slots(1), "--ask-again", "1", steps=ENDLESS, every=20,
                                 program=str(program))
            launch.wait_for_step(20)
            replace_by_script(program, 'case "$*" in *--end*) ;; version) echo lockstep 9.9.9;; *) exit 79;; esac')
            os.kill(launch.process_of_rank(1), signal.SIGKILL)
            launch.wait_for_step(1, attempt=2)
            launch.wait_for_warning(f"host {hosts.names[1]} is left out, and tried again after 1 s: expected lockstep ")
            launch.wait_for_warning(", which the others have, found 9.9.9; install the same version there; ")
            self.stop(launch)
        self.assertEqual([event["on"] for event in launch.events("launch")], [hosts.slots(1), hosts.slots(1, 1)])

    def test_a_host_without_the_data(self):
        """Nobody can ask for data beforehand: the attempt with this host fails, and the next one is without it."""
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            self.hide(hosts, 1, "data")
            launch = self.on_the_table(hosts, *self.hostfile(hosts))
            self.joins(hosts, launch)
            launch.wait_for_step(1, attempt=3)
            warning = next(e["message"] for e in launch.events("warning") if "left out" in e["message"])
            self.assertRegex(warning, rf"^host {hosts.names[1]} is left out, and tried again after 1 s: rank 1 "
                                      rf"\(host {hosts.names[1]}\): .*expected data, found nothing at .*train.csv")
            self.reveal(hosts, 1, "data")
            wait_until(lambda: launch.events("launch")[-1]["ranks"] == 2 and launch.events()[-1]["event"] == "step",
                       "steps of both hosts")
            self.stop(launch)

    def test_a_mistake_of_the_job_is_still_one(self):
        with EmulatedHosts(2, connect_timeout=5) as hosts:
            (self.folder / "data/train.csv").rename(self.folder / "data/elsewhere.csv")
            launch = self.launch(hosts, "--hosts", hosts.slots(1), "--resume", "/nowhere", steps=10)
            launch.end(65, gone_within=30)
        self.assertLessEqual(launch.attempts(), 2)

    def test_data_that_are_away_for_a_while(self):
        with EmulatedHosts(1) as hosts:
            launch = self.on_the_table(hosts, "--ranks", "2")
            launch.wait_for_step(60)
            (self.folder / "data").rename(self.folder / "away")
            os.kill(launch.process_of_rank(1), signal.SIGKILL)
            wait_until(lambda: len(self.faults(launch)) >= 5, "more failures than --max-restarts allows")
            (self.folder / "away").rename(self.folder / "data")
            launch.wait_for_step(1, attempt=launch.attempts() + 1)
            self.stop(launch)
        self.assertIn("expected data, found nothing at", self.faults(launch)[-1])

    def test_no_inodes_while_a_rank_dies(self):
        with EmulatedHosts(1) as hosts:
            run(*hosts.prefix(0), "mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=80", "tmpfs", self.folder / "runs")
            # The launch's own files are elsewhere: the test is not on that host.
            launch = self.launch(hosts, "--ranks", "2", steps=ENDLESS, every=200)
            launch.wait_for_step(250)
            fill = f"i=0; while : > {self.folder}/runs/run/ballast-$i; do i=$((i+1)); done"
            run(*hosts.prefix(0), "sh", "-c", fill, check=False)
            os.kill(launch.process_of_rank(1), signal.SIGKILL)
            wait_until(lambda: any("No space left on device" in fault for fault in self.faults(launch)), "the fault")
            time.sleep(1)
            self.assertIsNone(launch.process.poll(), launch.output())
            run(*hosts.prefix(0), "sh", "-c", f"rm {self.folder}/runs/run/ballast-*")
            launch.wait_for_step(1, attempt=2)
            self.stop(launch)


if __name__ == "__main__":
    if EmulatedHosts.missing():
        print(f"several hosts cannot be emulated here: {EmulatedHosts.missing()}")
        sys.exit(77)
    if OPEN_MPI >= 5:
        print("skipped: on emulated hosts Open MPI 5's daemons now and then lose each other at the start")
        sys.exit(77)
    unittest.main()
