// Weights of several trained models, averaged: one model with the cost of one (Wortsman et al., "Model soups: averaging
// weights of multiple fine-tuned models improves accuracy without increasing inference time", 2022).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/checkpoint/saved_model.hpp"

namespace lockstep::ensemble {

/// The mean of each element of parameters and states (running statistics), in double, added in order and rounded once;
/// written over `into`, which has the graph of all. Throws Error(configuration) if one has other tensors.
void average(const std::vector<const checkpoint::SavedModel*>& models, checkpoint::SavedModel& into);

/// Greedy soup: from the best model down, one is added if the average with it is at least as good as that without.
/// `values`: of the single models; `value_of`: of the average of some, ascending. Returns which models are in the soup,
/// ascending.
[[nodiscard]] std::vector<std::size_t> greedy_soup(
    const std::vector<double>& values, bool higher_is_better,
    const std::function<double(const std::vector<std::size_t>&)>& value_of);

}  // namespace lockstep::ensemble
