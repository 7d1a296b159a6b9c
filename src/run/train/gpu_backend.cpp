#include "run/train/gpu_backend.hpp"

#include <fmt/format.h>

#include <utility>

#include "data/input/gpu_data.hpp"
#include "lockstep/error.hpp"
#include "observe/observers.hpp"
#include "observe/rank_gpu.hpp"
#include "run/train/device_choice.hpp"
#include "step/exec/gpu_micro_batch_io.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/optim/gpu_updater.hpp"

namespace lockstep::train {

namespace {

std::unique_ptr<const optim::UpdateKernels> make_update_kernels(const device::CudaModule& module) {
  auto* const make = module.library.find<optim::UpdateKernels*()>(optim::kModuleMakeUpdateKernels);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build has the update's kernels");
  return std::unique_ptr<const optim::UpdateKernels>(make());
}

}  // namespace

ReduceAndUpdate GpuBackend::make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                                      const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                      exec::WorkerPool& /*pool*/) const {
  auto reducer = device_.make_gpu_reducer(ranks, buckets, options);
  reducer->before_abort([run] { observe::write_flight(run.job.run_directory, run.communicator); });
  auto updater =
      std::make_unique<optim::GpuUpdater>(setup, device_.gpu(), *reducer, make_update_kernels(*device_.setup().module));
  return {std::move(reducer), std::move(updater)};
}

std::vector<exec::MemoryNeed> GpuBackend::needs(const Graph& graph, const RunMemory& memory) const {
  const exec::ProgramSetup program = memory.executor.setup();
  auto needs = memory.updater.memory_needs(memory.model);
  needs.push_back({"all-reduce of gradients", comm::GpuAllReduce::bytes(memory.reduced)});
  const auto of_workers = device_.needs_of_workers(program);
  needs.insert(needs.end(), of_workers.begin(), of_workers.end());
  needs.push_back({"libraries and graphs", exec::bytes_of_libraries(device_.gpu().free_memory())});
  if (memory.evaluates && program.part != nullptr) {  // evaluation has micro-batches of its own, which keep no more
                                                      // than training's
    for (exec::MemoryNeed need : of_workers) {
      need.what += " of evaluations";
      needs.push_back(std::move(need));
    }
  } else if (memory.evaluates) {
    needs.push_back({input::kInputsOfEvaluations, exec::GpuInputs::bytes(graph), program.workers});
  }
  return needs;
}

PlacedData GpuBackend::place_data(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                  const RunMemory& memory) const {
  const exec::ProgramSetup program = memory.executor.setup();
  const auto kept = input::put_gpu_data(run.job, run.communicator, device_, data, graph, memory.evaluates,
                                        {needs(graph, memory), program.workers, program.part == nullptr});
  return {.train = kept.train,
          .validation = kept.validation,
          .report = kept.summary,
          .max_micro_batches = comm::GpuAllReduce::max_micro_batches(memory.reduced, kept.left)};
}

void GpuBackend::emit_devices(const RunContext& run) const {
  observe::emit_gpus(run, device_.setup().facts, device_.setup().driver_cuda_version);
  run.warn(fmt::format("this version's code for GPUs: {}; compare what it trains with device: cpu (docs/gpu.md)",
                       kGpuCodeTested));
}

}  // namespace lockstep::train
