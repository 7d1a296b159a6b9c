"""A controller with webhooks for a control plane of this machine: its process, its certificate, and its webhooks at this
machine's address in the place of a Service. Kueue, JobSet and Trainer derive from it.

    with Controller(kubectl, kubeconfig) as controller: ...
"""
import base64
import json
import pathlib
import subprocess
import tempfile

import yaml
from control_plane import free_port, until
from kube_tools import programs
from shared import ENDS_WITH_US


class Controller:
    """`kubectl`: a function that runs kubectl with `text` as its input, and raises on failure unless check=False.

    A derived class sets `name`, that of its module in tools/, of its program and of its folder there, and `hooked`, which
    matches the paths of the webhooks to configure, and overrides define() and start()."""
    name = hooked = None
    certificates = {"internalCertManagement": {"enable": False}}  # of its configuration: made here

    def __init__(self, kubectl, kubeconfig):
        self.kubectl, self.kubeconfig = kubectl, kubeconfig
        self.bin = programs(self.name)
        self.files = self.bin.parent / self.name
        self.port = free_port()
        self.folder = self.certificate = self.process = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix=f"lockstep-{self.name}-")  # pylint: disable=consider-using-with
        try:
            self.certificate = self.make_certificate()
            self.define()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
        # They would not be answered any more, and without an answer no Job can be created.
        for hooks in ("mutating", "validating"):
            self.kubectl("delete", f"{hooks}webhookconfiguration", f"{self.name}-{hooks}-webhook-configuration", check=False)
        self.folder.cleanup()

    def define(self):
        """Creates the definitions and webhooks that it serves."""
        raise NotImplementedError

    def start(self):
        """Starts the program, and waits until its webhooks answer."""
        raise NotImplementedError

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={self.name}", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", self.path("tls.key"), "-out", self.path("tls.crt")],
                       check=True, capture_output=True)
        return base64.b64encode(self.path("tls.crt").read_bytes()).decode()

    def client(self, path):
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.certificate}

    def define_webhooks(self):
        for hooks in yaml.safe_load_all((self.files / "webhook/manifests.yaml").read_text()):
            hooks["webhooks"] = [{**hook, "clientConfig": self.client(hook["clientConfig"]["service"]["path"])}
                                 for hook in hooks["webhooks"] if self.hooked.match(hook["clientConfig"]["service"]["path"])]
            hooks["metadata"]["name"] = f"{self.name}-" + hooks["metadata"]["name"]
            self.apply(hooks)

    def launch(self, config, *words, prefix=()):
        """Starts the program with a configuration and more arguments; `prefix` is a command that runs it."""
        file = self.path("config.yaml")
        file.write_text(json.dumps({
            "kind": "Configuration", "leaderElection": {"leaderElect": False}, "health": {"healthProbeBindAddress": "0"},
            "metrics": {"bindAddress": "0"}, **self.certificates,
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": self.folder.name}, **config}))
        with self.path("log").open("wb") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*ENDS_WITH_US, *prefix, self.bin / self.name, f"--config={file}", f"--kubeconfig={self.kubeconfig}", *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder.name)

    def wait_for(self, thing):
        """Waits until an object can be created: until a webhook answers, it is refused."""
        until(lambda: self.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(thing), check=False).returncode == 0,
              lambda: f"{self.name}: " + self.path("log").read_text(errors="replace")[-2000:])

    def apply(self, thing):
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps(thing))
