// lockstep predict: how a trained job classifies image files, continues a text, or fills in a table. The same bytes on
// any number of ranks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/predict.hpp"
#include "cli/ranks.hpp"
#include "cli/validators.hpp"
#include "config/files.hpp"
#include "core/say.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

struct PredictArguments {
  JobArgument job;
  RankOptions ranks;
  PredictOptions options;
  std::string log = "people", scores = "probabilities";
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
  for (const char* const of_model : {".onnx", ".safetensors", ".pt", ".pth"}) {
    if (!first.ends_with(of_model)) continue;
    throw Error(
        ExitCode::usage,
        fmt::format("predict: expected a run's directory or a job file first, found '{}', a file of weights; give "
                    "it behind the job, --checkpoint FILE.safetensors",
                    first));
  }
  if (std::filesystem::exists(first) || config::is_pattern(first)) return;
  throw Error(ExitCode::usage,
              fmt::format("predict: '{}' does not exist; expected a run's directory, a job file (.yaml, "
                          ".yml, .json) or image files",
                          first));
}

// Words after the job are overrides or files: a job file ends in .yaml, .yml or .json, a run is a directory; folders
// after either are of images or texts.
void take_files(PredictArguments& arguments) {
  std::vector<std::string> words;
  bool has_job = false;
  for (const auto& word : arguments.job.words) {
    const bool is_file_of_job = word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
    const bool is_job = is_file_of_job || (!has_job && std::filesystem::is_directory(word));
    has_job = has_job || is_job;
    (is_job || is_override(word) ? words : arguments.options.files).push_back(word);
  }
  arguments.job.words = words;
  require_files_of_default_job(arguments);
}

int predict(PredictArguments& arguments, Communicator& communicator, const JobFile& job, const Registries& registries) {
  arguments.options.json = arguments.log == "json";
  arguments.options.csv = arguments.log == "csv";
  arguments.options.logits = arguments.scores == "logits";
  arguments.options.print = communicator.rank() == 0;
  const std::string& given = arguments.job.checkpoint;
  train::LoadedModel model(job, given.empty() ? arguments.options.checkpoint : given, registries, communicator, {},
                           [&] { return arguments.job.load(registries); });
  for (const auto& warning : model.warnings()) say("warning: {}\n", warning);
  const DataSetInfo& info = model.data();
  if (!arguments.options.to.empty()) require_pictures(model);
  const auto together = [&](const DataSet& set) {
    return predict_on_ranks(model, set, communicator, arguments.options.logits);
  };
  const bool texts = has(info, Feature::Kind::tokens) && !info.class_names.empty();
  arguments.options.files = files_of_words(arguments.options.files, texts ? FilesOfFolder::all : FilesOfFolder::images,
                                           arguments.options.print);
  if (has(info, Feature::Kind::tokens) && !texts) {
    if (model.outputs().size() > 1) {
      throw Error(ExitCode::usage, fmt::format("predict: expected a model of text with one output, found {}; text is "
                                               "generated from the only one",
                                               model.outputs().size()));
    }
    predict_text(model, arguments.options);
  } else if (arguments.options.has_prompt && texts) {
    throw Error(ExitCode::usage, "--prompt: this job classifies texts and continues none; give files of texts instead");
  } else if (arguments.options.has_prompt) {
    throw Error(ExitCode::usage, fmt::format("--prompt: this job trains on {}, not on text; give {} files instead",
                                             info.format, has(info, Feature::Kind::columns) ? "CSV" : "image"));
  } else if (has(info, Feature::Kind::image)) {
    predict_images(model, arguments.options, together, communicator);
  } else if (texts || has(info, Feature::Kind::columns) || job.data.train.kind == SourceKind::own) {
    predict_table(model, arguments.options, together);
  } else {
    throw Error(ExitCode::usage,
                fmt::format("predict: expected a job on images, text or a table, found {}", info.format));
  }
  if (arguments.options.print && !arguments.options.json) {
    const checkpoint::SavedModel& saved = model.saved();
    say("checkpoint: {}{}\n", saved.path, saved.choice.empty() ? "" : ", the " + saved.choice);
  }
  return 0;
}

int predict(PredictArguments& arguments) {
  take_files(arguments);
  arguments.ranks.need_data = false;
  return run_on_ranks(arguments.ranks, arguments.job,
                      [&](Communicator& communicator, const JobFile& job, const Registries& registries) {
                        return predict(arguments, communicator, job, registries);
                      });
}

void add_options(CLI::App& command, PredictArguments& arguments) {
  PredictOptions& options = arguments.options;
  command
      .add_option("JOB", arguments.job.words,
                  "a job file (.yaml, .yml, .json) or a run's directory, overrides key=value; image files, "
                  "folders or patterns of them, .csv or .jsonl files that name them, tables, or texts")
      ->expected(0, -1);
  command.add_option("--checkpoint", options.checkpoint, kCheckpointHelp)->capture_default_str();
  command.add_option("--top", options.top, "images, tables and texts: how many classes to print")
      ->check(at_least(1))
      ->capture_default_str();
  command
      .add_option("--scores", arguments.scores,
                  "images, tables and texts: probabilities, or logits, the model's own numbers")
      ->check(one_of({"probabilities", "logits"}))
      ->capture_default_str();
  command.add_option("--to", options.to, "images from images: a folder for what is predicted, NAME.png for each");
  command.add_option("--prompt", options.prompt, "text: the prompt to continue; -: what stdin has");
  command.add_option("--tokens", options.tokens, "text: how many tokens to generate")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--temperature", options.sampling.temperature,
                  "text: temperature of the sampling; 0 always takes the likeliest token")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--top-k", options.sampling.top_k, "text: sample from the k likeliest tokens only; 0: from all")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--top-p", options.sampling.top_p,
                  "text: sample from the fewest likeliest tokens whose probabilities sum to this; 1: from all")
      ->check(above_up_to(0, 1))
      ->capture_default_str();
  command.add_option("--stop", options.stop, "text: end before this text; may be given several times")
      ->check(CLI::Validator(
          [](std::string& found) { return found.empty() ? "expected a text, found ''" : std::string(); }, "TEXT"))
      ->allow_extra_args(false);
  command.add_flag("!--no-cache", options.cache,
                   "text: compute the whole window again for each token; the same text, slower");
  command.add_option("--seed", options.seed, "text: seed of the sampling")->capture_default_str();
  arguments.ranks.add_to(command);
  command
      .add_option("--log", arguments.log, "people; json: one object per sample on stdout; or csv: one line per sample")
      ->check(one_of({"people", "json", "csv"}))
      ->capture_default_str();
}

}  // namespace

void add_predict(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "predict", "Classify images or texts, generate text, or predict for the rows of a table, with a trained model.");
  command->footer(
      "The training data need not be there, unless the weights are a bare .safetensors file. A sample of several "
      "images "
      "is as many files in a row, in the order of its features, or a row of a CSV file with a column for each.\n\n"
      "Examples:\n  lockstep predict runs/cifar10-resnet20 cat.png dog.jpg --top 3\n"
      "  lockstep predict runs/two-towers pairs.csv\n"
      "  lockstep predict runs/stains scans --to clean\n"
      "  lockstep predict runs/houses new-houses.csv --log csv\n"
      "  lockstep predict runs/complaints letter.txt more.jsonl\n"
      "  lockstep predict runs/cifar10-resnet20 photos --ranks 2 --log json\n"
      "  lockstep predict examples/shakespeare-gpt.yaml --prompt 'ROMEO:' --tokens 300 --top-k 40\n"
      "  lockstep predict runs/gpt --prompt - --top-p 0.9 --stop '<|endoftext|>' < prompt.txt");
  auto arguments = std::make_shared<PredictArguments>();
  add_options(*command, *arguments);
  command->callback([&run, arguments, command] {
    arguments->options.has_prompt = command->count("--prompt") > 0;
    run = [arguments] { return predict(*arguments); };
  });
}

}  // namespace lockstep::cli
