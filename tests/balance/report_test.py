"""`lockstep balance report`: the text for a known run, and its error messages."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = """\
RUN: digits on 2 ranks, 8 micro-batches; 8 steps in 5.9 s

rank  micro-batches  computed  waited: data  waited: ranks  others waited for it  reduce  update
   0       4       5 s           0 s          0.7 s                 0.2 s  0.05 s  0.02 s
   1       4     5.5 s         0.1 s          0.2 s                 0.7 s  0.05 s  0.02 s

after step 0: a probe at the start
  micro-batches 3 5; moved 1
  seconds per micro-batch 0.2 0.1
  a step: predicted 0.8 s before, 0.6 s after; measured 0.7 s after

after step 5: rank 1 became 2.00 times slower
  micro-batches 4 4; moved 1
  seconds per micro-batch 0.2 0.2
  a step: predicted 1 s before, 0.8 s after; measured 1.01 s before; measured 0.8 s after
"""
# Micro-batches of a part are divided among its ranks; part 1 has no numbers, since it has only one rank.
IN_PARTS = """\
RUN: digits on 3 ranks, 8 micro-batches, a model in 2 parts; 9 steps in 4.9 s

part 0 on ranks 0 1: conv1 to max_pool1, 160 parameters; computed 45 %, waited for data 1 %, for other parts 53 %, for ranks 1 %
part 1 on rank 2: conv2 to metric.accuracy, 20,330 parameters; computed 80 %, waited for data 0 %, for other parts 16 %, for ranks 4 %

part  rank  micro-batches  computed  waited: data  waited: parts  waited: ranks  others waited for it  reduce  update
   0     0       5       2 s         0.1 s          2.6 s            0 s                0.15 s  0.05 s  0.02 s
   0     1       3     2.5 s           0 s          2.7 s          0.1 s                   0 s  0.05 s  0.02 s
   1     2       8       4 s           0 s          0.8 s          0.2 s                   0 s  0.05 s  0.02 s

after step 5: part 0: rank 1 became 2.00 times slower
  micro-batches part 0: 5 3; part 1: 8; moved 1
  seconds per micro-batch part 0: 0.05 0.1
  the slowest of them: predicted 0.4 s before, 0.3 s after
  a step: measured 0.62 s before; measured 0.5 s after
"""


def run(*words):
    return subprocess.run([os.environ["LOCKSTEP"], "balance", "report", *words], capture_output=True, text=True)


def expect(name, found, expected):
    if found != expected:
        sys.exit(f"{name}: expected\n{expected}\nfound\n{found}")


def main():
    folder = str(HERE / "report")
    done = run(folder)
    expect("report", done.stdout, EXPECTED.replace("RUN", folder))
    expect("report", done.returncode, 0)
    with tempfile.TemporaryDirectory() as thinned:  # a run that is long does not have every step
        lines = (HERE / "report" / "events.jsonl").read_text().splitlines(keepends=True)
        Path(thinned, "events.jsonl").write_text("".join(line for line in lines if '"step":7,' not in line))
        expect("fewer steps", run(thinned).stdout, EXPECTED.replace("RUN", thinned))
    folder = str(HERE / "report_parts")
    done = run(folder)
    expect("report of parts", done.stdout, IN_PARTS.replace("RUN", folder))
    expect("report of parts", done.returncode, 0)
    with tempfile.TemporaryDirectory() as empty:
        done = run(empty)
        expect("no run", done.stderr, f"lockstep: {empty}/events.jsonl: expected the events of a run, found no such file; "
                                      "name a run directory of a run that has started\n")
        expect("no run", done.returncode, 64)
        Path(empty, "events.jsonl").write_text('{"event":"start","ranks":1}\n')
        done = run(empty)
        expect("one rank", done.stderr, f"lockstep: {empty}/events.jsonl: expected a run on several ranks, found one rank; "
                                        "one rank has nothing to balance\n")
        expect("one rank", done.returncode, 64)
        start = '{"event":"start","job":"j","ranks":2,"micro_batches":4}\n'
        for line, name, damage in (
                ('{"event":"step","step":"one"}', "step", "expected an integer as 'step'"),
                ('{"event":"step","step":1,"seconds":[]}', "step", "expected a number as 'seconds'"),
                ('{"event":"balance","reason":7}', "balance", "expected a text as 'reason'"),
                ('{"event":"balance","shares_by_rank":{"zero":1}}', "balance",
                 "expected numbers by rank as 'shares_by_rank'"),
                ('{"event":"balance","shares_by_rank":[1,3]}', "balance", "expected numbers by rank as 'shares_by_rank'"),
                ('{"event":"balance","predicted_seconds":1}', "balance",
                 "expected 'predicted_before_seconds' with 'predicted_seconds'"),
                ('{"event":"end","micro_batches_by_rank":{"0":null}}', "end", "expected numbers by rank as 'micro_batches_by_rank'")):
            Path(empty, "events.jsonl").write_text(start + line + "\n")
            done = run(empty)
            expect(line, done.stderr, f"lockstep: {empty}/events.jsonl:2: the event '{name}' is damaged: {damage}; "
                                      "delete the line\n")
            expect(line, done.returncode, 65)
        # Other programs' lines, torn lines, and a rank that is missing from an `end` event.
        Path(empty, "events.jsonl").write_text(
            start + '{"event":7}\n[1]\n' + "[" * 10000 + "\n"
            + '{"event":"end","steps":1,"seconds":1.0,"micro_batches_by_rank":{"0":2,"1":2},"waited_seconds_by_rank":{"0":1}}\n')
        done = run(empty)
        expect("others", done.returncode, 0)
        expect("a rank that is missing", done.stdout.splitlines()[4].split(), "1 2 - - - - - -".split())


main()
