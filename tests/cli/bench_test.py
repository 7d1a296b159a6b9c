#!/usr/bin/env python3
"""`lockstep bench all-reduce` sums correctly, sends the bytes of the formula, and prints and draws what it measured;
`lockstep bench hosts` reports and judges."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cuda"))
from pretended_hosts import TWO_HOSTS  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
SIZES = [4096, 1 << 20, 3 << 20]


def bench(*words, code=0, prefix=()):
    done = subprocess.run([*prefix, PROGRAM, "bench", "all-reduce", "--rounds", "2", "--sizes", "4KiB,1MiB,3145728", *words],
                          capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class BenchAllReduce(unittest.TestCase):
    def test_a_line_a_size_and_way(self):
        lines = [json.loads(line) for line in bench("--ranks", "2", "--log", "json").splitlines()]
        self.assertEqual([(line["bytes"], line["way"]) for line in lines],
                         [(size, way) for size in SIZES for way in ("exact", "plain", "library")])
        for line in lines:
            self.assertEqual((line["event"], line["part"], line["ranks"]), ("all_reduce", "all", 2))
            self.assertLessEqual(line["seconds_best"], line["seconds_median"])
            # Two ranks: each link carries exactly the size of the gradient.
            self.assertAlmostEqual(line["bus_bytes_per_second"] * line["seconds_median"], line["bytes"], delta=1)
            if line["way"] == "exact":  # a partial sum of each slice to its owner, and the slice back
                self.assertEqual((line["shared_memory_bytes"], line["network_bytes"]), (2 * line["bytes"], 0))

    def test_three_micro_batches_a_rank_send_more_sums(self):
        lines = [json.loads(line) for line in bench("--ranks", "2", "--log", "json", "--micro-batches-a-rank", "3").splitlines()]
        # 3 micro-batches are two subtrees: two partial sums to the owner.
        self.assertEqual([line["shared_memory_bytes"] for line in lines if line["way"] == "exact"],
                         [3 * size for size in SIZES])

    def test_a_table_and_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "all-reduce.svg")
            text = bench("--ranks", "2", "--picture", str(picture))
            drawn = ElementTree.parse(picture).getroot()
        self.assertIn("2 ranks on 1 host, 1 micro-batch per rank, 2 rounds", text)
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ [KM]iB( +\d+\.\d{3} ms +\S+ [kMG]B/s){3} ", text)), len(SIZES), text)
        space = "{http://www.w3.org/2000/svg}"
        names = [entry.text for entry in drawn.iter(f"{space}text")]
        for name in ("exact all-reduce", "exact: never", "MPI all-reduce", "1 MiB"):
            self.assertIn(name, names)
        self.assertEqual(len([path for path in drawn.iter(f"{space}path")]), 3)

    def test_hosts_of_several_ranks_are_timed_within_and_between(self):
        lines = [json.loads(line) for line in bench("--log", "json", prefix=TWO_HOSTS).splitlines()]
        self.assertEqual([(line["part"], line["ranks"], line["bytes"], line["way"]) for line in lines],
                         [(part, ranks, size, way) for part, ranks in (("within", 2), ("between", 2), ("all", 4))
                          for size in SIZES for way in ("exact", "plain", "library")])
        for line in lines:
            self.assertGreater(line["seconds_best"], 0)
            if line["way"] != "exact":
                continue
            sent = {"within": (2, 0), "between": (0, 2), "all": (3, 2)}[line["part"]]
            self.assertEqual((line["shared_memory_bytes"], line["network_bytes"]), tuple(n * line["bytes"] for n in sent))

    def test_a_table_for_each_part_and_lines_of_them_in_the_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "all-reduce.svg")
            text = bench("--picture", str(picture), prefix=TWO_HOSTS)
            drawn = ElementTree.parse(picture).getroot()
        columns = ("      size          exact all-reduce              exact: never            MPI all-reduce     in memory"
                   "    by network\n")
        rows = r"( +\S+ [KM]iB( +\d+\.\d{3} ms +\S+ [kMG]B/s){3} .*\n){3}"
        self.assertRegex(text, "^4 ranks on 2 hosts, 1 micro-batch per rank, 2 rounds: median of the slowest rank, and bus bandwidth\n\n"
                         f"within hosts: all hosts at the same time, each among its own ranks; time of the slowest host\n{columns}{rows}\n"
                         f"between hosts: one rank of each host\n{columns}{rows}\nall ranks\n{columns}{rows}$")
        space = "{http://www.w3.org/2000/svg}"
        names = {entry.text: float(entry.get("y")) for entry in drawn.iter(f"{space}text") if entry.get("class") == "name"}
        self.assertEqual(list(names), ["exact all-reduce", "exact: never", "MPI all-reduce", "exact, within hosts",
                                       "exact, between hosts"])
        self.assertEqual(sorted(set(names.values())), [37, 52])  # what does not fit goes to a second line
        self.assertEqual(len(list(drawn.iter(f"{space}path"))), 5)

    def test_hosts_of_one_rank_are_all_there_is_to_time(self):
        alone = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", "sh", "-c",
                 'LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK exec "$0" "$@"')
        lines = [json.loads(line) for line in bench("--log", "json", prefix=alone).splitlines()]
        self.assertEqual({(line["part"], line["ranks"]) for line in lines}, {("all", 2)})

    def test_alone(self):
        lines = [json.loads(line) for line in bench("--log", "json").splitlines()]
        self.assertEqual({line["shared_memory_bytes"] + line["network_bytes"] for line in lines}, {0})


class BenchHosts(unittest.TestCase):
    """What Kubernetes' `helm test` shows for a release."""

    def report(self, *words, code=0, environment=None):
        done = subprocess.run([PROGRAM, "bench", "hosts", "--ranks", "2", *words], capture_output=True, text=True, timeout=300,
                              check=False, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        self.assertEqual(done.returncode, code, f"{done.stdout}\n{done.stderr}")
        return done

    def test_a_report(self):
        text = self.report().stdout
        self.assertRegex(text, r"""^2 ranks on 1 host

rank  host +computes on
   0  \S+ +(.+)
   1  \S+ +\1

kinds       2 x \1
bits        kernels [0-9a-f]{16}, oneDNN \S+, math [0-9a-f]{8}, jpeg [0-9a-f]{8}, lockstep \S+
all-reduce  all sums right; 16 MiB in \d+\.\d\d ms, \S+ [kMG]B/s per rank; MPI's all-reduce takes \d+\.\d\d ms
clocks      at most 0\.000 ms from rank 0's, measured to 0\.000 ms

no problems found
$""")

    def test_what_is_wrong_is_told_after_the_report(self):
        done = self.report("--min-bandwidth", "1000000", code=1)
        self.assertIn("\nclocks ", done.stdout)
        self.assertNotIn("no problems found", done.stdout)
        self.assertRegex(done.stderr, r"(?m)^lockstep: all-reduce: expected at least 1e\+06 GB/s, found \S+ GB/s; see which network the "
                         r"ranks use \(network\.profile, network\.interface\) and what else uses it$")


if __name__ == "__main__":
    unittest.main()
