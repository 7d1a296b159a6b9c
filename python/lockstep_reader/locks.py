"""Whether a process of this machine holds a lock on a file. It is asked of the system and not by locking, so that a reader
never keeps a run from starting."""
import os


def is_locked(path: str) -> bool | None:
    """None where it cannot be known: no such file, or no /proc/locks. A lock that another host holds is not seen, nor one
    of another container."""
    try:
        found = os.stat(path)
        with open("/proc/locks", encoding="ascii") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(words[1] == "FLOCK" and wanted in words for words in map(str.split, lines))
