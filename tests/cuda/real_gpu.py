"""Which GPUs this machine has, for tests that need one."""
import os
import re
import subprocess

LOCKSTEP = os.environ["LOCKSTEP"]


def doctor():
    return subprocess.run([LOCKSTEP, "doctor"], capture_output=True, text=True, check=False).stdout


def how_many():
    return len(re.findall(r"^GPU \d+ ", doctor(), re.MULTILINE))


def why_none():
    """Why no GPU is usable here, in doctor's words; empty: there is one."""
    if how_many() > 0:
        return ""
    why = re.search(r"^GPUs +(.*)$", doctor(), re.MULTILINE)
    return f"no GPU here: {why[1] if why else doctor()}"
