#include "step/optim/matrix_makers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "step/optim/newton_schulz_scratch.hpp"

namespace lockstep::optim {

bool makes_whole_step(const OptimizerDef& optimizer, const Value& parameter) {
  if (!optimizer.matrix_step) return false;
  return optimizer.every_matrix ? parameter.spec.shape.size() > 1 : parameter.matrix;
}

std::pair<std::int64_t, std::int64_t> matrix_sizes(const Value& parameter) {
  const std::int64_t rows = parameter.spec.shape.front();
  return {rows, rows == 0 ? 0 : parameter.spec.elements() / rows};
}

MatrixMakers::MatrixMakers(const Graph& graph, const OptimizerDef& optimizer, const Attributes& settings, int ranks)
    : graph_(graph),
      ranks_(ranks),
      makers_(graph.parameters.size(), MatrixTransfer::kAll),
      operations_(ranks),
      scratch_(makers_.size()) {
  for (std::size_t p = 0; p < makers_.size(); ++p) {
    const Value& value = graph.at(graph.parameters[p]);
    if (value.frozen || !makes_whole_step(optimizer, value)) continue;
    matrices_.push_back(p);
    const auto [rows, columns] = matrix_sizes(value);
    if (optimizer.matrix_scratch) scratch_[p] = optimizer.matrix_scratch(rows, columns);
  }
  if (!optimizer.matrix_operations || optimizer.state_shape) return;
  std::vector<double> of_step(makers_.size());
  for (const std::size_t p : matrices_) {
    const auto [rows, columns] = matrix_sizes(graph.at(graph.parameters[p]));
    of_step[p] = optimizer.matrix_operations(settings, rows, columns);
  }
  std::stable_sort(matrices_.begin(), matrices_.end(),
                   [&](std::size_t a, std::size_t b) { return of_step[a] > of_step[b]; });
  using Load = std::pair<double, int>;  // operations, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int rank = 0; rank < ranks; ++rank) loads.emplace(0.0, rank);
  for (const std::size_t p : matrices_) {
    const auto [operations, rank] = loads.top();
    loads.pop();
    makers_[p] = rank;
    operations_[rank] = operations + of_step[p];
    loads.emplace(operations + of_step[p], rank);
  }
}

exec::Extent MatrixMakers::whole(std::size_t parameter) const {
  return {0, graph_.at(graph_.parameters[parameter]).spec.elements()};
}

std::vector<std::size_t> MatrixMakers::made_by(int rank) const {
  std::vector<std::size_t> made;
  for (const std::size_t p : matrices_) {
    if (is_made_by(rank, p)) made.push_back(p);
  }
  return made;
}

std::vector<std::vector<exec::Extent>> MatrixMakers::held(int rank, const Owned* owned) const {
  std::vector<std::vector<exec::Extent>> held(makers_.size());
  for (const std::size_t p : matrices_) {
    if (owned == nullptr || is_made_by(rank, p)) {
      held[p] = {whole(p)};
      continue;
    }
    for (const auto& [extent, owner] : (*owned)[p]) {
      if (owner == rank) held[p].push_back(extent);
    }
  }
  return held;
}

std::int64_t MatrixMakers::held_elements(int rank, const Owned* owned) const {
  std::int64_t elements = 0;
  for (const auto& of_matrix : held(rank, owned)) {
    for (const exec::Extent& extent : of_matrix) elements += extent.end - extent.begin;
  }
  return elements;
}

std::int64_t MatrixMakers::held_elements(int rank, double share) const {
  std::int64_t elements = 0;
  for (const std::size_t p : matrices_) {
    const double all = whole(p).end;
    elements += std::llround(is_made_by(rank, p) ? all : all * share);
  }
  return elements;
}

std::int64_t MatrixMakers::scratch_elements(int rank, int workers) const {
  std::vector<std::int64_t> scratch;
  for (const std::size_t p : made_by(rank)) scratch.push_back(scratch_[p]);
  std::sort(scratch.begin(), scratch.end(), std::greater<>());
  scratch.resize(std::min(scratch.size(), static_cast<std::size_t>(workers)));
  return std::accumulate(scratch.begin(), scratch.end(), std::int64_t{0});
}

std::int64_t MatrixMakers::bytes(int rank, const Owned* owned, int workers) const {
  return (held_elements(rank, owned) + scratch_elements(rank, workers)) * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t MatrixMakers::bytes(int rank, double share, int workers) const {
  return (held_elements(rank, share) + scratch_elements(rank, workers)) * static_cast<std::int64_t>(sizeof(float));
}

std::size_t MatrixMakers::gpu_scratch(int rank) const {
  std::size_t bytes = 0;
  for (const std::size_t p : made_by(rank)) {
    const auto [rows, columns] = matrix_sizes(graph_.at(graph_.parameters[p]));
    bytes = std::max(bytes, NewtonSchulzScratch(nullptr, rows, columns).bytes);
  }
  return bytes;
}

std::size_t MatrixMakers::gpu_bytes(int rank, const Owned* owned) const {
  return held_elements(rank, owned) * sizeof(float) + gpu_scratch(rank);
}

std::size_t MatrixMakers::gpu_bytes(int rank, double share) const {
  return held_elements(rank, share) * sizeof(float) + gpu_scratch(rank);
}

std::vector<MatrixTransfer> MatrixMakers::directions(const Owned* owned) const {
  std::vector<MatrixTransfer> transfers;
  if (owned == nullptr || ranks_ == 1) return transfers;
  for (const std::size_t p : matrices_) {
    for (const auto& [extent, owner] : (*owned)[p]) {
      if (makers_[p] != owner) transfers.push_back({owner, makers_[p], p, extent});
    }
  }
  return transfers;
}

std::vector<MatrixTransfer> MatrixMakers::steps(const Owned* owned) const {
  std::vector<MatrixTransfer> transfers;
  if (ranks_ == 1) return transfers;
  for (const std::size_t p : matrices_) {
    if (makers_[p] == MatrixTransfer::kAll) continue;
    if (owned == nullptr) {
      transfers.push_back({makers_[p], MatrixTransfer::kAll, p, whole(p)});
      continue;
    }
    for (const auto& [extent, owner] : (*owned)[p]) {
      if (makers_[p] != owner) transfers.push_back({makers_[p], owner, p, extent});
    }
  }
  return transfers;
}

}  // namespace lockstep::optim
