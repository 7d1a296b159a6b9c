// CpuDevice: the rank computes on its host's CPU. Kernels run on the thread that calls them; the model and the
// gradients are in host memory.
#pragma once

#include "step/exec/device.hpp"

namespace lockstep::exec {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(device::DeviceInfo info = device::cpu_info()) : Device(std::move(info)) {}

  Graph lower(const Graph& graph, bool passes) const override;
  std::unique_ptr<Kernel> make_kernel(const KernelSetup& setup) const override;
  std::shared_ptr<WorkerStream> stream(int worker) const override;
  std::unique_ptr<MicroBatch> make_micro_batch(const ProgramSetup& setup, int worker, MicroBatchRunner& runner,
                                               std::shared_ptr<const InputFiller> filler) const override;
  std::shared_ptr<const ModelView> place_model(const ProgramSetup& setup, const TensorBlock& parameters,
                                               const TensorBlock& states) const override;
  std::unique_ptr<comm::GradientReducer> make_reducer(Communicator& communicator, comm::GradientBuckets buckets,
                                                      comm::ReducerOptions options) const override;
  ScratchBuffer make_scratch(std::int64_t elements) const override;
  std::string name() const override { return info_.model + ", " + info_.isa; }
  int default_workers(int cores) const override { return cores; }
  double peak_flops(int workers) const override;
  comm::ReduceDevice reduce_device(Communicator& communicator, std::chrono::milliseconds timeout) const override;
  std::string all_reduce_library() const override { return "MPI"; }
};

}  // namespace lockstep::exec
