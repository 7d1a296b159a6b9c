"""Where the program looks for its libraries. An empty entry is the current folder, from which anyone's library would be
loaded."""
import os
import re
import subprocess
import sys

text = subprocess.run(["readelf", "-d", os.environ["LOCKSTEP"]], capture_output=True, text=True, check=True).stdout
for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
    relative = [entry for entry in path.split(":") if not entry.startswith(("/", "$ORIGIN"))]
    if relative:
        sys.exit(f"RUNPATH: expected absolute folders and $ORIGIN alone, found {relative} in '{path}'")
