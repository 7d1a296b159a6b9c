// lockstep eval: a checkpoint's metrics on every sample of a set, once. The same bits on any number of ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "backend/threads.hpp"
#include "cli/commands.hpp"
#include "cli/ranks.hpp"
#include "cli/saved_model.hpp"
#include "cli/validators.hpp"
#include "core/spans.hpp"
#include "data/open.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"
#include "train/evaluation.hpp"
#include "train/job_graph.hpp"

namespace lockstep::cli {

namespace {

struct EvalArguments {
  JobArgument job;
  RankOptions ranks;
  std::string checkpoint = "newest";
  std::string set = "validation";
  std::string log = "people";
};

std::shared_ptr<const DataSet> choose_set(const std::string& name, const Job& job, const train::PreparedData& data) {
  if (name == "train") return data.train;
  if (name == "test") {
    if (!job.data.test) {
      throw Error(ExitCode::usage,
                  "--set test: the job has no test data; add data.test to the job file, or choose --set validation");
    }
    data::IndexOptions options;
    options.like = &data.train->info();
    return data::open(*job.data.test, options);
  }
  if (!data.validation) {
    throw Error(ExitCode::usage,
                "--set validation: the job has no validation data; add data.validation to the job file, or "
                "choose --set train");
  }
  return data.validation;
}

int worker_count(const Job& job, const Communicator& communicator) {
  const int local = communicator.topology().local_size(communicator.rank());
  return job.threads > 0 ? job.threads : std::max(1, backend::available_cores() / local);
}

void print_people(const EvalArguments& arguments, const SavedModel& model, std::int64_t samples,
                  const std::map<std::string, double>& metrics, double seconds) {
  fmt::print("{} on {} {} samples\n", model.path, telemetry::grouped(samples), arguments.set);
  for (const auto& [name, value] : metrics) fmt::print("  {:<12} {:.6g}\n", name, value);
  fmt::print("  {:<12} {}\n", "time", telemetry::duration(seconds));
}

void print_json(const EvalArguments& arguments, const SavedModel& model, std::int64_t samples,
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

int evaluate(const EvalArguments& arguments, Communicator& communicator, const Job& job, const Registries& registries) {
  const auto start = Clock::now();
  const auto data = train::prepare_data(job, registries.augmentations, {});
  const auto set = choose_set(arguments.set, job, data);
  const Graph graph = train::make_job_graph(job, data, registries);
  const SavedModel model = load_saved_model(arguments.checkpoint, job, graph, communicator);
  exec::WorkerPool pool(worker_count(job, communicator));
  train::EvaluationOptions options;
  options.shard_samples = job.batch_size / job.shards;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(job.timeout_seconds * 1000));
  train::Evaluation evaluation(graph, *set, data.pipeline(job, registries.augmentations, *set, false), communicator,
                               pool, options);
  const auto metrics = evaluation.run(model.parameters, model.states, 0);
  if (communicator.rank() == 0) {
    const auto print = arguments.log == "json" ? print_json : print_people;
    print(arguments, model, set->size(), metrics, seconds_since(start));
  }
  return 0;
}

int eval(EvalArguments& arguments) {
  return run_on_ranks(arguments.ranks, arguments.job,
                      [&](Communicator& communicator, const Job& job, const Registries& registries) {
                        return evaluate(arguments, communicator, job, registries);
                      });
}

}  // namespace

void add_eval(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("eval", "Evaluate a trained job on every sample of a set, once.");
  command->footer(
      "Examples:\n  lockstep eval examples/cifar10-resnet20.yaml --checkpoint best\n"
      "  lockstep eval job.yaml data.test.images=/data/test --set test --ranks 2 --log json");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->job.add_to(*command);
  arguments->ranks.add_to(*command);
  command->add_option("--checkpoint", arguments->checkpoint, kCheckpointHelp)->capture_default_str();
  command->add_option("--set", arguments->set, "validation, test or train")
      ->check(one_of({"validation", "test", "train"}))
      ->capture_default_str();
  command->add_option("--log", arguments->log, "people, or json: one object on stdout")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return eval(*arguments); }; });
}

}  // namespace lockstep::cli
