// A model whose parts lie on different ranks (graph/parts.hpp), as every rank knows it: all its tensors, and who has
// them. The ranks of a part have the same values; a weight that several parts use is on the ranks of each. Where ranks
// divide the optimizer's states among them, or parameters, too (optim/model_slices.hpp), each has some elements of
// these.
//
// Where ranks have to agree, the whole model is what they judge by: the files of checkpoints, what initializes a
// model, and its hash are those of the uncut one.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "exec/parameters.hpp"
#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/tensor.hpp"
#include "optim/updater.hpp"

namespace lockstep::checkpoint {

/// Some elements of a tensor.
struct Holding {
  exec::Extent extent;
  std::vector<int> ranks = {};  ///< that have them, ascending; empty: all
};

struct WholeModel {
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<int> ranks = {};  ///< that have it, ascending; empty: all
    /// Who has which elements of it, ascending; empty: `ranks` have all of them.
    std::vector<Holding> holdings = {};
    /// The same of the optimizer's states for a parameter.
    std::vector<Holding> state_holdings = {};
  };
  std::vector<Tensor> parameters, states;  ///< in the order of the whole graph
};

/// Of a graph that is cut; by part: the ranks that it lies on.
[[nodiscard]] WholeModel whole_of(const Graph& graph, const std::vector<GraphPart>& parts,
                                  const std::vector<std::vector<int>>& ranks);
/// Of a model that is not cut.
[[nodiscard]] WholeModel whole_of(const optim::Model& model);

/// Writes down who keeps which elements of the optimizer's states, and of divided parameters. Every rank calls it, with
/// the slices of its own part, or of the model, or null where it is alone with that; `parts` and `ranks` as for
/// whole_of().
void note_slices(WholeModel& whole, const optim::ModelSlices* own, const std::vector<GraphPart>& parts,
                 const std::vector<std::vector<int>>& ranks, Communicator& communicator,
                 std::chrono::milliseconds timeout);

/// Whether this rank is one of those that have a tensor.
[[nodiscard]] bool has(const std::vector<int>& ranks, int rank);
/// The first rank that has it.
[[nodiscard]] inline int first_of(const std::vector<int>& ranks) {
  return ranks.empty() ? 0 : ranks.front();
}

/// Where a rank has each of the tensors, which are a list of the whole model's; empty for those that it does not have.
/// `own` has no others.
[[nodiscard]] std::vector<std::span<float>> own_values(const std::vector<WholeModel::Tensor>& tensors,
                                                       const exec::TensorBlock& own);

/// Collective: what exec::sha256_of() returns for the parameters of the uncut model, on every rank. `timeout`: of
/// messages; hashing may take longer.
[[nodiscard]] std::string parameters_sha256(const WholeModel& whole, const exec::TensorBlock& own,
                                            Communicator& communicator, std::chrono::milliseconds timeout);

}  // namespace lockstep::checkpoint
