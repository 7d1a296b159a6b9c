"""A release of the chart on a ControlPlane, whose pods run nothing: the test writes their ends in place of the
kubelet."""
import json

from control_plane import READY, until
from kube_tools import CHART, sets


class Release:
    """run1 in its own namespace, which enforces a level of Pod Security; `values` are KEY=VALUE."""

    def __init__(self, cluster, name, *values, level="restricted"):
        self.cluster, self.name, self.values = cluster, name, values
        cluster.namespace(name, level)

    def helm(self, verb, *more, **options):
        return self.cluster.helm(verb, "run1", CHART, "-n", self.name, *sets(*self.values), *sets(*more), **options)

    def helm_test(self):
        """What `helm test` did, when its pods have ended."""
        return self.cluster.helm("test", "run1", "-n", self.name, f"--timeout={READY}s", check=False)

    def end_test(self, code):
        """Ends the two pods of `helm test` beside the two of the job as soon as all run, the leader with this code."""
        leader, worker = sorted((pod for pod in self.running(4) if pod["metadata"]["name"].startswith("run1-test")),
                                key=lambda pod: pod["metadata"]["name"])
        self.end_pod(leader, code)
        self.end_pod(worker, 0)

    def kubectl(self, *arguments, **options):
        return self.cluster.kubectl("-n", self.name, *arguments, **options)

    def get(self, *arguments):
        return self.cluster.get("-n", self.name, *arguments)

    def jobs(self):
        return self.get("jobs")

    def job(self):
        (job,) = self.jobs()
        return job

    def held(self, mode):
        """The one object of a mode, jobset or trainjob."""
        (found,) = self.get(f"{mode}s")
        return found

    def job_set(self):
        return self.held("jobset")

    def pods(self):
        """The running pods that are not being deleted, by index."""
        return sorted((pod for pod in self.get("pods") if pod["status"]["phase"] == "Running"
                       and "deletionTimestamp" not in pod["metadata"]),
                      key=lambda pod: pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index", ""))

    def running(self, count):
        return until(lambda: (pods := self.pods()) and len(pods) == count and pods, self.describe)

    def running_in(self, **counts):
        """The pods of each group, by its name, when so many run."""
        def found():
            groups = {name: [pod for pod in self.pods() if pod["metadata"]["labels"]["lockstep/group"] == name] for name in counts}
            return {name: len(pods) for name, pods in groups.items()} == counts and groups
        return until(found, self.describe)

    def describe(self):
        return self.kubectl("get", "pods,jobs,events").stdout[-3000:]

    def end_pod(self, pod, code):
        """Writes what the kubelet writes when the container has ended."""
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [
            {"name": pod["spec"]["containers"][0]["name"], "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}]}
        self.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge",
                     "-p", json.dumps({"status": status}))

    def conditions(self):
        return {c["type"]: c.get("reason") for c in self.job()["status"].get("conditions", []) if c["status"] == "True"}

    def failed(self):
        """How many pods the Job has counted as failed."""
        return self.job()["status"].get("failed", 0)
