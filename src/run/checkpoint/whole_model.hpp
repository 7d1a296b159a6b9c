// A model whose parts are on different ranks (graph/parts.hpp), as every rank knows it: all its tensors, and the ranks
// that have each. The ranks of a part have the same values; a weight that several parts use is on the ranks of each. If
// ranks divide the optimizer's states among them, or parameters, too (step/optim/model_slices.hpp), each has some
// elements of these.
//
// Whatever ranks must agree on refers to the whole model: the files of checkpoints, initialisation, and the hash are
// those of the uncut model.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::checkpoint {

/// Some elements of a tensor.
struct Holding {
  exec::Extent extent;
  std::vector<int> ranks = {};  ///< the ranks that have them, ascending; empty: all
};

struct WholeModel {
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<int> ranks = {};  ///< the ranks that have it, ascending; empty: all
    /// Which ranks have which elements, ascending; empty: `ranks` have all of them.
    std::vector<Holding> holdings = {};
    /// The same for the optimizer's states of a parameter.
    std::vector<Holding> state_holdings = {};
  };
  std::vector<Tensor> parameters, states;  ///< in the order of the whole graph
};

/// For a graph that is cut. `ranks`: by part.
[[nodiscard]] WholeModel whole_of(const Graph& graph, const std::vector<GraphPart>& parts,
                                  const std::vector<std::vector<int>>& ranks);
/// For a model that is not cut.
[[nodiscard]] WholeModel whole_of(const optim::Model& model);

/// Records which ranks keep which elements of the optimizer's states, and of divided parameters. Collective; `own`: the
/// slices of this rank's part, or of the model, or null if this rank is the only one that has it; `parts` and `ranks`
/// as for whole_of().
void note_slices(WholeModel& whole, const optim::ModelSlices* own, const std::vector<GraphPart>& parts,
                 const std::vector<std::vector<int>>& ranks, Communicator& communicator,
                 std::chrono::milliseconds timeout);

/// Whether this rank is one of those that have a tensor.
[[nodiscard]] bool has(const std::vector<int>& ranks, int rank);
/// The first rank that has it.
[[nodiscard]] inline int first_of(const std::vector<int>& ranks) {
  return ranks.empty() ? 0 : ranks.front();
}

/// This rank's memory of each of the tensors, which are a list of the whole model's; empty for those that it does not
/// have. `own` must not have others.
[[nodiscard]] std::vector<std::span<float>> own_values(const std::vector<WholeModel::Tensor>& tensors,
                                                       const exec::TensorBlock& own);

/// Collective: the result of exec::sha256_of() for the parameters of the uncut model, on every rank. `timeout`: for
/// messages; hashing may take longer.
[[nodiscard]] std::string parameters_sha256(const WholeModel& whole, const exec::TensorBlock& own,
                                            Communicator& communicator, std::chrono::milliseconds timeout);

}  // namespace lockstep::checkpoint
