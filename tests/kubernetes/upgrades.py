"""Every value of the chart, changed by an upgrade: the objects before and after."""
import concurrent.futures
import json
import os
import pathlib
import tempfile

import yaml
from kube_tools import CHART, template

# A value that differs from the default, where its rule in the schema does not say one.
SAMPLES = {
    "cluster.resourceClaims": [{"name": "nic", "resourceClaimName": "nic"}], "cluster.sharedMemory": "1Gi", "cluster.launchOptions": ["steps=9"],
    "cluster.topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "cluster.hostAliases": [{"ip": "10.0.0.5", "hostnames": ["store"]}], "cluster.dnsConfig": {"searches": ["example"]},
    "cluster.schedulingGates": [{"name": "example.com/gate"}], "cluster.lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    "cluster.readinessProbe": {"periodSeconds": 9}, "cluster.env": [{"name": "A", "value": "a"}],
    "cluster.envFrom": [{"secretRef": {"name": "a"}}], "cluster.volumes": [{"name": "a", "emptyDir": {}}],
    "cluster.volumeMounts": [{"name": "runs", "mountPath": "/a"}], "cluster.initContainers": [{"name": "a", "image": "a"}],
    "cluster.sidecars": [{"name": "a", "image": "a"}], "cluster.podPatch": {"spec": {"shareProcessNamespace": True}},
    "cluster.extraManifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}],
    "cluster.ttlSecondsAfterFinished": 60, "cluster.maxReplicas": 4, "groups": [{"name": "other"}], "image.digest": "sha256:" + "0" * 64,
    "imagePullSecrets": [{"name": "a"}], "resources.limits": {"cpu": 2}, "resources.requests": {"cpu": "500m"},
    "persistence.storageClassName": "", "persistence.size": "1Gi", "data.fetchSize": "1Gi", "network.minBandwidth": 1,
    "network.proxy.except": ["a"], "security.networkPolicy.metricsFrom": [{"podSelector": {}}], "security.networkPolicy.egress": [{"ports": []}],
    "security.podSecurityContext": {"runAsUser": 2000}, "security.containerSecurityContext": {"readOnlyRootFilesystem": False},
    "observability.podMonitor.relabelings": [{"targetLabel": "a"}], "observability.podMonitor.metricRelabelings": [{"action": "drop"}],
    "observability.serviceMonitor.relabelings": [{"targetLabel": "a"}], "observability.serviceMonitor.metricRelabelings": [{"action": "drop"}],
    "tolerations": [{"key": "a", "operator": "Exists"}], "affinity": {"nodeAffinity": {}},
    "job": {"model": "resnet", "data": {"train": {"digits": {}}}, "steps": 1, "checkpoint": "never"},
    "sweep": {"metric": "loss", "budget": 1, "parameters": {"seed": {"choice": [1]}}}}
TIMES = {f"observability.{kind}.{key}": "20s" for kind in ("podMonitor", "serviceMonitor") for key in ("interval", "scrapeTimeout")}
# What else must be said for a value to be taken.
ALSO = {"cluster.gangQueue": {"cluster.gang": "volcano"}, "cluster.minReplicas": {"cluster.maxReplicas": 4},
        "cluster.gpuResource": {"cluster.gpusPerNode": 1},
        "cluster.unhealthyPodEvictionPolicy": {"cluster.maxUnavailable": 1}, "network.rdmaCount": {"network.profile": "rdmaSharedDevice"},
        "network.rdmaResource": {"network.profile": "rdmaSharedDevice"}, "network.proxy.except": {"network.proxy.http": "http://a"},
        "security.certificates.key": {"security.certificates.secret": "a"}, "queue.minReplicas": {"queue.name": "a"},
        "queue.priorityClass": {"queue.name": "a"}, "queue.topology": {"queue.name": "a"},
        "queue.topologyLevel": {"queue.name": "a", "queue.topology": "required"}}
ALWAYS = {"security.ssh.existingSecret": "mine", "persistence.enabled": True}


def leaves(schema, path=()):
    """The path and the schema of each value. The job and the sweep are one each."""
    for key, part in schema["properties"].items():
        here = (*path, key)
        if "properties" in part and "default" not in part and key not in ("job", "sweep"):
            yield from leaves(part, here)
        else:
            yield ".".join(here), part


def changed(path, part):
    if path in SAMPLES | TIMES:
        return (SAMPLES | TIMES)[path]
    if "enum" in part:
        return next(word for word in part["enum"] if word not in ("", part["default"]))
    if part["type"] == "boolean":
        return not part.get("default")
    if part["type"] == "integer":
        return part["default"] + 1
    if part["type"] == "string" and path not in ALWAYS:
        return "changed"
    if part["type"] == "string":
        return "other"
    if part["type"] == "object":
        return {"changed": "a"}
    raise AssertionError(f"{path}: upgrades.py has no other value for it")


def nested(values):
    found = {}
    for path, value in values.items():
        place = found
        *sections, key = path.split(".")
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    return found


class Renders:
    """What the chart makes of values, by path; None where it refuses them. Each is rendered once."""

    def __init__(self):
        self.found = {}

    def __call__(self, values):
        text = json.dumps(values, sort_keys=True)
        if text not in self.found:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(nested(values), file)
                file.flush()
                done = template("--no-hooks", "--values", file.name, check=False)
            self.found[text] = [d for d in yaml.load_all(done.stdout, yaml.CSafeLoader) if d] if done.returncode == 0 else None
        return self.found[text]


def changes(only=None, **more):
    """(path, objects before, objects after) for each value, or for those that are named, with `more` said too. Objects are
    None where the chart refuses the values."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    render = Renders()

    def change(item):
        path, part = item
        before = ALWAYS | {key.replace("__", "."): value for key, value in more.items()} | ALSO.get(path, {})
        return path, render(before), render(before | {path: changed(path, part)})

    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count())) as threads:
        yield from threads.map(change, [item for item in leaves(schema) if only is None or item[0] in only])


# What the server lets an upgrade change in an object that keeps its name: of a Job, ValidateJobSpecUpdate of Kubernetes; of a
# JobSet, its webhook and its CRD. Completions change with parallelism alone. The operators of TrainJobs and MPIJobs take no other
# change into what they have made.
MUTABLE = {"Job": ("parallelism", "completions", "suspend", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"),
           "JobSet": ("suspend", "ttlSecondsAfterFinished"), "TrainJob": ("suspend",), "ClusterTrainingRuntime": (), "MPIJob": (),
           "PersistentVolumeClaim": ("resources",), "ConfigMap": ()}


def fixed(thing):
    """What may not change of an object, or None if all may."""
    if thing["kind"] not in MUTABLE or thing["kind"] == "ConfigMap" and not thing.get("immutable"):
        return None
    spec = {key: part for key, part in thing.get("spec", {}).items() if key not in MUTABLE[thing["kind"]]}
    if thing["kind"] == "MPIJob":
        spec = {**spec, "runPolicy": {key: part for key, part in spec["runPolicy"].items() if key != "suspend"}}
    return spec, thing.get("data")


def by_name(objects):
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in objects}
