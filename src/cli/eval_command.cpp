// lockstep eval: a checkpoint's metrics on every sample of a set, once. The same bits on any number of ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/eval_set.hpp"
#include "cli/ranks.hpp"
#include "cli/saved_model.hpp"
#include "cli/validators.hpp"
#include "core/spans.hpp"
#include "exec/thread_counts.hpp"
#include "telemetry/text.hpp"
#include "train/agreed_algorithms.hpp"
#include "train/bad_samples.hpp"
#include "train/device_choice.hpp"
#include "train/evaluation.hpp"
#include "train/job_graph.hpp"
#include "train/run_context.hpp"

namespace lockstep::cli {

namespace {

struct EvalArguments : RunArguments {
  std::string checkpoint = "newest";
  std::string set = "validation";
};

void print_eval_text(const EvalArguments& arguments, const SavedModel& model, std::int64_t samples,
                     const std::map<std::string, double>& metrics, double seconds) {
  fmt::print("{} on {} {} samples\n", model.path, telemetry::grouped(samples), arguments.set);
  for (const auto& [name, value] : metrics) fmt::print("  {:<12} {:.6g}\n", name, value);
  fmt::print("  {:<12} {}\n", "time", telemetry::duration(seconds));
}

void print_eval_json(const EvalArguments& arguments, const SavedModel& model, std::int64_t samples,
                     const std::map<std::string, double>& all, double seconds) {
  auto metrics = all;
  const double loss = metrics.extract("loss").mapped();
  const nlohmann::ordered_json line = {{"event", "eval"},
                                       {"step", model.step},
                                       {"set", arguments.set},
                                       {"samples", samples},
                                       {"loss", loss},
                                       {"metrics", metrics},
                                       {"seconds", seconds},
                                       {"checkpoint", model.path},
                                       {"parameters_sha256", exec::sha256_of(model.parameters)}};
  fmt::print("{}\n", line.dump());
}

int evaluate(EvalArguments& arguments, Communicator& communicator, const JobFile& job, const Registries& registries) {
  const auto start = Clock::now();
  require_eval_set(arguments.set, job);
  const auto backend = train::choose_backend(job, communicator);
  const exec::Device& device = backend->device();
  const std::string& given = arguments.job.checkpoint;
  const auto files = read_saved_files(given.empty() ? arguments.checkpoint : given, job, communicator);
  const auto [set, data] = open_eval_set(arguments.set, arguments.job, job, files, registries, communicator);
  const Graph graph = train::make_job_graph(job, data, registries);
  const SavedModel model = load_saved_model(files, graph, job, communicator);
  exec::WorkerPool pool(exec::worker_count(job.threads, communicator, device, static_cast<std::size_t>(set->size())));
  train::EvaluationOptions options;
  options.shard_samples = job.batch_size / job.shards;
  options.timeout = job.timeout();
  options.alike = train::computes_alike(job, device);
  options.once = true;
  train::Evaluation evaluation(graph, *set, data.pipeline(*set, false), communicator, device, pool, options);
  const auto metrics = evaluation.run({model.parameters, model.states}, 0);
  for (const auto& sample : train::gather_replaced(*data.replaced, communicator, {"evaluation", 0, options.timeout})) {
    fmt::print(stderr, "warning: {}\n", sample.text());
  }
  if (communicator.rank() == 0) {
    const auto print = arguments.log == "json" ? print_eval_json : print_eval_text;
    print(arguments, model, set->size(), metrics, seconds_since(start));
  }
  return 0;
}

int eval(EvalArguments& arguments) {
  arguments.ranks.need_data = false;
  return run_on_ranks(arguments.ranks, arguments.job,
                      [&](Communicator& communicator, const JobFile& job, const Registries& registries) {
                        return evaluate(arguments, communicator, job, registries);
                      });
}

}  // namespace

void add_eval(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("eval", "Evaluate a trained job on every sample of a set, once.");
  command->footer(
      "Of the data only the set itself must be there, and the training data if it is a part of them.\n\n"
      "Examples:\n  lockstep eval runs/cifar10-resnet20 --checkpoint best\n"
      "  lockstep eval job.yaml data.test.images=/data/test --set test --ranks 2 --log json");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->add_to(*command, "one object");
  command->add_option("--checkpoint", arguments->checkpoint, kCheckpointHelp)->capture_default_str();
  command->add_option("--set", arguments->set, "validation, test or train")
      ->check(one_of({"validation", "test", "train"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return eval(*arguments); }; });
}

}  // namespace lockstep::cli
