// Backend: what a run trains with, on its rank's CPU (CpuBackend) or GPU (GpuBackend): a device, and what is made for
// it beside what exec asks of a device. Chosen once (device_choice.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/reduce/gradient_reducer.hpp"
#include "exec/cpu_device.hpp"
#include "exec/device.hpp"
#include "exec/executor.hpp"
#include "exec/worker_pool.hpp"
#include "input/prepared_data.hpp"
#include "optim/updater.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// What comes after a rank's shards in a step. The updater refers to the reducer.
struct ReduceAndUpdate {
  std::unique_ptr<comm::GradientReducer> reducer;
  std::unique_ptr<optim::Updater> updater;
};

/// What a run is going to allocate on its device, before any of it is there.
struct RunMemory {
  const exec::Executor& executor;
  const optim::Updater& updater;
  const optim::Model& model;
  const comm::GradientBuckets& buckets;
  int ranks = 1;           ///< that have this rank's part of the model
  int shards = 0;          ///< of this rank
  bool evaluates = false;  ///< while it trains
};

/// What a device makes of a run's data itself.
struct PlacedData {
  std::shared_ptr<const exec::InputFiller> train, validation;  ///< null: the host makes the inputs
  std::string report;             ///< "train made on the GPU (9.2 MB), ..."; empty: there was nothing to decide
  std::optional<int> max_shards;  ///< that this rank has memory for; none: the host's memory decides
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual const exec::Device& device() const = 0;
  /// Every rank calls it. `ranks`: those that have this rank's part of the model. What `setup` and the pool refer to
  /// outlives the result.
  [[nodiscard]] virtual ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks,
                                                  const optim::UpdaterSetup& setup,
                                                  const comm::GradientBuckets& buckets,
                                                  const comm::ReducerOptions& options,
                                                  exec::WorkerPool& pool) const = 0;
  /// Every rank calls it. Throws Error(configuration) where the run does not fit into the device's memory.
  [[nodiscard]] virtual PlacedData place_data(const RunContext& run, const input::PreparedData& data,
                                              const Graph& graph, const RunMemory& memory) const = 0;
  /// Events that a run starts with. Every rank calls it.
  virtual void emit_devices(const RunContext& run) const = 0;
};

class CpuBackend final : public Backend {
 public:
  [[nodiscard]] const exec::Device& device() const override { return device_; }
  [[nodiscard]] ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                                          const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                          exec::WorkerPool& pool) const override;
  [[nodiscard]] PlacedData place_data(const RunContext& /*run*/, const input::PreparedData& /*data*/,
                                      const Graph& /*graph*/, const RunMemory& /*memory*/) const override {
    return {};
  }
  void emit_devices(const RunContext& /*run*/) const override {}

 private:
  exec::CpuDevice device_;
};

}  // namespace lockstep::train
