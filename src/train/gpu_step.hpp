// A step on a GPU: the exchange and the updater that keep gradients and model there.
#pragma once

#include <memory>

#include "comm/gpu_exchange.hpp"
#include "exec/executor.hpp"
#include "train/gpu_updater.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

struct GpuStep {
  std::unique_ptr<comm::GpuExchange> exchange;
  std::unique_ptr<GpuUpdater> updater;  ///< refers to the exchange
};

/// Every rank calls it: with several, NCCL is started.
[[nodiscard]] GpuStep make_gpu_step(const RunContext& run, const UpdaterSetup& setup,
                                    const comm::ExchangeLayout& layout);

/// Throws Error(configuration), with a table of what needs how much, where a run does not fit on the rank's GPU.
/// Nothing of it is there yet. `shards`: of this rank.
void require_gpu_memory(const RunContext& run, const Updater& updater, const Model& model,
                        const exec::Executor& executor, const comm::ExchangeLayout& layout, int shards, int workers);

}  // namespace lockstep::train
