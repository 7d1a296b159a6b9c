// lockstep ensemble predict: what the members say together of image files, texts or a table's rows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/ensemble_commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/predict.hpp"
#include "cli/validators.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

struct EnsemblePredictArguments : EnsembleArguments {
  PredictOptions options;
  std::string combine = "mean";
};

ensemble::Table combined(const EnsemblePredictArguments& arguments, ensemble::Members& members,
                         const std::vector<ensemble::Table>& tables, const std::vector<double>& weights) {
  if (arguments.combine == "vote") return ensemble::vote(members.meaning(), tables);
  return ensemble::weighted(tables, weights);
}

int predict_together(EnsemblePredictArguments& arguments, ensemble::Members& members, Communicator& communicator) {
  const train::LoadedModel& model = members.first();
  const bool values = members.meaning() == ensemble::Meaning::values;
  if (values && arguments.combine == "vote") {
    throw Error(ExitCode::usage, fmt::format("--combine vote: expected members that predict classes, found the loss "
                                             "{}; choose mean or weighted",
                                             model.job().loss.kind));
  }
  const auto weights = arguments.combine == "weighted" ? read_fitted_weights(arguments.directory(), members)
                                                       : ensemble::equal_weights(members.size());
  arguments.options.json = arguments.log == "json";
  arguments.options.print = communicator.rank() == 0;
  const PredictSet predict = [&](const DataSet& set) {
    const auto tables = members.tables(members.predict(set));
    const ensemble::Table table = combined(arguments, members, tables, weights);
    std::vector<SamplePrediction> predictions;
    for (std::size_t i = 0; i < table.samples(); ++i) {
      const auto row = table.row(i);
      SamplePrediction& prediction = predictions.emplace_back(SamplePrediction{!values, {row.begin(), row.end()}});
      for (std::size_t n = 0; n < row.size(); ++n) prediction.values[n] += model.outputs()[0].offset(n);
    }
    return predictions;
  };
  const auto& features = model.data().features;
  const auto has = [&](Feature::Kind kind) {
    return std::any_of(features.begin(), features.end(), [kind](const Feature& one) { return one.kind == kind; });
  };
  if (has(Feature::Kind::tokens) || has(Feature::Kind::columns)) {
    predict_table(model, arguments.options, predict);
  } else {
    predict_images(model, arguments.options, predict, communicator);
  }
  return 0;
}

/// Directories are members; other words that are no overrides are files.
void take_files(EnsemblePredictArguments& arguments) {
  std::vector<std::string> words;
  for (const auto& word : arguments.words) {
    const bool is_file = !is_override(word) && !std::filesystem::is_directory(word);
    (is_file ? arguments.options.files : words).push_back(word);
  }
  arguments.words = words;
}

}  // namespace

void add_ensemble_predict(CLI::App& ensemble, Action& run) {
  CLI::App* command =
      ensemble.add_subcommand("predict", "Predict images, texts or rows of tables with all members, and combine them.");
  command->footer(
      "Examples:\n  lockstep ensemble predict ensembles/digits photo.png --top 3\n"
      "  lockstep ensemble predict ensembles/houses new.csv --combine weighted --ranks 2 --log json");
  auto arguments = std::make_shared<EnsemblePredictArguments>();
  arguments->add_to(*command);
  arguments->add_log_to(*command, "one object a line");
  command->get_option("MEMBERS")->description(
      "an ensemble's directory, or those of runs; overrides key=value; image files, CSV files that name them, "
      "tables, or texts");
  command
      ->add_option("--combine", arguments->combine,
                   "mean of the members' predictions, vote (of classes), or weighted, with the weights that "
                   "`lockstep ensemble eval` has fitted")
      ->check(one_of({"mean", "vote", "weighted"}))
      ->capture_default_str();
  command->add_option("--top", arguments->options.top, "how many classes to print")
      ->check(at_least(1))
      ->capture_default_str();
  command->callback([&run, arguments] {
    run = [arguments] {
      take_files(*arguments);
      return run_with_members(
          *arguments, [&](ensemble::Members& members, Communicator& communicator, const Registries& /*registries*/) {
            return predict_together(*arguments, members, communicator);
          });
    };
  });
}

}  // namespace lockstep::cli
