#include "run/checkpoint/weights_fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>

#include "core/few.hpp"
#include "core/nearest.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr std::size_t kShown = 8;

std::string shown(const NamedShape& tensor) {
  return fmt::format("{} {}", tensor.name, to_string(tensor.shape));
}

void add_list(std::string& text, const std::string& title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  text += fmt::format("\n  {}: {}", title, few_of(items, kShown));
}

/// For each missing tensor the unused one of its shape with the nearest name; each is taken once.
std::vector<std::string> likely_pairs(const WeightsFit& fit) {
  std::vector<std::string> pairs;
  std::vector<NamedShape> left = fit.unused;
  for (const NamedShape& ours : std::span(fit.missing).first(std::min(fit.missing.size(), kShown))) {
    auto best = left.end();
    int least = std::numeric_limits<int>::max();
    for (auto other = left.begin(); other != left.end(); ++other) {
      if (other->shape != ours.shape) continue;
      const int distance = edit_distance(ours.name, other->name);
      if (distance < least) {
        least = distance;
        best = other;
      }
    }
    if (best == left.end()) continue;
    pairs.push_back(fmt::format("{}: {}", ours.name, best->name));
    left.erase(best);
  }
  return pairs;
}

std::vector<std::string> all_shown(const std::vector<NamedShape>& tensors) {
  std::vector<std::string> items;
  for (const auto& tensor : tensors) items.push_back(shown(tensor));
  return items;
}

}  // namespace

std::string WeightsFit::message(const std::string& file) const {
  const std::size_t found = wanted - missing.size() - refused.size();
  std::string text = fmt::format("{}: expected {} tensors of the model, found {} that fit", file, wanted, found);
  for (std::size_t i = 0; i < std::min(refused.size(), kShown); ++i) text += "\n  " + refused[i];
  if (refused.size() > kShown) text += fmt::format("\n  and {} more", refused.size() - kShown);
  add_list(text, "only in the model", all_shown(missing));
  add_list(text, "only in the file", all_shown(unused));
  add_list(text, "likely the same, for initialize.map", likely_pairs(*this));
  return text + "\n  initialize.only takes some of the parameters";
}

}  // namespace lockstep::checkpoint
