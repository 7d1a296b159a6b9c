#include "comm/reduce/wave_sums.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::comm {

std::vector<std::vector<WaveSums::Leaf>> leaves_of_waves(const MicroBatchAssignment& assignment,
                                                         std::span<const int> ranks) {
  const int last = assignment.waves.empty() ? -1 : *std::max_element(assignment.waves.begin(), assignment.waves.end());
  std::vector<std::vector<WaveSums::Leaf>> waves(last + 1);
  for (const int rank : ranks) {
    std::vector<int> places(waves.size());
    for (const int micro_batch : assignment.micro_batches_of_rank[rank]) {
      const std::size_t wave = assignment.waves.at(micro_batch);
      waves[wave].push_back({rank, places[wave]++, micro_batch});
    }
  }
  return waves;
}

namespace {

class WavePlanner {
 public:
  WavePlanner(const Tree& tree, const std::vector<TreeNode>& subtrees)
      : merges_(tree_plan(tree, subtrees)), sums_(merges_.nodes.size()) {}

  void add(std::vector<WaveSums::Leaf> leaves) {
    WaveSums::Wave& wave = plan_.waves.emplace_back();
    wave.leaves = std::move(leaves);
    free_ = std::exchange(freed_, {});
    free_.insert(free_.end(), unused_.begin(), unused_.end());
    std::sort(free_.begin(), free_.end());
    open_.clear();
    std::vector<int> order(wave.leaves.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return at(a).micro_batch < at(b).micro_batch; });
    for (const int leaf : order) merge(leaf);
    for (const auto& [node, step] : open_) keep(node, step);
    unused_ = free_;
  }

  [[nodiscard]] WaveSums take() {
    for (std::size_t node = 0; node < sums_.size(); ++node) {
      const int root = merges_.nodes[node].root;
      if (root < 0) continue;
      LOCKSTEP_CHECK(sums_[node] && sums_[node]->kept, "the leaves are all of the subtrees");
      number_first(sums_[node]->number, root);
    }
    return std::move(plan_);
  }

 private:
  using Operand = WaveSums::Operand;

  const WaveSums::Leaf& at(int leaf) const { return plan_.waves.back().leaves[leaf]; }
  [[nodiscard]] std::optional<Operand>& sum(int node) { return sums_[node]; }

  // Adds siblings as long as both are there.
  void merge(int leaf) {
    int node = merges_.leaf_of_micro_batch[at(leaf).micro_batch];
    LOCKSTEP_CHECK(node >= 0, "a leaf is of one of the subtrees");
    sum(node) = Operand{false, leaf};
    open_[node] = -1;
    std::vector<WaveSums::Step>& steps = plan_.waves.back().steps;
    for (const auto* merged = &merges_.nodes[node]; merged->parent >= 0 && sum(merged->sibling).has_value();
         merged = &merges_.nodes[node]) {
      const int left_node = merged->is_left ? node : merged->sibling,
                right_node = merged->is_left ? merged->sibling : node;
      const Operand left = *sum(left_node), right = *sum(right_node);
      const Operand out = !left.kept && right.kept ? right : left;
      if (left.kept && right.kept) freed_.push_back(right.number);
      steps.push_back({out, left, right});
      for (const int operand : {left_node, right_node}) {
        sum(operand).reset();
        open_.erase(operand);
      }
      node = merged->parent;
      sum(node) = out;
      if (!out.kept) open_[node] = static_cast<int>(steps.size()) - 1;
    }
  }

  // The step that has made the sum writes it to where it stays; what earlier steps have freed is still read before.
  void keep(int node, int step) {
    if (free_.empty()) free_.push_back(plan_.kept++);
    const Operand to{true, free_.front()};
    free_.erase(free_.begin());
    std::vector<WaveSums::Step>& steps = plan_.waves.back().steps;
    if (step >= 0) {
      steps[step].out = to;
    } else {
      steps.push_back({to, *sum(node), {}, false});
    }
    sum(node) = to;
  }

  // Swaps the names of two kept sums.
  void number_first(int number, int root) {
    const auto swapped = [&](Operand& operand) {
      if (!operand.kept) return;
      if (operand.number == number) {
        operand.number = root;
      } else if (operand.number == root) {
        operand.number = number;
      }
    };
    for (WaveSums::Wave& wave : plan_.waves) {
      for (WaveSums::Step& step : wave.steps) {
        for (Operand* const operand : {&step.out, &step.left, &step.right}) swapped(*operand);
      }
    }
    for (auto& sum : sums_) {
      if (sum) swapped(*sum);
    }
  }

  MergePlan merges_;
  WaveSums plan_;
  std::vector<std::optional<Operand>> sums_;  ///< by node of merges_: where its sum is; none: not there, or added
  std::map<int, int> open_;                 ///< nodes whose sums are not kept yet: the steps that made them; -1: a leaf
  std::vector<int> free_, freed_, unused_;  ///< kept sums: for this wave, from the next wave on, left by the last one
};

}  // namespace

WaveSums plan_waves(const Tree& tree, const std::vector<TreeNode>& subtrees,
                    std::vector<std::vector<WaveSums::Leaf>> leaves) {
  WavePlanner planner(tree, subtrees);
  for (auto& wave : leaves) planner.add(std::move(wave));
  return planner.take();
}

}  // namespace lockstep::comm
