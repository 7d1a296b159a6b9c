#include "observe/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/contact_sheet.hpp"
#include "observe/board_pictures.hpp"

namespace lockstep::observe {

namespace {

using Json = nlohmann::ordered_json;

telemetry::BoardImage to_image(const data::Picture& picture) {
  return {picture.height, picture.width, data::png_of(picture)};
}

/// Scalars of the job by path: "optimizer.sgd.momentum". A list is one text.
void flatten(const Json& value, const std::string& path, std::vector<telemetry::HyperParameter>& into) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) flatten(inner, path.empty() ? key : path + "." + key, into);
  } else if (value.is_boolean()) {
    into.emplace_back(path, value.get<bool>());
  } else if (value.is_number()) {
    into.emplace_back(path, value.get<double>());
  } else if (!value.is_null()) {
    into.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

}  // namespace

void Board::start(std::int64_t steps, std::int64_t steps_per_epoch) {
  const TensorboardOptions& options = run_.job.telemetry.tensorboard;
  if (options.histograms.amount > 0) {
    histogram_period_ = std::max<std::int64_t>(1, options.histograms.steps(steps_per_epoch));
  }
  board_ = std::make_unique<telemetry::TensorBoard>(run_.job.run_directory + "/tensorboard", steps);
  if (!board_->is_new()) return;
  write_job();
  board_->graph(board_nodes(graph_));
  if (options.images) write_inputs(steps, steps_per_epoch);
}

void Board::write_job() {
  const Json job = Json::parse(run_.canonical.text);
  board_->text(0, "job", "```\n" + job.dump(2) + "\n```");
  std::vector<telemetry::HyperParameter> parameters;
  flatten(job.contains("job") ? job["job"] : job, "", parameters);
  std::vector<std::string> metrics = {"train/loss"};
  if (data_.validation && !run_.job.evaluate.never) {
    metrics.emplace_back("validation/loss");
    for (const std::string& metric : run_.job.metrics) metrics.push_back("validation/" + metric);
  }
  board_->hyper_parameters(parameters, metrics);
}

void Board::write_inputs(std::int64_t steps, std::int64_t steps_per_epoch) {
  const auto pipeline = data_.pipeline(*data_.train, true);
  const auto& features = pipeline.outputs();
  const bool has_image = std::any_of(features.begin(), features.end(),
                                     [](const Feature& feature) { return feature.kind == Feature::Kind::image; });
  if (!has_image) return;
  const auto epoch = static_cast<std::uint64_t>(steps / std::max<std::int64_t>(1, steps_per_epoch));
  board_->image(steps, "inputs", to_image(data::contact_sheet(*data_.train, pipeline, {.rows = 4, .epoch = epoch})));
}

void Board::event(const events::Event& event) {
  if (board_) board_->event(event);
}

void Board::show(std::int64_t step, const exec::TensorBlock& parameters, const exec::TensorBlock& gradients,
                 exec::WorkerPool& pool) {
  struct Shown {
    const char* what;
    const exec::TensorBlock& block;
    std::size_t index;
  };
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    shown.push_back({"weights", parameters, i});
    if (!graph_.at(graph_.parameters[i]).frozen) shown.push_back({"gradients", gradients, i});
  }
  std::vector<std::pair<std::string, telemetry::Histogram>> histograms(shown.size());
  pool.run(static_cast<int>(shown.size()), [&](int /*worker*/, int task) {
    const auto& [what, block, index] = shown[static_cast<std::size_t>(task)];
    histograms[static_cast<std::size_t>(task)] = {fmt::format("{}/{}", what, path_name(block.name(index))),
                                                  telemetry::histogram_of(block.at(index))};
  });
  board_->histograms(step, histograms);
  if (!run_.job.telemetry.tensorboard.images) return;
  if (const auto filters = first_filters(graph_, parameters)) board_->image(step, "first_filters", to_image(*filters));
}

}  // namespace lockstep::observe
