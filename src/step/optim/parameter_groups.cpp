#include "step/optim/parameter_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/nearest.hpp"
#include "core/words.hpp"
#include "graph/fail_at.hpp"

namespace lockstep::optim {

ParameterGroups::ParameterGroups(const OptimizerOptions& options, const Attributes& settings, const Graph& graph,
                                 std::int64_t steps_per_epoch) {
  settings_.push_back(settings);
  rates_.push_back(1);
  unfrozen_.push_back(0);
  for (const ParameterGroup& group : options.groups) {
    Attributes& own = settings_.emplace_back(settings);
    rates_.push_back(group.rate);
    unfrozen_.push_back(group.freeze_until.steps(steps_per_epoch));
    if (!group.weight_decay) continue;
    if (!settings.has("weight_decay")) {
      fail_at(group.place,
              fmt::format("weight_decay: the optimizer '{}' has none; leave it out of the group", options.kind));
    }
    own.set("weight_decay", *group.weight_decay);
  }
  const bool decay_all = settings.has("decay_all") && settings.boolean("decay_all");
  for (const ValueId id : graph.parameters) {
    const Value& value = graph.at(id);
    const auto found = std::find_if(options.groups.begin(), options.groups.end(),
                                    [&](const ParameterGroup& group) { return matches_any(group.match, value.name); });
    const bool in_group = found != options.groups.end();
    groups_.push_back(in_group ? static_cast<std::size_t>(found - options.groups.begin()) + 1 : 0);
    decays_.push_back(decay_all || value.decay || (in_group && found->weight_decay.has_value()));
  }
}

std::size_t ParameterGroups::count_frozen(std::int64_t update) const {
  return std::count_if(unfrozen_.begin(), unfrozen_.end(), [&](std::int64_t first) { return update < first; });
}

void require_matches(const OptimizerOptions& options, const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.parameters) names.push_back(graph.at(id).name);
  for (const ParameterGroup& group : options.groups) {
    for (const std::string& pattern : group.match) {
      const bool any =
          std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(pattern, name); });
      if (any) continue;
      fail_at(group.place, fmt::format("match: no parameter matches '{}'{}; `lockstep show` names them", pattern,
                                       did_you_mean(pattern, names)));
    }
  }
}

}  // namespace lockstep::optim
