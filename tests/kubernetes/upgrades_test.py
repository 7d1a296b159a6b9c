#!/usr/bin/env python3
"""Every value of the schema, changed: no object keeps its name whose immutable fields change, and none gets another name
whose fields do not. control_plane_test.py asks a server."""
import json
import re
import unittest

from upgrades import by_name, changes, fixed

# templates/claim.yaml refuses them while the claim is there (storage_test.yaml).
OF_THE_CLAIM = {"persistence.storageClassName", "persistence.accessMode"}
NO_SETS = {"cluster.maxReplicas", "cluster.minReplicas", "queue.minReplicas"}
HASHED = re.compile(r"^(.*?)-([0-9a-f]{8})(-0)?$")


def named_by_hash(objects):
    """What runs and what it reads, as text, without the hash that names it."""
    things = [thing for thing in objects if HASHED.match(thing["metadata"]["name"])]
    (found,) = {HASHED.match(thing["metadata"]["name"])[2] for thing in things}
    return found, json.dumps([(thing["kind"], fixed(thing)) for thing in things], sort_keys=True).replace(found, "")


class Upgrades(unittest.TestCase):
    def check(self, mode, refused=frozenset(), **more):
        """Of a mode that refuses some values."""
        found = set()
        for path, before, after in changes(mode=mode, **more):
            if before is None or after is None:
                found.add(path)
                continue
            with self.subTest(path=path):
                old, new = by_name(before), by_name(after)
                if path not in OF_THE_CLAIM:
                    kept = old.keys() & new.keys()
                    self.assertEqual({key: fixed(old[key]) for key in kept}, {key: fixed(new[key]) for key in kept})
                for job in (thing for thing in after if thing["kind"] == "Job"):
                    self.assertEqual(job["spec"]["completions"], job["spec"]["parallelism"])
                hashes, texts = zip(named_by_hash(before), named_by_hash(after))
                self.assertEqual(hashes[0] == hashes[1], texts[0] == texts[1], hashes)
        self.assertEqual(found, set(refused))

    def test_jobs(self):
        self.check("indexedJob")

    def test_elastic_jobs(self):
        self.check("indexedJob", {"mode", "queue.topology", "queue.topologyLevel"}, cluster__maxReplicas=4)

    def test_job_sets(self):
        self.check("jobset", NO_SETS)

    def test_mpi_jobs(self):
        self.check("mpijob", NO_SETS | {"cluster.gang", "cluster.gangQueue", "cluster.avoidUnfitNodes", "sweep"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
