"""Ports of this machine that nothing listens on, for servers of tests."""
import pathlib
import random
import socket

# Below those that the kernel gives to whoever asks for any port, such as Open MPI's own connections: one of them, free now,
# may be taken before the server that is meant to have it starts. Where the kernel leaves none, they are among them.
FIRST = 10000
EPHEMERAL = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
END = EPHEMERAL if EPHEMERAL > 2 * FIRST else 65536
MOST_TRIES = 1000


def free_ports(count):
    """The first of so many ports in a row."""
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
