#include "step/optim/weight_average.hpp"

#include <algorithm>

namespace lockstep::optim {

double average_weight(const AverageOptions& options, std::int64_t steps_per_epoch, std::int64_t step,
                      std::int64_t averaged) {
  const std::int64_t start = options.start.steps(steps_per_epoch);
  const std::int64_t every = std::max<std::int64_t>(1, options.every.steps(steps_per_epoch));
  if (step < start || (step - start) % every != 0) return 0;
  if (averaged == 0) return 1;
  return options.decay > 0 ? 1 - options.decay : 1 / static_cast<double>(averaged + 1);
}

void average_frozen(const Graph& graph, Model& model) {
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!graph.at(graph.parameters[p]).frozen) continue;
    for (const exec::Extent& extent : model.optimizer.back().own(p)) {
      const auto from = model.parameters.at(p, extent);
      std::copy(from.begin(), from.end(), model.optimizer.back().at(p, extent).begin());
    }
  }
}

}  // namespace lockstep::optim
