"""Every case of every layer in bfloat16 and float16 by the module's own kernels, interpreted."""
from interpreted import Interpreted, main


class TwoBytes(Interpreted):
    def test_every_case(self):
        self.run_ops_test("OpsOnGpu.ComputeWhatTheyDoOnTheCpuInTwoBytes:OpsOnGpu.MultiplyExtremes",
                          INTERPRETED_GPU_SEED="3")

    def test_many_rows(self):
        self.run_ops_test("OpsOnGpu.ComputeManyRowsInTwoBytes:OpsOnGpu.ComputeLevelsOfRowsInTwoBytes", INTERPRETED_GPU_SEED="3")

    def test_wide_rows(self):
        self.run_ops_test("OpsOnGpu.ComputeWideRowsInTwoBytes:OpsOnGpu.ComputeLongSequencesInTwoBytes",
                          INTERPRETED_GPU_SEED="3")

    def test_inference(self):
        self.run_ops_test("OpsOnGpu.ComputeForInferenceInTwoBytes", INTERPRETED_GPU_SEED="3")

    def test_rounded_gradients(self):
        self.run_ops_test("OpsOnGpu.RoundGradients*", INTERPRETED_GPU_SEED="3")


if __name__ == "__main__":
    main()
