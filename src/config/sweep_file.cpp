// From a sweep file to SweepFile, and from its settings to the jobs of trials.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "config/sections.hpp"
#include "config/sweep.hpp"
#include "config/sweep_rules.hpp"
#include "config/yaml_dialects.hpp"
#include "config/yaml_reader.hpp"
#include "core/files.hpp"

namespace lockstep::config {

namespace {

std::string text_of(const std::string& path, const char* what) {
  auto text = std::filesystem::is_directory(path) ? std::nullopt : read_whole_file(path);
  if (text) return std::move(*text);
  throw Problems(
      {{Place{.file = path}, fmt::format("expected a {} file, found none that can be read; check the path", what)}});
}

/// Everything that the trials depend on: a sweep directory belongs to a sweep with this form.
std::string canonical_sweep(const SweepOptions& sweep, const Catalogue& catalogue, const CanonicalJob& job) {
  Json json = sweep_section(catalogue).rule->write(&sweep);
  for (const auto* key : {"name", "directory", "budget", "job"}) json.erase(key);
  json["job_sha256"] = job.digest;
  return json.dump();
}

/// What trials are compared and continued by.
void check_job(const SweepFile& sweep, const JobFile& job, std::vector<Problem>& problems) {
  const std::string judged = fmt::format("by which the {} judges {}s", sweep.whole(), sweep.part());
  const auto problem = [&](const char* key, std::string message) {
    Place place = job.place_of(std::string("job.") + key);
    if (place.file.empty()) place.file = sweep.job_file;
    problems.push_back({place, std::move(message)});
  };
  const auto reported = job.reported();
  if (sweep.metric != "loss" && std::find(reported.begin(), reported.end(), sweep.metric) == reported.end()) {
    problem("metrics", fmt::format("expected '{}', {}; add it to metrics", sweep.metric, judged));
  }
  const DataOptions& data = job.data;
  if (!data.has_validation()) {
    problem("data", fmt::format("expected data.validation, {}, found none", judged));
  }
  if (job.evaluate.never) {
    problem("evaluate", fmt::format("expected evaluations, {}, found 'never'", judged));
  }
  const std::int64_t every = sweep.compared_every();
  if (every > 0 && job.steps == 0) {
    problem("epochs", fmt::format("expected steps, which the sweep's {} divides, found epochs; set steps, above {}",
                                  name_of(sweep.method), every));
  } else if (every > 0 && job.steps <= every) {
    const char* key = sweep.method == SearchMethod::halving ? "min_steps" : "every";
    problem("steps", fmt::format("expected more than {}, the {} of the sweep's {}, found {}; raise steps or lower {}",
                                 every, key, name_of(sweep.method), job.steps, key));
  }
  if (sweep.method == SearchMethod::population && job.early_stop) {
    problem("early_stop", "expected none, since the members of a population end together, found one; leave it out");
  }
  if (job.checkpoint.never) {
    problem("checkpoint",
            fmt::format("expected checkpoints, from which interrupted {}s go on, found 'never'", sweep.part()));
  }
}

// Whether the trials of a sweep can be ranked: what they are judged by must mean the same, and be of the same samples.

bool is_in(std::string_view path, std::string_view section) {
  return path == section || (path.starts_with(section) && path.substr(section.size()).starts_with('.'));
}

bool is_searched(const SweepFile& sweep, std::string_view section) {
  return std::any_of(sweep.parameters.begin(), sweep.parameters.end(),
                     [&](const SweepParameter& parameter) { return is_in(parameter.path, section); });
}

/// The setting of a source: "path" of data.train.table.path; empty: the source as a whole.
std::string_view source_setting(std::string_view path) {
  constexpr std::string_view kSource = "data.train.";
  if (!path.starts_with(kSource)) return {};
  path.remove_prefix(kSource.size());
  const auto dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1, path.find('.', dot + 1) - dot - 1);
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Settings of a source that change how its samples are read, and not which samples there are.
constexpr std::array<std::string_view, 7> kSameSamples{"features", "except",  "categorical", "unknown",
                                                       "weight",   "weights", "class_folder"};
/// Those that a validation set of its own takes from the training set, and that change what is predicted.
constexpr std::array<std::string_view, 8> kTakenOver{"target",      "window",     "horizon",   "context",
                                                     "masked_span", "mask_token", "tokenizer", "masked"};

/// Text and time series hold their last part out, whatever the seed.
bool draws_by_seed(const DataOptions& data) {
  const auto& train = data.train;
  const bool in_order = train.kind == SourceKind::text || train.kind == SourceKind::tokens || train.window > 0;
  return (data.validation_fraction > 0 || data.validation_fold.of > 0) && !in_order;
}

}  // namespace

SweepFile load_sweep(const std::string& path, const std::vector<std::string>& overrides, const Catalogue& catalogue,
                     bool need_data) {
  const std::string text = text_of(path, "sweep");
  const Is<SweepOptions> section = sweep_section(catalogue);
  Session session;
  session.file = path;
  session.folder = std::filesystem::path(path).parent_path().string();
  session.need_data = true;
  session.root = section.rule.get();
  YamlNode root = parse_yaml(text, session);
  if (session.broken) throw Problems(session.problems);
  SweepFile sweep;
  const Entry* found = root.find("sweep");
  if (!root.is(YamlNode::Kind::mapping) || found == nullptr) {
    session.problem(root.mark.line == 0 ? Mark{1, 1, false} : root.mark, "",
                    fmt::format("expected a map with the key 'sweep', found {}",
                                root.is(YamlNode::Kind::mapping) ? "none" : describe(root)));
    throw Problems(session.problems);
  }
  section.rule->read(Cursor(found->value, "sweep", session), static_cast<SweepOptions*>(&sweep));
  refuse_ambiguous(found->value, "sweep", session);
  if (!sweep.job.empty() && root.find("job") != nullptr) {
    session.problem(found->value.find("job")->value.mark, "sweep.job",
                    "expected one job, found this file and the key 'job' at the root; remove one");
  }
  if (!session.problems.empty()) throw Problems(session.problems);
  sweep.file = path;
  if (sweep.name.empty()) sweep.name = std::filesystem::path(path).stem().string();
  if (sweep.directory.empty()) sweep.directory = "sweeps/" + sweep.name;
  sweep.job_file = sweep.job.empty() ? path : sweep.job;
  sweep.job_text = sweep.job.empty() ? text : text_of(sweep.job, "job");
  sweep.overrides = overrides;
  const JobFile job = load_text(sweep.job_text, sweep.job_file, overrides, catalogue, need_data);
  sweep.job_steps = job.steps;
  check_job(sweep, job, session.problems);
  const auto losses = incomparable_losses(sweep);
  session.problems.insert(session.problems.end(), losses.begin(), losses.end());
  if (!session.problems.empty()) throw Problems(session.problems);
  sweep.canonical = canonical_sweep(sweep, catalogue, canonical(job, catalogue));
  return sweep;
}

namespace {

bool draws_validation(const DataOptions& data) {
  return data.validation_fraction > 0 || data.validation_fold.of > 0;
}

/// The samples that a job holds out, in a form that can be compared.
std::string held_out(const JobFile& job, const Catalogue& catalogue) {
  const Json data = Json::parse(canonical(job, catalogue).text).at("job").at("data");
  const auto seed = draws_validation(job.data) ? job.data.split_seed.value_or(job.seed) : 0;
  return Json{data.at("train"), data.value("validation", Json()), seed}.dump();
}

void require_one_validation_set(const std::vector<std::string>& files, const std::vector<JobFile>& jobs,
                                const Catalogue& catalogue) {
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    if (held_out(jobs[i], catalogue) == held_out(jobs[0], catalogue)) continue;
    Place place = jobs[i].place_of("job.data");
    if (place.file.empty()) place.file = files[i];
    throw Problems({{place, fmt::format("expected the training and validation set of {}, since members are combined on "
                                        "samples that none has trained on, found another; give the jobs the same "
                                        "data.train, data.validation and data.split_seed",
                                        files[0])}});
  }
}

}  // namespace

SweepFile make_ensemble(const std::vector<std::string>& jobs, const std::vector<std::string>& overrides, MembersBy by,
                        std::int64_t members, const Catalogue& catalogue) {
  SweepFile ensemble;
  ensemble.ensemble = true;
  ensemble.method = SearchMethod::grid;
  ensemble.overrides = overrides;
  std::vector<JobFile> loaded;
  Json identity = {{"by", by == MembersBy::seed ? "seed" : by == MembersBy::bootstrap ? "bootstrap" : "jobs"}};
  std::string digests;
  for (const auto& path : jobs) {
    ensemble.job_text = path.empty() ? default_job_text() : text_of(path, "job");
    ensemble.job_file = path.empty() ? "digits.yaml" : path;
    loaded.push_back(load_text(ensemble.job_text, path, overrides, catalogue, true));
    digests += canonical(loaded.back(), catalogue).digest;
  }
  const JobFile& job = loaded.front();
  SweepParameter parameter{.path = by == MembersBy::jobs ? "job" : "seed"};
  if (by == MembersBy::jobs) {
    for (const auto& path : jobs) parameter.choices.push_back(Json(path).dump());
    require_one_validation_set(jobs, loaded, catalogue);
  } else {
    for (std::int64_t m = 0; m < members; ++m) {
      parameter.choices.push_back(fmt::format("{}", job.seed + m));
    }
    if (draws_validation(job.data) && !job.data.split_seed) {
      ensemble.overrides.push_back(fmt::format("data.split_seed={}", job.seed));
    }
    if (by == MembersBy::bootstrap) ensemble.overrides.emplace_back("data.resample=bootstrap");
  }
  ensemble.parameters = {parameter};
  ensemble.name = job.name;
  ensemble.directory = "ensembles/" + ensemble.name;
  ensemble.metric = job.metrics.empty() ? "loss" : job.metrics.front();
  ensemble.job_steps = job.steps;
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].empty()) ensemble.job_file = jobs[i];
    check_job(ensemble, loaded[i], problems);
    if (loaded[i].losses.empty()) continue;
    problems.push_back({loaded[i].place_of("job.loss"),
                        "expected one loss, since the members' predictions are combined, found a list of several"});
  }
  if (!problems.empty()) throw Problems(problems);
  identity["job_sha256"] = digests;
  ensemble.canonical = identity.dump();
  return ensemble;
}

JobFile load_member(const SweepFile& ensemble, const std::vector<std::string>& settings, const Catalogue& catalogue,
                    bool need_data) {
  std::vector<std::string> overrides = ensemble.overrides;
  std::string file = ensemble.job_file, text = ensemble.job_text;
  for (const auto& setting : settings) {
    if (setting.starts_with("job=")) {
      file = Json::parse(setting.substr(4)).get<std::string>();
      text = text_of(file, "job");
    } else {
      overrides.push_back(setting);
    }
  }
  return load_text(text, file, overrides, catalogue, need_data);
}

JobFile load_trial(const SweepFile& sweep, const std::vector<std::string>& settings, const Catalogue& catalogue,
                   bool need_data) {
  std::vector<std::string> overrides = sweep.overrides;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  try {
    return load_text(sweep.job_text, sweep.job_file, overrides, catalogue, need_data);
  } catch (const Problems& problems) {
    std::vector<Problem> list = problems.list();
    for (auto& problem : list) {
      if (problem.place.line != 0) continue;
      const auto of = std::find_if(sweep.parameters.begin(), sweep.parameters.end(), [&](const auto& parameter) {
        return (problem.place.path + ".").starts_with(parameter.path + ".");
      });
      if (of != sweep.parameters.end()) problem.place = of->place;
    }
    throw Problems(list, problems.code());
  }
}

std::vector<Problem> incomparable_losses(const SweepFile& sweep) {
  std::vector<Problem> problems;
  if (sweep.metric != "loss") return problems;
  for (const SweepParameter& parameter : sweep.parameters) {
    if (!is_in(parameter.path, "loss") && parameter.path != "data.normalize_target") continue;
    problems.push_back({parameter.place,
                        "expected trials whose losses mean the same, since the sweep's metric is the "
                        "loss, found another loss in each; judge them by one of the job's metrics"});
  }
  return problems;
}

std::vector<std::string> other_validation_samples(const SweepFile& sweep, const JobFile& job) {
  const DataOptions& data = job.data;
  const bool folds = is_searched(sweep, "data.validation.fold");  // each sample is validated on once
  std::vector<std::string> warnings;
  for (const SweepParameter& parameter : sweep.parameters) {
    const std::string_view path = parameter.path;
    const char* remedy = nullptr;
    if (path == "data.split_seed" || (path == "seed" && !data.split_seed && !is_searched(sweep, "data.split_seed"))) {
      if (draws_by_seed(data) && !folds) remedy = "set one data.split_seed";
    } else if (is_in(path, "data.train")) {
      if (is_one_of(source_setting(path), kTakenOver)) {
        remedy = "search with each value in a sweep of its own";
      } else if (data.cuts_validation() && !is_one_of(source_setting(path), kSameSamples)) {
        remedy = "give data.validation a set of its own";
      }
    } else if (path == "data" || (is_in(path, "data.validation") && !is_in(path, "data.validation.fold"))) {
      remedy = "give all trials the same data.validation";
    }
    if (remedy == nullptr) continue;
    warnings.push_back(
        fmt::format("{}: changes what trials are validated on, so that the best one may be the one with "
                    "the easiest samples; {}",
                    parameter.place.text(), remedy));
  }
  return warnings;
}

}  // namespace lockstep::config
