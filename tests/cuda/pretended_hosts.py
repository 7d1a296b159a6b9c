"""Ranks of one machine that say they are on two hosts: what to put before a command of the program."""

TWO_HOSTS = ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "4", "sh", "-c",
             'LOCKSTEP_HOST_ID=h$((OMPI_COMM_WORLD_RANK / 2)) exec "$0" "$@"')
