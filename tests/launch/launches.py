"""Shared by tests of `lockstep launch`: a small job, a running launch with its events, its processes."""
import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shared import OPEN_MPI, PATIENCE, wait_until  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

PROGRAM = os.environ["LOCKSTEP"]
SMALL_PIPE = 4096  # bytes
SMALL = ["data.train.digits.count=256", "data.validation.digits.count=64", "batch_size=32", "micro_batches=8", "threads=1",
         "learning_rate=0.002", "evaluate=never"]


def processes_of(directory):
    """(process id, rank or None) of everything that a launch into this run directory has started."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        variables = dict(word.split(b"=", 1) for word in words if b"=" in word)
        logs = os.fsdecode(variables.get(b"LOCKSTEP_LAUNCH_LOGS", b""))
        if state != "Z" and logs.startswith(os.path.realpath(directory) + "/logs/"):
            rank = variables.get(b"OMPI_COMM_WORLD_RANK")
            found.append((int(folder.name), None if rank is None else int(rank)))
    return sorted(found)


class Launch:
    """`lockstep launch` into a run directory; its events are what it prints. `job`: words of the command line; `head`:
    the words before them."""

    def __init__(self, directory, *words, job=None, steps=300, every=10, environment=None, prefix=(),
                 program=PROGRAM, head=("launch", "--log", "json"), piped=False):
        """`piped`: what it prints goes through a small pipe, which the process `reader` empties."""
        self.directory = pathlib.Path(os.path.realpath(directory))
        if job is None:
            job = [*SMALL, f"steps={steps}", f"checkpoint={{every: {every} steps}}"]
        self.log = open(f"{directory}.log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.seen, self.rest = [], ""
        command = [*prefix, program, *head, *job, f"run_directory={self.directory}", *words]
        with open(f"{directory}.events", "w", encoding="utf-8") as printed:
            self.reader, stdout = self._pipe_to(printed) if piped else (None, printed)
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdout=stdout, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **(environment or {})})
            if piped:
                stdout.close()
        self.printed = open(printed.name, encoding="utf-8")  # pylint: disable=consider-using-with

    @staticmethod
    def _pipe_to(file):
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        reader = subprocess.Popen(["cat"], stdin=read, stdout=file)  # pylint: disable=consider-using-with
        os.close(read)
        return reader, open(write, "wb")  # pylint: disable=consider-using-with

    def wait(self, seconds=PATIENCE):
        """Its exit code, once all that it has printed can be read."""
        code = self.process.wait(seconds)
        if self.reader:
            self.reader.wait(seconds)
        return code

    def events(self, name=None):
        """All events so far, or those with this name."""
        if not self.printed.closed:
            *lines, self.rest = (self.rest + self.printed.read()).split("\n")
            self.seen += map(json.loads, lines)
        return [event for event in self.seen if name in (None, event["event"])]

    def output(self):
        """Everything that it has printed."""
        return "".join(pathlib.Path(file.name).read_text(encoding="utf-8") for file in (self.printed, self.log))

    def attempts(self):
        return len(self.events("launch"))

    def wait_for_step(self, step, attempt=1):
        """Waits until this attempt has done this many steps."""
        def reached():
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode} before step {step}:\n{self.output()}")
            launches = 0
            for event in self.events():
                launches += event["event"] == "launch"
                if launches == attempt and event["event"] == "step" and event["step"] >= step:
                    return True
            return False
        wait_until(reached, f"step {step} of attempt {attempt}")

    def wait_for_warning(self, text):
        wait_until(lambda: any(text in event["message"] for event in self.events("warning")), f"the warning '{text}'")

    def process_of_rank(self, rank):
        return wait_until(lambda: dict((r, p) for p, r in processes_of(self.directory)).get(rank), f"rank {rank}")

    def shared_files(self):
        """The files in /dev/shm that its ranks have mapped, by name."""
        ranks = [process for process, rank in processes_of(self.directory) if rank is not None]
        words = " ".join(pathlib.Path(f"/proc/{rank}/maps").read_text(encoding="utf-8") for rank in ranks).split()
        return {pathlib.Path(word) for word in words if word.startswith("/dev/shm/") and "#" not in word}

    def listens_at(self):
        """Addresses and ports at which the supervisor listens, as seen in its network namespace."""
        process = self.process.pid
        sockets = {os.readlink(file) for file in pathlib.Path(f"/proc/{process}/fd").iterdir()}
        found = []
        for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
            for line in pathlib.Path(f"/proc/{process}/net/{name}").read_text(encoding="utf-8").splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                    address, port = words[1].split(":")
                    parts = [bytes.fromhex(address[at:at + 8])[::-1] for at in range(0, len(address), 8)]  # in this host's order
                    found.append((socket.inet_ntop(family, b"".join(parts)), int(port, 16)))
        return found

    def mpirun(self):
        """The process id of mpirun; Open MPI 5's becomes prterun."""
        def is_mpirun(process):
            name = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
            return b"mpirun" in name or b"prterun" in name
        return next(p for p, rank in processes_of(self.directory) if rank is None and is_mpirun(p))

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, code=0, gone_within=10):
        """Waits for the end, checks the exit code and that nothing is left behind; returns the last `end` event or
        None."""
        try:
            found = self.wait()
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise AssertionError(f"it does not end:\n{self.output()}") from error
        assert found == code, f"exit code {found}, expected {code}:\n{self.output()}"
        wait_until(lambda: not processes_of(self.directory), "all processes to be gone", gone_within)
        ends = self.events("end")
        self.printed.close()  # another launch into this directory overwrites the file
        return ends[-1] if ends else None

    def abandon(self):
        """For a test that failed: cleans up."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process, _ in processes_of(self.directory):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.reader:
            self.reader.wait(PATIENCE)
        self.events()
        self.printed.close()
        self.log.close()


def replace_by_script(program, lines):
    """As an installer does it: what runs keeps the file that it has begun with."""
    new = program.with_suffix(".new")
    new.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    new.chmod(0o755)
    new.replace(program)


def quiet_hash(folder, steps=300):
    """The hash of the same job, undisturbed, on one rank."""
    words = [PROGRAM, "train", *SMALL, f"steps={steps}", "checkpoint=never", f"run_directory={folder}/quiet", "--log",
             "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]
