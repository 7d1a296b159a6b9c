#include "train/gpu_step.hpp"

#include "exec/gpu_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

std::unique_ptr<const UpdateKernels> make_update_kernels(const backend::CudaModule& module) {
  auto* const make = module.library.find<UpdateKernels*()>(kModuleMakeUpdateKernels);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build has the update's kernels");
  return std::unique_ptr<const UpdateKernels>(make());
}

}  // namespace

GpuStep make_gpu_step(const RunContext& run, const UpdaterSetup& setup, const comm::ExchangeLayout& layout) {
  backend::Gpu& gpu = run.device.lanes->gpu();
  const backend::CudaModule& module = *run.device.module;
  gpu.make_current();
  std::unique_ptr<comm::GpuMessages> messages;
  if (run.communicator.size() > 1) {
    messages = comm::make_gpu_messages(module, run.communicator, gpu, run.device.gpu_place, run.timeout());
  }
  GpuStep step;
  step.exchange = std::make_unique<comm::GpuExchange>(
      run.communicator, layout, comm::ExchangeOptions{.exact = run.job.exact != "never", .timeout = run.timeout()}, gpu,
      std::move(messages));
  step.updater = std::make_unique<GpuUpdater>(setup, gpu, *step.exchange, make_update_kernels(module));
  return step;
}

std::vector<exec::MemoryNeed> gpu_needs(const RunContext& run, const Updater& updater, const Model& model,
                                        const exec::Executor& executor, const comm::ExchangeLayout& layout, int shards,
                                        int workers) {
  auto needs = updater.gpu_needs(model);
  needs.push_back(
      {"exchange of gradients", comm::GpuExchange::bytes(layout, shards, run.communicator.size(), workers)});
  const auto of_executor = executor.gpu_needs();
  needs.insert(needs.end(), of_executor.begin(), of_executor.end());
  return needs;
}

}  // namespace lockstep::train
