"""A real Slurm on emulated hosts: munged and slurmctld on the first one, a slurmd on each of the others.

    with SlurmCluster(3) as cluster:
        job = cluster.submit(script, "--nodes=2", ...)
        cluster.wait(job, "COMPLETED")
        cluster.fail(0)         # the node's power fails

Its files, key, ports and spools are its own, so a Slurm that the machine has is neither used nor disturbed. Without
`accounting` there is no database: a finished job is shown until the cluster ends. Run alone, it makes a cluster and waits:
    tests/slurm/slurm_cluster.py 3
"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import slurm_accounting  # noqa: E402  pylint: disable=wrong-import-position
from emulated_hosts import EmulatedHosts, enter, run  # noqa: E402  pylint: disable=wrong-import-position

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
PATIENCE = 180  # seconds

# A node may have more tasks than the machine has cores. Two partitions of the same nodes: jobs of `urgent` take the
# place of those of `batch`, which are requeued after GraceTime. A failed node is found in
# seconds, not in minutes, and a requeued job starts again after seconds (cred_expire).
CONFIGURATION = """\
ClusterName=emulated
SlurmctldHost={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool.%n
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdLogFile={folder}/slurmd.%n.log
TmpFS={folder}/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
SlurmdParameters=config_overrides
KillWait=30
MinJobAge=86400
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
JobRequeue=1
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu,shard
NodeName={nodes} CPUs={cpus} RealMemory=1024 Gres=gpu:1g.10gb:2,shard:4
PartitionName=batch Nodes=ALL Default=YES PriorityTier=1 GraceTime=60 State=UP MaxTime=INFINITE
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP MaxTime=INFINITE
"""

# Each node has two slices of a GPU, as if MIG had made them, and each of these may be shared by two.
SLICES = """Name=gpu Type=1g.10gb File={folder}/slice0
Name=gpu Type=1g.10gb File={folder}/slice1
Name=shard Count=2 File={folder}/slice0
Name=shard Count=2 File={folder}/slice1
"""


def missing():
    """Why this machine cannot do it; empty if it can."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() != 0:
        return "needs root: Slurm's daemons start jobs, and hosts are emulated in namespaces"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (scripts/install-dependencies.sh --slurm installs them)"
    return EmulatedHosts.missing()


class SlurmCluster:
    def __init__(self, nodes, cpus=4, accounting=False):
        self.nodes, self.cpus, self.accounting = nodes, cpus, accounting
        self.hosts = EmulatedHosts(nodes + 1)
        self.names = self.hosts.names[1:]
        self.folder = None
        self.daemons = []

    def __enter__(self):
        self.hosts.__enter__()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.folder and os.environ.get("LOCKSTEP_KEEP_SLURM"):
            shutil.copytree(self.folder, os.environ["LOCKSTEP_KEEP_SLURM"], dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*.socket", "*.key"))
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        self.hosts.__exit__()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        self.folder.chmod(0o755)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        for folder in ("state", "tmp"):
            (self.folder / folder).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            controller=f"{self.hosts.names[0]}(10.77.0.1)", folder=self.folder, nodes=",".join(self.names),
            cpus=self.cpus) + (slurm_accounting.configuration(self) if self.accounting else ""), encoding="utf-8")
        (self.folder / "gres.conf").write_text(SLICES.format(folder=self.folder), encoding="utf-8")
        for name in ("slice0", "slice1"):
            os.mknod(self.folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # that of /dev/null
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        # munged drops nothing by itself: it is started as its user, where there is one, and files are its user's.
        self.daemon(0, "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                     f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                     f"--seed-file={self.folder}/munged.seed")
        self.until(lambda: (self.folder / "munge.socket").exists(), "munged")
        if self.accounting:
            slurm_accounting.start(self)
        self.daemon(0, "slurmctld", "-D", "-i")
        self.until(lambda: self.command("scontrol", "ping", check=False).returncode == 0, "slurmctld", 60)
        for node in range(self.nodes):
            self.start_node(node)
        self.until(lambda: self.states() == ["IDLE"] * self.nodes, "all nodes to be idle")

    def daemon(self, host, *words):
        with open(self.folder / f"{words[0]}-{len(self.daemons)}.output", "wb") as output:
            self.daemons.append(subprocess.Popen(  # pylint: disable=consider-using-with
                [*self.hosts.prefix(host), *words], stdout=output, stderr=output, env=self.environment))

    def start_node(self, node):
        # The plugin for PMIx keeps a step's files in TmpFS, under a name that is the same on all nodes: each needs its own.
        inside = enter(self.hosts.pids[node + 1], processes=False)
        run(*inside, "mount", "-t", "tmpfs", "tmpfs", self.folder / "tmp")
        (self.folder / f"spool.{self.names[node]}").mkdir(exist_ok=True)
        self.daemon(node + 1, "slurmd", "-D", "-N", self.names[node])

    def until(self, condition, what, patience=PATIENCE):
        start = time.monotonic()
        while not condition():
            if time.monotonic() - start > patience:
                logs = "".join(f"\n== {file.name}\n{file.read_text(errors='replace')[-2000:]}"
                               for file in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.output")]))
                raise AssertionError(f"waited {patience} s for {what}: {logs}")
            time.sleep(0.2)

    def command(self, *words, check=True, environment=None):
        """One of Slurm's commands, on the controller's host, in this process's folder."""
        done = subprocess.run([*self.hosts.prefix(0), "sh", "-c", 'cd "$0" && exec "$@"', os.getcwd(), *map(str, words)],
                              capture_output=True, text=True, env={**self.environment, **(environment or {})},
                              check=False, timeout=PATIENCE)
        if check and done.returncode != 0:
            raise AssertionError(f"{words} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def states(self):
        shown = self.command("scontrol", "--oneliner", "show", "nodes", check=False).stdout
        return re.findall(r" State=([A-Z]+)\S*", shown)

    def submit(self, *words, environment=None):
        """Submits a job: sbatch's options, the script and its words. Returns the job's id."""
        return int(self.command("sbatch", "--parsable", *words, environment=environment).stdout)

    def job(self, job):
        """What `scontrol show job` says of it, by name."""
        shown = self.command("scontrol", "--oneliner", "show", "job", job).stdout.splitlines()[0]
        return {name: value.strip() for name, value in re.findall(r"([A-Za-z:/]+)=(.*?)(?= [A-Za-z:/]+=|$)", shown)}

    def wait(self, job, state, patience=PATIENCE):
        """Waits until the job is in this state (a regular expression); returns what is shown of it then."""
        self.until(lambda: re.fullmatch(state, self.job(job)["JobState"]), f"job {job} to be {state}", patience)
        return self.job(job)

    def fail(self, node):
        """The node's power fails."""
        self.hosts.lose(node + 1)


if __name__ == "__main__":
    if missing():
        sys.exit(f"cannot emulate Slurm: {missing()}")
    with SlurmCluster(int(sys.argv[1]) if len(sys.argv) > 1 else 2) as emulated:
        print(f"nodes: {' '.join(emulated.names)}\na shell that submits: SLURM_CONF={emulated.folder}/slurm.conf "
              f"{' '.join(emulated.hosts.prefix(0))} bash\nEnter ends them", flush=True)
        input()
