#!/usr/bin/env python3
"""A real Prometheus scrapes ranks that seem to compute on GPUs: driver, NVML and CUDA module are stand-ins, found by
the names of the real ones. Every query of the GPU dashboard returns data for each rank, from its own GPU; what
dcgm-exporter would say of these GPUs comes from another stand-in.

    gpu_panels_test.py MODULE DRIVER_FOLDER
"""
import json
import pathlib
import sys
import tempfile
import unittest

from servers import (DASHBOARDS, RULES, DcgmExporter, Prometheus, Training, as_asked, file_targets, free_port,
                     skip_without_prometheus, wait_until)

DRIVER, MODULE = sys.argv.pop(), sys.argv.pop()
RANKS = 2
BOARD = next(file for file in DASHBOARDS if file.name == "gpus.json")


class GpuPanels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        cls.training = Training(
            root / "run", RANKS, "device=cuda", "devices=[1,0]", "steps=1000000", "evaluate=never",
            f"telemetry.prometheus.port={free_port()}",
            environment={"LD_LIBRARY_PATH": DRIVER, "LOCKSTEP_CUDA_MODULE": MODULE, "STAND_IN_GPUS": "3",
                         "STAND_IN_SAME": "1", "NVML_STAND_IN": "busy,drawing", "LOCKSTEP_NVML": ""})
        cls.addClassCleanup(cls.training.abandon)
        cls.training.targets()
        dcgm = DcgmExporter(cls.training)
        cls.addClassCleanup(dcgm.stop)
        cls.prometheus = Prometheus(root / "prometheus", rules=RULES,
                                    scrape=[*file_targets(root / "run/metrics/targets.json"), *dcgm.scrape()])
        cls.addClassCleanup(cls.prometheus.stop)
        wait_until(lambda: len(cls.prometheus.query("rate(lockstep_gpu_energy_joules_total[10s]) > 0")) == RANKS,
                   "two scrapes of each rank's GPU")
        wait_until(lambda: len(cls.prometheus.query("rank:DCGM_FI_DEV_MEM_COPY_UTIL:max")) == RANKS, "the rules")

    def test_every_query_has_data_of_each_rank(self):
        for panel in json.loads(BOARD.read_text())["panels"]:
            for target in panel["targets"]:
                expression = as_asked(target["expr"]).replace("[1h]", "[60s]")
                data = self.prometheus.query_range(expression, 60)
                where = f"{panel['title']}: {expression}"
                self.assertTrue(data, where)
                ranks = {series["metric"]["rank"] for series in data if "rank" in series["metric"]}
                self.assertIn(ranks, ({str(rank) for rank in range(RANKS)}, set()), where)

    def test_each_rank_shows_its_own_gpu(self):
        """`devices` reverses their order; NVML numbers them by PCI address."""
        found = {series["metric"]["rank"]: series["metric"] for series in self.prometheus.query("lockstep_gpu_info")}
        self.assertEqual({rank: (labels["uuid"], labels["pci"]) for rank, labels in found.items()},
                         {"0": ("GPU-0001", "00000000:80:00.0"), "1": ("GPU-0000", "00000000:70:00.0")})

    def test_its_peak_is_known(self):
        for series in self.prometheus.query("lockstep_device_peak_flops"):
            self.assertAlmostEqual(float(series["value"][1]) / 1e12, 66.9, places=1)  # 132 multiprocessors at 1.98 GHz
        self.assertEqual(len(self.prometheus.query("lockstep_model_flops_utilization_ratio > 0")), RANKS)

    def test_z_at_the_end(self):
        self.training.end(75)
        self.assertFalse([event for event in self.training.events("warning") if "no metrics" in event["message"]])


if __name__ == "__main__":
    skip_without_prometheus()
    unittest.main(verbosity=2)
