"""Real sshds of our own on 127.0.0.1, run by the user of the test: host keys, ports, the user's key and the
configuration are in a temporary folder; the machine's own ssh is neither read nor changed. Host keys are checked
strictly.

    with SshHosts() as hosts:
        subprocess.run(["lockstep", "launch", ..., "--hosts", hosts.slots(4), "--agent", hosts.agent])

If a process may have its own host name (as root), there are two hosts, `alpha` and `beta`; otherwise one: Open MPI
cannot treat one machine as two. `SshHosts.missing()` says why it is not possible at all.
"""
import getpass
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

IMPOSTOR = "impostor"  # a name with another host key than the known one


def sshd_path():
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def may_name_itself():
    return subprocess.run(["unshare", "--uts", "hostname", "alpha"], capture_output=True, check=False).returncode == 0


class SshHosts:
    def __init__(self):
        two = may_name_itself()
        self.names = ["alpha", "beta"] if two else ["alpha"]  # in ssh's configuration
        self.host_names = self.names if two else [os.uname().nodename]
        self.folder = None
        self.daemons = []
        self.agent = None
        # Between hosts Open MPI excludes loopback, which may be the only interface here.
        self.environment = {"OMPI_MCA_btl_tcp_if_include": "lo"}

    @staticmethod
    def missing():
        """Why this machine cannot do it; empty if it can."""
        for tool in ("ssh", "ssh-keygen"):
            if shutil.which(tool) is None:
                return f"{tool} is not installed (openssh-client)"
        return "" if sshd_path() else "sshd is not installed (openssh-server)"

    def slots(self, ranks):
        return ",".join(f"{name}:{ranks // len(self.names)}" for name in self.names)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait()
        self.folder.cleanup()

    def _path(self, name):
        return pathlib.Path(self.folder.name) / name

    def _write(self, name, text, mode=0o600):
        self._path(name).write_text(text, encoding="utf-8")
        self._path(name).chmod(mode)
        return self._path(name)

    def _key(self, name):
        """Makes a key; returns its public part."""
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self._path(name)], check=True)
        return " ".join(self._path(f"{name}.pub").read_text(encoding="utf-8").split()[:2])

    def _start(self):
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd requires it when run by root
        self._write("authorized_keys", f"{self._key('user')}\n")
        known, client, ports = "", "", {}
        for name in self.names:
            known += f"{name} {self._key(name)}\n"
            ports[name] = free_port()
            self._start_daemon(name, ports[name])
        known += f"{IMPOSTOR} {self._key(IMPOSTOR)}\n"  # where the first host answers, with its own key
        ports[IMPOSTOR] = ports[self.names[0]]
        for name, port in ports.items():
            client += f"Host {name}\n  Port {port}\n  HostKeyAlias {name}\n"
        client += "\n  ".join(["Host *", "HostName 127.0.0.1", f"User {getpass.getuser()}", "IdentitiesOnly yes",
                               f"IdentityFile {self._path('user')}", "IdentityAgent none", "StrictHostKeyChecking yes",
                               f"UserKnownHostsFile {self._path('known_hosts')}", "GlobalKnownHostsFile /dev/null",
                               "BatchMode yes", "ConnectTimeout 10", "LogLevel ERROR"]) + "\n"
        self._write("known_hosts", known)
        config = self._write("ssh_config", client)
        self._path("bin").mkdir()
        # Named `ssh`, so that the default agent finds it, too, if this folder comes first in PATH.
        self.agent = str(self._write("bin/ssh", f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n', 0o755))
        for name, daemon in zip(self.names, self.daemons):
            self._wait_for_answer(name, daemon)

    def _start_daemon(self, name, port):
        config = self._write(f"sshd_config.{name}", "\n".join([
            f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {self._path(name)}", "PidFile none", "UsePAM no",
            f"AuthorizedKeysFile {self._path('authorized_keys')}", "AuthenticationMethods publickey",
            "PermitRootLogin prohibit-password", f"AllowUsers {getpass.getuser()}", "MaxStartups 100",
            "StrictModes no"]) + "\n")  # the folder is below /tmp, which is world-writable
        serve = f"exec {sshd_path()} -D -e -f {config}"
        words = ["sh", "-c", serve]
        if len(self.names) > 1:
            words = ["unshare", "--uts", "sh", "-c", f"hostname {name} && {serve}"]
        with open(self._path(f"{name}.log"), "wb") as log:
            self.daemons.append(subprocess.Popen(  # pylint: disable=consider-using-with
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _wait_for_answer(self, name, daemon):
        end = time.monotonic() + 60
        while True:
            done = subprocess.run([self.agent, name, "echo here"], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL)
            if done.stdout == "here\n":
                return
            if daemon.poll() is not None or time.monotonic() > end:
                log = self._path(f"{name}.log").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"the test's sshd of {name} does not serve: {done.stderr}{log}")
            time.sleep(0.1)
