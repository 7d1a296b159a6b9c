#!/usr/bin/env python3
"""Fuzzes every parser for a while, from the corpora in tests/fuzz/corpus and from what earlier runs found.

    scripts/fuzz.py [--seconds N] [--jobs N] [TARGET...]

Builds the targets (preset `fuzz`: clang, libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer), runs each for N
seconds (60) and prints what it did. Inputs that reach new code are kept in build/fuzz/corpora. An input that is a
finding is kept in build/fuzz/findings, and the command that repeats it is printed; the exit status is 1 then.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
FUZZ = ROOT / "tests/fuzz"
DICTIONARIES = {"job": "yaml", "overrides": "overrides", "manifest": "json", "checkpoint": "json", "safetensors": "json", "run_events": "json",
                "trace": "json", "packed": "json", "image": "image", "tar": "tar", "archive": "tar",
                "hostfile": "hostfile", "control_socket": "control_socket"}
# Parsers of files of some kilobytes need far less memory; the time limit allows for a busy machine.
LIMITS = ["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-timeout=30"]
# Short allocation stacks: jobs are parsed twice as fast with them.
ENVIRONMENT = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "malloc_context_size=4"}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at a time")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    options = parser.parse_args(argv)
    known = sorted(path.name for path in (FUZZ / "corpus").iterdir())
    unknown = [name for name in options.targets if name not in known]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are {', '.join(known)}")
    options.targets = options.targets or known
    return options


def build(targets, jobs):
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "fuzz"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j", str(jobs), "--target", *[f"fuzz_{name}" for name in targets]],
                   cwd=ROOT, check=True)


def last(pattern, text, default="?"):
    found = re.findall(pattern, text)
    return found[-1] if found else default


def fuzz(name, seconds):
    """One line about the target, and its findings."""
    corpus, findings = BUILD / "corpora" / name, BUILD / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    program = BUILD / "bin" / f"fuzz_{name}"
    command = [program, *LIMITS, f"-max_total_time={seconds}", "-print_final_stats=1",
               f"-artifact_prefix={findings}/{name}-"]
    if name in DICTIONARIES:
        command.append(f"-dict={FUZZ}/dictionaries/{DICTIONARIES[name]}.dict")
    log = BUILD / "corpora" / f"{name}.log"
    with open(log, "wb") as file:
        ended = subprocess.run([*map(str, command), str(corpus), str(FUZZ / "corpus" / name)], cwd=ROOT,
                               env=ENVIRONMENT, stdout=file, stderr=subprocess.STDOUT, check=False)
    text = log.read_text(errors="replace")
    runs, memory = last(r"stat::number_of_executed_units: *(\d+)", text), last(r"stat::peak_rss_mb: *(\d+)", text)
    edges, features = last(r"cov: (\d+)", text), last(r"ft: (\d+)", text)
    line = f"{name:<15} {runs:>9} runs  {edges:>6} edges  {features:>6} features  {memory:>5} MiB"
    found = [path for path in re.findall(r"Test unit written to (\S+)", text) if "/slow-unit-" not in path]
    if ended.returncode != 0 and not found:
        found = [f"(no input was kept: see {log})"]
    return line, [f"{program.relative_to(ROOT)} {path}" for path in found]


def main(argv):
    options = parse(argv)
    build(options.targets, options.jobs)
    findings = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line, found in pool.map(lambda name: fuzz(name, options.seconds), options.targets):
            print(line + (f"  {len(found)} FOUND" if found else ""), flush=True)
            findings += found
    for command in findings:
        print(f"repeat: {command}")
    print(f"{len(options.targets)} targets, {options.seconds} s each, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
