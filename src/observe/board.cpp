#include "observe/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/round_up.hpp"
#include "data/contact_sheet.hpp"
#include "lockstep/op.hpp"

namespace lockstep::observe {

namespace {

constexpr std::int64_t kColumns = 8, kGap = 2;
constexpr std::int64_t kCell = 40;  // approximate pixels
constexpr std::uint8_t kPaper = 250;
constexpr float kMiddle = 127.5F;

/// Weights [filters, channels, height, width] of one layer.
struct Filters {
  std::int64_t count, channels, height, width;
  std::span<const float> weights;
  float largest;

  std::uint8_t shade(std::int64_t filter, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    const std::int64_t index = ((filter * channels + channel) * height + y) * width + x;
    const float value = largest > 0 ? weights[index] / largest : 0;
    return std::clamp(kMiddle + kMiddle * value, 0.0F, 255.0F);
  }
};

std::optional<Filters> filters_of(const Graph& graph, const exec::TensorBlock& parameters) {
  const auto conv = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.op->name == "conv" && !node.parameters.empty(); });
  if (conv == graph.nodes.end()) return std::nullopt;
  const auto at = std::find(graph.parameters.begin(), graph.parameters.end(), conv->parameters.front());
  const std::size_t index = at - graph.parameters.begin();
  if (index >= parameters.size()) return std::nullopt;  // of another part
  const Shape& shape = parameters.shape(index);
  const bool all_here = std::ssize(parameters.at(index)) == elements(shape);
  if (shape.size() != 4 || !all_here) return std::nullopt;
  float largest = 0;
  for (const float weight : parameters.at(index)) {
    if (std::isfinite(weight)) largest = std::max(largest, std::abs(weight));
  }
  return Filters{shape[0], shape[1], shape[2], shape[3], parameters.at(index), largest};
}

void draw(const Filters& filters, std::int64_t filter, std::int64_t zoom, data::Picture& picture) {
  const std::int64_t top = filter / kColumns * (filters.height * zoom + kGap) + kGap;
  const std::int64_t left = filter % kColumns * (filters.width * zoom + kGap) + kGap;
  const std::int64_t green = filters.channels == 3 ? 1 : 0, blue = filters.channels == 3 ? 2 : 0;
  for (std::int64_t y = 0; y < filters.height * zoom; ++y) {
    for (std::int64_t x = 0; x < filters.width * zoom; ++x) {
      const auto shade = [&](std::int64_t channel) { return filters.shade(filter, channel, y / zoom, x / zoom); };
      picture.set(top + y, left + x, shade(0), shade(green), shade(blue));
    }
  }
}

std::string settings_of(const Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attributes.all()) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, to_string(value));
  }
  return text;
}

// False if other ranks have elements of it that this rank lacks: of a gradient, or of a divided parameter.
bool is_whole(const exec::TensorBlock& block, std::size_t tensor) {
  const auto own = block.own(tensor);
  return own.size() == 1 && own[0] == exec::Extent{0, static_cast<std::int64_t>(block.at(tensor).size())};
}

}  // namespace

std::string path_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

std::vector<telemetry::BoardNode> board_nodes(const Graph& graph) {
  std::vector<telemetry::BoardNode> nodes;
  std::map<ValueId, std::string> made_by;  // "conv1", and "split:1" for a second output
  const auto add_values = [&](const std::vector<ValueId>& ids, const char* op) {
    for (const ValueId id : ids) {
      const Value& value = graph.at(id);
      made_by[id] = path_name(value.name);
      nodes.push_back({made_by[id], op, {}, value.spec.shape, ""});
    }
  };
  add_values(graph.inputs, "input");
  add_values(graph.parameters, "parameter");
  add_values(graph.states, "state");
  for (const Node& node : graph.nodes) {
    telemetry::BoardNode added{path_name(node.name), node.op->name, {}, {}, settings_of(node)};
    for (const auto* list : {&node.inputs, &node.parameters, &node.states}) {
      for (const ValueId id : *list) added.inputs.push_back(made_by[id]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      made_by[node.outputs[i]] = i == 0 ? added.name : fmt::format("{}:{}", added.name, i);
    }
    if (!node.outputs.empty()) added.shape = graph.at(node.outputs.front()).spec.shape;
    nodes.push_back(std::move(added));
  }
  return nodes;
}

std::optional<data::Picture> first_filters(const Graph& graph, const exec::TensorBlock& parameters) {
  const auto filters = filters_of(graph, parameters);
  if (!filters) return std::nullopt;
  const std::int64_t zoom = std::max<std::int64_t>(1, kCell / std::max(filters->height, filters->width));
  const std::int64_t rows = divide_up<std::int64_t>(filters->count, kColumns);
  data::Picture picture(rows * (filters->height * zoom + kGap) + kGap,
                        std::min(filters->count, kColumns) * (filters->width * zoom + kGap) + kGap, kPaper);
  for (std::int64_t filter = 0; filter < filters->count; ++filter) draw(*filters, filter, zoom, picture);
  return picture;
}

namespace {

using Json = nlohmann::ordered_json;

telemetry::BoardImage to_image(const data::Picture& picture) {
  return {picture.height, picture.width, data::png_of(picture)};
}

/// The job's scalars by path: "optimizer.sgd.momentum". A list becomes one text.
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

/// Sections of a job by how often people tune them; TensorBoard's table begins with the first ones.
std::size_t rank_of(const telemetry::HyperParameter& parameter) {
  static constexpr std::array<std::string_view, 10> kTuned{
      "learning_rate", "batch_size", "optimizer", "epochs", "steps", "model", "loss", "clip_norm", "precision", "data"};
  const std::string section = parameter.first.substr(0, parameter.first.find('.'));
  return std::find(kTuned.begin(), kTuned.end(), section) - kTuned.begin();
}

}  // namespace

void Board::start(std::int64_t steps, std::int64_t steps_per_epoch) {
  const TensorboardOptions& options = run_.job.telemetry.tensorboard;
  if (options.histograms.amount > 0) {
    histogram_period_ = std::max<std::int64_t>(1, options.histograms.steps(steps_per_epoch));
  }
  board_ = std::make_unique<telemetry::TensorBoard>(run_.job.run_directory + "/tensorboard", steps,
                                                    telemetry::KeptSteps(run_.job.telemetry.every));
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
  std::stable_sort(parameters.begin(), parameters.end(),
                   [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  std::vector<std::string> metrics = {"train/loss"};
  if (data_.validation && !run_.job.evaluate.never) {
    metrics.emplace_back("validation/loss");
    for (const std::string& metric : run_.job.reported()) metrics.push_back("validation/" + metric);
  }
  board_->experiment(parameters, metrics);
  board_->session(parameters);
}

void Board::write_inputs(std::int64_t steps, std::int64_t steps_per_epoch) {
  const auto pipeline = data_.pipeline(*data_.train, true);
  const auto& features = pipeline.outputs();
  const bool has_image = std::any_of(features.begin(), features.end(),
                                     [](const Feature& feature) { return feature.kind == Feature::Kind::image; });
  if (!has_image) return;
  const std::uint64_t epoch = steps / std::max<std::int64_t>(1, steps_per_epoch);
  board_->image(steps, "view/inputs",
                to_image(data::contact_sheet(*data_.train, pipeline, {.rows = 4, .epoch = epoch})));
}

bool Board::shows(std::int64_t step) const {
  constexpr std::int64_t kDense = 512;  // TensorBoard itself shows 500 of all
  return histogram_period_ != 0 && step % histogram_period_ == 0 &&
         telemetry::is_kept(step / histogram_period_, kDense);
}

void Board::event(const events::Event& event) {
  if (board_) board_->event(event);
}

void Board::show(std::int64_t step, const exec::TensorBlock& parameters, const exec::TensorBlock& gradients,
                 exec::WorkerPool& pool, bool divided) {
  struct Shown {
    const char* what;
    const exec::TensorBlock& block;
    std::size_t index;
  };
  std::vector<Shown> shown;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!divided || is_whole(parameters, i)) shown.push_back({"weights", parameters, i});
    if (!graph_.at(graph_.parameters[i]).frozen && is_whole(gradients, i))
      shown.push_back({"weight_gradients", gradients, i});
  }
  std::vector<std::pair<std::string, telemetry::Histogram>> histograms(shown.size());
  pool.run(static_cast<int>(shown.size()), [&](int /*worker*/, int task) {
    const auto& [what, block, index] = shown[task];
    histograms[task] = {fmt::format("{}/{}", what, path_name(block.name(index))),
                        telemetry::histogram_of(block.at(index))};
  });
  board_->histograms(step, histograms);
  if (!run_.job.telemetry.tensorboard.images) return;
  if (const auto filters = first_filters(graph_, parameters))
    board_->image(step, "view/first_filters", to_image(*filters));
}

}  // namespace lockstep::observe
