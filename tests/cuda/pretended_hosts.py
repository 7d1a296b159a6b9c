"""Ranks of one machine that say they are on two hosts: what to put before a command of the program."""


def two_hosts(ranks):
    """Two ranks on each host, as far as they go."""
    return ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), "sh", "-c",
            'LOCKSTEP_HOST_ID=h$((OMPI_COMM_WORLD_RANK / 2)) exec "$0" "$@"')


TWO_HOSTS = two_hosts(4)
