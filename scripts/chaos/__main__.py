"""The implementation of scripts/chaos.sh. It restarts itself in its own namespaces for processes, mounts and networks,
which vanish with everything in them when it ends, however it ends."""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "launch"), str(ROOT / "tests" / "store")]
os.environ.setdefault("LOCKSTEP", str(ROOT / "build/release/bin/lockstep"))
# pylint: disable=wrong-import-position
from emulated_hosts import EmulatedHosts  # noqa: E402
from launches import OPEN_MPI, PROGRAM  # noqa: E402
from faults import KINDS, say_hosts  # noqa: E402
from plan import LEAST_BUSY, Planned, happen, make_plan  # noqa: E402
from training import Training  # noqa: E402
from verdict import line, reasons_against, table  # noqa: E402

JOB = str(pathlib.Path(__file__).resolve().parent / "job.yaml")
NAMES = [kind.name for kind in KINDS]
LEAST = LEAST_BUSY * len(KINDS)
HANG_LIMIT = "2"  # seconds: a cut link is noticed after this time
DISK = "96m"
WALL = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
INSIDE = 'mount -t tmpfs tmpfs "$0" && ip link set lo up && mkdir "$0/run" && ' \
         f'mount -t tmpfs -o size={DISK} tmpfs "$0/run" && "$@"; exit $?'


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/chaos.sh")
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("count", nargs="?", type=int, default=LEAST + 1, metavar="n")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    found = parser.parse_args()
    if found.count < LEAST:
        parser.error(f"n: expected at least {LEAST} faults, {LEAST_BUSY} of each of {len(KINDS)} kinds, "
                     f"found {found.count}")
    return found


def behind_a_wall(folder):
    """Runs this script again in new namespaces; returns its exit code. A signal ends all of it."""
    words = ["setpriv", "--pdeathsig", "KILL", *WALL, "sh", "-c", INSIDE, folder, sys.executable, *sys.argv,
             "--inside", folder]
    def end(number, _):
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder}) as process:
        try:
            return process.wait()
        finally:
            process.kill()


def disturb(seed, count, settings, folder, hosts):
    """The hits, the training and its last event."""
    script = say_hosts(hosts, f"{hosts.names[0]}:1,{hosts.names[1]}:1,{hosts.names[2]}:1")
    training = Training.start(hosts, f"{folder}/run", [JOB, *settings], "--discover", script, "--hosts-every", "0.2", "--ask-again",
                              "0.5", "--hang-limit", HANG_LIMIT, "--max-restarts", "20")
    hits = []
    try:
        plan = make_plan(seed, count)
        print(f"seed {seed}, {count} faults; on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
              f"  no    step  moment      fault", flush=True)
        while plan:
            planned = plan.pop(0)
            for hit in happen(planned, training, hosts):
                hits.append(hit)
                print(line(len(hits), hit), flush=True)
            plan = plan or owed(hits, count, planned)
        training.wait_until_it_goes_on(10)
        training.launch.signal(signal.SIGTERM)
        end = training.launch.end(75)
        training.events()
        return hits, training, end
    finally:
        training.launch.abandon()


def owed(hits, count, last):
    """One more fault, up to a limit: of a kind that has hit too few busy moments, or of any kind if too few were
    seen."""
    if len(hits) > 2 * count:
        return []
    for kind in KINDS:
        if sum(hit.kind == kind.name and hit.busy and hit.effect != "" for hit in hits) < LEAST_BUSY:
            return [Planned(kind, "steps", 5, last.random)]
    too_few = sum(hit.effect != "" for hit in hits) < count
    return [Planned(last.random.choice(KINDS), "steps", 5, last.random)] if too_few else []


def quiet(folder, step):
    """The same job up to the same step, undisturbed, on one rank."""
    words = [PROGRAM, "train", JOB, "threads=2", "balance=equal", f"run_directory={folder}/quiet", "--stop-at",
             str(step), "--log", "json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 75:
        sys.exit(f"chaos: the quiet run ended with {done.returncode}, expected 75:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def only_without_first_micro_batch(line):
    """Whether a line of `checkpoint diff` shows two fingerprints that differ only in that one has no first micro-batch."""
    a, _, b = re.sub(r", first micro-batch [0-9a-f]+", "", line).removeprefix("fingerprint: ").partition(" and ")
    return line.startswith("fingerprint: ") and line.count("first micro-batch") == 1 and a == b


def same_checkpoints(folder, step):
    """How the last checkpoint differs; besides parameters it holds optimizer state and running statistics. If a model
    is divided among ranks, no first micro-batch is compared, so the fingerprint may lack it."""
    paths = [f"{folder}/{name}/checkpoints/step-{step:08}" for name in ("run", "quiet")]
    done = subprocess.run([PROGRAM, "checkpoint", "diff", *paths], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    if not done.stdout + done.stderr:
        return [f"lockstep checkpoint diff ended with {done.returncode}"]
    different = [line for line in done.stdout.splitlines() if not only_without_first_micro_batch(line)]
    return [f"the last checkpoints differ: {line}" for line in [*different, *done.stderr.splitlines()]]


def broken_lines(folder):
    """Lines of events.jsonl that are not events."""
    broken = []
    for number, text in enumerate(pathlib.Path(f"{folder}/run/events.jsonl").read_text().splitlines(), 1):
        try:
            json.loads(text)
        except ValueError:
            broken.append(f"events.jsonl:{number}: expected an event, found '{text[:100]}'")
    return broken


def inside(seed, count, settings, folder):
    start = time.monotonic()
    with EmulatedHosts(3, connect_timeout=0.2) as hosts:
        hits, training, end = disturb(seed, count, settings, folder, hosts)
    step = training.step
    undisturbed = quiet(folder, step)
    restarts = [event for event in training.events() if event["event"] == "restart" and "reason" in event]
    unexplained = [event for event in restarts if event not in training.claimed]
    for event in unexplained:
        print(f"a restart that no fault explains: {event['reason']} after step {event['step']}: {event['message']}")
    step_times = [at for attempt in training.attempts for _, at in attempt.steps]
    print("\n" + "\n".join(table(NAMES, hits, sorted(step_times))))
    print(f"{step} steps kept of {len(step_times)} done, {len(training.attempts)} attempts, {len(restarts)} restarts; "
          f"{time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.1f}")
    hashes = (end["parameters_sha256"], undisturbed["parameters_sha256"])
    print(f"{hashes[0]}  after the faults, step {step}\n{hashes[1]}  quiet")
    against = reasons_against(NAMES, hits, count, hashes, unexplained) + same_checkpoints(folder, step) + \
        broken_lines(folder)
    for reason in against:
        print(f"FAILED: {reason}")
    return 1 if against else 0


def main():
    found = arguments()
    if found.inside:
        return inside(found.seed, found.count, found.set, found.inside)
    missing = EmulatedHosts.missing()
    if missing:
        print(f"chaos needs several hosts, which cannot be emulated here: {missing}")
        return 77
    if OPEN_MPI >= 5:
        print("chaos expects Open MPI 4: Open MPI 5's mpirun ends all ranks when it loses a host")
        return 77
    folder = tempfile.mkdtemp(prefix="lockstep-chaos-")
    try:
        return behind_a_wall(folder)
    finally:
        os.rmdir(folder)


if __name__ == "__main__":
    sys.exit(main())
