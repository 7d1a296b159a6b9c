// The owner's additions on a GPU: sums of slices in the tree's order. Elementwise, so their bits are those of
// comm/add.cpp.
#pragma once

#include <span>
#include <vector>

#include "backend/gpu/grid.hpp"
#include "comm/slice_plan.hpp"

namespace lockstep::comm {

/// What a plan's additions make of the partial sums, into `sum` (plan.count floats). `roots` and `received` as in
/// NcclGroup::exchange; what was received is overwritten, and so is the own slice of `roots`.
template <class Grid>
void add_slices(GpuQueue* queue, const SlicePlan& plan, std::span<float* const> roots, float* received, float* sum) {
  if (plan.count == 0) return;
  std::vector<float*> operands;
  for (const auto& partial : plan.partials) {
    operands.push_back(partial.own_root >= 0 ? roots[static_cast<std::size_t>(partial.own_root)] + plan.first
                                             : received + partial.at);
  }
  for (const Addition& addition : plan.additions) {
    float* left = operands[static_cast<std::size_t>(addition.left)];
    const float* right = operands[static_cast<std::size_t>(addition.right)];
    const bool last = &addition == &plan.additions.back();
    float* out = last ? sum : left;  // left is not needed again: each partial sum is added once
    Grid::each(queue, plan.count, backend::AddBody{left, right, out});
    operands.push_back(out);
  }
  if (plan.additions.empty()) Grid::each(queue, plan.count, backend::CopyBody{operands[0], sum});
}

}  // namespace lockstep::comm
