"""Sums, casts and updates by the module's own kernels, interpreted: the same bits as on the CPU."""
from interpreted import Interpreted, main


class Step(Interpreted):
    def test_what_a_step_does_beside_its_ops(self):
        self.run_ops_test("StepOnGpu.*", INTERPRETED_GPU_SEED="1")


if __name__ == "__main__":
    main()
