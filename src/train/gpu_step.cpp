#include "train/gpu_step.hpp"

#include "exec/gpu_memory.hpp"
#include "lockstep/error.hpp"
#include "observe/flight.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t kLibrariesPart = 64;  // of the free memory; an estimate, which no GPU has confirmed

std::unique_ptr<const optim::UpdateKernels> make_update_kernels(const device::CudaModule& module) {
  auto* const make = module.library.find<optim::UpdateKernels*()>(optim::kModuleMakeUpdateKernels);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build has the update's kernels");
  return std::unique_ptr<const optim::UpdateKernels>(make());
}

}  // namespace

GpuStep make_gpu_step(const RunContext& run, const optim::UpdaterSetup& setup, const comm::BucketLayout& layout,
                      const comm::ReducerOptions& options) {
  device::Gpu& gpu = run.device.lanes->gpu();
  const device::CudaModule& module = *run.device.module;
  gpu.make_current();
  std::unique_ptr<comm::GpuTransport> transport;
  if (run.communicator.size() > 1) {
    transport = comm::make_gpu_transport(module, run.communicator, gpu, run.device.gpu_place, run.timeout());
  }
  GpuStep step;
  step.reducer = std::make_unique<comm::GpuAllReduce>(run.communicator, layout, options, gpu, std::move(transport));
  step.reducer->before_abort([run] { observe::write_flight(run.job.run_directory, run.communicator); });
  step.updater = std::make_unique<optim::GpuUpdater>(setup, gpu, *step.reducer, make_update_kernels(module));
  return step;
}

std::vector<exec::MemoryNeed> gpu_needs(const RunContext& run, const optim::Updater& updater, const optim::Model& model,
                                        const exec::Executor& executor, const comm::BucketLayout& layout, int shards,
                                        int workers) {
  auto needs = updater.gpu_needs(model);
  needs.push_back(
      {"exchange of gradients", comm::GpuAllReduce::bytes(layout, shards, run.communicator.size(), workers)});
  const auto of_executor = executor.gpu_needs();
  needs.insert(needs.end(), of_executor.begin(), of_executor.end());
  needs.push_back({"libraries and graphs", run.device.lanes->gpu().free_memory() / kLibrariesPart});
  return needs;
}

int most_gpu_shards(const comm::BucketLayout& layout, int own, int ranks, int workers, std::size_t left) {
  const std::size_t room = comm::GpuAllReduce::bytes(layout, own, ranks, workers) + left;
  int most = own;
  while (most < layout.shards && comm::GpuAllReduce::bytes(layout, most + 1, ranks, workers) <= room) ++most;
  return most;
}

}  // namespace lockstep::train
