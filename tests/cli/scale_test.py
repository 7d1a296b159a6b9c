#!/usr/bin/env python3
"""`lockstep bench scale`: the cost of a step on a rank grows no faster with the number of ranks than it may.

Messages, bytes and memory are counted. Times are CPU times of one thread, and only their growth from 256 to 4,096 ranks
is checked, with a margin of a factor of four: a linear cost grows 16 times, a quadratic one 256 times.
"""
import json
import math
import os
import subprocess
import unittest

PROGRAM = os.environ["LOCKSTEP"]
GRADIENT, CHUNK, RANKS_A_HOST = 4 << 20, 16384, 8


def bench(*words, code=0, prefix=()):
    done = subprocess.run([*prefix, PROGRAM, "bench", "scale", *words], capture_output=True, text=True, timeout=300,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


class BenchScale(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        lines = bench("--ranks", "4096", "--gradient", str(GRADIENT), "--micro-batches-a-rank", "2", "--log", "json").stdout
        cls.rows = {row["ranks"]: row for row in map(json.loads, lines.splitlines())}

    def test_a_row_for_each_number_of_ranks(self):
        self.assertEqual(list(self.rows), [16, 64, 256, 1024, 4096])
        self.assertEqual({row["event"] for row in self.rows.values()}, {"scale"})

    def test_scalars_take_as_many_messages_as_the_logarithm_of_the_hosts(self):
        for ranks, row in self.rows.items():
            self.assertEqual(row["scalar_messages"], math.ceil(math.log2(ranks // RANKS_A_HOST)), ranks)

    def test_a_rank_sends_its_part_of_the_gradient(self):
        # As the leader for one slice in RANKS_A_HOST the rank sends the host's sum of it; as an owner it sends its
        # slices to each other host, which are as many bytes again if all ranks own equally much. No rank can own less
        # than a chunk.
        for ranks, row in self.rows.items():
            hosts, scalars = ranks // RANKS_A_HOST, 64 * ranks + 1024
            even = GRADIENT / RANKS_A_HOST
            self.assertLess(row["network_bytes"] - scalars, 1.1 * even + max(1.1 * even, hosts * 2 * CHUNK), ranks)
            self.assertLess(row["messages"], 1.1 * GRADIENT / CHUNK / RANKS_A_HOST +
                            max(1.3 * GRADIENT / CHUNK / RANKS_A_HOST, 2 * hosts) + 1, ranks)

    def test_memory_grows_by_some_numbers_a_rank(self):
        # A rank that owns one chunk also holds that of each other host: at most CHUNK / RANKS_A_HOST bytes per rank.
        for ranks in (256, 1024, 4096):
            self.assertLess(self.rows[ranks]["memory_bytes"], self.rows[64]["memory_bytes"] + 2048 * ranks, ranks)

    def test_times_grow_with_the_ranks_and_not_with_their_square(self):
        few, many = self.rows[256], self.rows[4096]
        for name, seconds in (("plan", 1e-3), ("begin", 1e-3), ("decision", 1e-3), ("turn", 1e-4)):
            key = name + "_seconds"
            self.assertLess(many[key], 64 * max(few[key], seconds), name)

    def test_a_look_at_what_has_come_does_not_grow(self):
        self.assertLess(self.rows[4096]["advance_seconds"], 8 * max(self.rows[256]["advance_seconds"], 5e-6))

    def test_a_table(self):
        lines = bench("--ranks", "40", "--gradient", "64KiB", "--ranks-a-host", "4").stdout.splitlines()
        self.assertEqual(lines[0], "The ranks of one host do what they would do among so many; the other hosts are "
                         "simulated. 4 ranks per host, 4 micro-batches per rank, a gradient of 65.5 kB; times are processor time")
        self.assertEqual([line.split()[0] for line in lines[3:]], ["ranks", "16", "40"])
        one = bench("--ranks", "1", "--gradient", "64KiB").stdout.splitlines()[-1].split()
        self.assertEqual(one[:4], ["1", "0", "0", "0"])

    def test_too_many_micro_batches(self):
        done = bench("--ranks", "1000000", "--micro-batches-a-rank", "9", code=64)
        self.assertEqual(done.stderr, "lockstep: bench scale: expected --ranks times --micro-batches-a-rank to be at most 1048576, "
                         "found 1000000 times 9; ask for fewer ranks or micro-batches\n")

    def test_too_few_open_files(self):
        done = bench("--ranks", "1024", "--gradient", "64KiB", code=64, prefix=["sh", "-c", 'ulimit -n 300; exec "$@"', "-"])
        self.assertEqual(done.stderr, "lockstep: launch: expected a limit of at least 320 open files, one for each of 256 "
                         "ranks and some more, found 300; raise it (ulimit -Hn, LimitNOFILE= of the service), or "
                         "start fewer ranks\n")

    def test_too_few_ports(self):
        network = ["unshare", "-rn", "sh", "-c", "ip link set lo up && "
                   'echo 40000 40100 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"', "-"]
        if subprocess.run([*network, "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no network of its own can be made here")
        done = bench("--ranks", "256", "--gradient", "64KiB", code=1, prefix=network)
        self.assertEqual(done.stderr, "lockstep: bench scale: expected 256 connections to this machine's own address, found "
                         "that not all can be made; see the limits of open files and of ports "
                         "(net.ipv4.ip_local_port_range), or ask for fewer ranks\n")


if __name__ == "__main__":
    unittest.main()
