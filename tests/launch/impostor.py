#!/usr/bin/env python3
"""What another user of the machine may try against a launch; run by that user. Arguments: the control socket's port,
then process ids of the launch. Prints one JSON object: what it could read, and what it could end. Keeps idle
connections open until its stdin is closed."""
import json
import os
import pathlib
import signal
import socket
import sys

IDLE = 300
# From someone who knows the protocol, but not the secret: a rank that fails permanently, one that says good-bye.
WORDS = [b"hello 0123456789abcdef0123456789abcdef 0 2 1 impostor\nerror 78 a mistake in the job\nbye 0\n",
         b"hello  1 2 1 impostor\nbye 0\n", b"error 78 a mistake\n", b"\0" * 100_000]


def read(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return None


def may_end(process):
    try:
        os.kill(process, signal.SIGTERM)
        return True
    except PermissionError:
        return False


def listed(folder):
    try:
        return sorted(str(file) for file in folder.iterdir())
    except OSError:
        return []


def main():
    port, *processes = map(int, sys.argv[1:])
    found = {"environments": [text for p in processes if (text := read(pathlib.Path(f"/proc/{p}/environ")))],
             "command_lines": [read(path) or "" for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")],
             "ended": [p for p in processes if may_end(p)],
             "descriptors": [file for p in processes for file in listed(pathlib.Path(f"/proc/{p}/fd"))],
             "shared": [file for folder in pathlib.Path("/dev/shm").glob("lockstep-*") for file in listed(folder)]}
    for words in WORDS:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(60)
            answer = b""
            try:
                connection.sendall(words)
                while part := connection.recv(1000):
                    answer += part
            except ConnectionError:
                pass  # closed in the middle of a message
            found.setdefault("answers", []).append(answer.decode(errors="replace"))
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
    print(json.dumps(found), flush=True)
    sys.stdin.read()
    for connection in idle:
        connection.close()


if __name__ == "__main__":
    main()
