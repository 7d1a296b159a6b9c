// A step on a GPU: the reducer and the updater that keep gradients and model there.
#pragma once

#include <memory>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "exec/executor.hpp"
#include "optim/gpu_updater.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

struct GpuStep {
  std::unique_ptr<comm::GpuAllReduce> reducer;
  std::unique_ptr<optim::GpuUpdater> updater;  ///< refers to the reducer
};

/// Every rank calls it: with several, NCCL is started.
[[nodiscard]] GpuStep make_gpu_step(const RunContext& run, const optim::UpdaterSetup& setup,
                                    const comm::BucketLayout& layout, const comm::ReducerOptions& options);

/// What a run will allocate on the rank's GPU, where nothing of it is yet; its data may come to it. `shards`: of this
/// rank. What libraries, graphs and kernels take for themselves is not known before they run: a part of what is free is
/// left to them.
[[nodiscard]] std::vector<exec::MemoryNeed> gpu_needs(const RunContext& run, const optim::Updater& updater,
                                                      const optim::Model& model, const exec::Executor& executor,
                                                      const comm::BucketLayout& layout, int shards, int workers);

/// How many of the layout's shards a rank's GPU can hold the partial sums of, where those of `own` were counted and
/// `left` bytes are needed for nothing. At least `own`.
[[nodiscard]] int most_gpu_shards(const comm::BucketLayout& layout, int own, int ranks, int workers, std::size_t left);

}  // namespace lockstep::train
