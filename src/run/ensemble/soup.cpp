#include "run/ensemble/soup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lockstep/error.hpp"

namespace lockstep::ensemble {

namespace {

void require_alike(const exec::TensorBlock& one, const exec::TensorBlock& other, const checkpoint::SavedModel& model) {
  const std::size_t both = std::min(one.size(), other.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (one.name(i) == other.name(i) && one.shape(i) == other.shape(i)) continue;
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: expected '{}' {}, as in the first member, found '{}' {}; only weights of one model can "
                    "be averaged",
                    model.path, one.name(i), to_string(one.shape(i)), other.name(i), to_string(other.shape(i))));
  }
  if (one.size() == other.size()) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected {} tensors, as in the first member, found {}; only weights of one model can be "
                          "averaged",
                          model.path, one.size(), other.size()));
}

void average(const std::vector<const exec::TensorBlock*>& blocks, exec::TensorBlock& into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    const auto out = into.at(i);
    for (std::size_t e = 0; e < out.size(); ++e) {
      double sum = 0;
      for (const auto* block : blocks) sum += block->at(i)[e];
      out[e] = sum / blocks.size();
    }
  }
}

}  // namespace

void average(const std::vector<const checkpoint::SavedModel*>& models, checkpoint::SavedModel& into) {
  LOCKSTEP_CHECK(!models.empty(), "an average of some models");
  std::vector<const exec::TensorBlock*> parameters, states;
  for (const auto* model : models) {
    require_alike(models[0]->parameters, model->parameters, *model);
    require_alike(models[0]->states, model->states, *model);
    parameters.push_back(&model->parameters);
    states.push_back(&model->states);
  }
  average(parameters, into.parameters);
  average(states, into.states);
}

std::vector<std::size_t> greedy_soup(const std::vector<double>& values, bool higher_is_better,
                                     const std::function<double(const std::vector<std::size_t>&)>& value_of) {
  const auto is_better = [&](double a, double b) { return higher_is_better ? a > b : a < b; };
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return is_better(values[a], values[b]); });
  std::vector<std::size_t> soup = {order.at(0)};
  double value = values[order[0]];
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::vector<std::size_t> more = soup;
    more.insert(std::upper_bound(more.begin(), more.end(), order[i]), order[i]);
    const double with = value_of(more);
    if (is_better(value, with)) continue;
    soup = std::move(more);
    value = with;
  }
  return soup;
}

}  // namespace lockstep::ensemble
