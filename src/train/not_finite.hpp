// Whether a model has numbers that are none: what trains on, evaluates or stores it would report nonsense.
#pragma once

#include <chrono>
#include <string>

#include "exec/parameters.hpp"
#include "lockstep/communicator.hpp"
#include "optim/updater.hpp"

namespace lockstep::train {

/// The first parameter or state of which this rank keeps an element that is NaN or infinite: "'conv1.weight' is nan at
/// element 5"; empty: there is none.
[[nodiscard]] std::string not_finite(const exec::TensorBlock& parameters, const exec::TensorBlock& states);

/// Collective: the answer of the first rank that has one.
[[nodiscard]] std::string not_finite_on_any_rank(const optim::Model& model, Communicator& communicator,
                                                 std::chrono::milliseconds timeout);

}  // namespace lockstep::train
