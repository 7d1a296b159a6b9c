// Updater: from the reduced sums to new parameters and states.
//
// Gradient of a parameter: its uses' sums added in graph order, divided once by the global count of samples or
// tokens, times the scale of the loss. Where losses are scaled, an update from a gradient that is not all finite is
// skipped, as if the step had not been: parameters, optimizer and running statistics stay. The norm for clipping adds
// the squares of chunks in (parameter, chunk) order. Every rank updates everything, or what it owns (ModelSlices): on
// the CPU chunk by chunk on its workers (CpuUpdater), or on its GPU (GpuUpdater), with the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "exec/executor.hpp"
#include "exec/memory_needs.hpp"
#include "exec/parameters.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"
#include "lockstep/optimizer.hpp"
#include "optim/model_slices.hpp"
#include "optim/other_parts.hpp"

namespace lockstep::optim {

/// What is the same for all parameters in one update.
struct UpdateScalars {
  double learning_rate = 0;
  std::int64_t step = 0;    ///< of the run, from 0
  std::int64_t update = 0;  ///< the optimizer's own count, from 0: less than `step` where updates were skipped
  double loss_scale = 1;    ///< what the sums of gradients were multiplied by
};

struct Model {
  exec::TensorBlock parameters, states;
  std::vector<exec::TensorBlock> optimizer;  ///< per state name of the optimizer, shaped as the parameters
};

/// What an updater is made for; references must outlive it.
struct UpdaterSetup {
  const Graph& graph;  ///< of the executor, as is the program
  const Program& program;
  const comm::GradientBuckets& buckets;
  const OptimizerRegistry& optimizers;
  const OptimizerOptions& options;
  double clip_norm = 0;  ///< 0: no clipping
  int shards = 1;
  bool scales_loss = false;             ///< updates may be skipped
  const PlacedParts* parts = nullptr;   ///< of a model that is cut, of which this rank has a part; need not outlive it
  const ModelSlices* slices = nullptr;  ///< null: every rank keeps and updates all of its model, or part
};

/// What came of an update.
struct UpdateResult {
  std::optional<double> norm;  ///< of the gradient, before clipping; none where clipping is off or it was skipped
  bool skipped = false;        ///< the gradient is not all finite: nothing was changed
  bool operator==(const UpdateResult&) const = default;
};

/// What the optimizer of a job keeps for each parameter.
[[nodiscard]] std::vector<std::string> state_names_of(const OptimizerOptions& options,
                                                      const OptimizerRegistry& optimizers);

class Updater {
 public:
  explicit Updater(const UpdaterSetup& setup);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;
  virtual ~Updater() = default;

  [[nodiscard]] Model make_model(std::uint64_t seed) const;
  [[nodiscard]] std::vector<std::string> optimizer_state_names() const {
    return optimizer_.states ? optimizer_.states(settings_) : std::vector<std::string>();
  }

  /// What begin() will allocate on the device; of a CPU, nothing.
  [[nodiscard]] virtual std::vector<exec::MemoryNeed> memory_needs(const Model& /*model*/) const { return {}; }
  /// The model as it stands on the host is what the first update starts from.
  virtual void begin(const Model& /*model*/) {}
  /// `count`: of samples or tokens. On a GPU, what the host has of the model is older afterwards: fetch().
  virtual UpdateResult update(Model& model, double count, const UpdateScalars& scalars) = 0;
  /// Makes the host's copy of the model what update() has made of it.
  virtual void fetch(Model& /*model*/) {}
  /// Where kernels read the model. After begin().
  [[nodiscard]] virtual exec::ModelValues values(const Model& model) const { return {model.parameters, model.states}; }
  /// What the last update was made from: per parameter, after clipping. Of a frozen one it is not set, nor where
  /// another rank has updated. Before the reducer's next step.
  [[nodiscard]] virtual const exec::TensorBlock& gradient() = 0;

 protected:
  struct Chunk {  // of a parameter; the unit of the norm, whatever the device
    std::size_t parameter;
    std::int64_t first, elements;
  };
  /// One tensor a parameter, of which this rank has what it updates.
  [[nodiscard]] exec::TensorBlock make_state() const;
  [[nodiscard]] bool decays(std::size_t parameter) const {
    return decay_all_ || graph_.at(graph_.parameters[parameter]).decay;
  }

  const Graph& graph_;
  const Program& program_;
  const comm::GradientBuckets& buckets_;
  const OptimizerDef& optimizer_;
  Attributes settings_;  // of the optimizer
  bool decay_all_;
  double clip_norm_;
  int shards_;
  bool scales_loss_;
  const ModelSlices* slices_;                  // null: all is this rank's
  std::optional<exec::TensorBlock> gradient_;  // on the host; none until somebody asks for it
  std::optional<OtherParts> other_parts_;      // none: this rank has the whole model
  using Use = OtherParts::Use;                 // a gradient that is added to others of its parameter
  std::vector<std::vector<Use>> uses_;         // by parameter, in the order of the whole graph; none: frozen
  std::vector<Chunk> chunks_;
};

}  // namespace lockstep::optim
