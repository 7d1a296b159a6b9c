// lockstep ensemble soup and distill: one model of an ensemble, of its weights or of its predictions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/ensemble_commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/trial_places.hpp"
#include "cli/validators.hpp"
#include "config/config.hpp"
#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "core/words.hpp"
#include "data/input/prepared_data.hpp"
#include "data/soft_labels.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/files.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/ensemble/soup.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

struct SoupArguments : EnsembleArguments {
  std::string to;
  bool greedy = false, force = false;
};

void check_target(const std::string& to, bool force) {
  if (fs::is_directory(to)) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: is a directory; name the file to write", to));
  }
  if (fs::exists(to) && !force) {
    throw Error(ExitCode::cannot_create,
                fmt::format("{}: the file exists; remove it, choose another name, or add --force", to));
  }
}

/// The average of some members, in a model of its own.
class Soup {
 public:
  Soup(SoupArguments& arguments, ensemble::Members& members, const Registries& registries, Communicator& communicator)
      : members_(members), metric_(members.first().job().metrics.empty() ? "loss" : members.first().job().metrics[0]) {
    copy_ = std::make_unique<ensemble::Members>(std::vector{members.directory(0)}, arguments.overrides(),
                                                arguments.checkpoint, registries, communicator);
    higher_ = better_direction(metric_, registries) == Direction::maximize;
  }

  checkpoint::SavedModel& average(const std::vector<std::size_t>& some) {
    std::vector<const checkpoint::SavedModel*> models;
    for (const std::size_t m : some) models.push_back(&members_.model(m).saved());
    checkpoint::SavedModel& into = copy_->model(0).saved();
    ensemble::average(models, into);
    return into;
  }

  /// Collective.
  [[nodiscard]] std::vector<std::size_t> greedy() {
    std::vector<double> values;
    for (std::size_t m = 0; m < members_.size(); ++m) values.push_back(value_of({m}));
    return ensemble::greedy_soup(values, higher_, [&](const auto& some) { return value_of(some); });
  }

  [[nodiscard]] double value_of(const std::vector<std::size_t>& some) {
    (void)average(some);
    return copy_->model(0).evaluate("validation").metrics.at(metric_);
  }
  const std::string& metric() const { return metric_; }

 private:
  ensemble::Members& members_;
  std::unique_ptr<ensemble::Members> copy_;  ///< of the first member, overwritten by averages
  std::string metric_;
  bool higher_ = false;
};

int make_soup(SoupArguments& arguments, ensemble::Members& members, Communicator& communicator,
              const Registries& registries) {
  members.require_reading(members.first().data());
  Soup soup(arguments, members, registries, communicator);
  std::vector<std::size_t> chosen;
  for (std::size_t m = 0; m < members.size(); ++m) chosen.push_back(m);
  if (arguments.greedy) {
    (void)members.open_sets("validation");  // which no member may have been trained on
    chosen = soup.greedy();
  }
  const checkpoint::SavedModel& model = soup.average(chosen);
  if (communicator.rank() != 0) return 0;
  checkpoint::write_whole(checkpoint::real_files(), arguments.to, checkpoint::safetensors_of(model));
  fmt::print("wrote {}: the average of members {}\n", arguments.to, fmt::join(chosen, ", "));
  return 0;
}

struct DistillArguments : EnsembleArguments {
  std::string directory;
  double weight = 0.9, temperature = 1;
  bool force = false;
};

/// The student's job: another file, or that of the first member, whichever samples that one has drawn.
JobFile student_of(const DistillArguments& arguments, const config::Catalogue& catalogue,
                   const std::vector<std::string>& own) {
  auto overrides = arguments.overrides();
  overrides.insert(overrides.end(), own.begin(), own.end());
  if (!arguments.job.empty()) return config::load(arguments.job, overrides, catalogue, true);
  overrides.emplace_back("data.resample=never");
  return checkpoint::load_saved_job(ensemble::member_directories(arguments.places()).front(), overrides, catalogue,
                                    true);
}

std::string teacher_file(const DataSet& set, const ensemble::Table& table) {
  std::vector<float> values;
  for (const double p : table.values) values.push_back(p);
  const Shape shape = {set.size(), static_cast<std::int64_t>(table.width)};
  return checkpoint::to_safetensors({{data::kProbabilitiesTensor, shape, values}},
                                    {{"format", "lockstep"}, {data::kSamplesDigest, set.info().digest}});
}

int write_student(const DistillArguments& arguments, ensemble::Members& members, Communicator& communicator,
                  const Registries& registries) {
  if (members.meaning() != ensemble::Meaning::classes) {
    throw Error(ExitCode::usage, fmt::format("ensemble distill: expected members that predict classes, found the loss "
                                             "{}",
                                             members.first().job().loss.kind));
  }
  const config::Catalogue catalogue = train::catalogue_of(registries);
  const JobFile plain = student_of(arguments, catalogue, {});
  const auto data =
      input::learn(plain.data, plain.seed, plain.batch_size, registries, {}, {.communicator = &communicator});
  const auto &classes = members.first().data().class_names, &found = data.train->info().class_names;
  if (found != classes) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected the classes that the members predict, {}, found {}",
                            plain.data.train.place.text(), few_of(classes, 10), few_of(found, 10)));
  }
  const auto tables = members.tables(members.predict(*data.train));
  if (communicator.rank() != 0) return 0;
  const auto table = ensemble::weighted(tables, ensemble::equal_weights(tables.size()));
  const std::string teacher = arguments.directory + "/teacher.safetensors";
  const std::string job_path = arguments.directory + "/job.yaml";
  std::error_code failed;
  fs::create_directories(arguments.directory, failed);
  if (failed) {
    throw Error(code_of_errno(failed, ExitCode::cannot_create),
                fmt::format("{}: cannot create it: {}", arguments.directory, failed.message()));
  }
  checkpoint::write_whole(checkpoint::real_files(), teacher, teacher_file(*data.train, table));
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const JobFile job =
      student_of(arguments, catalogue,
                 {fmt::format("data.soft_labels={{from: {}, weight: {}, temperature: {}}}", quoted(teacher),
                              arguments.weight, arguments.temperature),
                  "name=" + quoted(plain.name + "-distilled"), "run_directory=" + quoted(arguments.directory)});
  write_whole_file(job_path, config::canonical(job, catalogue).text);
  fmt::print("wrote {}: probabilities of {} training samples\nwrote {}: train it with lockstep train {}\n", teacher,
             data.train->size(), job_path, job_path);
  return 0;
}

}  // namespace

void add_ensemble_soup(CLI::App& ensemble, Action& run) {
  CLI::App* command =
      ensemble.add_subcommand("soup", "Average the members' weights into one model, as a safetensors file.");
  command->footer(
      "Members that began with the same weights (initialize) average well; others hardly.\n\nExamples:\n"
      "  lockstep ensemble soup ensembles/tuned --to soup.safetensors --greedy\n"
      "  lockstep eval ensembles/tuned/trials/0000 --checkpoint soup.safetensors");
  auto arguments = std::make_shared<SoupArguments>();
  arguments->add_to(*command);
  command->add_option("--to", arguments->to, "the file to write")->required();
  command->add_flag("--greedy", arguments->greedy,
                    "from the best member down, take those with which the average is not worse on validation");
  command->add_flag("--force", arguments->force, "overwrite an existing file");
  command->callback([&run, arguments] {
    run = [arguments] {
      check_target(arguments->to, arguments->force);
      return run_with_members(
          *arguments, [&](ensemble::Members& members, Communicator& communicator, const Registries& registries) {
            return make_soup(*arguments, members, communicator, registries);
          });
    };
  });
}

void add_ensemble_distill(CLI::App& ensemble, Action& run) {
  CLI::App* command = ensemble.add_subcommand(
      "distill", "Write the members' mean probabilities of the training set, and a job that is trained against them.");
  command->footer(
      "Examples:\n  lockstep ensemble distill ensembles/digits --to runs/small --job small.yaml --ranks 2\n"
      "  lockstep train runs/small/job.yaml");
  auto arguments = std::make_shared<DistillArguments>();
  arguments->add_to(*command);
  command->get_option("MEMBERS")->description(
      "an ensemble's directory, or those of runs; overrides key=value of the members' jobs and of the new one");
  command->add_option("--to", arguments->directory, "the run directory of the job, for both files")->required();
  command->add_option("--job", arguments->job, "the job file to train against them; by default the first member's job");
  command->add_option("--weight", arguments->weight, "of the probabilities; the labels have the rest")
      ->check(above_up_to(0, 1))
      ->capture_default_str();
  command->add_option("--temperature", arguments->temperature, "of the probabilities: above 1 they are more equal")
      ->check(above_up_to(0, 100))
      ->capture_default_str();
  command->add_flag("--force", arguments->force, "overwrite existing files");
  command->callback([&run, arguments] {
    run = [arguments] {
      for (const char* file : {"/teacher.safetensors", "/job.yaml"}) {
        check_target(arguments->directory + file, arguments->force);
      }
      return run_with_members(
          *arguments, [&](ensemble::Members& members, Communicator& communicator, const Registries& registries) {
            return write_student(*arguments, members, communicator, registries);
          });
    };
  });
}

}  // namespace lockstep::cli
