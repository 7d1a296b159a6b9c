"""Several hosts on one machine: each is a process with its own namespaces (network, host name, processes, mounts,
/dev/shm), joined by a switch. The first one shares the machine's process ids, so that it can start commands on the
others, as ssh would: `agent HOST COMMAND`.

    with EmulatedHosts(3) as hosts:
        subprocess.run([*hosts.prefix(0), "lockstep", "launch", ..., "--hosts", hosts.slots(2), "--agent", hosts.agent])
        hosts.cut(1)            # packets to and from it are dropped silently
        hosts.lose(2)           # its power fails: cut, then all its processes die
        hosts.bytes_sent(0)     # over its network card

If the kernel forbids namespaces, `EmulatedHosts.missing()` says what is missing. Run alone it makes hosts and waits:
    tests/launch/emulated_hosts.py 3
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile


def run(*words, check=True):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=check)


def enter(pid, processes=True):
    """The words that run a command inside the namespaces."""
    return ["nsenter", "-t", str(pid), "-n", "-u", "-m", *(["-p"] if processes else []), "--"]


class EmulatedHosts:
    def __init__(self, count, connect_timeout=3600, names=None, ipv6=False):
        """`names`: of the hosts, with or without a domain; default: unique names. `ipv6`: they have no IPv4 but 127.0.0.1."""
        self.count = count
        self.network, self.bits = ("fd77::", 64) if ipv6 else ("10.77.0.", 24)
        self.connect_timeout = connect_timeout  # seconds after which the agent gives up on a cut host
        self.names = names or [f"{chr(ord('a') + i)}{os.getpid()}" for i in range(count)]
        self.folder = None
        self.processes = []  # hold the hosts' namespaces; the last one is the switch
        self.pids = []
        self.agent = None

    @staticmethod
    def missing():
        """Why this machine cannot do it; empty if it can."""
        for tool in ("ip", "unshare", "nsenter"):
            if shutil.which(tool) is None:
                return f"{tool} is not installed"
        done = run("unshare", "--net", "--uts", "--pid", "--mount", "--fork", "ip", "link", "add", "v0", "type", "veth",
                   "peer", "name", "v1", check=False)
        return "" if done.returncode == 0 else f"the kernel forbids namespaces or veth: {done.stderr.strip()}"

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()

    def address(self, host):
        return f"{self.network}{host + 1}"

    def _hold(self, script, *flags):
        """Starts a process with new namespaces; returns its pid."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["unshare", "--net", "--uts", "--mount", *flags, "sh", "-c", f"{script}\necho ready\nexec sleep infinity"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.processes.append(process)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("no namespaces")
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return int(children[0]) if "--fork" in flags else process.pid

    def _make(self):
        hosts_file = pathlib.Path(self.folder.name) / "hosts"
        hosts_file.write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(i)} {name} {name.split('.')[0]}\n" for i, name in enumerate(self.names)), encoding="utf-8")
        for i, name in enumerate(self.names):
            script = f"hostname {name.split('.')[0]}; mount --bind {hosts_file} /etc/hosts; mount -t tmpfs tmpfs /dev/shm"
            flags = [] if i == 0 else ["--pid", "--fork", "--kill-child", "--mount-proc"]
            self.pids.append(self._hold(script, *flags))
        switch = self._hold("ip link add br0 type bridge; ip link set br0 up")
        for i, pid in enumerate(self.pids):
            card, port = f"c{i}x{os.getpid()}", f"p{i}x{os.getpid()}"
            run("ip", "link", "add", card, "type", "veth", "peer", "name", port)
            run("ip", "link", "set", card, "netns", pid)
            run("ip", "link", "set", port, "netns", switch)
            inside = enter(pid, processes=False)
            run(*inside, "ip", "link", "set", card, "name", "eth0")
            run(*inside, "ip", "address", "add", f"{self.address(i)}/{self.bits}", "dev", "eth0", *(["nodad"] if self.bits == 64 else []))
            run(*inside, "ip", "link", "set", "eth0", "up")
            run(*inside, "ip", "link", "set", "lo", "up")
            in_switch = enter(switch, processes=False)
            run(*in_switch, "ip", "link", "set", port, "name", f"port{i}", "master", "br0")
            run(*in_switch, "ip", "link", "set", f"port{i}", "up")
        self.pids.append(switch)
        self._write_agent()

    def _write_agent(self):
        lines = ["#!/bin/sh", "# AGENT HOST COMMAND...: as ssh does it", "host=$1", "shift", 'case "$host" in']
        for i, name in enumerate(self.names):
            words = " ".join(self.prefix(i))
            # A cut host answers as ssh would see it: not at all.
            cut = f"{{ sleep {self.connect_timeout}; exit 255; }}"
            lines.append(f"  {name}) [ ! -e {self.folder.name}/cut-{i} ] || {cut}; "
                         f'cd {os.getcwd()}; exec {words} sh -c "$*";;')
        lines += ["  *) echo \"no host $host\" >&2; exit 255;;", "esac"]
        agent = pathlib.Path(self.folder.name) / "agent"
        agent.write_text("\n".join(lines) + "\n", encoding="utf-8")
        agent.chmod(0o755)
        self.agent = str(agent)

    def prefix(self, host):
        """What to put before a command that should run on that host."""
        return enter(self.pids[host], processes=host != 0)

    def slots(self, each, count=None):
        return ",".join(f"{name}:{each}" for name in self.names[:count])

    def bytes_sent(self, host):
        table = run(*self.prefix(host), "cat", "/proc/net/dev").stdout
        line = next(line for line in table.splitlines() if line.strip().startswith("eth0:"))
        return int(line.split(":")[1].split()[8])

    def limit(self, rate):
        """Limits the rate of each host's network card: "1gbit"."""
        for host in range(self.count):
            run(*self.prefix(host), "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "256kb",
                "latency", "100ms")

    def _link(self, host, state):
        run(*enter(self.pids[-1], processes=False), "ip", "link", "set", f"port{host}", state)

    def cut(self, host):
        """Drops all packets of this host; neither side is notified."""
        # At the switch's port, not at the card: the host itself keeps its address and routes.
        pathlib.Path(f"{self.folder.name}/cut-{host}").touch()
        self._link(host, "nomaster")

    def mend(self, host):
        pathlib.Path(f"{self.folder.name}/cut-{host}").unlink()
        run(*enter(self.pids[-1], processes=False), "ip", "link", "set", f"port{host}", "master", "br0")

    def lose(self, host):
        """The host's power fails. Not possible for the first host."""
        self.cut(host)
        os.kill(self.pids[host], signal.SIGKILL)


if __name__ == "__main__":
    if EmulatedHosts.missing():
        sys.exit(f"cannot emulate hosts: {EmulatedHosts.missing()}")
    with EmulatedHosts(int(sys.argv[1]) if len(sys.argv) > 1 else 2) as emulated:
        print(f"hosts: {' '.join(emulated.names)}\nagent: {emulated.agent}")
        print(f"a shell on the first: {' '.join(emulated.prefix(0))} bash\nEnter ends them")
        input()
