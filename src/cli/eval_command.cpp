// lockstep eval: a checkpoint's metrics over a whole set, each sample once. The same bits on any number of ranks.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/evaluation_details.hpp"
#include "cli/ranks.hpp"
#include "cli/token_codec.hpp"
#include "cli/validators.hpp"
#include "core/base64.hpp"
#include "core/say.hpp"
#include "core/spans.hpp"
#include "data/contact_sheet.hpp"
#include "data/picture.hpp"
#include "data/thumbnail.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/tensorboard.hpp"
#include "observe/telemetry/text.hpp"
#include "run/ensemble/outcome.hpp"
#include "run/train/loaded_model.hpp"
#include "run/train/not_finite.hpp"

namespace lockstep::cli {

namespace {

// A confusion matrix as pixels, for TensorBoard.

constexpr std::int64_t kSide = 640;                   // about, of all cells
constexpr std::int64_t kSmallest = 3, kLargest = 40;  // cells
constexpr std::int64_t kLetters = 10;                 // of a name
constexpr std::uint8_t kPaper = 255;

/// A row for each class, a column for what it is taken for; the darker a cell, the larger its share of the row. Names
/// stand at the left, the first letters of them.
data::Picture confusion_picture(const EvaluationDetails& details) {
  const std::int64_t classes = std::ssize(details.rows);
  const std::int64_t cell = std::clamp(kSide / std::max<std::int64_t>(1, classes), kSmallest, kLargest);
  const bool named = cell > data::kGlyphHeight;
  const std::int64_t left = named ? kLetters * (data::kGlyphWidth + 1) + 2 : 0;
  data::Picture picture(classes * cell, left + classes * cell, kPaper);
  for (std::int64_t k = 0; named && k < classes; ++k) {
    const std::string name = details.rows[k].name.substr(0, kLetters);
    data::write_text(picture, name, k * cell + (cell - data::kGlyphHeight) / 2, 0);
  }
  for (const Confusion& pair : details.confusions) {
    const std::int64_t of = details.rows[pair.actual].samples;
    const double share = static_cast<double>(pair.samples) / of;
    const auto faded = [&](int color) { return static_cast<std::uint8_t>(kPaper - share * (kPaper - color)); };
    const bool right = pair.actual == pair.predicted;
    for (std::int64_t y = 0; y < cell - 1; ++y) {
      for (std::int64_t x = 0; x < cell - 1; ++x) {
        picture.set(pair.actual * cell + y, left + pair.predicted * cell + x, faded(right ? 47 : 217),
                    faded(right ? 111 : 84), faded(right ? 222 : 43));
      }
    }
  }
  return picture;
}

struct EvalArguments : RunArguments {
  std::string checkpoint = "auto";
  std::string set = "validation";
  bool details = false;
  int worst = 16;  ///< samples
};

void print_eval_text(const EvalArguments& arguments, const checkpoint::SavedModel& model,
                     const EvaluationResult& result, double seconds) {
  fmt::print("{}{} on {} {} samples\n", model.path, model.choice.empty() ? "" : fmt::format(", the {},", model.choice),
             telemetry::grouped(result.samples), arguments.set);
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

constexpr std::int64_t kThumbnail = 96;  // pixels
constexpr std::size_t kExcerpt = 160;    // bytes of a text

/// A prediction of one number for each pixel or token has no classes to count by sample.
void require_rows(const train::LoadedModel& model) {
  if (!model.job().losses.empty()) {
    throw Error(ExitCode::usage, fmt::format("eval --details: expected a job with one loss, found {}; leave out "
                                             "--details: the metrics of each are told",
                                             model.job().losses.size()));
  }
  const Shape& shape = model.prediction_shape();
  if (ensemble::meaning_of(*model.outputs().front().loss) == ensemble::Meaning::values || shape.size() <= 1) return;
  throw Error(ExitCode::usage, fmt::format("eval --details: expected a model that predicts one class, some labels or "
                                           "some numbers for each sample, found one that predicts {}; leave out "
                                           "--details",
                                           to_string(shape)));
}

std::string text_of(const TokenCodec& codec, std::span<const std::int32_t> tokens) {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || text.size() > kExcerpt) break;
    text += codec.decode_after(text, token);
  }
  return text;
}

/// The sample's name, its text or its first image.
void add_sample(const DataSet& set, WorstSample& worst) {
  worst.name = set.name(worst.id);
  Sample sample;
  set.read(worst.id, sample);
  const auto& features = set.info().features;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const Tensor& tensor = sample[i].tensor;
    if (features[i].kind == Feature::Kind::tokens) {
      auto tokens = tensor.as<std::int32_t>();
      if (i + 1 < features.size() && features[i + 1].name == kLength) {
        tokens = tokens.first(sample[i + 1].tensor.as<std::int32_t>()[0]);
      }
      worst.name += fmt::format(": {}", text_of(TokenCodec(set.info()), tokens));
    }
    if (features[i].kind != Feature::Kind::image) continue;
    const Shape& shape = tensor.shape();
    const ImageView image{tensor.as<std::uint8_t>().data(), shape[0], shape[1], shape[2]};
    worst.png = base64(data::png_of(data::thumbnail(image, kThumbnail)));
    return;
  }
}

void write_board(const std::string& run_directory, const EvaluationDetails& details) {
  telemetry::TensorBoard board(fmt::format("{}/tensorboard/{}", run_directory, details.set), details.step);
  const auto picture = confusion_picture(details);
  board.image(details.step, "view/confusion/" + details.set, {picture.height, picture.width, data::png_of(picture)});
}

/// Of what is predicted of a set of the job, with its worst samples and their images.
EvaluationDetails evaluation_details(const train::LoadedModel& model, const EvalArguments& arguments,
                                     const DataSet& set, const std::vector<float>& raw) {
  const auto meaning = ensemble::meaning_of(*model.outputs().front().loss);
  auto targets = ensemble::as_numbers(ensemble::targets_of(set, model.job()), model);
  const auto& output = model.outputs().front();
  for (std::size_t i = 0; i < targets.values.size(); ++i) targets.values[i] += output.offset(i % output.size);
  const std::size_t width = elements(model.prediction_shape());
  auto details = details_of(meaning, read_predictions(model, raw, false), targets, train::value_names(model, width),
                            arguments.worst, [&](WorstSample& sample) { add_sample(set, sample); });
  details.set = arguments.set;
  details.checkpoint = model.saved().path;
  details.step = model.saved().step;
  return details;
}

/// For people, unless `quiet`; into the job's run directory, if there is one; and on TensorBoard, if the job has it.
void show_details(const EvaluationDetails& details, const train::LoadedModel& model, bool quiet) {
  if (!quiet) fmt::print("{}", details_text(details));
  const Job& job = model.job();
  if (!std::filesystem::is_directory(job.run_directory)) return;
  const std::string path = write_details(job.run_directory, details);
  if (!quiet) fmt::print("wrote {}; lockstep report {} shows it\n", path, job.run_directory);
  if (job.telemetry.tensorboard.enabled && !details.confusions.empty()) write_board(job.run_directory, details);
}

int evaluate(EvalArguments& arguments, Communicator& communicator, const JobFile& job, const Registries& registries) {
  const auto start = Clock::now();
  train::require_evaluation_set(arguments.set, job);
  const std::string& given = arguments.job.checkpoint;
  train::LoadedModel model(job, given.empty() ? arguments.checkpoint : given, registries, communicator, {},
                           [&] { return arguments.job.load(registries); });
  if (arguments.details) require_rows(model);
  const auto opened = model.open_set(arguments.set);
  std::vector<float> raw, losses;
  EvaluationResult result = model.evaluate(*opened.set, *opened.replaced, arguments.details ? &raw : nullptr, &losses);
  if (communicator.rank() == 0) model.warn_of_trained(arguments.set, *opened.set, result.warnings);
  for (const auto& warning : result.warnings) say("warning: {}\n", warning);
  train::require_finite(*opened.set, losses, "losses", model.saved().path);
  if (communicator.rank() != 0) return 0;
  const bool json = arguments.log == "json";
  (json ? print_eval_json : print_eval_text)(arguments, model.saved(), result, seconds_since(start));
  if (arguments.details) show_details(evaluation_details(model, arguments, *opened.set, raw), model, json);
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
      "eval runs/cifar10-resnet20 --checkpoint best\n  lockstep eval runs/digits --details\n  lockstep eval job.yaml "
      "data.test.images=/data/test --set test "
      "--ranks 2 --log json");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->add_to(*command, "one object");
  command->add_option("--checkpoint", arguments->checkpoint, kCheckpointHelp)->capture_default_str();
  command->add_option("--set", arguments->set, "validation, test or train")
      ->check(one_of({"validation", "test", "train"}))
      ->capture_default_str();
  command->add_flag("--details", arguments->details,
                    "also which classes are taken for which, and the worst samples; kept for lockstep report");
  command->add_option("--worst", arguments->worst, "how many of the worst samples --details keeps")
      ->check(at_least(0))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return eval(*arguments); }; });
}

}  // namespace lockstep::cli
