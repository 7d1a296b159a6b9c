#include "optim/updater.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::optim {

namespace {

Attributes settings_of(const OptimizerDef& optimizer, const OptimizerOptions& options) {
  return complete(optimizer.attributes, options.attributes, "optimizer '" + optimizer.name + "'", optimizer.checks);
}

}  // namespace

std::vector<std::string> state_names_of(const OptimizerOptions& options, const OptimizerRegistry& optimizers) {
  const OptimizerDef& optimizer = optimizers.at(options.kind);
  auto names = optimizer.states ? optimizer.states(settings_of(optimizer, options)) : std::vector<std::string>();
  if (options.average) names.emplace_back(kAverageName);
  return names;
}

Updater::Updater(const UpdaterSetup& setup)
    : graph_(setup.graph),
      program_(setup.program),
      buckets_(setup.buckets),
      optimizer_(setup.optimizers.at(setup.options.kind)),
      groups_(setup.options, settings_of(optimizer_, setup.options), setup.graph),
      state_names_(state_names_of(setup.options, setup.optimizers)),
      clip_norm_(setup.clip_norm),
      shards_(setup.shards),
      scales_loss_(setup.scales_loss),
      slices_(setup.slices),
      own_states_(state_names_.size() - (setup.options.average ? 1 : 0)),
      uses_(setup.graph.parameters.size()) {
  if (setup.parts != nullptr) other_parts_.emplace(*setup.parts, program_);
  LOCKSTEP_CHECK(own_states_ <= kMaxOptimizerStates, "an optimizer keeps few states");
  // Slots are in backward order, the reverse of graph order.
  for (std::size_t i = program_.slots.size(); i-- > 0;) {
    const Slot& slot = program_.slots[i];
    if (slot.kind == Slot::Kind::gradient) uses_[static_cast<std::size_t>(slot.target)].push_back({true, i});
  }
  if (other_parts_) {
    for (const auto& [parameter, uses] : other_parts_->shared()) uses_[parameter] = uses;
  }
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    if (uses_[p].empty()) continue;  // frozen
    const std::int64_t elements = graph_.at(graph_.parameters[p]).spec.elements();
    for (std::int64_t at = 0; at < elements; at += comm::kChunkElements) {
      chunks_.push_back({p, at, std::min(comm::kChunkElements, elements - at)});
    }
  }
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (slices_ != nullptr) owners_.push_back(slices_->owner(chunks_[i].parameter, chunks_[i].first));
    if (slices_ == nullptr || owners_[i] == slices_->rank()) own_chunks_.push_back(i);
  }
}

std::span<const double> Updater::gather_numbers(std::vector<double>& values, std::uint64_t step) {
  if (slices_ != nullptr) slices_->gather_numbers(values, owners_, step);
  if (!other_parts_) return values;
  return other_parts_->gather(values, step);
}

std::int64_t Updater::matrix_elements() const {
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < uses_.size(); ++p) {
    if (is_matrix(p)) elements += graph_.at(graph_.parameters[p]).spec.elements();
  }
  return elements;
}

exec::TensorBlock Updater::make_state() const {
  return slices_ != nullptr ? slices_->make_state() : exec::TensorBlock(graph_, graph_.parameters);
}

Model Updater::make_model(std::uint64_t seed) const {
  Model model;
  model.parameters = slices_ != nullptr ? slices_->make_parameters() : exec::TensorBlock(graph_, graph_.parameters);
  model.states = exec::TensorBlock(graph_, graph_.states);
  exec::initialize(graph_, graph_.parameters, seed, model.parameters);
  exec::initialize(graph_, graph_.states, seed, model.states);
  for (std::size_t i = 0; i < optimizer_state_names().size(); ++i) model.optimizer.push_back(make_state());
  return model;
}

}  // namespace lockstep::optim
