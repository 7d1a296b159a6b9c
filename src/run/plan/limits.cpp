#include "run/plan/limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "core/cgroup.hpp"
#include "lockstep/op.hpp"
#include "run/plan/report.hpp"
#include "run/plan/search.hpp"
#include "step/exec/kernel_set.hpp"

namespace lockstep::plan {

namespace {

std::int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  const bool known = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()))
               : std::numeric_limits<std::int64_t>::max();
}

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

}  // namespace

MemoryLimit limit_of_process() {
  MemoryLimit least{physical_memory(), "", false};  // a larger value is no limit
  const auto consider = [&](std::int64_t bytes, const char* what, bool counts_untouched) {
    if (bytes < least.bytes) least = {bytes, what, counts_untouched};
  };
  consider(Cgroups().memory_limit(), "the limit of its cgroup", false);
  consider(limit_of(RLIMIT_AS), "RLIMIT_AS (ulimit -v)", true);
  consider(limit_of(RLIMIT_DATA), "RLIMIT_DATA (ulimit -d)", true);
  return least.what.empty() ? MemoryLimit{} : least;
}

std::int64_t memory_of_host() {
  return std::min(physical_memory(), Cgroups().memory_limit());
}

int first_without_room(const std::vector<RankRoom>& ranks) {
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [](const RankRoom& rank) { return rank.limit > 0 && rank.least > rank.limit; });
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

Nearest least_memory(const MemorySetup& setup, const RankSetup& ranks, bool may_divide) {
  Nearest nearest;
  for_each_placement(setup.model, ranks, may_divide, [&](const PlacedModel& placed) {
    std::int64_t most = 0;
    for (const RankMemory& rank : memory_of(placed, setup)) most = std::max(most, rank.least());
    if (nearest.least == 0 || most < nearest.least) nearest = {overrides_of(placed.choice), text_of(placed), most};
  });
  return nearest;
}

std::string remedy(const Graph& graph, std::int64_t limit) {
  const Node* largest = nullptr;
  std::int64_t most = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->view) continue;
    std::int64_t bytes = 0;
    const auto add = [&](const std::vector<ValueId>& values) {
      for (const ValueId id : values) bytes += static_cast<std::int64_t>(graph.at(id).spec.bytes());
    };
    if (!node.op->in_place.forward) add(node.inputs);
    add(node.parameters);
    add(node.outputs);
    if (bytes <= most) continue;
    most = bytes;
    largest = &node;
  }
  if (largest == nullptr || most <= limit)
    return "try more ranks, more micro-batches of fewer samples, or a smaller model";
  return fmt::format(
      "{} alone takes {}, with its weights, what it reads and what it makes, and no part is smaller than "
      "a layer: try more memory, more micro-batches of fewer samples, or a smaller layer",
      exec::layer_label(*largest), size_text(most));
}

std::string refusal(const std::string& who, const RankRoom& room, const std::string& limit, const PlacedModel& placed,
                    const std::vector<RankMemory>& memory, const Nearest& nearest) {
  std::string text = fmt::format("{}: expected room for {} at least ({}), found {}, {}", who, size_text(room.least),
                                 text_of(placed), size_text(room.limit), limit);
  if (nearest.least > 0 && nearest.least <= room.limit) {
    text += fmt::format("; try {}, which needs {} at least", nearest.overrides, size_text(nearest.least));
  } else {
    text += fmt::format("; on so many ranks nothing fits, {} needs {}: {}", nearest.overrides, size_text(nearest.least),
                        remedy(*placed.parts.front().whole, room.limit));
  }
  return text + "\n" + memory_table(memory);
}

}  // namespace lockstep::plan
