#include "step/exec/gpu_device.hpp"

#include <fmt/format.h>

#include "device/gpu/gpu_memory.hpp"
#include "device/gpu/kernel_options.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/precision.hpp"
#include "lockstep/error.hpp"
#include "ops/upcast.hpp"
#include "step/exec/gpu_micro_batch.hpp"
#include "step/exec/gpu_micro_batch_io.hpp"
#include "step/exec/gpu_tensors.hpp"

namespace lockstep::exec {

Graph GpuDevice::lower(const Graph& graph, bool passes) const {
  Graph lowered = passes ? lockstep::lower(graph, {DeviceKind::cuda, setup_.kernels.get()}) : graph;
  use_low_precision_weights(lowered);
  return lowered;
}

std::unique_ptr<Kernel> GpuDevice::make_kernel(const KernelSetup& setup) const {
  const std::string& op = setup.node.op->name;
  for (const OpDef* from : {setup.node.op, setup_.kernels->find(op)}) {
    if (from == nullptr) continue;
    const auto found = from->kernels.find(DeviceKind::cuda);
    if (found == from->kernels.end()) continue;
    auto& stream = static_cast<GpuWorkerStream&>(*setup.stream);
    const GpuKernelOptions options{gpu().kernel_stream(stream.stream), setup.node.fast_float32, setup.algorithms};
    KernelRequest request = setup.request;
    request.gpu = &options;
    return ops::make_kernel({found->second, from->takes_low_precision.contains(DeviceKind::cuda)}, request,
                            setup.stream);
  }
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected a kernel of op '{}' for GPUs, found none; set device: cpu, or leave this layer "
                          "out",
                          setup.layer, op));
}

std::shared_ptr<GpuWorkerStream> GpuDevice::gpu_stream(int worker) const {
  gpu().make_current();  // the caller makes kernels for the stream, which query the GPU's libraries for algorithms
  while (streams_.size() <= static_cast<std::size_t>(worker)) {
    streams_.push_back(std::make_shared<GpuWorkerStream>(gpu()));
  }
  return streams_[worker];
}

std::unique_ptr<MicroBatch> GpuDevice::make_micro_batch(const ProgramSetup& setup, int worker, MicroBatchRunner& runner,
                                                        std::shared_ptr<const InputFiller> filler) const {
  return std::make_unique<GpuMicroBatch>(setup, gpu_stream(worker), runner, setup_.graphs, std::move(filler));
}

std::vector<MemoryNeed> GpuDevice::needs_of_workers(const ProgramSetup& setup) const {
  if (setup.part != nullptr) {
    const int micro_batches = setup.workers * micro_batches_in_memory(*setup.part);
    return {{"activations", GpuMicroBatch::bytes(setup), micro_batches, "parallel.in_flight: less"},
            {"inputs", GpuInputs::bytes(setup.graph), micro_batches}};
  }
  const std::size_t arena = MicroBatchRunner::arena_bytes(setup.program), there = gpu_stream(0)->arena.bytes();
  return {{"activations", arena > there ? arena : 0, setup.workers},
          {"inputs", GpuInputs::bytes(setup.graph), setup.workers}};
}

std::shared_ptr<const ModelView> GpuDevice::place_model(const ProgramSetup& setup, const TensorBlock& parameters,
                                                        const TensorBlock& states) const {
  auto needs = GpuParameters::needs(setup.graph, kept_elements(parameters), kept_elements(states));
  const auto of_workers = needs_of_workers(setup);
  needs.insert(needs.end(), of_workers.begin(), of_workers.end());
  gpu().make_current();
  require_memory(setup_.place.text(), gpu().free_memory(), needs, setup.micro_batch_samples(), setup.workers);
  return GpuParameters::view(std::make_shared<GpuParameters>(gpu(), setup.graph, parameters, states));
}

std::unique_ptr<comm::GpuAllReduce> GpuDevice::make_gpu_reducer(Communicator& communicator,
                                                                comm::GradientBuckets buckets,
                                                                const comm::ReducerOptions& options) const {
  gpu().make_current();
  std::unique_ptr<comm::GpuTransport> transport;
  if (communicator.size() > 1) {
    transport = comm::make_gpu_transport(*setup_.module, communicator, gpu(), setup_.place, options.timeout);
  }
  return std::make_unique<comm::GpuAllReduce>(communicator, std::move(buckets), options, gpu(), std::move(transport));
}

comm::ReduceDevice GpuDevice::reduce_device(Communicator& communicator, std::chrono::milliseconds timeout) const {
  return {.gpu = &gpu(), .make_transport = [this, &communicator, timeout] {
            return comm::make_gpu_transport(*setup_.module, communicator, gpu(), setup_.place, timeout);
          }};
}

ScratchBuffer GpuDevice::make_scratch(std::int64_t elements) const {
  gpu().make_current();
  auto memory = std::make_shared<device::GpuBlock>(gpu(), elements * sizeof(float));
  return {{memory->as<float>(), false, gpu().make_event(), gpu().make_event()}, memory};
}

}  // namespace lockstep::exec
