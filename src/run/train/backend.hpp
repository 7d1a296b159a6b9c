// Backend: what a run trains with on its rank's CPU (CpuBackend) or GPU (GpuBackend): a device, and everything
// device-specific that exec does not need. Chosen once (device_choice.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/reduce/gradient_reducer.hpp"
#include "data/input/prepared_data.hpp"
#include "run/train/run_context.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/device.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/worker_pool.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::train {

/// What follows a rank's micro-batches in a step. The updater refers to the reducer.
struct ReduceAndUpdate {
  std::unique_ptr<comm::GradientReducer> reducer;
  std::unique_ptr<optim::Updater> updater;
};

/// What a run is going to allocate on its device.
struct RunMemory {
  const exec::Executor& executor;
  const optim::Updater& updater;
  const optim::Model& model;
  comm::ReducerShare reduced;  ///< among the ranks that have this rank's part of the model
  bool evaluates = false;      ///< whether it also evaluates during training
};

/// The data of a run that a device prepares itself.
struct PlacedData {
  std::shared_ptr<const exec::InputFiller> train, validation;  ///< null: the host prepares the inputs
  std::string report;  ///< "train made on the GPU (9.2 MB), ..."; empty: there was nothing to decide
  std::optional<int>
      max_micro_batches;  ///< as many as this rank has memory for; none: limited by the host's memory only
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const exec::Device& device() const = 0;
  /// Collective. `ranks`: those that have this rank's part of the model. What `setup` and the pool refer to must
  /// outlive the result.
  virtual ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                                    const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                    exec::WorkerPool& pool) const = 0;
  /// Collective. Throws Error(configuration) if the run does not fit into the device's memory.
  virtual PlacedData place_data(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                const RunMemory& memory) const = 0;
  /// Emits the events about devices at the start of a run. Collective.
  virtual void emit_devices(const RunContext& run) const = 0;
};

class CpuBackend final : public Backend {
 public:
  const exec::Device& device() const override { return device_; }
  ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                            const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                            exec::WorkerPool& pool) const override;
  PlacedData place_data(const RunContext& /*run*/, const input::PreparedData& /*data*/, const Graph& /*graph*/,
                        const RunMemory& /*memory*/) const override {
    return {};
  }
  void emit_devices(const RunContext& run) const override;

 private:
  exec::CpuDevice device_;
};

}  // namespace lockstep::train
