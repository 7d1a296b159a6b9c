#!/usr/bin/env python3
"""Times `lockstep bench all-reduce` between emulated hosts on a network of a given rate, for several numbers of ranks
per host: how much time several ranks on a host add, and how much their network cards send.

    bench/all_reduce_between_hosts.py build/release/bin/lockstep [ANOTHER_BUILD...] --rate 1gbit --size 8MiB

Builds take turns, so that other load on the machine affects all of them. Needs root (namespaces, tc) and Open MPI 4."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "launch"))
from emulated_hosts import EmulatedHosts  # noqa: E402  pylint: disable=wrong-import-position


def exact_and_library(hosts, program, ranks, words):
    """The lines of the exact all-reduce and of the library's all-reduce."""
    done = subprocess.run(
        [*hosts.prefix(0), "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm_rsh_agent", hosts.agent,
         "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0", "--host", hosts.slots(ranks),
         program, "bench", "all-reduce", "--log", "json", *words],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr}")
    lines = {line["way"]: line for line in map(json.loads, done.stdout.splitlines()) if line.get("part", "all") == "all"}
    return lines["exact"], lines["library"]


def median_ms(lines):
    return 1e3 * statistics.median(line["seconds_median"] for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=os.path.abspath)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], help="on each host")
    parser.add_argument("--rate", default="1gbit", help="of each host's card")
    parser.add_argument("--size", default="8MiB", help="of the gradient")
    parser.add_argument("--rounds", default="10")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    if EmulatedHosts.missing():
        sys.exit(f"cannot emulate hosts: {EmulatedHosts.missing()}")
    with EmulatedHosts(options.hosts) as hosts:
        hosts.limit(options.rate)
        for ranks in options.ranks:
            lines = {program: [] for program in options.programs}
            for _ in range(options.turns):
                for program in options.programs:
                    words = ["--sizes", options.size, "--rounds", options.rounds]
                    lines[program].append(exact_and_library(hosts, program, ranks, words))
            for program in options.programs:
                exact, library = zip(*lines[program])
                print(f"{options.hosts} hosts of {ranks}: exact {median_ms(exact):8.1f} ms and "
                      f"{exact[0]['network_bytes'] / 1e6:7.2f} MB by network, MPI's all-reduce "
                      f"{median_ms(library):8.1f} ms  {program}", flush=True)


if __name__ == "__main__":
    main()
