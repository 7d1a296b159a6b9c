// lockstep plan: the memory and time that a job needs on a number of ranks, which placement is the fastest that fits,
// and how far that is from what a run has measured.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "cli/planned_job.hpp"
#include "cli/validators.hpp"
#include "core/median.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_json.hpp"
#include "observe/telemetry/text.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/report.hpp"

namespace lockstep::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string step_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

// Parallel efficiency: 1 if n ranks are n times as fast as one.
double efficiency(const PlannedJob& job, double one_rank, const plan::Candidate& candidate) {
  return one_rank / (job.ranks() * candidate.time.seconds);
}

std::string heading(const PlannedJob& job) {
  return fmt::format("{} on {}, {} each, {} of {}\n", job.job().name, telemetry::counted(job.ranks(), "rank"),
                     telemetry::counted(job.threads(), "thread"),
                     telemetry::counted(job.job().micro_batches, "micro-batch"),
                     telemetry::counted(job.job().batch_size / job.job().micro_batches, "sample"));
}

std::string of_candidate(const PlannedJob& job, const plan::Candidate& candidate) {
  std::string text = plan::memory_table(candidate.memory) + plan::time_table(candidate.placed, candidate.time);
  text += fmt::format("  a step takes {}: {} samples/s", step_text(candidate.time.seconds),
                      telemetry::short_number(job.job().batch_size / candidate.time.seconds));
  if (job.ranks() > 1) {
    text += fmt::format(", {:.0f} % of {} times one rank", 100 * efficiency(job, job.seconds_of_one_rank(), candidate),
                        job.ranks());
  }
  return text + "\n";
}

std::string comparison(const plan::SearchResult& result) {
  std::vector<std::vector<std::string>> rows = {{"placement", "step", "memory of a rank", ""}};
  for (const plan::Candidate& candidate : result.candidates) {
    rows.push_back({plan::text_of(candidate.placed), step_text(candidate.time.seconds),
                    plan::size_text(candidate.max_memory), candidate.fits ? "" : "does not fit"});
  }
  std::string text = plan::table_text(rows);
  if (result.more > 0) text += fmt::format("  and {} more that are not better\n", result.more);
  return text;
}

std::string recommendation(const plan::SearchResult& result) {
  const plan::Candidate& best = result.candidates.front();
  std::string text = fmt::format("recommended: {}\n  {}\n", plan::text_of(best.placed),
                                 best.own ? "as the job says" : plan::overrides_of(best.placed.choice));
  if (result.candidates.size() > 1) {
    const plan::Candidate& second = result.candidates[1];
    text += fmt::format("runner-up: {}: {}\n", plan::text_of(second.placed),
                        second.fits ? fmt::format("{:.2f} times as long", second.time.seconds / best.time.seconds)
                                    : std::string("it does not fit"));
  }
  if (!result.why_not_more_parts.empty()) text += fmt::format("no more parts: {}\n", result.why_not_more_parts);
  return text;
}

void print_people(const PlannedJob& job, const plan::Candidate& own, const plan::SearchResult& result) {
  fmt::print("{}", heading(job));
  for (const std::string& assumption : job.assumptions()) fmt::print("  {}\n", assumption);
  fmt::print("\nas the job says: {}\n{}", plan::text_of(own.placed), of_candidate(job, own));
  fmt::print("\nother placements, of ranks with {} each\n{}\n", plan::size_text(job.limit()), comparison(result));
  if (result.candidates.front().fits) fmt::print("{}", recommendation(result));
}

Json json_of(const PlannedJob& job, double one_rank, const plan::Candidate& candidate) {
  Json json;
  json["placement"] = plan::text_of(candidate.placed);
  json["overrides"] = plan::overrides_of(candidate.placed.choice);
  json["parts"] = candidate.placed.parts.size();
  json["recompute"] = name_of(candidate.placed.choice.recompute);
  json["sharding"] = name_of(candidate.placed.choice.sharding());
  json["in_flight"] = candidate.placed.in_flight;
  json["fits"] = candidate.fits;
  json["step_seconds"] = candidate.time.seconds;
  json["efficiency"] = efficiency(job, one_rank, candidate);
  for (std::size_t r = 0; r < candidate.memory.size(); ++r) {
    Json rank;
    rank["rank"] = r;
    rank["part"] = candidate.placed.part_of_rank[r];
    rank["micro_batches"] = candidate.placed.micro_batches_of(r).size();
    for (const auto& [name, bytes] : candidate.memory[r].kinds()) rank["memory_bytes"][name] = bytes;
    rank["memory_bytes"]["total"] = candidate.memory[r].total();
    const plan::RankTime& time = candidate.time.ranks[r];
    rank["seconds"] = {
        {"compute", time.compute}, {"waiting", time.waits}, {"reduction", time.reduce}, {"update", time.update}};
    rank["gradient_bytes_sent"] = time.gradient_bytes;
    rank["parameter_bytes_sent"] = time.parameter_bytes;
    rank["activation_bytes_sent"] = time.activation_bytes;
    json["ranks"].push_back(rank);
  }
  return json;
}

void print_plan_json(const PlannedJob& job, const plan::Candidate& own, const plan::SearchResult& result) {
  Json json;
  json["job"] = job.job().name;
  json["ranks"] = job.ranks();
  json["threads"] = job.threads();
  json["memory_limit_bytes"] = job.limit();
  json["assumptions"] = job.assumptions();
  const double one_rank = job.seconds_of_one_rank();
  json["placement"] = json_of(job, one_rank, own);
  for (const plan::Candidate& candidate : result.candidates) {
    json["candidates"].push_back(json_of(job, one_rank, candidate));
  }
  json["more_candidates"] = result.more;
  json["why_not_more_parts"] = result.why_not_more_parts;
  fmt::print("{}\n", json.dump(2));
}

/// What a run's events say about its newest attempt.
struct MeasuredRun {
  events::Start start;
  double step = 0;  ///< median time of a step in seconds
  std::optional<events::ByRank> memory;
  std::vector<events::Part> parts;      ///< empty: the model is whole
  std::vector<std::vector<int>> dealt;  ///< micro-batches of each rank, as they were dealt one time after another; the
                                        ///< first ones are empty if they are as the job says
};

MeasuredRun read_run(const std::string& directory) {
  const std::string path = directory + "/events.jsonl";
  std::ifstream file(path);
  if (!file) {
    throw Error(ExitCode::usage, fmt::format("--against: expected the events of a run, found no {}; name the directory "
                                             "of a run that has started",
                                             path));
  }
  MeasuredRun run;
  std::vector<std::pair<std::int64_t, double>> ends;  // of steps: number and time
  std::vector<int> dealt;                             // before a start or a step, by a probe or a move
  for (std::string line; std::getline(file, line);) {
    auto read = telemetry::read_event(line);
    if (!read.event) continue;
    if (auto* start = std::get_if<events::Start>(&*read.event)) {
      run = {.start = std::move(*start), .dealt = {std::exchange(dealt, {})}};
      ends.clear();
    } else if (auto* part = std::get_if<events::Part>(&*read.event)) {
      run.parts.push_back(std::move(*part));
    } else if (auto* step = std::get_if<events::Step>(&*read.event)) {
      ends.emplace_back(step->step, step->seconds);
      if (!dealt.empty()) run.dealt.push_back(std::exchange(dealt, {}));
    } else if (const auto* move = std::get_if<events::Balance>(&*read.event)) {
      dealt.clear();
      for (const auto& [rank, count] : move->shares_by_rank) dealt.push_back(count);
    } else if (auto* end = std::get_if<events::End>(&*read.event)) {
      run.memory = std::move(end->peak_memory_bytes_by_rank);
    }
  }
  constexpr std::size_t kFewest = 5;
  if (run.start.ranks < 1 || ends.size() < kFewest) {
    throw Error(ExitCode::usage, fmt::format("--against: expected the events of {} steps or more in {}, found {}",
                                             kFewest, path, ends.size()));
  }
  std::vector<double> seconds;  // without the first steps, in which kernels are created
  for (std::size_t i = 1 + ends.size() / 5; i < ends.size(); ++i) {  // the events may leave steps out
    const double steps = ends[i].first - ends[i - 1].first;
    seconds.push_back((ends[i].second - ends[i - 1].second) / steps);
  }
  run.step = median(std::move(seconds));
  return run;
}

double error_percent(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

void print_comparison(const MeasuredRun& run, const plan::Candidate& candidate, bool json) {
  std::vector<std::vector<std::string>> rows = {{"", "predicted", "measured", "error"}};
  Json values;
  const auto add = [&](const std::string& what, double predicted, double measured, const std::string& shown_as,
                       const std::string& other) {
    rows.push_back({what, shown_as, other, fmt::format("{:+.1f} %", error_percent(predicted, measured))});
    values[what] = {
        {"predicted", predicted}, {"measured", measured}, {"error_percent", error_percent(predicted, measured)}};
  };
  add("step", candidate.time.seconds, run.step, step_text(candidate.time.seconds), step_text(run.step));
  for (std::size_t r = 0; r < candidate.memory.size(); ++r) {
    const auto predicted = candidate.memory[r].total();
    const std::string what = fmt::format("memory of rank {}", r);
    const auto found = run.memory ? run.memory->find(r) : events::ByRank::const_iterator{};
    if (!run.memory || found == run.memory->end() || found->second <= 0) {
      rows.push_back({what, plan::size_text(predicted), "not reported", ""});
      continue;
    }
    add(what, static_cast<double>(predicted), found->second, plan::size_text(predicted),
        plan::size_text(found->second));
  }
  json ? fmt::print("{}\n", values.dump(2)) : fmt::print("{}", plan::table_text(rows));
}

/// Whether the model is cut, and its parts are on ranks, as in the run.
bool is_cut_alike(const plan::PlacedModel& placed, const std::vector<events::Part>& parts) {
  if (parts.empty()) return !placed.is_cut();
  return std::equal(placed.parts.begin(), placed.parts.end(), parts.begin(), parts.end(),
                    [](const plan::PlacedPart& ours, const events::Part& theirs) {
                      return fmt::format("{}", fmt::join(ours.ranks, " ")) == theirs.ranks &&
                             ours.part->graph.nodes.front().name == theirs.first;
                    });
}

/// A run cuts its model for the speeds that it knows when it starts. They are those of the profiles, or none.
void cut_as_run(PlannedJob& job, const MeasuredRun& run) {
  const auto is_alike = [&] {
    return is_cut_alike(plan::predict(job.search_setup(), plan::choice_of(job.job())).placed, run.parts);
  };
  if (is_alike()) return;
  job.forget_speeds();
  if (is_alike()) return;
  throw Error(ExitCode::usage,
              "--against: expected a run whose model is cut for equal ranks, or for the speeds that are assumed here, "
              "found one that is cut for others; give the profiles of its devices, or set balance.weights as it has");
}

/// The time of a step as micro-batches are dealt in the end, and the most memory of each rank since the start.
plan::Candidate predict_run(PlannedJob& job, const MeasuredRun& run) {
  cut_as_run(job, run);
  plan::Candidate found;
  for (const std::vector<int>& counts : run.dealt) {
    job.deal(counts);
    plan::Candidate now = plan::predict(job.search_setup(), plan::choice_of(job.job()));
    for (std::size_t rank = 0; rank < found.memory.size(); ++rank) {
      const plan::RankMemory& before = found.memory[rank];
      plan::RankMemory& after = now.memory[rank];
      const std::int64_t waiting = std::max(after.waiting, before.waiting);
      after.gradients = std::max(after.gradients - after.waiting, before.gradients - before.waiting) + waiting;
      after.waiting = waiting;
    }
    found = std::move(now);
  }
  return found;
}

int plan_job(PlanOptions& options) {
  std::optional<MeasuredRun> run;
  if (!options.against.empty()) {
    run = read_run(options.against);
    options.ranks = run->start.ranks;
    options.job.words.push_back(fmt::format("threads={}", run->start.threads));
  }
  PlannedJob job(options);
  if (run) {
    print_comparison(*run, predict_run(job, *run), options.json);
    return 0;
  }
  const plan::SearchSetup setup = job.search_setup();
  const plan::SearchResult result = plan::search(setup);
  const plan::Candidate& own = *std::find_if(result.candidates.begin(), result.candidates.end(),
                                             [](const plan::Candidate& candidate) { return candidate.own; });
  options.json ? print_plan_json(job, own, result) : print_people(job, own, result);
  if (result.candidates.front().fits) return 0;
  (void)std::fflush(stdout);
  const plan::Candidate& nearest = result.candidates.front();
  throw Error(
      ExitCode::configuration,
      fmt::format("plan: expected a placement that fits {} a rank, found none; the nearest is {}, which needs {}; {}",
                  plan::size_text(job.limit()), plan::text_of(nearest.placed), plan::size_text(nearest.max_memory),
                  plan::remedy(setup.model.graph, job.limit())));
}

}  // namespace

void add_plan(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "plan", "Predict what a job takes in memory and time on some ranks, and find the fastest placement that fits.");
  command->footer(
      "It trains nothing. The data must be there, since shapes depend on them.\n\nExamples:\n  lockstep plan --ranks "
      "2\n  "
      "lockstep plan examples/shakespeare-gpt.yaml --ranks 4 --memory 2GiB\n  lockstep plan job.yaml --devices "
      "8xH100,4xA100-40\n  lockstep plan runs/digits --against runs/digits");
  auto options = std::make_shared<PlanOptions>();
  options->job.add_to(*command);
  CLI::Option* ranks = command->add_option("--ranks", options->ranks, "ranks, all on one host")
                           ->check(at_least(1))
                           ->capture_default_str();
  command->add_option("--memory", options->memory,
                      "of each rank, as in 8GiB; by default the host's, or its cgroup's, divided by the ranks");
  CLI::Option* profile =
      command
          ->add_option("--profile", options->profiles,
                       "the rates of another machine, a file of `lockstep bench device`; by default the job's layers "
                       "are timed here. Given once for each rank, ranks may be unequal")
          ->allow_extra_args(false);
  CLI::Option* devices =
      command->add_option("--devices", options->devices, "predict for GPUs by their makers' figures: 8xH100,4xA100-40")
          ->excludes(profile);
  command
      ->add_option("--cluster", options->cluster,
                   "predict for the hosts, devices and network of this file (docs/planning.md)")
      ->excludes(profile)
      ->excludes(devices)
      ->excludes(ranks);
  command->add_option(
      "--against", options->against,
      "hold the prediction against what this run has measured: its ranks and threads are taken, and its "
      "micro-batches, as they have moved");
  command->add_flag("--json", options->json, "one JSON object on stdout");
  command->callback([&run, options] { run = [options] { return plan_job(*options); }; });
}

}  // namespace lockstep::cli
