"""Slurm's database for a SlurmCluster: MariaDB and slurmdbd on the controller's host, with files and ports of their own."""
import shutil

TOOLS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacct", "sacctmgr")
DATABASE_PORT, DAEMON_PORT = 6820, 6821

# For slurm.conf; without the last line comments of jobs are not stored.
CONFIGURATION = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={controller}
AccountingStoragePort={daemon_port}
AccountingStoragePass={folder}/munge.socket
AccountingStoreFlags=job_comment
"""

DAEMON = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={controller}
DbdPort={daemon_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=root
StorageLoc=slurm
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
"""


def missing():
    """Why there can be no database; empty if there can."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)} (Debian's mariadb-server-core and slurmdbd)" if absent else ""


def values(cluster):
    return {"controller": cluster.hosts.names[0], "folder": cluster.folder, "daemon_port": DAEMON_PORT,
            "database_port": DATABASE_PORT}


def configuration(cluster):
    return CONFIGURATION.format(**values(cluster))


def start(cluster):
    """Before slurmctld, which registers itself there."""
    folder = cluster.folder
    cluster.command("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}/database",
                    "--auth-root-authentication-method=normal", "--skip-test-db")
    cluster.daemon(0, "mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/database",
                   f"--socket={folder}/database.socket", f"--pid-file={folder}/database.pid", f"--port={DATABASE_PORT}",
                   "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-lock-wait-timeout=900")
    cluster.until((folder / "database.socket").exists, "MariaDB")
    file = folder / "slurmdbd.conf"
    file.write_text(DAEMON.format(**values(cluster)), encoding="utf-8")
    file.chmod(0o600)
    cluster.daemon(0, "slurmdbd", "-D")
    cluster.until(lambda: cluster.command("sacctmgr", "-i", "add", "cluster", "emulated", check=False).returncode == 0,
                  "slurmdbd")
