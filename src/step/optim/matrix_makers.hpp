// MatrixMakers: which rank makes the step of each matrix (MatrixStep).
//
// A step that costs many operations is made by one rank: the most expensive matrices are assigned first, each to the
// rank with the fewest operations so far. The ranks that update elements of a matrix send the directions of those
// elements to its maker, and get their steps back. Equal directions make equal steps, so no bit depends on who makes
// them. Steps that are cheap, or update states that all ranks keep, are made by every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/optimizer.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::optim {

/// Whether the optimizer makes the step of a trained parameter as a whole (MatrixStep).
[[nodiscard]] bool makes_whole_step(const OptimizerDef& optimizer, const Value& parameter);

/// Rows and columns.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> matrix_sizes(const Value& parameter);

/// Elements of a matrix that one rank has and others need.
struct MatrixTransfer {
  static constexpr int kAll = -1;
  int from = 0, to = 0;  ///< `to`: a rank other than `from`; kAll: all others
  std::size_t parameter = 0;
  exec::Extent extent;
};

class MatrixMakers {
 public:
  /// By parameter, which rank updates which elements (ModelSlices::owned()); null: every rank updates all.
  using Owned = std::vector<std::vector<exec::OwnedExtent>>;

  /// `graph`: of the model, or of the part of it, that these ranks train. `settings`: the optimizer's, complete.
  MatrixMakers(const Graph& graph, const OptimizerDef& optimizer, const Attributes& settings, int ranks);

  /// Numbers of all matrices among the graph's parameters: the most expensive first, if ranks share the steps.
  const std::vector<std::size_t>& matrices() const { return matrices_; }
  /// Those whose steps the rank makes, in the same order.
  std::vector<std::size_t> made_by(int rank) const;
  /// Floating-point operations of the steps that the rank makes in an update; 0 if they are few.
  double operations(int rank) const { return operations_[rank]; }
  /// By parameter: the elements whose directions and steps the rank keeps in an update. All of the matrices that it
  /// makes steps of, and its own elements of the others.
  std::vector<std::vector<exec::Extent>> held(int rank, const Owned* owned) const;
  std::int64_t held_elements(int rank, const Owned* owned) const;
  /// The most bytes of host memory that steps take during an update: directions, and what so many workers make steps
  /// with at a time.
  std::int64_t bytes(int rank, const Owned* owned, int workers) const;
  /// The same if the rank updates this share of each matrix.
  std::int64_t bytes(int rank, double share, int workers) const;
  /// On a GPU, which makes one step after the other: directions, and the scratch memory of the largest step.
  std::size_t gpu_bytes(int rank, const Owned* owned) const;
  std::size_t gpu_bytes(int rank, double share) const;
  std::size_t gpu_scratch(int rank) const;

  /// What makers need of directions before they make steps; the same list on every rank.
  std::vector<MatrixTransfer> directions(const Owned* owned) const;
  /// What makers give others of steps.
  std::vector<MatrixTransfer> steps(const Owned* owned) const;

 private:
  exec::Extent whole(std::size_t parameter) const;
  std::int64_t held_elements(int rank, double share) const;
  std::int64_t scratch_elements(int rank, int workers) const;
  bool is_made_by(int rank, std::size_t parameter) const {
    return makers_[parameter] == MatrixTransfer::kAll || makers_[parameter] == rank;
  }

  const Graph& graph_;
  int ranks_;
  std::vector<std::size_t> matrices_;
  std::vector<int> makers_;            // by parameter; kAll: every rank
  std::vector<double> operations_;     // by rank
  std::vector<std::int64_t> scratch_;  // by parameter, in floats
};

}  // namespace lockstep::optim
