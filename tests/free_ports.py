"""Ports of this machine on which nothing listens, for test servers."""
import pathlib
import random
import socket

# Below the range from which the kernel assigns ports, such as to Open MPI's connections: a port from it that is free
# now may be taken before the intended server starts. If the kernel leaves no others, ports are taken from that range.
FIRST = 10000
EPHEMERAL = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
END = EPHEMERAL if EPHEMERAL > 2 * FIRST else 65536
MOST_TRIES = 1000


def free_ports(count):
    """The first of `count` consecutive ports."""
    for _ in range(MOST_TRIES):
        first = random.randrange(FIRST, END - count)
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
            return first
        except OSError:
            pass
    raise AssertionError(f"no {count} free ports in a row from {FIRST} to {END - 1}")


def free_port():
    return free_ports(1)
