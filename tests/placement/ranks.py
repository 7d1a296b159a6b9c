"""Runs of the program on ranks of this machine: on emulated hosts, and with one rank slower than the others."""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from shared import ENDS_WITH_US  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ.get("LOCKSTEP", str(pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/lockstep"))
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
# A rank leaves its process id in the file $0.
NOTED = ("sh", "-c", 'echo $$ >"$0"; exec "$@"')


@dataclasses.dataclass(frozen=True)
class Slow:
    """A rank that is stopped most of the time. Seconds."""
    rank: int
    runs: float
    stops: float


@dataclasses.dataclass
class Run:
    """How a run ended. `code` is None if it was killed because it took longer than `limit`."""
    code: int | None
    events: list
    stderr: str

    def last(self, kind):
        return next((event for event in reversed(self.events) if event["event"] == kind), None)


def _slow_down(notes, slow, over):
    while not over.is_set():
        with contextlib.suppress(OSError, ValueError):
            process = os.pidfd_open(int((notes / str(slow.rank)).read_text()))
            break
        over.wait(0.01)
    else:
        return
    try:
        while not over.is_set():
            signal.pidfd_send_signal(process, signal.SIGSTOP)
            over.wait(slow.stops)
            signal.pidfd_send_signal(process, signal.SIGCONT)
            over.wait(slow.runs)
    except ProcessLookupError:
        pass
    finally:
        os.close(process)


def _kill(notes):
    """What mpirun leaves behind when it is killed itself."""
    for note in notes.iterdir():
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(note.read_text()), signal.SIGKILL)


def train(words, hosts, folder, slow=None, limit=600, environment=None):
    """`lockstep train WORDS` in `folder`, with a rank on each of `hosts`, which are names."""
    with tempfile.TemporaryDirectory() as name:
        notes = pathlib.Path(name)
        command = [*ENDS_WITH_US, *MPIRUN]
        for rank, host in enumerate(hosts):
            command += [":"] * (rank > 0) + ["-n", "1", *NOTED, str(notes / str(rank)), "env", f"LOCKSTEP_HOST_ID={host}",
                                             PROGRAM, "train", *words, "--log", "json"]
        over = threading.Event()
        slowing = threading.Thread(target=_slow_down, args=(notes, slow, over)) if slow else None
        with subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as running:
            if slowing:
                slowing.start()
            try:
                stdout, stderr = running.communicate(timeout=limit)
                code = running.returncode
            except subprocess.TimeoutExpired:
                code = None
                _kill(notes)
                running.kill()
                stdout, stderr = running.communicate()
            finally:
                over.set()
                if slowing:
                    slowing.join()
    return Run(code, [json.loads(line) for line in stdout.splitlines() if line.startswith('{"event"')], stderr)
