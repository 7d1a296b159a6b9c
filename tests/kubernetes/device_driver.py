"""A driver of dynamic resource allocation on each node of a Cluster: Kubernetes' own for its tests, whose devices are names.

    with DeviceDriver(cluster, devices=2) as driver:
        cluster.apply(driver.device_class("gpu.nvidia.com"))
"""
import os
import subprocess

from cluster import wait_until
from shared import ENDS_WITH_US


class DeviceDriver:
    """`devices`: of each node, device-00 and so on. For the claims of a pod that starts it writes what a container runtime
    shall add to the pod's containers (CDI): a variable for each claim."""
    name = "test-driver.cdi.k8s.io"

    def __init__(self, cluster, devices):
        self.cluster, self.devices, self.processes = cluster, devices, []

    def __enter__(self):
        nodes = [node["metadata"]["name"] for node in self.cluster.get("nodes")["items"]]
        for node in nodes:
            folder = self.cluster.state / node
            (folder / "kubelet/plugins" / self.name).mkdir(parents=True)
            with self.log(node).open("wb") as log:
                self.processes.append(subprocess.Popen(  # pylint: disable=consider-using-with
                    [*ENDS_WITH_US, self.cluster.bin / "dra-test-driver", "kubelet-plugin", f"--node-name={node}",
                     f"--num-devices={self.devices}", f"--plugin-registration-path={folder}/kubelet/plugins_registry",
                     f"--datadir={folder}/kubelet/plugins", f"--cdi-dir={folder}/cdi", "-v=5"],
                    env={**os.environ, "KUBECONFIG": self.cluster.environment["KUBECONFIG"]}, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        wait_until(lambda: self.publish(nodes), "the devices of all nodes")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()  # so that it takes its sockets away
            process.wait()
        self.cluster.kubectl("delete", "resourceslices", f"--field-selector=spec.driver={self.name}")

    def log(self, node):
        return self.cluster.state / f"log/driver-{node}.log"

    def publish(self, nodes):
        """Whether each has said which devices its node has."""
        for node, process in zip(nodes, self.processes):
            assert process.poll() is None, self.log(node).read_text()
        slices = self.cluster.get("resourceslices", f"--field-selector=spec.driver={self.name}")["items"]
        return sorted(item["spec"]["nodeName"] for item in slices) == sorted(nodes)

    def device_class(self, name):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{self.name}'"}}]}}

    def prepared(self):
        """(node, UID of a claim) of all claims that are prepared on their nodes; each has one request."""
        files = self.cluster.state.glob(f"node-*/cdi/{self.name}-*.json")
        return {(file.parts[-3], file.name.removeprefix(f"{self.name}-")[:36]) for file in files}
