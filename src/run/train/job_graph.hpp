// A job's graph: the one that training runs, `check` and `show` print, and evaluation reads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "graph/target_scale.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

/// The type that activations between layers are kept in: bf16 or f16 if the job says so, else f32.
[[nodiscard]] DType precision_of(const Job& job);

/// Of several losses: the layers whose outputs are predictions, each once, "" for the last. Of one loss: none.
[[nodiscard]] std::vector<std::string> outputs_of(const Job& job);

/// What layers predict on a scale of its own, by layer: those whose losses compare with normalized targets. Throws
/// Error(configuration) if the job wants some and has none.
[[nodiscard]] std::map<std::string, TargetScale> scales_of(const Job& job, const input::PreparedData& data,
                                                           const OpRegistry& ops);

/// For one micro-batch, with loss and metrics.
[[nodiscard]] Graph make_job_graph(const JobFile& job, const input::PreparedData& data, const Registries& registries);

/// The same without weights of samples, for sets that have none.
[[nodiscard]] Graph make_evaluation_graph(const JobFile& job, const input::PreparedData& data,
                                          const Registries& registries);

/// For `batch` samples, the model only: no loss, no metrics, and no target among the inputs.
[[nodiscard]] Graph make_prediction_graph(const Job& job, const input::PreparedData& data, const Registries& registries,
                                          std::int64_t batch);

}  // namespace lockstep::train
