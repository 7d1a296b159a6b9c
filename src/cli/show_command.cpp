// lockstep show: the model as a table of layers, or as a picture for Graphviz.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/graph_text.hpp"
#include "cli/job_argument.hpp"
#include "exec/cpu_device.hpp"
#include "exec/kernel_set.hpp"
#include "graph/blocks.hpp"
#include "graph/lowering/lower.hpp"
#include "lockstep/error.hpp"
#include "train/job_graph.hpp"
#include "train/loaded_model.hpp"

namespace lockstep::cli {

namespace {

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

/// A run remembers what its data are like; for a job file they must be there.
input::PreparedData describe_data(JobArgument& argument, const Job& job, const Registries& registries) {
  if (!argument.is_saved()) {
    const JobFile whole = argument.load(train::catalogue_of(registries));  // its data, too
    return input::prepare_data(whole.data, whole.seed, whole.batch_size, registries.augmentations, {});
  }
  const auto files = checkpoint::read_saved_files(argument.checkpoint.empty() ? "newest" : argument.checkpoint, job,
                                                  *make_single_communicator());
  auto data = train::remembered_data(files, job, registries.augmentations);
  return data ? std::move(*data)
              : input::prepare_data(job.data, job.seed, job.batch_size, registries.augmentations, {});
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// What a worker of the CPU needs for a shard's activations, by what saves some of it.
void print_memory(const Graph& graph) {
  const auto bytes = [&](Mode mode, bool in_place, Recompute recompute) {
    const exec::CpuDevice device;
    const exec::KernelSet kernels(graph, mode, device);
    CompileOptions options{.in_place = in_place, .recompute_blocks = recompute == Recompute::blocks};
    if (recompute != Recompute::never)
      options.can_recompute = [&](std::int32_t node) { return kernels.at(node)->can_recompute(); };
    return compile(
               graph, mode, [&](std::int32_t node) { return kernels.workspace_bytes(node); }, options)
        .arena_bytes;
  };
  const auto row = [](const char* what, std::int64_t size) { fmt::print("  {:<38} {:>10}\n", what, mebibytes(size)); };
  fmt::print("memory of a shard's activations on the CPU\n");
  row("training, without sharing memory", bytes(Mode::training, false, Recompute::never));
  row("training", bytes(Mode::training, true, Recompute::never));
  row("training, recompute: cheap", bytes(Mode::training, true, Recompute::cheap));
  if (!Blocks(graph).all().empty()) {
    row("training, recompute: blocks", bytes(Mode::training, true, Recompute::blocks));
  }
  row("evaluation", bytes(Mode::inference, true, Recompute::never));
  fmt::print("\n");
}

/// The graph as it is computed, and what each pass did.
Graph lowered(Graph graph, const LoweringTarget& target) {
  for (const LoweringPass& pass : lowering_passes()) {
    const int changes = pass.run(graph, target);
    fmt::print("{} ({}): {} changes\n", pass.name, pass.doc, changes);
  }
  if (target.device == DeviceKind::cpu) print_memory(graph);
  return graph;
}

int show(JobArgument& argument, const std::string& dot, bool as_computed) {
  const Registries registries = Registries::built_in();
  const JobFile job = argument.load(train::catalogue_of(registries), false);
  const auto data = describe_data(argument, job, registries);
  Graph graph = train::make_job_graph(job, data, registries);
  const LoweringTarget target{job.device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu, &registries.ops};
  if (as_computed) graph = dot == "-" ? lower(std::move(graph), target) : lowered(std::move(graph), target);
  if (dot != "-") fmt::print("{}", layer_table(graph, job.batch_size / job.shards));
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
