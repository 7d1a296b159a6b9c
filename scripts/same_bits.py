"""The implementation of scripts/same-bits.sh: runs, table, verdict."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("LOCKSTEP", "build/release/bin/lockstep")
FAILURES = []


def program_on(ranks, hosts):
    """The command that starts this many ranks, assigned in turn to this many pretended hosts."""
    if hosts == 1:
        return [PROGRAM, "train", "--ranks", str(ranks)]
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), "sh", "-c",
            f'LOCKSTEP_HOST_ID=h$((OMPI_COMM_WORLD_RANK % {hosts})) exec "$0" "$@"', PROGRAM, "train"]


def run(job, ranks, *words, hosts=1, expect=0):
    """Runs a job; returns its last event, `end`, and its first, `start`."""
    command = [*program_on(ranks, hosts), job, "--log", "json", "balance=equal", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if result.returncode != expect:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}, expected {expect}\n{result.stderr}")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    events[0]["on_gpus"] = any(event["event"] == "gpu" for event in events)
    return events[-1], events[0]


def listed(by_rank):
    return " ".join(f"{by_rank[str(rank)]:.0f}" for rank in range(len(by_rank)))


def check_work(end, start, ranks, parts=1):
    """The micro-batches of each part add up, work is divided equally, and each rank sent as many bytes as the formula says."""
    micro_batches = end["micro_batches_by_rank"]
    if sum(micro_batches.values()) != start["micro_batches"] * parts:
        FAILURES.append(f"{ranks} ranks: the micro-batches do not add up: {micro_batches}")
    if parts == 1 and max(micro_batches.values()) - min(micro_batches.values()) > 1:
        FAILURES.append(f"{ranks} ranks: the work is not divided equally: {micro_batches}")
    if end["bytes_sent_by_rank"] != end["bytes_by_formula_by_rank"]:
        FAILURES.append(f"{ranks} ranks: sent {end['bytes_sent_by_rank']}, by the formula "
                        f"{end['bytes_by_formula_by_rank']}")


def main():
    parser = argparse.ArgumentParser(prog="scripts/same-bits.sh")
    parser.add_argument("job", nargs="?", default="examples/same-bits.yaml")
    parser.add_argument("--quick", action="store_true", help="fewer runs, for the tests")
    arguments = parser.parse_args()
    job = arguments.job
    short = ["steps=9", "evaluate={every: 5 steps}"] if arguments.quick else []

    print(f"{'ranks':>5} {'hosts':>5} {'threads':>7} {'parts':>5} {'sharding':10}  {'micro-batches of each rank':22} "
          f"{'MB sent by each rank':40} parameters sha256")
    hashes = set()
    metrics = set()
    every = [(ranks, 1, threads, 1, "none") for ranks in (1, 2, 3, 5, 8) for threads in (1, 2)]
    every += [(ranks, 1, threads, parts, "none")
              for ranks, threads, parts in ((2, 1, 2), (2, 2, 2), (3, 1, 3), (3, 1, 2), (5, 2, 2), (8, 1, 3))]
    every += [(ranks, hosts, threads, parts, sharding) for sharding in ("optimizer", "gradients", "parameters")
              for ranks, hosts, threads, parts in ((2, 1, 1, 1), (3, 1, 2, 1), (5, 1, 1, 1), (8, 1, 1, 1), (5, 1, 1, 2),
                                                   (2, 2, 1, 1), (5, 3, 1, 1), (6, 2, 2, 2))]
    quick = [(1, 1, 1, 1, "none"), (1, 1, 2, 1, "none"), (2, 1, 1, 1, "none"), (3, 1, 2, 1, "none"),
             (8, 1, 1, 1, "none"), (2, 1, 1, 2, "none"), (5, 1, 1, 3, "none"), (3, 1, 1, 1, "optimizer"),
             (5, 1, 1, 2, "optimizer"), (3, 1, 2, 1, "gradients"), (8, 1, 1, 1, "gradients"),
             (3, 3, 2, 1, "parameters"), (6, 2, 1, 2, "parameters")]
    on_gpus = False
    for ranks, hosts, threads, parts, sharding in quick if arguments.quick else every:
        if sharding == "parameters" and on_gpus:
            continue  # not there on GPUs
        end, start = run(job, ranks, f"threads={threads}", f"parallel.parts={parts}", f"parallel.sharding={sharding}",
                         *short, hosts=hosts)
        on_gpus = start["on_gpus"]
        check_work(end, start, ranks, parts)
        fetched = end.get("fetched_parameter_bytes_by_rank", {})
        if (sum(fetched.values()) > 0) != (sharding == "parameters" and hosts > 1):
            FAILURES.append(f"{ranks} ranks, {hosts} hosts, sharding {sharding}: parameters fetched: {fetched}")
        sent = " ".join(f"{end['bytes_sent_by_rank'][str(r)] / 1e6:.2f}" for r in range(ranks))
        print(f"{ranks:5} {hosts:5} {threads:7} {parts:5} {sharding:10}  {listed(end['micro_batches_by_rank']):22} {sent:40} "
              f"{end['parameters_sha256'][:16]}")
        hashes.add(end["parameters_sha256"])
        metrics.add(json.dumps(end["metrics"]))
    if len(hashes) != 1 or len(metrics) != 1:
        FAILURES.append(f"{len(hashes)} different hashes and {len(metrics)} different evaluations, expected one of each")

    exact = next(iter(hashes))
    controls = [("exact: never, 3 ranks", 3, ["exact=never"]), ("exact: never, 5 ranks", 5, ["exact=never"]),
                ("another tree (8 micro-batches)", 1, ["micro_batches=8"])]
    for name, ranks, words in controls:
        end, _ = run(job, ranks, *words, *short)
        print(f"control: {name:60} {end['parameters_sha256'][:16]}")
        if end["parameters_sha256"] in hashes:
            FAILURES.append(f"the control '{name}' gave the same hash: this comparison cannot fail")

    sharding = "gradients"
    for before, after, parts in ((1, 3, 1), (5, 2, 1), (3, 2, 3)):
        with tempfile.TemporaryDirectory() as directory:
            words = [f"run_directory={directory}", "checkpoint={every: 1000 steps}", *short]
            run(job, before, "--stop-at", "7", f"parallel.parts={parts}", *words, expect=75)
            end, _ = run(job, after, f"parallel.sharding={sharding}", *words)
        resumed = f"resumed on {after} in one, sharding: {sharding}:"
        print(f"stopped at step 7 on {before} rank(s) in {parts} part(s), {resumed:45} {end['parameters_sha256'][:16]}")
        if end["parameters_sha256"] != exact:
            FAILURES.append(f"stopped on {before}, resumed on {after}: another hash than unbroken")

    for failure in FAILURES:
        print(f"FAILED: {failure}")
    if FAILURES:
        sys.exit(1)
    print("One hash. The number of ranks, threads and parts, and what ranks divide, changed the speed and nothing else.")


if __name__ == "__main__":
    main()
