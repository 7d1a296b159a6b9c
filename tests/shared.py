"""What tests of several folders share."""
import re
import subprocess
import time

OPEN_MPI = int(re.search(r"(\d+)\.", subprocess.run(["mpirun", "--version"], capture_output=True, text=True,
                                                    check=True).stdout)[1])
PATIENCE = 180  # seconds; nothing here takes long on a quiet machine
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2  # seconds


def wait_until(condition, what, patience=PATIENCE):
    """The first true value of `condition()`. What takes longer is looked at less often."""
    start = time.monotonic()
    while (waited := time.monotonic() - start) < patience:
        value = condition()
        if value:
            return value
        time.sleep(min(max(SHORTEST_PAUSE, waited / 20), LONGEST_PAUSE))
    raise AssertionError(f"waited {patience} s for {what}")
