// Which parameters an optimizer updates with another rate or weight decay (OptimizerOptions::groups). Group 0 has all
// that are in no group of the job.
#pragma once

#include <cstddef>
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
  ParameterGroups(const OptimizerOptions& options, const Attributes& settings, const Graph& graph);

  [[nodiscard]] std::size_t count() const { return settings_.size(); }
  [[nodiscard]] std::size_t of(std::size_t parameter) const { return groups_[parameter]; }
  [[nodiscard]] bool decays(std::size_t parameter) const { return decays_[parameter]; }
  [[nodiscard]] const Attributes& settings(std::size_t group) const { return settings_[group]; }
  [[nodiscard]] double rate(std::size_t group) const { return rates_[group]; }

 private:
  std::vector<Attributes> settings_;  // by group
  std::vector<double> rates_;
  std::vector<std::size_t> groups_;  // by parameter
  std::vector<bool> decays_;
};

/// Throws Error(configuration), with the group's place, if a pattern matches no parameter of the whole model.
void require_matches(const OptimizerOptions& options, const Graph& graph);

}  // namespace lockstep::optim
