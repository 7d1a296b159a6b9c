// Updater: from the exchanged sums to new parameters and states.
//
// Gradient of a parameter: its uses' sums added in graph order, divided once by the global count of samples or
// tokens. The norm for clipping adds the squares of chunks in (parameter, chunk) order. Every rank updates
// everything, chunk by chunk on its workers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/exchange.hpp"
#include "exec/gradient_layout.hpp"
#include "exec/parameters.hpp"
#include "exec/worker_pool.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"
#include "train/optimizer.hpp"

namespace lockstep::train {

struct Model {
  exec::TensorBlock parameters, states;
  std::vector<exec::TensorBlock> optimizer;  ///< per state name of the optimizer, shaped as the parameters
};

class Updater {
 public:
  Updater(const Graph& graph, const Program& program, const exec::GradientLayout& layout,
          const OptimizerOptions& options, double clip_norm, int shards);

  [[nodiscard]] Model make_model(std::uint64_t seed) const;
  [[nodiscard]] std::vector<std::string> optimizer_state_names() const { return optimizer_->state_names(); }

  /// Returns the gradient's global norm before clipping (0 when clipping is off).
  double update(Model& model, const comm::Exchange& exchange, double count, const UpdateScalars& scalars,
                exec::WorkerPool& pool);

  /// What the last update was made from: per parameter, after clipping. Of a frozen one it is not set.
  [[nodiscard]] const exec::TensorBlock& gradient() const { return gradient_; }

 private:
  struct Piece {  // a chunk of a parameter
    std::size_t parameter;
    std::int64_t first, elements;
  };
  void gather(const comm::Exchange& exchange, float count, std::size_t index);
  [[nodiscard]] double norm() const;
  void update_states(Model& model, const comm::Exchange& exchange) const;

  const Graph& graph_;
  const Program& program_;
  const exec::GradientLayout& layout_;
  std::unique_ptr<Optimizer> optimizer_;
  double clip_norm_;
  bool decay_all_;
  int shards_;
  exec::TensorBlock gradient_;
  std::vector<std::vector<std::size_t>> uses_;  // slots by parameter, in graph order
  std::vector<Piece> pieces_;
  std::vector<double> squares_;  // by piece
};

}  // namespace lockstep::train
