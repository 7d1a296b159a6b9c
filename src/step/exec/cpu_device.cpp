#include "step/exec/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/transport/gpu_transport.hpp"
#include "core/low_precision.hpp"
#include "core/vectorize.hpp"
#include "device/cpu/add.hpp"
#include "device/device.hpp"
#include "graph/lowering/lower.hpp"
#include "lockstep/error.hpp"
#include "step/exec/micro_batch.hpp"

namespace lockstep::exec {

namespace {

LOCKSTEP_VECTORIZED void multiply_floats(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}

class CpuStream final : public WorkerStream {
 public:
  std::byte* reserve_arena(std::size_t bytes) override {
    if (arena_.size() < bytes) arena_ = AlignedBytes(bytes);
    return arena_.data();
  }
  void add(DType dtype, const void* left, const void* right, void* sum, std::int64_t n) override {
    if (dtype == DType::f32) {
      device::add(static_cast<const float*>(left), static_cast<const float*>(right), static_cast<float*>(sum), n);
    } else {
      add_low_precision(dtype, static_cast<const std::uint16_t*>(left), static_cast<const std::uint16_t*>(right),
                        static_cast<std::uint16_t*>(sum), n);
    }
  }
  void scale(float* values, const float* factors, std::int64_t n, std::int64_t columns) override {
    for (std::int64_t i = 0; i < n; i += columns) multiply_floats(values + i, *factors++, columns);
  }
  void cast(device::Cast cast, DType type, const void* from, void* to, std::int64_t n) const override {
    casts_->cast(cast, type, from, to, n);
  }

 private:
  std::shared_ptr<const ops::Casts> casts_ = ops::cpu_casts();
  AlignedBytes arena_;
};

}  // namespace

Graph CpuDevice::lower(const Graph& graph, bool passes) const {
  return passes ? lockstep::lower(graph, {DeviceKind::cpu}) : graph;
}

std::unique_ptr<Kernel> CpuDevice::make_kernel(const KernelSetup& setup) const {
  const OpDef& op = *setup.node.op;
  const auto found = op.kernels.find(DeviceKind::cpu);
  if (found == op.kernels.end()) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected a kernel of op '{}' for the CPU, found none; add one to the op", setup.layer,
                            op.name));
  }
  const ops::KernelMaker maker{found->second, op.takes_low_precision.contains(DeviceKind::cpu)};
  return ops::make_kernel(maker, setup.request, setup.stream);
}

std::shared_ptr<WorkerStream> CpuDevice::stream(int /*worker*/) const {
  return std::make_shared<CpuStream>();
}

std::unique_ptr<MicroBatch> CpuDevice::make_micro_batch(const ProgramSetup& setup, int /*worker*/,
                                                        MicroBatchRunner& runner,
                                                        std::shared_ptr<const InputFiller> filler) const {
  LOCKSTEP_CHECK(filler == nullptr, "the inputs of a CPU are there already");
  return std::make_unique<CpuMicroBatch>(setup, runner);
}

std::shared_ptr<const ModelView> CpuDevice::place_model(const ProgramSetup& /*setup*/, const TensorBlock& parameters,
                                                        const TensorBlock& states) const {
  return view_of(parameters, states);
}

std::unique_ptr<comm::GradientReducer> CpuDevice::make_reducer(Communicator& communicator,
                                                               comm::GradientBuckets buckets,
                                                               comm::ReducerOptions options) const {
  return comm::make_reducer(communicator, std::move(buckets), options);
}

ScratchBuffer CpuDevice::make_scratch(std::int64_t elements) const {
  auto memory = std::make_shared<AlignedBytes>(elements * sizeof(float));
  std::fill_n(memory->data(), memory->size(), std::byte{0});
  return {{.memory = reinterpret_cast<float*>(memory->data())}, memory};
}

comm::ReduceDevice CpuDevice::reduce_device(Communicator& /*communicator*/,
                                            std::chrono::milliseconds /*timeout*/) const {
  return {};
}

double CpuDevice::peak_flops(int workers) const {
  return device::peak_flops(info_.isa, device::cpu_hertz(), workers);
}

}  // namespace lockstep::exec
