// lockstep tune: settings of a job found by short trainings: the learning rate, the batch size, threads, loading.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/ranks.hpp"
#include "cli/svg_chart.hpp"
#include "cli/validators.hpp"
#include "config/config.hpp"
#include "core/say.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/plan/report.hpp"
#include "tools/tune/batch.hpp"
#include "tools/tune/comparison.hpp"
#include "tools/tune/lr_range.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kRowsOfRates = 20;

struct TuneArguments {
  JobArgument job;
  std::string ranks = "1", directory;
  std::int64_t steps = 0;  ///< of a probe; 0: as many as the command likes
  bool json = false;
  tune::LrRange range;
  std::int64_t smallest = 0, largest = 0;  ///< batch sizes; 0: an eighth of the job's, eight times it
  std::int64_t noise_steps = 32, warm_steps = 20;
};

/// A job, ready for probes.
struct TuneSetup {
  JobFile job;
  tune::ProbeSetup probes;
};

TuneSetup set_up(TuneArguments& arguments, const std::string& what) {
  arguments.job.require_file();
  TuneSetup setup{arguments.job.load(arguments.job.registries()), {}};
  if (arguments.job.is_saved()) {
    throw Error(ExitCode::usage, "tune: expected a job file, found a run; give the job that it was trained with");
  }
  const int ranks = rank_count(arguments.ranks, automatic_ranks(setup.job));
  config::check_world_size(setup.job, ranks);
  if (arguments.directory.empty()) arguments.directory = fmt::format("tune/{}-{}", setup.job.name, what);
  setup.probes = {arguments.job.file, arguments.job.overrides, ranks,
                  std::filesystem::absolute(arguments.directory).lexically_normal().string()};
  return setup;
}

void show_progress(const std::string& name) {
  say("trying {}\n", name);
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.2f}", 1e3 * seconds);
}

void write_picture(const std::string& path, const std::string& title, const std::function<std::string(double)>& x_text,
                   std::vector<Series> series) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << drawing(title, x_text, std::move(series))).flush()) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: could not be written", path));
  }
  fmt::print("picture: {}\n", path);
}

void print_settings(const std::string& words) {
  fmt::print("recommended:\n  {}\n", words);
}

/// Nothing has trained. `reason`: the first probe's message.
[[noreturn]] void throw_failed(const std::string& reason) {
  throw Error(ExitCode::usage, fmt::format("tune: expected a job that trains, found one that does not: {}",
                                           reason.empty() ? "no message" : reason));
}

// lr

Json json_of(const tune::LrVerdict& verdict) {
  Json json;
  for (const tune::LrPoint& point : verdict.points) {
    json["points"].push_back({{"learning_rate", point.rate}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  }
  json["diverged"] = verdict.diverged;
  json["lowest"] = verdict.lowest ? Json(*verdict.lowest) : Json();
  json["steepest"] = verdict.steepest ? Json(*verdict.steepest) : Json();
  return json;
}

void print_people(const tune::LrVerdict& verdict) {
  std::vector<std::vector<std::string>> rows = {{"learning rate", "loss", "smoothed"}};
  const std::size_t every = std::max<std::size_t>(1, (verdict.points.size() + kRowsOfRates - 1) / kRowsOfRates);
  for (std::size_t i = 0; i < verdict.points.size(); i += every) {
    const tune::LrPoint& point = verdict.points[i];
    rows.push_back({fmt::format("{:.2e}", point.rate), telemetry::short_number(point.loss),
                    telemetry::short_number(point.smoothed)});
  }
  fmt::print("{}", plan::table_text(rows));
  if (verdict.lowest) fmt::print("the smoothed loss is lowest at {:.2e}", *verdict.lowest);
  if (verdict.steepest) fmt::print(", and falls fastest at {:.2e}", *verdict.steepest);
  if (verdict.lowest) fmt::print("{}\n", verdict.diverged ? "; then it gets out of hand" : "");
}

int tune_learning_rate(TuneArguments& arguments) {
  if (arguments.range.from >= arguments.range.to) {
    throw Error(ExitCode::usage, fmt::format("--to: expected more than the {} of --from, found {}",
                                             arguments.range.from, arguments.range.to));
  }
  const TuneSetup setup = set_up(arguments, "lr");
  if (arguments.steps > 0) arguments.range.steps = arguments.steps;
  show_progress(fmt::format("{} steps with rates from {} to {}", arguments.range.steps, arguments.range.from,
                            arguments.range.to));
  const tune::Probe probe =
      tune::run_probe(setup.probes, "range", arguments.range.steps, tune::overrides_of(arguments.range));
  std::vector<double> losses;
  for (const events::Step& step : probe.steps) losses.push_back(step.loss);
  if (losses.empty()) throw_failed(probe.message);
  tune::LrVerdict verdict = tune::judge(arguments.range, losses);
  verdict.diverged = verdict.diverged || probe.failed();
  if (arguments.json) {
    fmt::print("{}\n", json_of(verdict).dump(2));
    return 0;
  }
  print_people(verdict);
  Series loss{"loss", {}}, smoothed{"smoothed", {}};
  for (const tune::LrPoint& point : verdict.points) {
    loss.points.emplace_back(point.rate, point.loss);
    smoothed.points.emplace_back(point.rate, point.smoothed);
  }
  write_picture(setup.probes.directory + "/lr.svg", "Loss over the learning rate",
                [](double rate) { return fmt::format("{:.0e}", rate); }, {loss, smoothed});
  if (!verdict.steepest) {
    fmt::print("no recommendation: the loss did not fall; try lower rates (--from), or more --steps\n");
    return 0;
  }
  print_settings(fmt::format("learning_rate={:.1e}", *verdict.steepest));
  return 0;
}

// threads, loader

Json json_of(const std::vector<tune::Compared>& all, int best) {
  Json json;
  for (const tune::Compared& compared : all) {
    Json row;
    row["overrides"] = compared.candidate.overrides;
    row["step_seconds"] = compared.probe.step_seconds();
    row["samples_per_second"] = compared.samples_per_second;
    row["data_wait"] = compared.probe.data_wait();
    row["peak_memory_bytes"] = compared.probe.peak_memory();
    row["failure"] = compared.probe.message;
    json["candidates"].push_back(row);
  }
  json["recommended"] = best < 0 ? Json() : Json(all[best].candidate.overrides);
  return json;
}

int compare_candidates(TuneArguments& arguments, const TuneSetup& setup,
                       const std::vector<tune::Candidate>& candidates) {
  constexpr std::int64_t kSteps = 32;
  const auto all =
      tune::compare(setup.probes, candidates, arguments.steps > 0 ? arguments.steps : kSteps, show_progress);
  std::vector<double> rates;
  for (const tune::Compared& compared : all) rates.push_back(compared.samples_per_second);
  const int best = tune::first_of_fastest(rates);
  if (arguments.json) {
    fmt::print("{}\n", json_of(all, best).dump(2));
    return 0;
  }
  if (best < 0) throw_failed(all.front().probe.message);
  std::vector<std::vector<std::string>> rows = {
      {"setting", "ms a step", "samples/s", "waiting for data", "memory of a rank", ""}};
  for (const tune::Compared& compared : all) {
    if (compared.samples_per_second == 0) {
      rows.push_back({compared.candidate.name, "", "", "", "", compared.probe.message});
      continue;
    }
    rows.push_back({compared.candidate.name, milliseconds(compared.probe.step_seconds()),
                    telemetry::short_number(compared.samples_per_second),
                    fmt::format("{:.1f} %", 100 * compared.probe.data_wait()),
                    plan::size_text(compared.probe.peak_memory()), ""});
  }
  fmt::print("{}", plan::table_text(rows));
  print_settings(fmt::format("{}", fmt::join(all[best].candidate.overrides, " ")));
  return 0;
}

int tune_threads(TuneArguments& arguments) {
  const TuneSetup setup = set_up(arguments, "threads");
  const int most = std::max(1, device::available_cores() / setup.probes.ranks);
  return compare_candidates(arguments, setup, tune::thread_candidates(most));
}

int tune_loader(TuneArguments& arguments) {
  const TuneSetup setup = set_up(arguments, "loader");
  return compare_candidates(arguments, setup, tune::loader_candidates(device::available_cores()));
}

// batch

std::string table_of(const std::vector<tune::BatchRow>& rows) {
  const bool timed = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.time.has_value(); });
  std::vector<std::vector<std::string>> table = {
      {"batch_size", "micro_batches", "ms a step", "samples/s", "memory of a rank"}};
  if (timed) table.front().emplace_back("time to a loss");
  for (const tune::BatchRow& row : rows) {
    if (!row.failure.empty()) {
      table.push_back({fmt::format("{}", row.batch), fmt::format("{}", row.micro_batches), "", "", row.failure});
      continue;
    }
    table.push_back({fmt::format("{}", row.batch), fmt::format("{}", row.micro_batches), milliseconds(row.step_seconds),
                     telemetry::short_number(row.samples_per_second),
                     row.peak_memory > 0 ? plan::size_text(row.peak_memory) : ""});
    if (timed) table.back().push_back(row.time ? fmt::format("{:.2f}", *row.time) : "");
  }
  return plan::table_text(table);
}

void print_noise(const tune::BatchVerdict& verdict, const TuneArguments& arguments) {
  if (!verdict.noise_failure.empty()) {
    fmt::print("gradient noise not measured: {}\n", verdict.noise_failure);
  } else if (verdict.noise) {
    const double noise = *verdict.noise->samples;
    fmt::print(
        "gradient noise after {}: {} samples; batches much larger than that save few steps, smaller ones few "
        "samples\n",
        telemetry::counted(arguments.warm_steps, "step"), telemetry::short_number(noise));
  }
}

Json json_of(const std::vector<tune::BatchRow>& rows) {
  Json json = Json::array();
  for (const tune::BatchRow& row : rows) {
    json.push_back({{"batch_size", row.batch},
                    {"micro_batches", row.micro_batches},
                    {"step_seconds", row.step_seconds},
                    {"samples_per_second", row.samples_per_second},
                    {"peak_memory_bytes", row.peak_memory},
                    {"time", row.time ? Json(*row.time) : Json()},
                    {"failure", row.failure}});
  }
  return json;
}

void print_batch_json(const tune::BatchVerdict& verdict) {
  Json json;
  json["sizes"] = json_of(verdict.sizes);
  json["micro_batches"] = json_of(verdict.micro_batches);
  json["end"] = verdict.end;
  json["noise_samples"] = verdict.noise && verdict.noise->samples ? Json(*verdict.noise->samples) : Json();
  json["noise_failure"] = verdict.noise_failure;
  fmt::print("{}\n", json.dump(2));
}

void print_people(const tune::BatchVerdict& verdict, const TuneArguments& arguments, const TuneSetup& setup) {
  fmt::print("{}", table_of(verdict.sizes));
  if (!verdict.end.empty()) fmt::print("no larger batches: {}\n", verdict.end);
  print_noise(verdict, arguments);
  if (verdict.micro_batches.size() > 1) {
    fmt::print("the recommended size in other micro-batches\n{}", table_of(verdict.micro_batches));
  }
  Series rate{"samples/s", {}};
  for (const tune::BatchRow& row : verdict.sizes) {
    if (row.failure.empty()) rate.points.emplace_back(static_cast<double>(row.batch), row.samples_per_second);
  }
  write_picture(setup.probes.directory + "/batch.svg", "Samples a second over the batch size",
                [](double batch) { return fmt::format("{:.0f}", batch); }, {rate});
  const tune::BatchRow& best = verdict.best_micro_batches >= 0 ? verdict.micro_batches[verdict.best_micro_batches]
                                                               : verdict.sizes[verdict.best_size];
  print_settings(fmt::format("batch_size={} micro_batches={}", best.batch, best.micro_batches));
  if (best.batch != setup.job.batch_size) {
    fmt::print("another batch size wants another learning rate: `lockstep tune lr` with these settings\n");
  }
}

int tune_batch(TuneArguments& arguments) {
  constexpr std::int64_t kSteps = 12, kTimes = 8;
  const TuneSetup setup = set_up(arguments, "batch");
  const JobFile& job = setup.job;
  const tune::BatchSetup batches{
      .probes = setup.probes,
      .batch = job.batch_size,
      .micro_batches = job.micro_batches,
      .smallest = arguments.smallest > 0 ? arguments.smallest : std::max<std::int64_t>(1, job.batch_size / kTimes),
      .largest = arguments.largest > 0 ? arguments.largest : job.batch_size * kTimes,
      .steps = arguments.steps > 0 ? arguments.steps : kSteps,
      .noise_steps = arguments.noise_steps,
      .warm_steps = arguments.warm_steps,
      .memory_limit = device::available_memory() / setup.probes.ranks};
  if (batches.largest < batches.smallest) {
    throw Error(ExitCode::usage, fmt::format("--largest: expected at least the {} of --smallest, found {}",
                                             batches.smallest, batches.largest));
  }
  const tune::BatchVerdict verdict = tune::tune_batch(batches, show_progress);
  if (arguments.json) {
    print_batch_json(verdict);
    return 0;
  }
  if (verdict.best_size < 0) throw_failed(verdict.sizes.empty() ? "no batch size to try" : verdict.end);
  print_people(verdict, arguments, setup);
  return 0;
}

CLI::App* add(CLI::App& tune, Action& run, const std::string& name, const std::string& doc,
              const std::shared_ptr<TuneArguments>& arguments, int (*command)(TuneArguments&)) {
  CLI::App* sub = tune.add_subcommand(name, doc);
  arguments->job.add_to(*sub);
  sub->add_option("--ranks", arguments->ranks, "ranks that train a probe; auto: as `train` has it")
      ->capture_default_str();
  sub->add_option("--steps", arguments->steps, "steps of each probe")->check(at_least(4));
  sub->add_option("--directory", arguments->directory,
                  "for the probes' run directories and the picture; tune/<name of the job>-" + name + " by default");
  sub->add_flag("--json", arguments->json, "print one object instead");
  sub->callback([&run, arguments, command] { run = [arguments, command] { return command(*arguments); }; });
  return sub;
}

}  // namespace

void add_tune(CLI::App& program, Action& run) {
  CLI::App* tune = program.add_subcommand("tune", "Find settings of a job by short trainings of it.");
  tune->require_subcommand(1);
  tune->footer("Examples:\n  lockstep tune lr job.yaml\n  lockstep tune batch job.yaml --ranks 2 --largest 1024");
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* lr = add(*tune, run, "lr", "Learning rates: the range test, one training whose rate rises.", arguments,
                     tune_learning_rate);
  lr->add_option("--from", arguments->range.from, "the first rate")->check(CLI::PositiveNumber)->capture_default_str();
  lr->add_option("--to", arguments->range.to, "the last rate")->check(CLI::PositiveNumber)->capture_default_str();
  CLI::App* batch = add(*tune, run, "batch", "Batch sizes: speed, memory, and what the gradient's noise says.",
                        arguments, tune_batch);
  batch->add_option("--smallest", arguments->smallest, "the smallest; an eighth of the job's by default")
      ->check(at_least(1));
  batch->add_option("--largest", arguments->largest, "the largest; eight times the job's by default")
      ->check(at_least(1));
  batch->add_option("--noise-steps", arguments->noise_steps, "batches that the noise is measured with; 0: not at all")
      ->check(at_least(0))
      ->capture_default_str();
  batch->add_option("--warm-steps", arguments->warm_steps, "steps to train before the noise is measured")
      ->check(at_least(0))
      ->capture_default_str();
  add(*tune, run, "threads", "Threads of a rank.", arguments, tune_threads);
  add(*tune, run, "loader", "Background threads that load data, and how far ahead.", arguments, tune_loader);
}

}  // namespace lockstep::cli
