// lockstep show: the model as a table of layers, or as a picture for Graphviz.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "graph/blocks.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/workload.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"
#include "observe/telemetry/text.hpp"
#include "run/train/job_graph.hpp"
#include "run/train/loaded_model.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/kernel_set.hpp"

namespace lockstep::cli {

namespace {

using LayerRow = std::array<std::string, 6>;

std::string sample_shape(const TensorSpec& spec) {
  return spec.shape.empty() ? "[]" : to_string(Shape(spec.shape.begin() + 1, spec.shape.end()));
}

/// 1234567 -> "1.23 M", 41000000000 -> "41.0 G"
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
      // Words are left-aligned, numbers right-aligned.
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
  if (op.kind == OpKind::loss || op.kind == OpKind::sum) return "#f4cccc";
  if (op.kind == OpKind::metric) return "#d9ead3";
  return "#dbe8f6";
}

/// One line for each node; shapes and FLOPs are per sample. `batch`: samples of the graph's micro-batch.
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
    cost.forward_flops /= batch;
    cost.backward_flops /= batch;
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

void write_text(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) {
    throw Error(ExitCode::cannot_create,
                fmt::format("--dot: cannot write '{}'; give a path in a directory that exists and "
                            "can be written to, or - for stdout",
                            path));
  }
}

/// A run's checkpoint describes its data; for a job file the data themselves must be present.
input::PreparedData describe_data(JobArgument& argument, const Job& job, const Registries& registries) {
  if (!argument.is_saved()) {
    const JobFile whole = argument.load(registries);  // including its data
    return input::learn(whole.data, whole.seed, whole.batch_size, registries, {});
  }
  const auto files = checkpoint::read_saved_files(argument.checkpoint.empty() ? "auto" : argument.checkpoint, job,
                                                  *make_single_communicator());
  auto data = train::data_of(files, job, registries);
  return data ? std::move(*data) : input::learn(job.data, job.seed, job.batch_size, registries, {});
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// The memory that a CPU worker needs for a micro-batch's activations, with each way of saving memory.
void print_memory(const Graph& graph) {
  const auto bytes = [&](Mode mode, bool in_place, Recompute recompute) {
    const exec::CpuDevice device;
    const exec::KernelSet kernels(graph, mode, device);
    return exec::program_of(graph, mode, exec::needs_of(kernels), {.in_place = in_place, .recompute = recompute})
        .arena_bytes;
  };
  const auto row = [](const char* what, std::int64_t size) { fmt::print("  {:<38} {:>10}\n", what, mebibytes(size)); };
  fmt::print("memory of a micro-batch's activations on the CPU\n");
  row("training, without sharing memory", bytes(Mode::training, false, Recompute::never));
  row("training", bytes(Mode::training, true, Recompute::never));
  row("training, recompute: cheap", bytes(Mode::training, true, Recompute::cheap));
  if (!Blocks(graph).all().empty()) {
    row("training, recompute: blocks", bytes(Mode::training, true, Recompute::blocks));
  }
  row("evaluation", bytes(Mode::inference, true, Recompute::never));
  fmt::print("\n");
}

/// The graph after lowering; prints what each pass did.
Graph lowered(Graph graph, const LoweringTarget& target) {
  for (const LoweringPass& pass : lowering_passes()) {
    const int changes = pass.run(graph, target);
    fmt::print("{} ({}): {} changes\n", pass.name, pass.doc, changes);
  }
  if (target.device == DeviceKind::cpu) print_memory(graph);
  return graph;
}

int show(JobArgument& argument, const std::string& dot, bool as_computed) {
  const Registries registries = argument.registries();
  const JobFile job = argument.load(registries, false);
  const auto data = describe_data(argument, job, registries);
  Graph graph = train::make_job_graph(job, data, registries);
  const LoweringTarget target{job.device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu, &registries.ops};
  if (as_computed) graph = dot == "-" ? lower(std::move(graph), target) : lowered(std::move(graph), target);
  if (dot != "-") fmt::print("{}", layer_table(graph, job.batch_size / job.micro_batches));
  if (!dot.empty()) write_text(dot, graphviz(graph, job.name));
  return 0;
}

}  // namespace

void add_show(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("show", "Print a job's model: layers, shapes, parameters, FLOPs.");
  command->footer(
      "A job needs its data, since shapes and the number of classes depend on them; a run does not.\n\nExamples:\n  "
      "lockstep show examples/cifar10-resnet20.yaml\n  lockstep show runs/cifar10-resnet20\n  lockstep show "
      "model.resnet.depth=32 --dot - | dot -Tsvg > model.svg");
  auto argument = std::make_shared<JobArgument>();
  auto dot = std::make_shared<std::string>();
  auto as_computed = std::make_shared<bool>(false);
  argument->add_to(*command);
  command->add_option("--dot", *dot, "also write the graph for Graphviz; -: to stdout, instead of the table");
  command->add_flag("--lowered", *as_computed, "the graph as it is computed: what each lowering pass made of it");
  command->callback([&run, argument, dot, as_computed] {
    run = [argument, dot, as_computed] { return show(*argument, *dot, *as_computed); };
  });
}

}  // namespace lockstep::cli
