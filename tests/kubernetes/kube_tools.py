"""The Kubernetes programs that tools/build.sh builds, and the chart through Helm."""
import functools
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "lockstep"
TEAM = ROOT / "helm" / "lockstep-team"
MONITORING = ROOT / "helm" / "lockstep-monitoring"
RELEASE = "run1"


@functools.cache
def programs(module):
    """The folder with the programs of a module of tools/. Ends this process with 77 if they cannot be built."""
    done = subprocess.run([ROOT / "tests/kubernetes/tools/build.sh", module], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        print(done.stdout.strip().splitlines()[-1])
        sys.exit(77)
    done.check_returncode()
    return pathlib.Path(done.stdout.strip())


def helm(*arguments, check=True, **options):
    """Runs helm; returns the finished process."""
    return subprocess.run([programs("helm") / "helm", *arguments], capture_output=True, text=True, check=check, **options)


# A cluster of the charts' oldest supported version that has the kinds of the Prometheus Operator and of Kueue.
CLUSTER = ["--kube-version", "1.33.0", "--api-versions", "monitoring.coreos.com/v1/PodMonitor",
           "--api-versions", "monitoring.coreos.com/v1/ServiceMonitor", "--api-versions", "monitoring.coreos.com/v1/PrometheusRule",
           "--api-versions", "kueue.x-k8s.io/v1beta2/LocalQueue"]


def template(*arguments, release=RELEASE, chart=CHART, check=True):
    """A chart rendered without a cluster."""
    return helm("template", release, chart, *CLUSTER, *arguments, check=check)


def sets(*pairs):
    """--set for each KEY=VALUE."""
    return [word for pair in pairs for word in ("--set", pair)]
