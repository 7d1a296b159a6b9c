#include "tools/sweep/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "comm/transport/mpi_folder.hpp"
#include "core/digest.hpp"
#include "core/files.hpp"
#include "launch/processes.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_log.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/run_directory.hpp"
#include "tools/sweep/folds.hpp"
#include "tools/sweep/journal.hpp"
#include "tools/sweep/live_table.hpp"
#include "tools/sweep/places.hpp"
#include "tools/sweep/quarantine.hpp"
#include "tools/sweep/results.hpp"
#include "tools/sweep/scrape_targets.hpp"
#include "tools/sweep/trial_board.hpp"
#include "tools/sweep/trial_process.hpp"

namespace lockstep::sweep {

namespace {

using std::chrono::milliseconds;

constexpr double kPollSeconds = 0.02, kTargetsSeconds = 0.5;
constexpr double kAgainSeconds = 30;  ///< until a place that failed gets a trial again
constexpr int kHighestPort = 65535;
constexpr std::chrono::seconds kFormerPatience{60}, kKillPatience{10};

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && term != nullptr && std::string(term) != "dumb";
}

std::string mark_of(const std::string& directory) {
  return "lockstep-sweep-" + sha256(std::filesystem::absolute(directory).lexically_normal().string()).substr(0, 16);
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

class Sweep {
 public:
  Sweep(const config::SweepFile& sweep, const SweepRunOptions& options, const config::Catalogue& catalogue)
      : sweep_(sweep),
        options_(options),
        catalogue_(catalogue),
        method_(make_method(sweep)),
        lock_(sweep.directory, {milliseconds(static_cast<int>(options.lock_seconds * 1000))}),
        places_(options),
        mark_(mark_of(sweep.directory)),
        table_(is_terminal() && !options.json),
        slots_(places_.count()) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      place_names_.push_back(places_.name(slot, !options.devices.empty() || !options.slices.empty()));
    }
    await_former();
    journal_.emplace(sweep.directory + "/journal.jsonl", sweep);
    if (options.json) {
      json_ = telemetry::make_json_console();
      journal_->on_line([this](const std::string& line) { json_->print(line + "\n"); });
    }
  }

  int run() {
    if (!sweep_.ensemble) {
      board_.emplace(sweep_.directory + "/tensorboard", sweep_,
                     config::load_trial(sweep_, {}, catalogue_, true).metrics);
      for (const auto& trial : study().trials()) show_on_board(trial);
    }
    if (!journal_->repaired().empty()) say(journal_->repaired());
    if (!study().trials().empty()) {
      say(fmt::format("{}: goes on with {} {}s", sweep_.directory, study().trials().size(), sweep_.part()));
    }
    const bool has_trained = std::any_of(study().trials().begin(), study().trials().end(),
                                         [](const Trial& trial) { return !trial.reports.empty(); });
    quarantine_.emplace(kAgainSeconds, has_trained, std::hash<std::string>()(mark_));
    while (true) {
      handle_signals();
      for (const auto& problem : places_.refresh()) say(problem);
      const bool busy = poll_slots();
      const bool more = !stopping_ && fill_slots();
      if (!busy && !more && is_over()) break;
      find_other_data();
      if (table_.is_due()) table_.show(study(), running());  // running() reads files
      write_targets();
      (void)signals_.sleep(kPollSeconds);
    }
    return finish();
  }

 private:
  const Study& study() const { return journal_->study(); }

  void say(const std::string& text) {
    if (!options_.json) table_.line(text);
  }

  /// Nothing runs, and nothing waits for a host.
  bool is_over() const {
    if (std::any_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot.has_value(); })) return false;
    if (stopping_) return true;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (places_.usable(slot)) return !study().waits();
    }
    return false;
  }

  /// Trials of a sweep that was killed write a checkpoint and end by themselves; what does not is killed.
  void await_former() {
    const auto start = Clock::now();
    while (!launch::marked_processes(mark_).empty() && Clock::now() - start < kFormerPatience) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    (void)launch::kill_marked(mark_, 0, kKillPatience);
    places_.end_processes(mark_);
    comm::remove_dead_mpi_folders();
  }

  void handle_signals() {
    for (const int count = signals_.count(); signals_seen_ < count; ++signals_seen_) {
      if (signals_seen_ == 0) {
        say(fmt::format("stopping: the {}s that run write checkpoints; a second signal ends them at once",
                        sweep_.part()));
      }
      stop_all();
      if (signals_seen_ > 0) (void)launch::kill_marked(mark_, 0, kKillPatience);
    }
  }

  /// Takes what has ended out of its slot. Returns whether something has.
  bool poll_slots() {
    bool changed = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      auto& slot = slots_[i];
      auto outcome = slot ? slot->poll() : std::nullopt;
      if (!outcome) continue;
      const bool early = !std::holds_alternative<Result>(*outcome);
      if (early && !stopping_ && places_.gone(i)) outcome = TrialProcess::Stopped{};
      const int trial = slot->trial();
      const double ran = slot->seconds();
      const bool forgotten = forget_if_on_other_data(*slot, *outcome);
      slot.reset();
      changed = true;
      if (forgotten) continue;
      if (const auto* result = std::get_if<Result>(&*outcome)) {
        quarantine_->trained(trial, place_names_[i], now());
        journal_->result(trial, *result);
      }
      const auto* failure = std::get_if<Failure>(&*outcome);
      const bool counts = failure == nullptr || note_failure(trial, i, ran, *failure);
      if (counts && !std::holds_alternative<TrialProcess::Stopped>(*outcome)) say(LiveTable::change(study(), trial));
      write_results(trial);
    }
    return changed;
  }

  /// The trial that this one cannot be compared with, since its data are others; nullptr: none.
  const Trial* on_other_data(TrialProcess& slot) const {
    const Trial& trial = study().trials().at(slot.trial());
    return study().trained_on_other(slot.events().data(), trial.settings);
  }

  /// Ends the sweep as soon as a trial begins to read other data than those before it.
  void find_other_data() {
    if (stopping_ || seconds_since(looked_at_data_) < kTargetsSeconds) return;
    looked_at_data_ = Clock::now();
    if (std::any_of(slots_.begin(), slots_.end(), [&](auto& slot) { return slot && on_other_data(*slot) != nullptr; }))
      stop_all();
  }

  void stop_all() {
    stopping_ = true;
    for (auto& slot : slots_) {
      if (slot) slot->stop();
    }
  }

  /// What a trial came to on other data is no result. Only a checkpoint from before they changed is kept: a run that
  /// goes on from one refuses other data.
  bool forget_if_on_other_data(TrialProcess& slot, const TrialProcess::Outcome& outcome) {
    const auto* failure = std::get_if<Failure>(&outcome);
    const bool refused = failure != nullptr && failure->code == static_cast<int>(ExitCode::other_data);
    const Trial* other = on_other_data(slot);
    if (other == nullptr && !refused) return false;
    if (other_data_.empty()) {
      const std::string found = other == nullptr ? fmt::format("{} began with, found others", slot.trial())
                                                 : fmt::format("{} was trained on, found others for {} {}",
                                                               other->number, sweep_.part(), slot.trial());
      other_data_ = fmt::format(
          "{}: expected the data that {} {}; restore them and run the same command again, or choose "
          "another --directory",
          sweep_.directory, sweep_.part(), found);
    }
    if (other != nullptr) std::filesystem::remove_all(slot.directory());
    stop_all();
    return true;
  }

  /// Returns whether it counts as a failure of the trial.
  bool note_failure(int number, std::size_t slot, double ran, Failure failure) {
    using Meaning = Quarantine::Meaning;
    const Trial& trial = study().trials().at(number);
    failure.place = place_names_[slot];
    const Meaning meaning = quarantine_->failed(trial, {failure.place, failure.code, ran}, places_there(), now());
    failure.counts = meaning == Meaning::trial;
    failure.final = failure.counts && (failure.final || trial.failures >= options_.retries);
    journal_->failure(number, failure);
    if (meaning == Meaning::place) {
      say(
          fmt::format("{} is left out, and gets a {} again after {:.0f} s: {} {} failed there after {:.1f} s, and is "
                      "tried elsewhere: {}",
                      failure.place, sweep_.part(), quarantine_->left(failure.place, now()), sweep_.part(), number, ran,
                      failure.message));
    } else if (meaning == Meaning::outage) {
      say(fmt::format("{} {} failed after {:.1f} s, where others have trained: it is tried again for some minutes: {}",
                      sweep_.part(), number, ran, failure.message));
    }
    return failure.counts;
  }

  double now() const { return seconds_since(start_); }

  std::set<std::string> places_there() const {
    std::set<std::string> names;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (places_.usable(slot)) names.insert(place_names_[slot]);
    }
    return names;
  }

  std::set<std::string> busy_places() const {
    std::set<std::string> names;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot]) names.insert(place_names_[slot]);
    }
    return names;
  }

  /// Returns whether anything was begun, or was refused, so that the method may have more to say.
  bool fill_slots() {
    bool begun = false;
    const std::set<std::string> there = places_there();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] || !there.contains(place_names_[i]) || !places_.usable(i)) continue;
      const auto trial = next_trial(place_names_[i], there);
      if (!trial) continue;
      begun = true;
      start(i, study().trials().at(*trial));
    }
    return begun;
  }

  /// Not while a rank on a host that was cut off still holds its directory, nor while the disk does not answer: asked
  /// again then.
  bool is_free(int trial) const {
    const std::string lock = directory_of(trial) + "/lock";
    try {
      return !is_there(lock) || LockedFile(lock).is_free();
    } catch (const Error& error) {
      if (error.code() != ExitCode::infrastructure) throw;
      return false;
    }
  }

  /// A trial that was interrupted or is to be tried again, else the method's next one.
  std::optional<int> next_trial(const std::string& place, const std::set<std::string>& there) {
    const auto admits = [&, busy = busy_places()](const Trial& trial) {
      return quarantine_->admits(trial, place, there, busy, now());
    };
    for (const auto& trial : study().trials()) {
      const bool runs = std::any_of(slots_.begin(), slots_.end(),
                                    [&](const auto& slot) { return slot && slot->trial() == trial.number; });
      if (trial.state == TrialState::waiting && !runs && admits(trial) && is_free(trial.number)) return trial.number;
    }
    if (quarantine_->holds_back(now()) || !admits({.number = static_cast<int>(study().trials().size())})) return {};
    const Decision decision = method_->ask(study());
    if (const auto* begin = std::get_if<Begin>(&decision)) {
      journal_->begin(*begin);
      return study().trials().back().number;
    }
    if (const auto* promote = std::get_if<Promote>(&decision)) {
      journal_->promote(*promote);
      return promote->trial;
    }
    return std::nullopt;
  }

  std::string directory_of(int trial) const { return trial_directory(sweep_.directory, trial); }

  CanonicalJob job_of(const Settings& settings, const std::string& name, const std::string& run_directory) const {
    auto words = overrides(settings);
    words.push_back("name=" + quoted(name));
    words.push_back("run_directory=" + quoted(run_directory));
    if (const std::int64_t every = sweep_.compared_every(); every > 0) {  // trials are compared where they are paused
      words.push_back(fmt::format("evaluate={{every: {} steps}}", every));
    }
    // Data that are away for a while must not end the sweep: the trial looks for them.
    return config::canonical(sweep_.ensemble ? config::load_member(sweep_, words, catalogue_, false)
                                             : config::load_trial(sweep_, words, catalogue_, false),
                             catalogue_);
  }

  void start(std::size_t slot, const Trial& trial) {
    if (!places_.give_secrets(slot, mark_)) return;
    const std::string directory = directory_of(trial.number);
    std::string resume;
    try {
      write_whole_file(directory + "/job.yaml",
                       job_of(trial.settings, fmt::format("{}-{:04}", sweep_.name, trial.number), directory).text);
      resume = checkpoint_to_begin_with(trial);
    } catch (const Error& error) {
      if (error.code() == ExitCode::infrastructure) throw;
      journal_->failure(trial.number, {error.what(), 0, true});
      say(LiveTable::change(study(), trial.number));
      return write_results(trial.number);
    }
    const std::string agent = options_.pool ? options_.pool->agent : "";
    slots_[slot].emplace(trial,
                         TrialPlace{directory, mark_, options_.ranks_per_trial, places_[slot].host, agent, resume,
                                    words_of(slot), slice_of(slot)},
                         sweep_.metric);
  }

  /// The checkpoint of another trial, put into the directory of one that goes on from it and has none of its own yet.
  /// It is named, so that a damaged one is a failure and no beginning at step 0.
  std::string checkpoint_to_begin_with(const Trial& trial) const {
    if (!trial.origin) return "";
    const std::string own = directory_of(trial.number) + "/checkpoints";
    const auto list = checkpoint::list_checkpoints(own);
    if (!list.empty() && checkpoint::step_of(list.front()) != trial.origin->steps) return "";
    const std::int64_t steps = trial.origin->steps;
    const std::string from = directory_of(trial.origin->trial) + "/checkpoints/" + checkpoint::checkpoint_name(steps);
    return checkpoint::share_checkpoint(from, own, steps);
  }

  /// Where Prometheus finds the ranks of the trials that run, written when it changes.
  void write_targets() {
    if (options_.prometheus_port == 0 || seconds_since(looked_for_targets_) < kTargetsSeconds) return;
    looked_for_targets_ = Clock::now();
    std::vector<TrialTargets> trials;
    for (const auto& slot : slots_) {
      if (!slot) continue;
      try {
        const auto text = read_whole_file(directory_of(slot->trial()) + "/metrics/targets.json");
        if (text) trials.push_back({slot->trial(), *text});
      } catch (const Error&) {  // looked for again in a moment
        return;
      }
    }
    std::string targets = targets_of(sweep_.name, trials);
    if (targets == targets_) return;
    write_whole_file(sweep_.directory + "/prometheus-targets.json", targets);
    targets_ = std::move(targets);
  }

  /// Where a slot computes and is scraped: which GPUs, how many threads, from which port on. None changes a bit of the
  /// result.
  std::vector<std::string> words_of(std::size_t slot) const {
    std::vector<std::string> words;
    if (options_.threads > 0) words.push_back(fmt::format("threads={}", options_.threads));
    const int port = options_.prometheus_port + places_[slot].first_rank;
    if (options_.prometheus_port > 0 && port + options_.ranks_per_trial <= kHighestPort) {
      words.push_back(fmt::format("telemetry.prometheus.port={}", port));
    }
    if (!options_.devices.empty()) {
      const std::size_t ranks = options_.ranks_per_trial;
      const auto first = options_.devices.begin() + places_[slot].first_rank;
      words.push_back(fmt::format("devices=[{}]", fmt::join(first, first + ranks, ",")));
    }
    return words;
  }

  std::string slice_of(std::size_t slot) const {
    return options_.slices.empty() ? "" : options_.slices[places_[slot].first_rank];
  }

  std::vector<RunningTrial> running() {
    std::vector<RunningTrial> list;
    for (auto& slot : slots_) {
      if (!slot) continue;
      const TrialEvents& events = slot->events();
      const auto& evaluations = events.evaluations();
      const auto value = evaluations.empty() ? std::nullopt : value_in(evaluations.rbegin()->second, sweep_.metric);
      list.push_back({slot->trial(), events.step(), slot->until() > 0 ? slot->until() : events.steps(),
                      value.value_or(std::numeric_limits<double>::quiet_NaN()), slot->seconds()});
    }
    return list;
  }

  void show_on_board(const Trial& trial) {
    try {
      if (board_) board_->show(trial);
    } catch (const std::exception& error) {  // a full disk, say; the search goes on without
      say(fmt::format("TensorBoard does not show {} {}: {}", sweep_.part(), trial.number, error.what()));
    }
  }

  /// After a change of this trial.
  void write_results(int trial) {
    show_on_board(study().trials().at(trial));
    write_results();
  }

  void write_results() {
    write_whole_file(sweep_.directory + "/trials.csv", trials_csv(study()));
    write_whole_file(sweep_.directory + "/trials.json", trials_json(study()));
    const Trial* best = study().best();
    if (best == nullptr) return;
    const std::string name = sweep_.name + "-best";
    const auto job = [&](const Settings& settings) { return job_of(settings, name, "runs/" + name).text; };
    write_whole_file(sweep_.directory + "/best.yaml", best_yaml(study(), *best, job(best->settings)));
    if (sweep_.method != SearchMethod::population) return;
    write_whole_file(sweep_.directory + "/best-history.json",
                     history_json(study(), *best, legs_of(study(), *best, job)));
  }

  int finish() {
    write_results();
    looked_for_targets_ = {};
    write_targets();
    places_.end_processes(mark_);
    table_.clear();
    if (signals_seen_ > 1) return 128 + signals_.last();
    if (!other_data_.empty()) throw Error(ExitCode::data, other_data_);
    if (stopping_) {
      say("stopped; the same command goes on from here");
      return static_cast<int>(ExitCode::interrupted);
    }
    const Trial* best = study().best();
    const auto failed = std::count_if(study().trials().begin(), study().trials().end(),
                                      [](const Trial& trial) { return trial.state == TrialState::failed; });
    if (best == nullptr || (sweep_.ensemble && failed > 0)) {
      const char* which = sweep_.ensemble ? "not every" : "no";
      if (study().waits()) {
        throw Error(ExitCode::infrastructure,
                    fmt::format("{}: {} {} has come to its end", sweep_.directory, which, sweep_.part()));
      }
      throw Error(ExitCode::diverged,
                  fmt::format("{}: {} {} has come to its end, and those that have failed are not tried again: {}; see "
                              "trials.csv there, change what is searched, and choose another --directory",
                              sweep_.directory, which, sweep_.part(), last_failure()));
    }
    if (!options_.json) {
      for (const auto& row : table_rows(study(), {}, seconds_since(start_), 120, sweep_.ensemble ? 20 : 5)) {
        table_.line(row);
      }
      for (const auto& line : fold_lines(study())) table_.line(line);
      table_.line(
          sweep_.ensemble ? fmt::format("lockstep ensemble eval {} says what they are together", sweep_.directory)
          : sweep_.method == SearchMethod::population
              ? fmt::format("lockstep replay {}/best-history.json trains the best trial again", sweep_.directory)
              : fmt::format("the best trial's job is {}/best.yaml", sweep_.directory));
    }
    if (json_) telemetry::require_written(*json_);
    return 0;
  }

  /// "trial 3 failed: code 76: ..."
  std::string last_failure() const {
    const auto& trials = study().trials();
    const auto last = std::find_if(trials.rbegin(), trials.rend(),
                                   [](const Trial& trial) { return trial.state == TrialState::failed; });
    return last == trials.rend() ? "there is none"
                                 : fmt::format("{} {}: {}", sweep_.part(), last->number, last->message);
  }

  const config::SweepFile& sweep_;
  const SweepRunOptions& options_;
  const config::Catalogue& catalogue_;
  std::unique_ptr<Method> method_;
  launch::StopSignals signals_;
  checkpoint::RunDirectory lock_;
  Places places_;
  std::string mark_;
  LiveTable table_;
  std::unique_ptr<telemetry::Console> json_;  ///< null: for people
  std::optional<Journal> journal_;
  std::vector<std::string> place_names_;  ///< by slot
  std::optional<Quarantine> quarantine_;
  std::vector<std::optional<TrialProcess>> slots_;
  Clock::time_point start_ = Clock::now();
  std::optional<TrialBoard> board_;
  Clock::time_point looked_for_targets_{}, looked_at_data_{};
  std::string targets_, other_data_;  ///< the second: why the sweep is ended; empty: it is not
  int signals_seen_ = 0;
  bool stopping_ = false;
};

}  // namespace

int run_sweep(const config::SweepFile& sweep, const SweepRunOptions& options, const config::Catalogue& catalogue) {
  return Sweep(sweep, options, catalogue).run();
}

}  // namespace lockstep::sweep
