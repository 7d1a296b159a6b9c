#include "cli/graph_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "graph/cost.hpp"
#include "lockstep/op.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

using LayerRow = std::array<std::string, 6>;

std::string sample_shape(const TensorSpec& spec) {
  return spec.shape.empty() ? "[]" : to_string(Shape(spec.shape.begin() + 1, spec.shape.end()));
}

std::string flops(double value) {
  return value > 0 ? with_unit(value) : "";
}

std::string aligned(const std::vector<LayerRow>& rows) {
  std::array<std::size_t, 6> width{};
  for (const LayerRow& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const LayerRow& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      // Words to the left, numbers to the right.
      line += c < 3 ? fmt::format("{:<{}}  ", row[c], width[c]) : fmt::format("{:>{}}  ", row[c], width[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string graphviz_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string op_text(const Node& node) {
  return node.epilogue == nullptr ? node.op->name : node.op->name + " + " + node.epilogue->name;
}

std::string fill_of(const OpDef& op) {
  if (op.kind == OpKind::loss) return "#f4cccc";
  if (op.kind == OpKind::metric) return "#d9ead3";
  return "#dbe8f6";
}

}  // namespace

std::string with_unit(double value) {
  static constexpr std::array<const char*, 5> kUnits{"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", value, digits, kUnits.at(unit));
}

std::string layer_table(const Graph& graph, std::int64_t batch) {
  std::vector<LayerRow> rows = {{"layer", "op", "output", "parameters", "forward FLOPs", "backward FLOPs"}};
  for (const ValueId id : graph.inputs) rows.push_back({graph.at(id).name, "(input)", sample_shape(graph.at(id).spec)});
  std::int64_t parameters = 0, frozen = 0, states = 0;
  Cost total;
  std::set<ValueId> counted;
  for (const Node& node : graph.nodes) {
    std::int64_t own = 0;
    bool tied = false;
    for (const ValueId id : node.parameters) {
      if (!counted.insert(id).second) {
        tied = true;
        continue;
      }
      own += graph.at(id).spec.elements();
      if (graph.at(id).frozen) frozen += graph.at(id).spec.elements();
    }
    for (const ValueId id : node.states) states += graph.at(id).spec.elements();
    parameters += own;
    Cost cost = cost_of(graph, node);
    cost.forward_flops /= static_cast<double>(batch);
    cost.backward_flops /= static_cast<double>(batch);
    total.forward_flops += cost.forward_flops;
    total.backward_flops += cost.backward_flops;
    const std::string count = own > 0 ? telemetry::grouped(own) : tied ? "tied" : "";
    rows.push_back({node.name, op_text(node), sample_shape(graph.at(node.outputs.at(0)).spec), count,
                    flops(cost.forward_flops), flops(cost.backward_flops)});
  }
  rows.push_back(
      {"total", "", "", telemetry::grouped(parameters), flops(total.forward_flops), flops(total.backward_flops)});
  std::string text = aligned(rows);
  text += fmt::format("\nShapes and FLOPs are per sample. {} parameters ({} trained, {} frozen), {} values of state.\n",
                      telemetry::grouped(parameters), telemetry::grouped(parameters - frozen),
                      telemetry::grouped(frozen), telemetry::grouped(states));
  return text;
}

std::string graphviz(const Graph& graph, const std::string& name) {
  std::string text = fmt::format(
      "digraph \"{}\" {{\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=10];\n",
      graphviz_escaped(name));
  for (const ValueId id : graph.inputs) {
    text += fmt::format("  v{} [label=\"{}\", fillcolor=\"#fff2cc\"];\n", id, graphviz_escaped(graph.at(id).name));
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    text += fmt::format("  n{} [label=\"{}\\n{}\", fillcolor=\"{}\"];\n", i, graphviz_escaped(node.name), op_text(node),
                        fill_of(*node.op));
    for (const ValueId id : node.inputs) {
      const Value& value = graph.at(id);
      const std::string from = value.producer < 0 ? fmt::format("v{}", id) : fmt::format("n{}", value.producer);
      text += fmt::format("  {} -> n{} [label=\"{}\"];\n", from, i, sample_shape(value.spec));
    }
  }
  return text + "}\n";
}

}  // namespace lockstep::cli
