// lockstep predict: how a trained job classifies image files, or continues a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/predict.hpp"
#include "cli/validators.hpp"
#include "ensemble/combine.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

struct PredictArguments {
  JobArgument job;
  PredictOptions options;
  std::string log = "people";
};

bool has(const DataSetInfo& info, Feature::Kind kind) {
  return std::any_of(info.features.begin(), info.features.end(),
                     [kind](const Feature& feature) { return feature.kind == kind; });
}

// Without a job, the embedded digits job is used. A first file that does not exist is then more likely a mistyped run
// directory.
void require_files_of_default_job(const PredictArguments& arguments) {
  const auto& words = arguments.job.words;
  const auto& files = arguments.options.files;
  if (files.empty() || !std::all_of(words.begin(), words.end(), is_override)) return;
  const std::string& first = files.front();
  if (std::filesystem::exists(first)) return;
  throw Error(ExitCode::usage,
              fmt::format("predict: '{}' does not exist; expected a run's directory, a job file (.yaml, "
                          ".yml, .json) or image files",
                          first));
}

// Words after the job are overrides or files: a job file ends in .yaml, .yml or .json, a run is a directory.
void take_files(PredictArguments& arguments) {
  std::vector<std::string> words;
  for (const auto& word : arguments.job.words) {
    const bool is_job = word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
                        std::filesystem::is_directory(word);
    (is_job || is_override(word) ? words : arguments.options.files).push_back(word);
  }
  arguments.job.words = words;
  require_files_of_default_job(arguments);
}

std::vector<SamplePrediction> predict_alone(train::LoadedModel& model, const DataSet& set) {
  const auto meaning = ensemble::meaning_of(model.job().loss.kind);
  std::vector<SamplePrediction> predictions(static_cast<std::size_t>(set.size()));
  model.predict(set, [&](std::int64_t id, std::span<const float> prediction) {
    predictions[static_cast<std::size_t>(id)] = {meaning != ensemble::Meaning::values,
                                                 ensemble::read_prediction(meaning, prediction)};
  });
  return predictions;
}

int predict(PredictArguments& arguments) {
  take_files(arguments);
  arguments.options.json = arguments.log == "json";
  const Registries registries = Registries::built_in();
  const JobFile job = arguments.job.load(train::catalogue_of(registries), false);
  const auto communicator = make_single_communicator();
  const std::string& given = arguments.job.checkpoint;
  train::LoadedModel model(job, given.empty() ? arguments.options.checkpoint : given, registries, *communicator, {},
                           [&] { return arguments.job.load(train::catalogue_of(registries)); });
  const DataSetInfo& info = model.data();
  const auto alone = [&](const DataSet& set) { return predict_alone(model, set); };
  if (has(info, Feature::Kind::tokens)) {
    predict_text(model, arguments.options);
  } else if (arguments.options.has_prompt) {
    throw Error(ExitCode::usage, fmt::format("--prompt: this job trains on {}, not on text; give {} files instead",
                                             info.format, has(info, Feature::Kind::columns) ? "CSV" : "image"));
  } else if (has(info, Feature::Kind::image)) {
    predict_images(model, arguments.options, alone);
  } else if (has(info, Feature::Kind::columns)) {
    predict_table(model, arguments.options, alone);
  } else {
    throw Error(ExitCode::usage,
                fmt::format("predict: expected a job on images, text or a table, found {}", info.format));
  }
  return 0;
}

void add_options(CLI::App& command, PredictArguments& arguments) {
  PredictOptions& options = arguments.options;
  command
      .add_option("JOB", arguments.job.words,
                  "a job file (.yaml, .yml, .json) or a run's directory, overrides key=value; image files, CSV "
                  "files that name them, or tables")
      ->expected(0, -1);
  command.add_option("--checkpoint", options.checkpoint, kCheckpointHelp)->capture_default_str();
  command.add_option("--top", options.top, "images and tables: how many classes to print")
      ->check(at_least(1))
      ->capture_default_str();
  command.add_option("--prompt", options.prompt, "text: the prompt to continue");
  command.add_option("--tokens", options.tokens, "text: how many tokens to generate")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--temperature", options.temperature,
                  "text: temperature of the sampling; 0 always takes the likeliest token")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "text: sample from the k likeliest tokens only; 0: from all")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "text: seed of the sampling")->capture_default_str();
  command.add_option("--log", arguments.log, "people, or json: one object per sample on stdout")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
}

}  // namespace

void add_predict(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "predict", "Classify images, generate text, or predict for the rows of a table, with a trained model.");
  command->footer(
      "The training data need not be there, unless the weights are a bare .safetensors file. A sample of several "
      "images "
      "is as many files in a row, in the order of its features, or a row of a CSV file with a column for each.\n\n"
      "Examples:\n  lockstep predict runs/cifar10-resnet20 cat.png dog.jpg --top 3\n"
      "  lockstep predict runs/two-towers pairs.csv\n"
      "  lockstep predict runs/houses new-houses.csv\n"
      "  lockstep predict examples/shakespeare-gpt.yaml --prompt 'ROMEO:' --tokens 300 --top-k 40");
  auto arguments = std::make_shared<PredictArguments>();
  add_options(*command, *arguments);
  command->callback([&run, arguments, command] {
    arguments->options.has_prompt = command->count("--prompt") > 0;
    run = [arguments] { return predict(*arguments); };
  });
}

}  // namespace lockstep::cli
