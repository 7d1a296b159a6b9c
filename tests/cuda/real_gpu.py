"""Whether there is a GPU, for tests that need one."""
import os
import re
import subprocess

LOCKSTEP = os.environ["LOCKSTEP"]


def why_none():
    """Why no GPU is here, in doctor's words; empty: there is one."""
    done = subprocess.run([LOCKSTEP, "doctor"], capture_output=True, text=True, check=False)
    if re.search(r"^GPU 0 ", done.stdout, re.MULTILINE) is not None:
        return ""
    why = re.search(r"^GPUs +(.*)$", done.stdout, re.MULTILINE)
    return f"no GPU here: {why[1] if why else done.stdout}"
