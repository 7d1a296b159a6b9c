// lockstep ensemble eval: the members' metrics and those of what they predict together, calibration, disagreement; or
// those of cross-validation, where each sample is predicted by the members that were not trained on it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/ensemble_commands.hpp"
#include "cli/predict.hpp"
#include "cli/validators.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "core/spans.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/ensemble/calibration.hpp"
#include "run/ensemble/outcome.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;
using ensemble::Meaning;

constexpr const char* kOutOfFold = "out-of-fold";

struct EnsembleEvalArguments : EnsembleArguments {
  std::string set = "validation", predictions;
  int bins = 15;
};

/// A member, or a way to combine all of them.
struct Row {
  std::string name;
  std::map<std::string, double> metrics;
  std::optional<ensemble::Calibration> calibration;  ///< of probabilities
};

struct EnsembleResult {
  std::int64_t samples = 0;
  std::vector<Row> members, combined;
  std::vector<double> weights;  ///< empty: there is no validation set to fit them on
  std::vector<double> pairs;    ///< disagreement; empty: they have no samples in common
};

/// What is predicted of each sample, for the file of predictions.
struct Predicted {
  std::vector<std::string> names;
  ensemble::SetTargets targets;
  ensemble::Table table = {};
};

bool has_validation(const Job& job) {
  return job.data.has_validation();
}

std::vector<double> fit(const ensemble::Members& members, const std::vector<std::vector<float>>& raw,
                        const ensemble::SetTargets& targets) {
  const Meaning meaning = members.meaning();
  const train::LoadedModel& first = members.first();
  const auto tables = members.tables(raw);
  const auto numbers = ensemble::as_numbers(targets, first);
  return meaning == Meaning::values ? ensemble::fit_squared_error(tables, numbers)
                                    : ensemble::fit_likelihood(meaning, tables, numbers);
}

/// None, with a warning, where members were validated on different samples: each was trained on some of the others'.
std::vector<double> fit_on_validation(ensemble::Members& members, bool leads) {
  std::vector<train::EvaluationSet> validation;
  try {
    validation = members.open_sets("validation");
  } catch (const Error& error) {
    if (error.code() != ExitCode::configuration) throw;
    if (leads) say("warning: no weights are fitted: {}\n", error.what());
    return {};
  }
  const auto predicted = members.predict(validation);
  if (!leads) return {};
  return fit(members, predicted, ensemble::targets_of(*validation[0].set, members.first().job()));
}

class Judge {
 public:
  Judge(const ensemble::Members& members, const ensemble::SetTargets& targets, int bins, const Registries& registries)
      : members_(members),
        targets_(targets),
        numbers_(ensemble::as_numbers(targets, members.first())),
        bins_(bins),
        registries_(registries) {}

  Row of(const std::string& name, const std::vector<float>& raw, const ensemble::Table& table) const {
    const train::LoadedModel& first = members_.first();
    Row row{name, ensemble::metrics_of(raw, table.width, targets_, first.job(), first.prepared(), registries_), {}};
    if (members_.meaning() != Meaning::values) {
      row.calibration = ensemble::calibration_of(members_.meaning(), table, numbers_, bins_);
    }
    return row;
  }

  Row of(const std::string& name, const ensemble::Table& table) const {
    std::vector<float> raw;
    for (std::size_t i = 0; i < table.samples(); ++i) {
      const auto prediction = ensemble::as_prediction(members_.meaning(), table.row(i));
      raw.insert(raw.end(), prediction.begin(), prediction.end());
    }
    return of(name, raw, table);
  }

 private:
  const ensemble::Members& members_;
  const ensemble::SetTargets& targets_;
  ensemble::Targets numbers_;
  int bins_;
  const Registries& registries_;
};

void add_names(const DataSet& set, std::vector<std::string>& names) {
  for (std::int64_t id = 0; id < set.size(); ++id) names.push_back(set.name(id));
}

EnsembleResult judge(const EnsembleEvalArguments& arguments, const ensemble::Members& members,
                     const std::vector<std::vector<float>>& raw, Predicted& predicted, std::vector<double> weights,
                     const Registries& registries) {
  const auto tables = members.tables(raw);
  const Judge judge(members, predicted.targets, arguments.bins, registries);
  EnsembleResult result{.samples = static_cast<std::int64_t>(tables[0].samples())};
  for (std::size_t m = 0; m < tables.size(); ++m) {
    result.members.push_back(judge.of(fmt::format("member {}", m), raw[m], tables[m]));
  }
  predicted.table = ensemble::weighted(tables, ensemble::equal_weights(tables.size()));
  result.combined.push_back(judge.of("mean", predicted.table));
  if (members.meaning() != Meaning::values) {
    result.combined.push_back(judge.of("vote", ensemble::vote(members.meaning(), tables)));
  }
  if (!weights.empty()) result.combined.push_back(judge.of("weighted", ensemble::weighted(tables, weights)));
  result.weights = std::move(weights);
  result.pairs = ensemble::disagreement(members.meaning(), tables);
  return result;
}

/// Each once: members may share a set.
void print_warnings(const std::vector<train::EvaluationSet>& sets, const std::string& name,
                    ensemble::Members& members) {
  std::set<std::string> printed;
  for (std::size_t m = 0; m < sets.size(); ++m) {
    auto warnings = input::warnings_of(sets[m].set->info());
    for (auto& far : input::far_columns(members.model(m).prepared().schema, *sets[m].set)) {
      warnings.push_back(std::move(far));
    }
    members.model(m).warn_of_trained(name, *sets[m].set, warnings);
    for (const auto& warning : warnings) {
      if (printed.insert(warning).second) say("warning: {}\n", warning);
    }
  }
}

/// Each member on its own fold, and all samples as predicted by the mean of those that held them out. Collective.
EnsembleResult judge_folds(const EnsembleEvalArguments& arguments, ensemble::Members& members, bool leads,
                           Predicted& predicted, const Registries& registries) {
  const auto sets = members.open_folds();
  if (leads) print_warnings(sets, "validation", members);
  EnsembleResult result;
  result.members.resize(members.size());
  for (const auto& some : members.folds()) {
    const auto raw = members.predict(sets, some);
    if (!leads) continue;
    const DataSet& set = *sets[some.front()].set;
    const auto targets = ensemble::targets_of(set, members.model(some.front()).job());
    const auto tables = members.tables(raw);
    const Judge judge(members, targets, arguments.bins, registries);
    for (std::size_t i = 0; i < some.size(); ++i) {
      result.members[some[i]] = judge.of(fmt::format("member {}", some[i]), raw[i], tables[i]);
    }
    const auto mean = ensemble::weighted(tables, ensemble::equal_weights(tables.size()));
    predicted.table.width = mean.width;
    predicted.table.values.insert(predicted.table.values.end(), mean.values.begin(), mean.values.end());
    predicted.targets.feature = targets.feature;
    predicted.targets.bytes.insert(predicted.targets.bytes.end(), targets.bytes.begin(), targets.bytes.end());
    add_names(set, predicted.names);
  }
  if (!leads) return result;
  result.samples = predicted.names.size();
  result.combined.push_back(
      Judge(members, predicted.targets, arguments.bins, registries).of(kOutOfFold, predicted.table));
  return result;
}

/// A row for each sample: its name, its target, what is predicted; of classes the likeliest and all probabilities.
std::string predictions_csv(const ensemble::Members& members, const Predicted& predicted) {
  const bool of_classes = members.meaning() == Meaning::classes;
  const auto numbers = ensemble::as_numbers(predicted.targets, members.first());
  const std::size_t width = predicted.table.width;
  const auto names = train::value_names(members.first(), width);
  const train::ModelOutput& output = members.first().outputs().front();
  std::vector<std::string> cells = {"sample"};
  if (of_classes) {
    cells.insert(cells.end(), {"target", "predicted"});
  } else {
    for (std::size_t i = 0; i < width; ++i) cells.push_back(width == 1 ? "target" : "target " + names[i]);
  }
  for (std::size_t i = 0; i < width; ++i) cells.push_back(of_classes || width > 1 ? names[i] : "predicted");
  std::string text = csv_line(cells);
  for (std::size_t at = 0; at < predicted.names.size(); ++at) {
    const auto row = predicted.table.row(at);
    cells = {predicted.names[at]};
    if (of_classes) {
      const auto target = numbers.classes[at];
      const bool known = target >= 0 && static_cast<std::size_t>(target) < width;
      cells.push_back(known ? names[target] : "");
      cells.push_back(names[ensemble::largest_of(row)]);
    } else {
      for (std::size_t i = 0; i < width; ++i)
        cells.push_back(fmt::format("{}", numbers.values[at * width + i] + output.offset(i)));
    }
    for (std::size_t i = 0; i < width; ++i) cells.push_back(fmt::format("{}", row[i] + output.offset(i)));
    text += csv_line(cells);
  }
  return text;
}

void print_row(const Row& row) {
  std::string line = fmt::format("  {:<10}", row.name);
  for (const auto& [name, value] : row.metrics) line += fmt::format(" {:>12.6g}", value);
  if (row.calibration) line += fmt::format(" {:>12.6g}", row.calibration->error);
  fmt::print("{}\n", line);
}

void print_text(const EnsembleEvalArguments& arguments, const ensemble::Members& members, const EnsembleResult& result,
                double seconds) {
  fmt::print("{} on {} {} samples\n", telemetry::counted(members.size(), "member"), telemetry::grouped(result.samples),
             arguments.set);
  std::string head = fmt::format("  {:<10}", "");
  for (const auto& [name, value] : result.members[0].metrics) head += fmt::format(" {:>12}", name);
  if (result.members[0].calibration) head += fmt::format(" {:>12}", "ECE");
  fmt::print("{}\n", head);
  for (const auto* rows : {&result.members, &result.combined}) {
    for (const Row& row : *rows) print_row(row);
  }
  if (!result.weights.empty()) {
    fmt::print("weights {:.4f}, fitted on validation{}\n", fmt::join(result.weights, " "),
               arguments.set == "validation" ? ", where they are also measured: look at --set test" : "");
  }
  std::vector<std::string> pairs;
  for (std::size_t a = 0; a < members.size() && !result.pairs.empty(); ++a) {
    for (std::size_t b = a + 1; b < members.size(); ++b) {
      pairs.push_back(fmt::format("{}-{} {:.4f}", a, b, result.pairs[a * members.size() + b]));
    }
  }
  if (!pairs.empty()) {
    fmt::print("disagreement {:.4f} ({})\n", ensemble::mean_disagreement(result.pairs, members.size()),
               fmt::join(pairs, ", "));
  }
  fmt::print("time {}\n", telemetry::duration(seconds));
}

Json row_json(const Row& row, const std::string& key, const std::string& name) {
  auto metrics = row.metrics;
  const double loss = metrics.extract("loss").mapped();
  Json json = {{key, name}, {"loss", loss}, {"metrics", metrics}};
  if (!row.calibration) return json;
  json["calibration_error"] = row.calibration->error;
  for (const auto& bin : row.calibration->bins) {
    json["bins"].push_back({{"low", bin.low},
                            {"high", bin.high},
                            {"count", bin.count},
                            {"confidence", bin.confidence},
                            {"accuracy", bin.accuracy}});
  }
  return json;
}

void print_json(const EnsembleEvalArguments& arguments, const ensemble::Members& members, const EnsembleResult& result,
                double seconds) {
  Json line = {{"event", "ensemble_eval"}, {"set", arguments.set}, {"samples", result.samples}};
  for (std::size_t m = 0; m < members.size(); ++m) {
    Json member = row_json(result.members[m], "directory", members.directory(m));
    member["checkpoint"] = members.model(m).saved().path;
    member["parameters_sha256"] = exec::sha256_of(members.model(m).saved().parameters);
    line["members"].push_back(std::move(member));
  }
  for (const Row& row : result.combined) line["combined"].push_back(row_json(row, "by", row.name));
  line["weights"] = result.weights;
  if (!result.pairs.empty()) line["disagreement"]["mean"] = ensemble::mean_disagreement(result.pairs, members.size());
  for (std::size_t m = 0; m < members.size() && !result.pairs.empty(); ++m) {
    const auto begin = result.pairs.begin() + (m * members.size());
    line["disagreement"]["pairs"].push_back(std::vector(begin, begin + members.size()));
  }
  line["seconds"] = seconds;
  fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// Collective; on rank 0 what the members come to on a set that all of them read.
EnsembleResult judge_set(const EnsembleEvalArguments& arguments, ensemble::Members& members, bool leads,
                         Predicted& predicted, const Registries& registries) {
  const auto opened = members.open_sets(arguments.set);
  const auto raw = members.predict(opened);
  std::vector<double> weights;
  const Job& job = members.first().job();
  if (leads) {
    print_warnings(opened, arguments.set, members);
    predicted.targets = ensemble::targets_of(*opened[0].set, job);
    add_names(*opened[0].set, predicted.names);
  }
  if (arguments.set == "validation") {
    if (leads) weights = fit(members, raw, predicted.targets);
  } else if (has_validation(job)) {
    weights = fit_on_validation(members, leads);
  }
  if (!leads) return {};
  const std::string directory = arguments.directory();
  if (!weights.empty() && !directory.empty()) write_fitted_weights(directory, weights, members);
  return judge(arguments, members, raw, predicted, std::move(weights), registries);
}

int evaluate_members(const EnsembleEvalArguments& arguments, ensemble::Members& members, Communicator& communicator,
                     const Registries& registries) {
  const auto start = Clock::now();
  const bool leads = communicator.rank() == 0;
  Predicted predicted;
  const auto result =
      (arguments.set == kOutOfFold ? judge_folds : judge_set)(arguments, members, leads, predicted, registries);
  if (!leads) return 0;
  if (!arguments.predictions.empty()) write_whole_file(arguments.predictions, predictions_csv(members, predicted));
  const auto print = arguments.log == "json" ? print_json : print_text;
  print(arguments, members, result, seconds_since(start));
  return 0;
}

}  // namespace

void add_ensemble_eval(CLI::App& ensemble, Action& run) {
  CLI::App* command = ensemble.add_subcommand(
      "eval", "Evaluate the members, and what they predict together, on every sample of a set, once.");
  command->footer(
      "Fits the members' weights on the validation set, and keeps them in the ensemble's directory.\n\n"
      "Examples:\n  lockstep ensemble eval ensembles/digits --ranks 2\n"
      "  lockstep ensemble eval runs/a runs/b data.test.images=/data/test --set test --log json\n"
      "  lockstep ensemble eval sweeps/folds --set out-of-fold --predictions predicted.csv");
  auto arguments = std::make_shared<EnsembleEvalArguments>();
  arguments->add_to(*command);
  arguments->add_log_to(*command, "one object");
  command
      ->add_option("--set", arguments->set,
                   "validation, test or train; out-of-fold: of cross-validation (data.validation.fold), each sample as "
                   "predicted by the members that were not trained on it")
      ->check(one_of({"validation", "test", "train", kOutOfFold}))
      ->capture_default_str();
  command->add_option("--predictions", arguments->predictions,
                      "a CSV file to write: each sample's name, its target, and the mean of the members' predictions");
  command->add_option("--bins", arguments->bins, "of the expected calibration error")
      ->check(at_least(1))
      ->capture_default_str();
  command->callback([&run, arguments] {
    run = [arguments] {
      return run_with_members(
          *arguments, [&](ensemble::Members& members, Communicator& communicator, const Registries& registries) {
            return evaluate_members(*arguments, members, communicator, registries);
          });
    };
  });
}

}  // namespace lockstep::cli
