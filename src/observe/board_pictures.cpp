#include "observe/board_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/op.hpp"

namespace lockstep::observe {

namespace {

constexpr std::int64_t kColumns = 8, kGap = 2;
constexpr std::int64_t kCell = 40;  // pixels, about
constexpr std::uint8_t kPaper = 250;
constexpr float kMiddle = 127.5F;

/// Weights [filters, channels, height, width] of one layer.
struct Filters {
  std::int64_t count, channels, height, width;
  std::span<const float> weights;
  float largest;

  [[nodiscard]] std::uint8_t shade(std::int64_t filter, std::int64_t channel, std::int64_t y, std::int64_t x) const {
    const std::int64_t index = ((filter * channels + channel) * height + y) * width + x;
    const float value = largest > 0 ? weights[static_cast<std::size_t>(index)] / largest : 0;
    return static_cast<std::uint8_t>(std::clamp(kMiddle + kMiddle * value, 0.0F, 255.0F));
  }
};

std::optional<Filters> filters_of(const Graph& graph, const exec::TensorBlock& parameters) {
  const auto conv = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.op->name == "conv" && !node.parameters.empty(); });
  if (conv == graph.nodes.end()) return std::nullopt;
  const auto at = std::find(graph.parameters.begin(), graph.parameters.end(), conv->parameters.front());
  const auto index = static_cast<std::size_t>(at - graph.parameters.begin());
  const Shape& shape = parameters.shape(index);
  if (shape.size() != 4) return std::nullopt;
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
  const std::int64_t rows = (filters->count + kColumns - 1) / kColumns;
  data::Picture picture(rows * (filters->height * zoom + kGap) + kGap,
                        std::min(filters->count, kColumns) * (filters->width * zoom + kGap) + kGap, kPaper);
  for (std::int64_t filter = 0; filter < filters->count; ++filter) draw(*filters, filter, zoom, picture);
  return picture;
}

}  // namespace lockstep::observe
