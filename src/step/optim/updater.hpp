// Updater: computes new parameters and states from the reduced sums.
//
// The gradient of a parameter is the sum over its uses in graph order, divided once by (global count of samples or
// tokens) * (loss scale). If losses are scaled, an update with a non-finite gradient is skipped, as if the step had not
// happened: parameters, optimizer and running statistics do not change. The norm for clipping adds the squares of
// chunks in (parameter, chunk) order. Every rank updates everything, or what it owns (ModelSlices): on the CPU chunk by
// chunk on its workers (CpuUpdater), or on its GPU (GpuUpdater), with the same bits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "core/round_up.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"
#include "lockstep/optimizer.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/matrix_makers.hpp"
#include "step/optim/model_slices.hpp"
#include "step/optim/other_parts.hpp"
#include "step/optim/parameter_groups.hpp"

namespace lockstep::optim {

/// What is the same for all parameters in one update.
struct UpdateScalars {
  double learning_rate = 0;
  std::int64_t step = 0;    ///< of the run, from 0
  std::int64_t update = 0;  ///< the optimizer's own count, from 0: less than `step` if updates were skipped
  double loss_scale = 1;    ///< factor of the sums of gradients
  double average = 0;       ///< weight of the new parameters in their average; 0: it stays (AverageOptions)
};

struct Model {
  exec::TensorBlock parameters, states;
  /// Per state of the optimizer, and then the parameters' average, if the job has one: a tensor for each parameter.
  std::vector<exec::TensorBlock> optimizer;
};

/// What an updater is made for; references must outlive it.
struct UpdaterSetup {
  const Graph& graph;  ///< the executor's, as is the program
  const Program& program;
  const comm::GradientBuckets& buckets;
  const OptimizerRegistry& optimizers;
  const OptimizerOptions& options;
  double clip_norm = 0;  ///< 0: no clipping
  int micro_batches = 1;
  bool scales_loss = false;             ///< updates may be skipped
  const PlacedParts* parts = nullptr;   ///< if the model is cut and this rank has a part of it; need not outlive the
                                        ///< updater
  const ModelSlices* slices = nullptr;  ///< null: every rank keeps and updates its whole model, or part of the model
  std::int64_t steps_per_epoch = 1;     ///< for lengths of the options in epochs
  Communicator* group = nullptr;        ///< the ranks that have the model, or this part of it; null: this rank alone
  std::chrono::milliseconds timeout{60'000};
};

/// The result of an update.
struct UpdateResult {
  std::optional<double> norm;  ///< of the gradient, before clipping; none if clipping is off or the update was skipped
  bool skipped = false;        ///< some gradient is not finite: nothing was changed
  bool operator==(const UpdateResult&) const = default;
};

/// The name of the average of a parameter, among the states of the optimizer.
inline constexpr const char* kAverageName = "average";

/// A state that the optimizer keeps for each parameter.
struct OptimizerState {
  std::string name;
  std::function<Shape(const Shape& parameter)> shape_of = {};  ///< not set: the parameter's; {0}: it has none
  Shape shape(const Shape& parameter) const { return shape_of ? shape_of(parameter) : parameter; }
  /// Whether a state of this shape is that of a parameter that has none.
  bool is_missing(const Shape& shape) const { return shape_of && shape == Shape{0}; }
};

/// The optimizer's settings, complete. Throws Error(configuration) if there are some that it does not have.
[[nodiscard]] Attributes settings_of(const OptimizerDef& optimizer, const OptimizerOptions& options);

/// The states that a job's optimizer keeps, and then the parameters' average.
[[nodiscard]] std::vector<OptimizerState> states_of(const OptimizerOptions& options,
                                                    const OptimizerRegistry& optimizers);

class Updater {
 public:
  explicit Updater(const UpdaterSetup& setup);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;
  virtual ~Updater() = default;

  Model make_model(std::uint64_t seed) const;
  const std::vector<OptimizerState>& optimizer_states() const { return states_; }

  /// What begin() will allocate on the device; nothing on a CPU.
  virtual std::vector<exec::MemoryNeed> memory_needs(const Model& /*model*/) const { return {}; }
  /// The first update starts from the model's current values on the host.
  virtual void begin(const Model& /*model*/) {}
  /// `count`: of samples or tokens. On a GPU, the host's copy of the model is outdated afterwards, until fetch().
  virtual UpdateResult update(Model& model, double count, const UpdateScalars& scalars) = 0;
  /// Updates the host's copy of the model.
  virtual void fetch(Model& /*model*/) {}
  /// Exchanges the trained parameters with their average, which must be there (has_average()), where kernels read them.
  /// Collective. A second call changes them back.
  virtual void swap_average(Model& model, std::uint64_t step) = 0;
  /// Directions and steps of matrices (MatrixStep) that this rank keeps during an update.
  std::int64_t matrix_elements() const { return makers_.held_elements(rank_, owned()); }
  /// Of a model in parts: gradients of weights that parts share.
  const OtherParts* other_parts() const { return other_parts_ ? &*other_parts_ : nullptr; }
  bool has_average() const { return states_.size() > own_states_; }
  /// Where kernels read the model; only after begin().
  virtual exec::ModelValues values(const Model& model) const { return {model.parameters, model.states}; }
  /// The gradient that the last update used: by parameter, after clipping. It is not set for frozen parameters, and
  /// where another rank has updated, and 0 for groups that were frozen in that update. Call before the reducer's next
  /// step.
  [[nodiscard]] virtual const exec::TensorBlock& gradient() = 0;

 protected:
  struct Chunk {  // of a parameter; the unit of the norm on any device
    std::size_t parameter;
    std::int64_t first, elements;
  };
  /// Makes a block with one tensor per parameter, with the elements that this rank updates.
  exec::TensorBlock make_state() const;
  exec::TensorBlock make_state(const OptimizerState& spec) const;
  const Shape& shape_of(std::size_t parameter) const { return graph_.at(graph_.parameters[parameter]).spec.shape; }
  /// `values`: by chunk; each rank has set those of its own chunks. Returns the values of all chunks of the model, in
  /// order. Collective if ranks divide the chunks, or have parts of the model.
  [[nodiscard]] std::span<const double> gather_numbers(std::vector<double>& values, std::uint64_t step);
  /// The number of chunks of a trained parameter.
  std::size_t chunks_of(std::size_t parameter) const {
    return divide_up<std::int64_t>(graph_.at(graph_.parameters[parameter]).spec.elements(), comm::kChunkElements);
  }
  /// Whether its step is made as a whole.
  bool is_matrix(std::size_t parameter) const {
    return !uses_[parameter].empty() && makes_whole_step(optimizer_, graph_.at(graph_.parameters[parameter]));
  }
  /// Whether this update makes a step of it as a whole.
  bool takes_step(std::size_t parameter, std::int64_t update) const {
    return is_matrix(parameter) && !is_frozen(parameter, update);
  }
  /// Rows and columns.
  std::pair<std::int64_t, std::int64_t> matrix_sizes(std::size_t parameter) const {
    return optim::matrix_sizes(graph_.at(graph_.parameters[parameter]));
  }
  /// The ranks' elements of each parameter; null: every rank updates all.
  const MatrixMakers::Owned* owned() const { return slices_ != nullptr ? &slices_->owned() : nullptr; }
  /// Whether its group is, in the optimizer's update of this number.
  bool is_frozen(std::size_t parameter, std::int64_t update) const {
    return groups_.is_frozen(groups_.of(parameter), update);
  }
  /// Of a group that is not frozen.
  UpdateStep step_of(std::size_t group, const UpdateScalars& scalars) const {
    return {scalars.learning_rate * groups_.rate(group), groups_.own_update(group, scalars.update)};
  }
  /// By group, make(settings, step); what is there of frozen groups is not to be used.
  template <class Make>
  auto for_groups(const UpdateScalars& scalars, const Make& make) const {
    std::vector<decltype(make(groups_.settings(0), step_of(0, scalars)))> all(groups_.count());
    for (std::size_t group = 0; group < groups_.count(); ++group) {
      if (!groups_.is_frozen(group, scalars.update))
        all[group] = make(groups_.settings(group), step_of(group, scalars));
    }
    return all;
  }
  /// The number of chunks of the whole model.
  std::size_t all_chunks() const { return other_parts_ ? other_parts_->chunks() : chunks_.size(); }

  const Graph& graph_;
  const Program& program_;
  const comm::GradientBuckets& buckets_;
  const OptimizerDef& optimizer_;
  ParameterGroups groups_;
  std::vector<OptimizerState> states_;
  double clip_norm_;
  int micro_batches_;
  bool scales_loss_;
  const ModelSlices* slices_;  // null: this rank updates everything
  Communicator* group_;        // null: this rank alone has the model
  int rank_;                   // in the group
  std::chrono::milliseconds timeout_;
  MatrixMakers makers_;
  std::size_t own_states_;                     // of the optimizer; Model::optimizer may have the average, too
  std::optional<exec::TensorBlock> gradient_;  // on the host; none until it is requested
  std::optional<OtherParts> other_parts_;      // none: this rank has the whole model
  using Use = OtherParts::Use;                 // a gradient that is summed with those of the parameter's other uses
  std::vector<std::vector<Use>> uses_;         // by parameter, in the order of the whole graph; none: frozen
  std::vector<Chunk> chunks_;                  // of all trained parameters
  std::vector<std::size_t> own_chunks_;        // numbers of those that this rank updates
  std::vector<int> owners_;                    // by chunk, if ranks divide them
};

}  // namespace lockstep::optim
