"""Shared by tests in several folders."""
import re
import subprocess
import time

OPEN_MPI = int(re.search(r"(\d+)\.", subprocess.run(["mpirun", "--version"], capture_output=True, text=True,
                                                    check=True).stdout)[1])
PATIENCE = 180  # seconds; nothing here takes long on a quiet machine
# Before the words of a program that must not outlive this process, however it ends; not for one started by a thread.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2  # seconds


def wait_until(condition, what, patience=PATIENCE):
    """Waits for the first true value of `condition()`. The longer it takes, the less often it is checked."""
    start = time.monotonic()
    while (waited := time.monotonic() - start) < patience:
        value = condition()
        if value:
            return value
        time.sleep(min(max(SHORTEST_PAUSE, waited / 20), LONGEST_PAUSE))
    raise AssertionError(f"waited {patience} s for {what}")
