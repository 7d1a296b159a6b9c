#!/usr/bin/env python3
"""memory_of_ranks.py [--build DIR] [--ranks N] [--limit MIB] JOB [WORDS...]: the peak memory of each rank.

Each rank is on a pretended host and in its own memory cgroup, so both its private memory and its part of /dev/shm
count. All kinds of `parallel.sharding`, and one part for each rank, are run in turn. With --limit no rank may use more:
one that does is killed, which is reported. Needs root and version 1 of cgroups.
"""
import argparse
import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GROUPS = Path("/sys/fs/cgroup/memory")
KINDS = ["parallel.sharding=none", "parallel.sharding=optimizer", "parallel.sharding=gradients",
         "parallel.sharding=parameters"]
START = ('echo $$ > "$0-$OMPI_COMM_WORLD_RANK/cgroup.procs" && '
         'LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK exec "$@"')


def remove(group):
    """Killed processes leave their cgroup a moment later."""
    for _ in range(100):
        try:
            return group.rmdir()
        except FileNotFoundError:
            return None
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{group}: it is still in use")


def run(program, arguments, words):
    """The peak MiB of each rank, and the hash, or how the run ended."""
    name = GROUPS / f"lockstep-{os.getpid()}"
    groups = [Path(f"{name}-{rank}") for rank in range(arguments.ranks)]
    try:
        for group in groups:
            group.mkdir()
            if arguments.limit:
                (group / "memory.limit_in_bytes").write_text(str(arguments.limit << 20))
        ended = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(arguments.ranks), "sh",
             "-c", START, str(name), str(program), "train", arguments.job, "checkpoint=never", "evaluate=never",
             "threads=1", "--log", "json", *arguments.words, *words], capture_output=True, text=True, check=False)
        most = [int((group / "memory.max_usage_in_bytes").read_text()) >> 20 for group in groups]
    finally:
        for group in groups:
            remove(group)
    if ended.returncode != 0:
        return most, f"ended with {ended.returncode}"
    return most, json.loads(ended.stdout.splitlines()[-1])["parameters_sha256"][:16]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT / "build" / "release", type=Path)
    parser.add_argument("--ranks", default=4, type=int)
    parser.add_argument("--limit", type=int, help="MiB that a rank may have")
    parser.add_argument("job")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    if not (GROUPS / "memory.limit_in_bytes").exists():
        raise SystemExit(f"{GROUPS}: no memory controller of cgroups version 1")
    for kind in [*KINDS, f"parallel.parts={arguments.ranks}"]:
        most, outcome = run(arguments.build / "bin" / "lockstep", arguments, [kind])
        print(f"{kind:30} {' '.join(f'{mib:5}' for mib in most)} MiB  {outcome}", flush=True)


if __name__ == "__main__":
    main()
