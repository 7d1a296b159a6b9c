// Which parameters an optimizer updates with another rate or weight decay, or from a later update on
// (OptimizerOptions::groups). Group 0 has all that are in no group of the job.
//
// A group is frozen for a number of updates, not of steps: where fp16 skips one, the group waits for another. So its
// own count of updates, which bias corrections depend on, follows from the optimizer's, also after a restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep::optim {

class ParameterGroups {
 public:
  /// `settings`: the optimizer's, complete. Throws Error(configuration) if a group has a weight decay and the optimizer
  /// has none.
  ParameterGroups(const OptimizerOptions& options, const Attributes& settings, const Graph& graph,
                  std::int64_t steps_per_epoch);

  std::size_t count() const { return settings_.size(); }
  std::size_t of(std::size_t parameter) const { return groups_[parameter]; }
  bool decays(std::size_t parameter) const { return decays_[parameter]; }
  const Attributes& settings(std::size_t group) const { return settings_[group]; }
  double rate(std::size_t group) const { return rates_[group]; }

  // `update`: the optimizer's count, from 0.
  bool is_frozen(std::size_t group, std::int64_t update) const { return update < unfrozen_[group]; }
  /// How many groups are frozen; it only falls.
  std::size_t count_frozen(std::int64_t update) const;
  /// The count of a group that is not frozen: from 0 on.
  std::int64_t own_update(std::size_t group, std::int64_t update) const { return update - unfrozen_[group]; }

 private:
  std::vector<Attributes> settings_;  // by group
  std::vector<double> rates_;
  std::vector<std::int64_t> unfrozen_;  // the first update that changes them
  std::vector<std::size_t> groups_;     // by parameter
  std::vector<bool> decays_;
};

/// Throws Error(configuration), with the group's place, if a pattern matches no parameter of the whole model.
void require_matches(const OptimizerOptions& options, const Graph& graph);

}  // namespace lockstep::optim
