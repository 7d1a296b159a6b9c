"""Shared by tests with a real Prometheus: the server, and a training run that it scrapes."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_ports import free_port  # noqa: E402  pylint: disable=wrong-import-position
from shared import ENDS_WITH_US, OPEN_MPI, PATIENCE, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ["LOCKSTEP"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "helm/lockstep-monitoring/rules/lockstep.yaml"
DASHBOARDS = sorted((ROOT / "helm/lockstep-monitoring/dashboards").glob("*.json"))


def as_asked(expression, interval="10s"):
    """A query of a dashboard as Grafana sends it, had all been selected: as many ranks as there are."""
    expression = expression.replace("$__rate_interval", interval).replace("$top", "1000")
    expression = re.sub(r"\$(cluster|namespace)\b", ".*", expression)
    return re.sub(r"\$(job|run|instance|rank)\b", ".+", expression)


def skip_without_prometheus():
    """Ends the test as skipped if Debian's package `prometheus` is not installed."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found; install Debian's package prometheus")
        raise SystemExit(77)


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def file_targets(targets):
    """A scrape configuration for targets in files (a glob)."""
    return [{"job_name": "lockstep", "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}]


class Prometheus:
    """A server with its own folder that scrapes every second: the targets in `targets` (a glob), or those of
    `scrape`."""

    def __init__(self, folder, targets=None, rules=None, *, scrape=None, program="prometheus"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(rules)] if rules else [],
                  "scrape_configs": scrape or file_targets(targets)}
        (self.folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.log = open(self.folder / "log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*ENDS_WITH_US, program, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log)
        wait_until(self.ready, "Prometheus")

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError("Prometheus ended:\n" + (self.folder / "log").read_text())
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            return fetch(self.url + "/-/ready")
        return None

    def ask(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            return json.loads(fetch(url))["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def query_range(self, expression, seconds):
        now = time.time()
        return self.ask("query_range", query=expression, start=now - seconds, end=now, step=1)["result"]

    def firing(self, name):
        """The labels of the alerts with this name, the one with the greatest value first."""
        alerts = [alert for alert in self.ask("alerts")["alerts"]
                  if alert["state"] == "firing" and alert["labels"]["alertname"] == name]
        return [alert["labels"] for alert in sorted(alerts, key=lambda alert: -float(alert["value"]))]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class DcgmExporter:
    """Answers as NVIDIA's dcgm-exporter does outside of Kubernetes, for the GPUs of a Training. Every value is 50."""
    FIELDS = ("GPU_UTIL", "MEM_COPY_UTIL", "FB_USED", "POWER_USAGE", "GPU_TEMP")

    def __init__(self, training):
        (host,) = {group["labels"]["host"] for group in json.loads((training.directory / "metrics/targets.json").read_text())}
        uuids = wait_until(lambda: re.findall(r'uuid="([^"]+)"', "".join(training.scrapes())), "uuids of GPUs")
        text = "".join(f'DCGM_FI_DEV_{field}{{gpu="{gpu}",UUID="{uuid}",device="nvidia{gpu}",Hostname="{host}"}} 50\n'
                       for field in self.FIELDS for gpu, uuid in enumerate(uuids))

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def scrape(self):
        """What scrapes it."""
        return [{"job_name": "dcgm-exporter", "static_configs": [{"targets": [f"127.0.0.1:{self.server.server_port}"]}]}]

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


MPIRUN = ["mpirun", *(["--map-by", ":OVERSUBSCRIBE"] if OPEN_MPI >= 5 else ["--oversubscribe"]), "--bind-to", "none",
          *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
# Each rank claims to be on its own host.
AS_HOST = 'LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK exec "$0" "$@"'


class Training:
    """`lockstep train --ranks N` into a run directory, with metrics; or plain mpirun, with each rank on its own
    host."""

    def __init__(self, directory, ranks, *words, environment=None, hosts=False):
        self.directory = pathlib.Path(os.path.realpath(directory))
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.log = open(f"{self.directory}.log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        start = [PROGRAM, "train", "--ranks", str(ranks)]
        if hosts:
            start = [*MPIRUN, "-n", str(ranks), "sh", "-c", AS_HOST, PROGRAM, "train"]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [*start, *words, f"run_directory={self.directory}", "--log", "json"],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **(environment or {})})

    def output(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")

    def events(self, name):
        lines = [line for line in self.output().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def targets(self):
        """Where the ranks are scraped; waits until they are."""
        def read():
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}:\n{self.output()}")
            file = self.directory / "metrics/targets.json"
            return json.loads(file.read_text()) if file.exists() else None
        return [group["targets"][0] for group in wait_until(read, "metrics/targets.json")]

    def scrapes(self):
        return [fetch(f"http://{target}/metrics") for target in self.targets()]

    def process_of_rank(self, rank):
        """The process id of a rank."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_bytes().split(b"\0")
                ours = f"run_directory={self.directory}".encode() in command
                if ours and f"OMPI_COMM_WORLD_RANK={rank}".encode() in words:
                    return int(folder.name)
        raise AssertionError(f"no process of rank {rank}")

    def end(self, code, number=signal.SIGTERM):
        if self.process.poll() is None and number:
            self.process.send_signal(number)
        found = self.process.wait(PATIENCE)
        if found != code:
            raise AssertionError(f"exit code {found}, expected {code}:\n{self.output()}")

    def abandon(self):
        """For a test that failed: cleans up."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


class SlowedDown:
    """During its lifetime, a process is stopped most of the time."""

    def __init__(self, process, stopped=0.06, running=0.02):
        self.process, self.times, self.over = process, (stopped, running), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            for number, seconds in zip((signal.SIGSTOP, signal.SIGCONT), self.times):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.process, number)
                time.sleep(seconds)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
