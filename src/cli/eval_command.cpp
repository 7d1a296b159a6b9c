// lockstep eval: a checkpoint's metrics over a whole set, each sample once. The same bits on any number of ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/ranks.hpp"
#include "cli/validators.hpp"
#include "core/spans.hpp"
#include "telemetry/text.hpp"
#include "train/loaded_model.hpp"

namespace lockstep::cli {

namespace {

struct EvalArguments : RunArguments {
  std::string checkpoint = "newest";
  std::string set = "validation";
};

void print_eval_text(const EvalArguments& arguments, const checkpoint::SavedModel& model,
                     const EvaluationResult& result, double seconds) {
  fmt::print("{} on {} {} samples\n", model.path, telemetry::grouped(result.samples), arguments.set);
  for (const auto& [name, value] : result.metrics) fmt::print("  {:<12} {:.6g}\n", name, value);
  fmt::print("  {:<12} {}\n", "time", telemetry::duration(seconds));
}

void print_eval_json(const EvalArguments& arguments, const checkpoint::SavedModel& model,
                     const EvaluationResult& result, double seconds) {
  auto metrics = result.metrics;
  const double loss = metrics.extract("loss").mapped();
  const nlohmann::ordered_json line = {{"event", "eval"},
                                       {"step", model.step},
                                       {"set", arguments.set},
                                       {"samples", result.samples},
                                       {"loss", loss},
                                       {"metrics", metrics},
                                       {"seconds", seconds},
                                       {"checkpoint", model.path},
                                       {"parameters_sha256", exec::sha256_of(model.parameters)}};
  fmt::print("{}\n", line.dump());
}

int evaluate(EvalArguments& arguments, Communicator& communicator, const JobFile& job, const Registries& registries) {
  const auto start = Clock::now();
  train::require_evaluation_set(arguments.set, job);
  const std::string& given = arguments.job.checkpoint;
  train::LoadedModel model(job, given.empty() ? arguments.checkpoint : given, registries, communicator, {},
                           [&] { return arguments.job.load(train::catalogue_of(registries)); });
  const EvaluationResult result = model.evaluate(arguments.set);
  for (const auto& warning : result.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (communicator.rank() == 0) {
    const auto print = arguments.log == "json" ? print_eval_json : print_eval_text;
    print(arguments, model.saved(), result, seconds_since(start));
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
  CLI::App* command = program.add_subcommand("eval", "Evaluate a trained model on every sample of a set, once.");
  command->footer(
      "Only the evaluated set is needed, and the training data if the set is split from them.\n\nExamples:\n  lockstep "
      "eval runs/cifar10-resnet20 --checkpoint best\n  lockstep eval job.yaml data.test.images=/data/test --set test "
      "--ranks 2 --log json");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->add_to(*command, "one object");
  command->add_option("--checkpoint", arguments->checkpoint, kCheckpointHelp)->capture_default_str();
  command->add_option("--set", arguments->set, "validation, test or train")
      ->check(one_of({"validation", "test", "train"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return eval(*arguments); }; });
}

}  // namespace lockstep::cli
