"""A real Kubernetes without its kubelet: etcd, kube-apiserver, controller manager and scheduler on free ports of this
machine, and kwok nodes, whose pods are ready at once but run nothing."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from kube_tools import ROOT, programs

sys.path.insert(0, str(ROOT / "tests"))
from free_ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from shared import ENDS_WITH_US  # noqa: E402  pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).parent
READY = 120  # seconds for what takes one or two on an idle machine


def until(happened, what, seconds=READY):
    """Waits until happened() is true and returns its value; fails with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = happened()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.2)


def wait_for_definitions(kubectl):
    """Waits until all custom resources are established. A new one has no conditions yet, for which `kubectl wait`
    fails."""
    until(lambda: kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all", check=False).returncode == 0,
          "custom resources are not known")


class ControlPlane:
    """Use it in a `with` statement: on exit everything that it started has ended, and its folder is removed."""

    def __init__(self):
        self.bin = programs("kubernetes")
        self.helm_bin = programs("helm")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-kube-"))
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self.port, self.etcd = free_port(), f"http://127.0.0.1:{free_port()}"
        self.processes = []

    def __enter__(self):
        try:
            self.start_control_plane()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder)

    def start(self, name, program, *arguments):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen([*ENDS_WITH_US, program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=subprocess.STDOUT, cwd=self.folder))

    def user(self, name, groups):
        """A kubeconfig for a user whom the apiserver authenticates by a token."""
        with open(self.folder / "tokens.csv", "a", encoding="utf-8") as tokens:
            tokens.write(f'{name}-token,{name},{name},"{groups}"\n')
        path = self.folder / f"{name.split(':')[-1]}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                      "certificate-authority": str(self.folder / "pki/apiserver.crt")}}],
            "users": [{"name": "test", "user": {"token": f"{name}-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))
        return path

    def start_control_plane(self):
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self.user("admin", "system:masters")
        controllers = self.user("system:kube-controller-manager", "")
        scheduler = self.user("system:kube-scheduler", "")
        peer = f"http://127.0.0.1:{free_port()}"
        self.start("etcd", self.bin / "etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
                   "--listen-client-urls", self.etcd, "--advertise-client-urls", self.etcd, "--listen-peer-urls", peer,
                   "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}")
        self.start("apiserver", self.bin / "kube-apiserver", "--etcd-servers", self.etcd, "--secure-port", self.port,
                   "--bind-address", "127.0.0.1", "--cert-dir", self.folder / "pki", "--authorization-mode", "RBAC",
                   "--token-auth-file", self.folder / "tokens.csv", "--service-cluster-ip-range", "10.96.0.0/16",
                   "--endpoint-reconciler-type", "none", "--service-account-key-file", key,
                   "--service-account-signing-key-file", key, "--service-account-issuer", "https://lockstep.test")
        until(lambda: self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0, self.log("apiserver"))
        common = ["--leader-elect=false", "--secure-port=0", f"--cert-dir={self.folder}/pki"]
        self.start("controllers", self.bin / "kube-controller-manager", "--kubeconfig", controllers, *common,
                   "--use-service-account-credentials=true", "--service-account-private-key-file", key,
                   "--root-ca-file", self.folder / "pki/apiserver.crt")
        self.start("scheduler", self.bin / "kube-scheduler", "--kubeconfig", scheduler, *common)
        stages = pathlib.Path(self.helm_bin).parent / "kwok/stage"
        self.start("kwok", self.helm_bin / "kwok", "--kubeconfig", self.kubeconfig, "--manage-all-nodes=true",
                   "--node-lease-duration-seconds=40", "--cidr=10.245.0.0/16", "--config", stages / "node/fast/node-initialize.yaml",
                   "--config", stages / "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
                   "--config", stages / "pod/fast/pod-ready.yaml", "--config", HERE / "kwok-stages.yaml")
        until(lambda: self.kubectl("get", "serviceaccount", "default", check=False).returncode == 0, self.log("controllers"))

    def log(self, name):
        """The current end of a program's log."""
        return lambda: name + ": " + (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def run(self, program, *arguments, check=True, text=None):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, input=text, check=False,
                              env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)})
        if check and done.returncode != 0:
            raise AssertionError(f"{pathlib.Path(program).name} {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments, **options):
        return self.run(self.bin / "kubectl", *arguments, **options)

    def helm(self, *arguments, **options):
        return self.run(self.helm_bin / "helm", *arguments, **options)

    def get(self, *arguments):
        """An object, or the items of a list."""
        found = json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)
        return found.get("items", found)

    def apply(self, *objects):
        for text in map(json.dumps, objects):
            self.kubectl("apply", "--server-side", "-f", "-", text=text)

    def node(self, name, labels, **resources):
        """Makes a kwok node."""
        room = {"cpu": "64", "memory": "512Gi", "pods": "110", **resources}
        self.apply({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels},
                                 "annotations": {"kwok.x-k8s.io/node": "fake"}}})
        self.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": {"allocatable": room, "capacity": room}}))

    def define(self):
        """Defines the resources of tools/definitions."""
        for path in sorted((programs("definitions").parent / "definitions").glob("*.yaml")):
            self.kubectl("apply", "--server-side", "-f", path)
        wait_for_definitions(self.kubectl)

    def start_mpi_operator(self):
        self.start("mpi-operator", programs("mpi-operator") / "mpi-operator", "--kubeConfig", self.kubeconfig,
                   "--lock-namespace", "default")

    def volume(self, name):
        """A volume for the first claim that asks for access by several writers."""
        self.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                    "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"],
                             "hostPath": {"path": "/nowhere"}}})

    def namespace(self, name, level="restricted"):
        """A namespace that enforces a level of Pod Security."""
        self.apply({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}})
        until(lambda: self.kubectl("-n", name, "get", "serviceaccount", "default", check=False).returncode == 0, name)
