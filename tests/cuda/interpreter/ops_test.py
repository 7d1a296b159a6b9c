"""Every case of every op by the module's own kernels, interpreted: the same bits as from their bodies on the CPU."""
from interpreted import Interpreted, main


class Ops(Interpreted):
    def test_every_case(self):
        self.run_ops_test("OpsOnGpu.ComputeWhatTheyDoOnTheCpu", INTERPRETED_GPU_SEED="2")

    def test_many_rows(self):
        self.run_ops_test("OpsOnGpu.ComputeManyRows:OpsOnGpu.ComputeLevelsOfRows", INTERPRETED_GPU_SEED="2")

    def test_timed_cases(self):
        self.run_ops_test("OpsOnGpu.ComputeFewElementsOfTimedCases", INTERPRETED_GPU_SEED="2")

    def test_wide_rows(self):
        self.run_ops_test("OpsOnGpu.ComputeWideRows:OpsOnGpu.ComputeLongSequences", INTERPRETED_GPU_SEED="2")

    def test_inference(self):
        self.run_ops_test("OpsOnGpu.ComputeForInference", INTERPRETED_GPU_SEED="2")


if __name__ == "__main__":
    main()
