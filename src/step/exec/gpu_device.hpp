// GpuDevice: the rank computes on one GPU. Workers are streams; the model and the gradients stay in its memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "device/gpu/cuda_module.hpp"
#include "device/gpu/driver.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "device/gpu/gpu_place.hpp"
#include "device/gpu/gpu_profiler.hpp"
#include "step/exec/device.hpp"
#include "step/exec/kernel_set.hpp"
#include "step/exec/memory_needs.hpp"

namespace lockstep::exec {

struct GpuSetup {
  device::DeviceInfo info;
  std::shared_ptr<device::Gpu> gpu;
  std::shared_ptr<const OpRegistry> kernels;              ///< the CUDA module's, for the built-in ops
  bool graphs = true;                                     ///< launch kernels in graphs, not one by one
  device::GpuInfo facts = {};                             ///< what the driver reports about it
  int driver_cuda_version = 0;                            ///< the latest CUDA that the driver can run: 13000 is 13.0
  std::shared_ptr<const device::CudaModule> module = {};  ///< where gpu and kernels come from; null for fakes
  device::GpuPlace place = {};                            ///< for errors; without step and op
  double peak_flops = 0;                                  ///< FLOP/s in the job's precision; 0: not known
  std::shared_ptr<device::GpuProfiler> profiler = {};
};

/// A stream and an arena of its own, which training and evaluation use in turn.
class GpuWorkerStream final : public WorkerStream {
 public:
  explicit GpuWorkerStream(device::Gpu& of) : gpu(of), stream(of.make_kernel_stream()), arena(of) {}

  std::byte* reserve_arena(std::size_t bytes) override { return arena.reserve(bytes); }
  void* of_kernels() override { return gpu.kernel_stream(stream); }
  void enter(std::uint64_t step, const std::string& layer) override { gpu.enter(stream, step, layer); }
  void add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n) override {
    gpu.add(stream, dtype, left, right, sum, n);
  }
  void scale(float* values, const float* factors, std::int64_t n, std::int64_t columns) override {
    gpu.scale(stream, values, factors, n, columns);
  }
  void cast(device::Cast cast, DType type, const void* from, void* to, std::int64_t n) const override {
    gpu.cast(stream, cast, type, from, to, n);
  }

  device::Gpu& gpu;
  const device::Gpu::Stream stream;
  device::GpuArena arena;
};

class GpuDevice final : public Device {
 public:
  explicit GpuDevice(GpuSetup setup) : Device(setup.info), setup_(std::move(setup)) {}

  device::Gpu& gpu() const { return *setup_.gpu; }
  const GpuSetup& setup() const { return setup_; }
  /// What the program's workers allocate, besides parameters and states.
  std::vector<MemoryNeed> needs_of_workers(const ProgramSetup& setup) const;

  Graph lower(const Graph& graph, bool passes) const override;
  std::unique_ptr<Kernel> make_kernel(const KernelSetup& setup) const override;
  /// Created on first use; by one thread at a time.
  std::shared_ptr<WorkerStream> stream(int worker) const override { return gpu_stream(worker); }
  std::unique_ptr<MicroBatch> make_micro_batch(const ProgramSetup& setup, int worker, MicroBatchRunner& runner,
                                               std::shared_ptr<const InputFiller> filler) const override;
  std::shared_ptr<const ModelView> place_model(const ProgramSetup& setup, const TensorBlock& parameters,
                                               const TensorBlock& states) const override;
  /// Collective: starts NCCL if there are several ranks.
  std::unique_ptr<comm::GpuAllReduce> make_gpu_reducer(Communicator& communicator, comm::GradientBuckets buckets,
                                                       const comm::ReducerOptions& options) const;
  std::unique_ptr<comm::GradientReducer> make_reducer(Communicator& communicator, comm::GradientBuckets buckets,
                                                      comm::ReducerOptions options) const override {
    return make_gpu_reducer(communicator, std::move(buckets), options);
  }
  ScratchBuffer make_scratch(std::int64_t elements) const override;

  /// One computes while the inputs and gradients of the other are being copied.
  int default_workers(int /*cores*/) const override { return 2; }
  double peak_flops(int /*workers*/) const override { return setup_.peak_flops; }
  std::string fingerprint() const override { return info_.model + ", " + info_.libraries; }
  bool chooses_algorithms() const override { return true; }
  bool uses_host_memory() const override { return false; }
  bool has_memory_to_spare() const override { return false; }
  bool spreads_owners() const override { return false; }
  std::string pci_bus() const override { return setup_.facts.pci_bus; }
  comm::ReduceDevice reduce_device(Communicator& communicator, std::chrono::milliseconds timeout) const override;
  std::string all_reduce_library() const override { return "NCCL"; }
  std::shared_ptr<device::GpuProfiler> profiler() const override { return setup_.profiler; }

 private:
  std::shared_ptr<GpuWorkerStream> gpu_stream(int worker) const;

  GpuSetup setup_;  // declared before the streams, which need its GPU until they are destroyed
  mutable std::vector<std::shared_ptr<GpuWorkerStream>> streams_;
};

}  // namespace lockstep::exec
