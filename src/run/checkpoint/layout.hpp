// Which tensor goes into which file, and which rank writes it.
//
// The files depend on the tensors alone: the same step has the same files, byte for byte, on any number of ranks.
// Tensors go in order into `model` files and `optimizer` files of about `part_bytes`; a larger tensor is cut, on chunk
// boundaries. Only the assignment of files to ranks depends on the ranks: the largest file goes to the rank with the
// fewest bytes so far; if the model is divided between ranks, to one of those that have most of the file, and the
// others send what it lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"
#include "run/checkpoint/manifest.hpp"
#include "run/checkpoint/whole_model.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::checkpoint {

/// A tensor to be saved; `values` is the run's memory of it. Every rank has the same list, for the whole model.
struct TensorSource {
  std::string name;
  Shape shape;
  std::span<const float> values;  ///< empty on a rank that has none of it; else the whole tensor, of which only the
                                  ///< rank's own elements are set
  bool optimizer = false;         ///< a state of the optimizer, not of the model
  std::vector<Holding> holdings = {};  ///< which ranks have which elements, ascending; empty: every rank has all
};

/// Elements [begin, end) of a tensor, at `offset` bytes of the file.
struct PartPiece {
  struct Source {
    exec::Extent extent;  ///< within the tensor
    int rank = 0;         ///< that provides them: the rank that writes the file, if it has them
  };
  std::size_t tensor = 0;
  std::int64_t begin = 0, end = 0;
  std::size_t offset = 0;
  std::vector<Source> sources = {};  ///< covering the whole piece, ascending
};

/// A file: a safetensors header and the pieces' bytes, without holes.
struct Part {
  std::string file;
  std::string header;  ///< including the 8 bytes of its length
  std::vector<PartPiece> pieces;
  std::size_t bytes = 0;  ///< of the whole file
  int rank = 0;           ///< the rank that writes it
};

/// Files are not smaller than this unless nothing is left to write, and there are at most 256 of each kind.
inline constexpr std::int64_t kPartBytes = std::int64_t{16} << 20;

/// `own`: this rank's part of the model.
[[nodiscard]] std::vector<TensorSource> sources_of(const WholeModel& whole, const optim::Model& own,
                                                   const std::vector<optim::OptimizerState>& states);
/// For a model that is not cut.
[[nodiscard]] std::vector<TensorSource> sources_of(const optim::Model& model,
                                                   const std::vector<optim::OptimizerState>& states);

/// Assigns files of the given sizes to ranks, by file: the largest goes to the rank with the fewest bytes so far, with
/// ranks of different hosts taken in turn. `may_take`: whether a rank may take a file (each file needs at least one
/// such rank); empty: all may.
[[nodiscard]] std::vector<int> share_out(const std::vector<std::size_t>& bytes, const Topology& topology,
                                         const std::function<bool(std::size_t file, int rank)>& may_take = {});

/// Gives the same result on all ranks. Ranks of different hosts are taken in turn.
[[nodiscard]] std::vector<Part> plan_parts(const std::vector<TensorSource>& tensors, std::int64_t part_bytes,
                                           const Topology& topology);

}  // namespace lockstep::checkpoint
