"""The real cluster of cluster.sh, with the image and a volume that all pods share, and a job on it through the chart.
LOCKSTEP_IMAGE names an archive of the image (tests/docker/image.sh); without it the image is built.

    with Cluster() as cluster:
        run = Run(cluster, "run1", steps=100, values=["cluster.replicas=3"])
        run.wait_for_step(20)
        cluster.kubectl("delete", "pod", run.pod(2), "--wait=false")
        run.end()
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from control_plane import wait_for_definitions
from kube_tools import CHART, ROOT, programs
from trainer import NO_RUNTIME_YET

sys.path.insert(0, str(ROOT / "tests"))
import shared  # noqa: E402  pylint: disable=wrong-import-position

SCRIPT = ROOT / "tests/kubernetes/cluster.sh"
PROGRAM = os.environ["LOCKSTEP"]
LAB = os.environ.get("LAB", "")  # which of the clusters that may be beside each other
GATEWAY = f"10.244.{77 + int(LAB or 0)}.1"  # this machine, as pods see it
PATIENCE = 400  # seconds; a replaced pod waits for Kubernetes' back-off
DATA = ["data.train.digits.count=256", "data.validation.digits.count=64", "batch_size=32", "micro_batches=8",
        "learning_rate=0.002", "evaluate=never"]


# The cluster, and its shared volume: made, and taken away when this process closes the pipe or ends, however it does.
GUARD = '"$0" up "$2" 2>&1; code=$?; (trap "" PIPE; echo "up: $code") 2>/dev/null; cat >/dev/null; "$0" down >/dev/null 2>&1; rm -rf "$1"'

wait_until = functools.partial(shared.wait_until, patience=PATIENCE)


def skip_with(code, output):
    """Ends this process as skipped if a script was skipped."""
    if code == 77:
        print(output.strip().splitlines()[-1])
        sys.exit(77)
    if code != 0:
        raise RuntimeError(output)


def run_script(*words, **options):
    """Returns its exit code and what it printed."""
    done = script(*words, **options)
    return done.returncode, done.stdout + done.stderr


def script(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


@functools.cache
def quiet_hash(steps):
    """The hash of the same job on this machine, on one rank, without Kubernetes."""
    with tempfile.TemporaryDirectory() as folder:
        done = script(PROGRAM, "train", *DATA, f"steps={steps}", "checkpoint=never", "--log", "json", cwd=folder)
        done.check_returncode()
        return json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]


class Cluster:
    def __init__(self, **settings):
        """`settings`: variables of cluster.sh."""
        self.environment = {**os.environ, **settings}
        skip_with(*run_script(SCRIPT, "probe", env=self.environment))
        self.bin = programs("kubernetes")
        self.helm = programs("helm") / "helm"
        self.state = pathlib.Path(os.environ.get("CLUSTER", f"/run/lockstep-cluster{LAB}"))
        self.environment.update(BIN=str(self.bin), KUBECONFIG=str(self.state / "admin.kubeconfig"))
        self.image = pathlib.Path(os.environ.get("LOCKSTEP_IMAGE", ROOT / "build/images/lockstep.tar"))
        self.runs = self.guard = None
        self.processes = []

    def __enter__(self):
        if "LOCKSTEP_IMAGE" not in os.environ:
            skip_with(*run_script(ROOT / "tests/docker/image.sh", self.image))
        script(SCRIPT, "down", env=self.environment)
        self.runs = pathlib.Path(tempfile.mkdtemp())
        self.runs.chmod(0o777)
        self.guard = subprocess.Popen(  # pylint: disable=consider-using-with
            ["sh", "-c", GUARD, SCRIPT, self.runs, self.image], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, start_new_session=True)
        try:
            said = []
            while not (said and said[-1].startswith("up: ")):
                said.append(self.guard.stdout.readline())
                assert said[-1], said
            skip_with(int(said.pop().removeprefix("up: ")), "".join(said))
            self.apply(*self.volume("default"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.guard.communicate()

    def run(self, *words, check=True, **options):
        done = script(*words, env=self.environment, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}:\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *words, **options):
        return self.call_kubectl(*words, **options).stdout

    def call_kubectl(self, *words, text=None, **options):
        """Returns the finished process; `text` is its input."""
        return self.run(self.bin / "kubectl", *words, input=text, **options)

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def lose(self, node):
        """The power of a node fails. Kubernetes hears nothing of it."""
        self.run(SCRIPT, "lose", node.removeprefix("node-"))

    def revive(self, node):
        self.run(SCRIPT, "revive", node.removeprefix("node-"))

    def define(self, name):
        """Applies one of the files of tools/definitions."""
        self.kubectl("apply", "--server-side", "-f", programs("definitions").parent / f"definitions/{name}.yaml")
        wait_for_definitions(self.call_kubectl)

    def start_mpi_operator(self):
        program = programs("mpi-operator") / "mpi-operator"
        self.define("mpi-operator")
        with open(self.state / "log/mpi-operator.log", "wb") as log:
            self.processes.append(subprocess.Popen(
                [*shared.ENDS_WITH_US, program, "--kubeConfig", self.environment["KUBECONFIG"], "--lock-namespace", "default"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def kubeconfig(self, folder, token):
        """A kubeconfig with which the owner of the token accesses this cluster."""
        config = json.loads(self.kubectl("config", "view", "--flatten", "--minify", "-o", "json"))
        config["users"][0]["user"] = {"token": token}
        path = pathlib.Path(folder) / "kubeconfig"
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    def volume(self, namespace):
        """A folder of this machine, which runs all nodes: the file system that the hosts of a job share."""
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"runs-{namespace}"},
               "spec": {**common, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(self.runs)}}}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "runs", "namespace": namespace},
               "spec": {**common, "volumeName": f"runs-{namespace}", "resources": {"requests": {"storage": "1Gi"}}}}


class Run:
    """A release of the chart. Its events are read from the shared volume. `job`: more overrides; `group`: the first one."""
    kind = "job"
    verdicts = {"Complete": "Complete", "Failed": "Failed"}  # by condition of the Job
    options = ["--ask-again", "1", "--hosts-every", "1"]
    data = DATA
    files = ()  # of values

    def __init__(self, cluster, name, steps, values=(), every=50, job=(), group="worker", namespace="default"):  # pylint: disable=too-many-arguments
        self.cluster, self.name, self.steps, self.namespace = cluster, name, steps, namespace
        self.directory = cluster.runs / namespace / name
        self.overrides = [*self.data, f"steps={steps}", f"checkpoint={{every: {every} steps}}", *job]
        sets = {"image.repository": "localhost/lockstep", "image.tag": "test", "persistence.existingClaim": "runs",
                "resources.limits.cpu": "400m", "resources.limits.memory": "400Mi", "cluster.terminationGracePeriodSeconds": "60"}
        words = [f"--set={key}={value}" for key, value in sets.items()] + [f"--set={value}" for value in values]
        words += [f"--values={file}" for file in self.files]
        options = json.dumps([*self.overrides, *self.options])
        self.install([name, CHART, *words, f"--set-json=cluster.launchOptions={options}"])
        jobs = self.get(self.kind, "-l", self.selector)["items"]
        leading = [job for job in jobs if len(jobs) == 1 or f"-{group}-" in job["metadata"]["name"]]
        (self.job_name,) = (job["metadata"]["name"] for job in leading)

    def install(self, words):
        self.cluster.run(self.cluster.helm, "-n", self.namespace, "install", *words)

    @property
    def selector(self):
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component!=test"

    def get(self, *words):
        return self.cluster.get("-n", self.namespace, *words)

    def job(self):
        return self.get(self.kind, self.job_name)

    def pods(self):
        return self.get("pods", "-l", self.selector)["items"]

    def pod(self, index):
        """The name of the newest pod with this index."""
        label = "batch.kubernetes.io/job-completion-index"
        mine = [pod for pod in self.pods() if pod["metadata"]["labels"][label] == str(index)]
        return max(mine, key=lambda pod: pod["metadata"]["creationTimestamp"])["metadata"]["name"]

    def node(self, index):
        """Where the newest pod with this index runs."""
        return self.get("pod", self.pod(index))["spec"]["nodeName"]

    def nodes(self):
        """(group, node) of all pods."""
        return sorted((pod["metadata"]["labels"]["lockstep/group"], pod["spec"].get("nodeName")) for pod in self.pods())

    def events(self, name=None):
        path = self.directory / "events.jsonl"
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if name in (None, event["event"])]

    def done(self):
        """Whether it has come to its end, and not only been interrupted."""
        return any(not event["interrupted"] for event in self.events("end"))

    def ranks(self):
        return [event["ranks"] for event in self.events("launch")]

    def logs(self):
        return self.cluster.kubectl("-n", self.namespace, "logs", "-l", self.selector, "--tail=-1", "--prefix", check=False)

    def condition(self):
        """Complete or Failed; None before."""
        for condition in self.job().get("status", {}).get("conditions", []):
            if condition["type"] in self.verdicts and condition["status"] == "True":
                return self.verdicts[condition["type"]]
        return None

    def wait_for_step(self, step, ranks=None):
        """Waits until a step this late has been done, by this many ranks."""
        def reached():
            assert self.condition() is None, f"{self.condition()} before step {step}:\n{self.logs()}"
            world = 0
            for event in self.events():
                world = event["ranks"] if event["event"] == "launch" else world
                if event["event"] == "step" and event["step"] >= step and ranks in (None, world):
                    return True
            return False
        try:
            wait_until(reached, f"step {step} of {ranks} ranks")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.ranks()}\n{self.logs()}") from error

    def end(self, verdict="Complete"):
        """Waits for the Job's verdict; returns the last `end` event."""
        found = wait_until(self.condition, "the Job's end")
        assert found == verdict, f"the Job is {found}, expected {verdict}: {self.ends()}\n{self.logs()}"
        ends = self.events("end")
        return ends[-1] if ends else None

    def ends(self):
        """How the Job and the containers ended, as they report it."""
        return self.job()["status"], {pod["metadata"]["name"]: [
            container["state"] for container in pod["status"].get("containerStatuses", [])] for pod in self.pods()}

    def remove(self):
        self.cluster.run(self.cluster.helm, "-n", self.namespace, "uninstall", self.name, "--wait", check=False)


class MpiRun(Run):
    """The same with kind MPIJob."""
    kind = "mpijob"
    verdicts = {"Succeeded": "Complete", "Failed": "Failed"}


class TrainRun(Run):
    """The same with kind TrainJob."""
    kind = "trainjob"

    def install(self, words):
        """Once more if the webhooks have not seen the runtime yet."""
        command = [self.cluster.helm, "-n", self.namespace, "upgrade", "--install", *words]
        first = self.cluster.run(*command, check=False)
        if first.returncode != 0:
            assert re.search(NO_RUNTIME_YET, first.stderr), first.stderr
            self.cluster.run(*command)


class SetRun(Run):
    """The same with kind JobSet."""
    kind = "jobset"
    verdicts = {"Completed": "Complete", "Failed": "Failed"}

    def pod_of(self, group, index):
        """The name of the newest pod of a group with this index."""
        mine = [pod for pod in self.pods() if pod["metadata"]["labels"]["lockstep/group"] == group and
                pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == str(index)]
        return max(mine, key=lambda pod: pod["metadata"]["creationTimestamp"])["metadata"]["name"]
