// CachedModel: a model of tokens, position by position. Each attention keeps the keys and values of the positions
// before, so a position is computed once, and not again for each token that follows.
//
// The bits are those of the whole window: every other op computes a position from that position alone, a row of a
// matrix product does not depend on the number of rows (device/cpu/gemm.hpp), and attention adds over the cached keys
// in the blocks and the order of the whole. On CPUs, in float32.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

class CachedModel {
 public:
  /// Why positions cannot be computed one after the other; "" if they can. The graph is of one sample, tokens [1, T]
  /// to a prediction [1, T, vocabulary], and not lowered.
  [[nodiscard]] static std::string refusal(const Graph& graph);

  /// Only where refusal() is "". Graph and values must outlive it; the values are read in place and must not change.
  CachedModel(const Graph& graph, const ModelValues& values);
  ~CachedModel();
  CachedModel(const CachedModel&) = delete;
  CachedModel& operator=(const CachedModel&) = delete;

  std::int64_t context() const;    ///< T
  std::int64_t positions() const;  ///< computed so far
  /// Computes the next positions, at least one and no more than fit, and returns the prediction of the last one, which
  /// is valid until the next call.
  std::span<const float> append(std::span<const std::int32_t> tokens);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::exec
