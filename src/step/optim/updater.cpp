#include "step/optim/updater.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::optim {

Attributes settings_of(const OptimizerDef& optimizer, const OptimizerOptions& options) {
  return complete(optimizer.attributes, options.attributes, "optimizer '" + optimizer.name + "'", optimizer.checks);
}

std::vector<OptimizerState> states_of(const OptimizerOptions& options, const OptimizerRegistry& optimizers) {
  const OptimizerDef& optimizer = optimizers.at(options.kind);
  std::vector<OptimizerState> states;
  if (optimizer.states) {
    for (const std::string& name : optimizer.states(settings_of(optimizer, options))) {
      OptimizerState& state = states.emplace_back(OptimizerState{name});
      if (!optimizer.state_shape) continue;
      state.shape_of = [shape_of = optimizer.state_shape, number = states.size() - 1](const Shape& parameter) {
        return shape_of(number, parameter);
      };
    }
  }
  if (options.average) states.push_back({kAverageName});
  return states;
}

Updater::Updater(const UpdaterSetup& setup)
    : graph_(setup.graph),
      program_(setup.program),
      buckets_(setup.buckets),
      optimizer_(setup.optimizers.at(setup.options.kind)),
      groups_(setup.options, settings_of(optimizer_, setup.options), setup.graph, setup.steps_per_epoch),
      states_(states_of(setup.options, setup.optimizers)),
      clip_norm_(setup.clip_norm),
      micro_batches_(setup.micro_batches),
      scales_loss_(setup.scales_loss),
      slices_(setup.slices),
      group_(setup.group),
      rank_(group_ != nullptr ? group_->rank() : 0),
      timeout_(setup.timeout),
      makers_(graph_, optimizer_, groups_.settings(0), group_ != nullptr ? group_->size() : 1),
      own_states_(states_.size() - (setup.options.average ? 1 : 0)),
      uses_(setup.graph.parameters.size()) {
  if (setup.parts != nullptr) other_parts_.emplace(*setup.parts, program_);
  LOCKSTEP_CHECK(own_states_ <= kMaxOptimizerStates, "an optimizer keeps few states");
  // Slots are in backward order, the reverse of graph order.
  for (std::size_t i = program_.slots.size(); i-- > 0;) {
    const Slot& slot = program_.slots[i];
    if (slot.kind == Slot::Kind::gradient) uses_[slot.target].push_back({true, i});
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

exec::TensorBlock Updater::make_state() const {
  return slices_ != nullptr ? slices_->make_state() : exec::TensorBlock(graph_, graph_.parameters);
}

// A rank has all of what has another shape.
exec::TensorBlock Updater::make_state(const OptimizerState& spec) const {
  if (!spec.shape_of) return make_state();
  std::vector<Shape> shapes;
  std::vector<std::vector<exec::Extent>> own(graph_.parameters.size());
  if (slices_ != nullptr) own = slices_->own();
  for (std::size_t p = 0; p < own.size(); ++p) {
    shapes.push_back(spec.shape(shape_of(p)));
    if (slices_ == nullptr || shapes[p] != shape_of(p)) own[p] = {{0, elements(shapes[p])}};
  }
  return {graph_, graph_.parameters, shapes, std::move(own)};
}

Model Updater::make_model(std::uint64_t seed) const {
  Model model;
  model.parameters = slices_ != nullptr ? slices_->make_parameters() : exec::TensorBlock(graph_, graph_.parameters);
  model.states = exec::TensorBlock(graph_, graph_.states);
  exec::initialize(graph_, graph_.parameters, seed, model.parameters);
  exec::initialize(graph_, graph_.states, seed, model.states);
  for (const OptimizerState& state : states_) model.optimizer.push_back(make_state(state));
  return model;
}

}  // namespace lockstep::optim
