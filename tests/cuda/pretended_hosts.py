"""Ranks on one machine that claim to be on two hosts: what to put before a command of the program."""


def two_hosts(ranks):
    """Up to two ranks on each host."""
    return ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), "sh", "-c",
            'LOCKSTEP_HOST_ID=h$((OMPI_COMM_WORLD_RANK / 2)) exec "$0" "$@"')


TWO_HOSTS = two_hosts(4)
