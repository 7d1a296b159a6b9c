#include "run/ensemble/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "comm/transport/work_together.hpp"
#include "core/files.hpp"
#include "core/words.hpp"
#include "data/input/schema.hpp"
#include "data/soft_labels.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/ensemble/outcome.hpp"
#include "run/ensemble/shares.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/not_finite.hpp"

namespace lockstep::ensemble {

namespace {

void add_trials(const std::string& place, const std::string& text, std::vector<std::string>& directories) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    for (const auto& trial : json.at("trials")) {
      const int number = trial.at("trial");
      const auto state = trial.at("state").get<std::string>();
      if (state != "done") {
        throw Error(ExitCode::data,
                    fmt::format("{}: expected members that are trained to their end, found member {} {}; train them "
                                "with the same command as before",
                                place, number, state));
      }
      directories.push_back(fmt::format("{}/trials/{:04}", place, number));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::data, fmt::format("{}/trials.json: expected the trials of an ensemble or a sweep, found "
                                            "something else; train them again",
                                            place));
  }
}

std::unique_ptr<train::LoadedModel> load(const std::string& directory, const std::vector<std::string>& overrides,
                                         const std::string& which, const Registries& registries,
                                         Communicator& communicator) {
  const auto job = [&registries, directory, overrides](bool need_data) {
    auto words = overrides;
    words.emplace_back("data.resample=never");  // which samples one member has drawn is not the set's matter
    return checkpoint::load_saved_job(directory, words, train::catalogue_of(registries), need_data);
  };
  return std::make_unique<train::LoadedModel>(job(false), which, registries, communicator, DataSets(),
                                              [job] { return job(true); });
}

/// The columns of a table that a model predicts numbers of.
std::vector<std::string> targets_in(const train::LoadedModel& model) {
  const DataSetInfo& info = model.data();
  if (info.window.rows > 0) return info.window.targets;
  for (const Feature& feature : info.features) {
    if (feature.kind == Feature::Kind::tensor && !feature.classes.empty()) return feature.classes;
  }
  return {};
}

/// Whether what one reads as `set` serves the other, too: the same samples, read alike.
bool share_sets(const train::LoadedModel& one, const train::LoadedModel& other, const std::string& set) {
  const auto source = [&set](const train::LoadedModel& model) {
    const DataOptions& data = model.job().data;
    const SourceOptions& of = set == "test"                            ? *data.test
                              : set == "validation" && data.validation ? *data.validation
                                                                       : data.train;
    return std::tuple(of.kind, of.paths, of.labels, of.count, of.first, of.weights, of.context);
  };
  const auto& digests = one.prepared().schema.digests;
  if (data::has_soft_labels(one.job().data) != data::has_soft_labels(other.job().data)) return false;
  return !digests.empty() && digests == other.prepared().schema.digests && source(one) == source(other) &&
         input::other_reading(one.data(), other.data()).empty();
}

/// What is not the same in the sets of two members; empty: nothing.
std::string difference(const DataSet& one, const Job& job, const DataSet& other, const Job& other_job) {
  if (one.size() != other.size()) return fmt::format("{} samples, found {}", one.size(), other.size());
  for (std::int64_t id = 0; id < one.size(); ++id) {
    if (one.name(id) != other.name(id)) return fmt::format("sample {}, found {}", one.name(id), other.name(id));
  }
  bool same = true;
  if (data::has_soft_labels(job.data) == data::has_soft_labels(other_job.data)) {
    same = targets_of(one, job).bytes == targets_of(other, other_job).bytes;
  } else {
    for (std::int64_t id = 0; same && id < one.size(); ++id) same = one.label(id) == other.label(id);
  }
  return same ? "" : "the same targets, found others";
}

}  // namespace

std::vector<std::string> member_directories(const std::vector<std::string>& places) {
  std::vector<std::string> directories;
  for (const auto& place : places) {
    if (const auto trials = read_whole_file(place + "/trials.json")) {
      add_trials(place, *trials, directories);
    } else {
      directories.push_back(place);
    }
  }
  if (directories.size() < 2) {
    throw Error(ExitCode::usage,
                fmt::format("ensemble: expected the directory of an ensemble, or those of two runs or more, found {}; "
                            "train one with `lockstep ensemble train`",
                            directories.empty() ? "none" : "only " + directories.front()));
  }
  return directories;
}

Members::Members(const std::vector<std::string>& directories, const std::vector<std::string>& overrides,
                 const std::string& which, const Registries& registries, Communicator& communicator)
    : directories_(directories), communicator_(communicator) {
  for (const auto& directory : directories) {
    models_.push_back(load(directory, overrides, which, registries, communicator));
  }
  require_alike();
}

void Members::require_alike() const {
  const auto refuse = [&](std::size_t m, const std::string& expected, const std::string& found) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected {}, as {} has, found {}; only predictions of the same can be combined",
                            directories_[m], expected, directories_[0], found));
  };
  const train::LoadedModel& one = first();
  for (std::size_t m = 0; m < models_.size(); ++m) {
    if (models_[m]->job().losses.empty()) continue;
    throw Error(ExitCode::usage, fmt::format("ensemble: expected members with one loss, found {}, which has {}",
                                             directories_[m], models_[m]->job().losses.size()));
  }
  if (one.prediction_shape().size() != 1) {
    throw Error(ExitCode::usage, fmt::format("ensemble: expected members that predict classes or numbers of a sample, "
                                             "found {}, which predicts {}",
                                             directories_[0], to_string(one.prediction_shape())));
  }
  for (std::size_t m = 1; m < models_.size(); ++m) {
    const train::LoadedModel& other = *models_[m];
    if (other.job().loss.kind != one.job().loss.kind) {
      refuse(m, "the loss " + one.job().loss.kind, other.job().loss.kind);
    }
    if (other.prediction_shape() != one.prediction_shape()) {
      refuse(m, fmt::format("predictions {}", to_string(one.prediction_shape())), to_string(other.prediction_shape()));
    }
    if (other.data().class_names != one.data().class_names) refuse(m, "the same classes", "others");
    if (targets_in(other) != targets_in(one)) {
      refuse(m, "the targets " + few_of(targets_in(one), 10), few_of(targets_in(other), 10));
    }
    if (other.outputs()[0].offsets != one.outputs()[0].offsets) {
      refuse(m, "targets less the same numbers (those far from 0, with normalize_target)", "others");
    }
  }
}

std::size_t Members::width() const {
  return first().prediction_shape()[0];
}

std::vector<train::EvaluationSet> Members::open_sets(const std::string& set) {
  std::vector<train::EvaluationSet> sets = {models_[0]->open_set(set)};
  for (std::size_t m = 1; m < models_.size(); ++m) {
    if (share_sets(first(), *models_[m], set)) {
      sets.push_back(sets[0]);
      continue;
    }
    sets.push_back(models_[m]->open_set(set));
    const auto found = difference(*sets[0].set, first().job(), *sets[m].set, models_[m]->job());
    if (found.empty()) continue;
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected the {} samples that {} has: {}; a member may have been trained on those of "
                            "another: choose --set test, or out-of-fold if they are folds of one data.split_seed",
                            directories_[m], set, directories_[0], found));
  }
  return sets;
}

std::vector<std::vector<std::size_t>> Members::folds() const {
  const auto refuse = [&](std::size_t m, const std::string& expected, const std::string& found) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected {}, found {}; train the members as a sweep over data.validation.fold",
                            directories_[m], expected, found));
  };
  std::vector<std::vector<std::size_t>> folds(first().job().data.validation_fold.of);
  for (std::size_t m = 0; m < size(); ++m) {
    const Fold& fold = models_[m]->job().data.validation_fold;
    if (fold.of == 0) refuse(m, "a member that was trained without a fold (data.validation.fold)", "none");
    if (static_cast<std::size_t>(fold.of) != folds.size()) {
      refuse(m, fmt::format("one of {} folds, as {} has", folds.size(), directories_[0]),
             fmt::format("one of {}", fold.of));
    }
    folds[fold.number - 1].push_back(m);
  }
  for (std::size_t f = 0; f < folds.size(); ++f) {
    if (folds[f].empty())
      refuse(0, fmt::format("a member for each of {} folds", folds.size()), fmt::format("none for fold {}", f + 1));
  }
  return folds;
}

std::vector<train::EvaluationSet> Members::open_folds() {
  const auto by_fold = folds();
  std::vector<train::EvaluationSet> sets;
  for (auto& model : models_) sets.push_back(model->open_set("validation"));
  std::map<std::string, std::size_t> fold_of;
  const auto refuse = [&](std::size_t m, const std::string& found) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected folds of one split, found {}; train the members with one data.split_seed",
                            directories_[m], found));
  };
  for (std::size_t f = 0; f < by_fold.size(); ++f) {
    for (const std::size_t m : by_fold[f]) {
      const std::size_t one = by_fold[f].front();
      const auto other = difference(*sets[one].set, models_[one]->job(), *sets[m].set, models_[m]->job());
      if (!other.empty()) refuse(m, fmt::format("other samples in fold {} than {} has", f + 1, directories_[one]));
    }
    const DataSet& set = *sets[by_fold[f].front()].set;
    for (std::int64_t id = 0; id < set.size(); ++id) {
      const auto [found, added] = fold_of.emplace(set.name(id), f);
      if (!added) {
        refuse(by_fold[f].front(), fmt::format("{} in folds {} and {}", set.name(id), found->second + 1, f + 1));
      }
    }
  }
  return sets;
}

std::vector<std::size_t> Members::all_members() const {
  std::vector<std::size_t> all(size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

std::vector<std::vector<float>> Members::predict(const std::vector<train::EvaluationSet>& by_member) {
  return predict(by_member, all_members());
}

std::vector<std::vector<float>> Members::predict(const std::vector<train::EvaluationSet>& by_member,
                                                 const std::vector<std::size_t>& some) {
  std::vector<const DataSet*> sets;
  for (const std::size_t m : some) sets.push_back(by_member[m].set.get());
  return predict(sets, some);
}

void Members::require_reading(const DataSetInfo& set) const {
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const std::string other = input::other_reading(models_[m]->data(), set);
    if (other.empty()) continue;
    throw Error(ExitCode::configuration,
                m > 0 ? fmt::format("{}: expected a member that reads samples as {} does, found other columns, "
                                    "categories or tokens; use it alone",
                                    directories_[m], directories_[0])
                      : fmt::format("{}: expected {}", directories_[0], other));
  }
}

std::vector<std::vector<float>> Members::predict(const DataSet& set) {
  require_reading(set.info());
  return predict(std::vector<const DataSet*>(size(), &set), all_members());
}

std::vector<std::vector<float>> Members::predict(const std::vector<const DataSet*>& sets,
                                                 const std::vector<std::size_t>& some) {
  const DataSet& set = *sets.front();
  const std::size_t samples = set.size();
  std::vector<std::vector<float>> all(some.size(), std::vector<float>(samples * width()));
  if (samples == 0) return all;
  std::vector<std::int64_t> micro_batch_samples;
  for (const std::size_t m : some) {
    const Job& job = models_[m]->job();
    micro_batch_samples.push_back(job.batch_size / job.micro_batches);
  }
  const auto shares = shares_of_ranks(set.size(), micro_batch_samples, communicator_.size());
  const auto& mine = shares[communicator_.rank()];
  const auto timeout = first().job().timeout();

  std::vector<std::unique_ptr<train::SetPredictor>> predictors(some.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto predictor = models_[some[i]]->predictor_of(*sets[i]);
    const bool used = std::any_of(mine.begin(), mine.end(), [i](const Share& share) { return share.member == i; });
    if (used) predictors[i] = std::move(predictor);
  }
  const auto work = [&](comm::WorkProgress& progress) {
    for (const Share& share : mine) {
      predictors[share.member]->predict(
          share.micro_batches,
          [&](std::int64_t id, std::span<const float> prediction) {
            std::copy(prediction.begin(), prediction.end(), all[share.member].begin() + (id * width()));
          },
          [&] { progress.advance(); });
      predictors[share.member].reset();
    }
    return true;
  };
  (void)comm::work_together(communicator_, {"predictions", 0, timeout}, work,
                            {.stalled = std::max<std::chrono::milliseconds>(timeout, std::chrono::minutes{1})});
  for (int rank = 0; rank < communicator_.size() && communicator_.size() > 1; ++rank) {
    for (const Share& share : shares[rank]) {
      const std::size_t b = micro_batch_samples[share.member];
      const std::size_t begin = share.micro_batches.front() * b;
      const std::size_t end = std::min((static_cast<std::size_t>(share.micro_batches.back()) + 1) * b, samples);
      const auto rows = std::span(all[share.member]).subspan(begin * width(), (end - begin) * width());
      communicator_.broadcast(std::as_writable_bytes(rows), rank, {"predictions", 0, timeout});
    }
  }
  for (std::size_t i = 0; i < some.size(); ++i) {
    train::require_finite(*sets[i], all[i], "predictions", models_[some[i]]->saved().path);
  }
  return all;
}

std::vector<Table> Members::tables(const std::vector<std::vector<float>>& raw) const {
  std::vector<Table> tables;
  for (const auto& member : raw) {
    Table& table = tables.emplace_back(Table{width(), {}});
    for (std::size_t at = 0; at < member.size(); at += width()) {
      const auto row = read_prediction(meaning(), std::span(member).subspan(at, width()));
      table.values.insert(table.values.end(), row.begin(), row.end());
    }
  }
  return tables;
}

}  // namespace lockstep::ensemble
