// Whether a model has, or predicts, numbers that are none: what trains on it, evaluates, stores or prints it would
// report nonsense.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "lockstep/communicator.hpp"
#include "lockstep/data_set.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::train {

/// The first parameter or state of which this rank keeps an element that is NaN or infinite: "'conv1.weight' is nan at
/// element 5"; empty: there is none.
[[nodiscard]] std::string not_finite(const exec::TensorBlock& parameters, const exec::TensorBlock& states);

/// Collective: the answer of the first rank that has one.
[[nodiscard]] std::string not_finite_on_any_rank(const optim::Model& model, Communicator& communicator,
                                                 std::chrono::milliseconds timeout);

/// Throws Error(diverged) that names the first sample with a number that is not finite. `numbers`: as many for each
/// sample of the set. `what`: "predictions". `model`: its path.
void require_finite(const DataSet& set, std::span<const float> numbers, const char* what, const std::string& model);

}  // namespace lockstep::train
