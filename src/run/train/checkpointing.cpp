#include "run/train/checkpointing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <deque>
#include <iterator>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "comm/transport/work_together.hpp"
#include "config/config.hpp"
#include "core/remote_path.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/checkpoint/run_directory.hpp"
#include "run/train/fingerprint.hpp"
#include "run/train/plugins.hpp"
#include "run/train/start_check.hpp"

namespace lockstep::train {

namespace {

constexpr Operation kStarting{"run directory", 0};  ///< for waits while rank 0 prepares the run directory
constexpr std::chrono::milliseconds kLook{100};

bool has_any(const std::vector<bool>& of_ranks) {
  return std::find(of_ranks.begin(), of_ranks.end(), true) != of_ranks.end();
}

/// "2026-01-31 21:40:00", of this host's clock.
std::string time_after(Clock::duration wait) {
  const auto then = std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::seconds>(wait);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(then);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

Checkpointing::Checkpointing(const RunContext& run, checkpoint::FileSystem& files, comm::StopPoll stop)
    : run_(run), files_(files), stop_(std::move(stop)) {
  if (run_.job.checkpoint.never) return;
  checkpoint::LockWait wait;
  if (run_.options.watcher != nullptr) wait.limit = checkpoint::kFormerRankWait;
  wait.warn = [&](const std::string& message) { run_.warn(message); };
  comm::work_of_first_rank(run_.communicator, kStarting, [&](comm::WorkProgress& /*lock has a limit*/) {
    directory_ = std::make_unique<checkpoint::RunDirectory>(run_.job.run_directory, wait);
    const std::string& copy_to = run_.job.checkpoint.copy_to;
    if (!copy_to.empty()) {
      copies_ = std::make_unique<checkpoint::CheckpointCopies>(copy_to, run_.job.run_directory,
                                                               config::run_identity(run_.canonical.text));
    }
  });
  checkpoint::require_shared(run_.job.run_directory, run_.communicator, run_.timeout());
}

bool Checkpointing::resume(const std::vector<optim::OptimizerState>& states, optim::Model& model,
                           checkpoint::Progress& progress, const RequireSameRun& require_same_run) {
  if (run_.job.checkpoint.never) return false;
  checkpoint::CheckpointReader reader(run_.communicator, run_.timeout(), stop_);
  const auto checkpoint = find(reader, require_same_run);
  if (checkpoint) {
    progress = going_on(checkpoint->manifest.progress, progress, checkpoint->path);
    reader.load(*checkpoint, targets_of(states, model));
    begun_step_ = resumed_at_ = progress.step;
    newest_ = checkpoint->path;
  }
  comm::work_of_first_rank(run_.communicator, kStarting, [&](comm::WorkProgress& work) {
    const std::int64_t step = checkpoint ? progress.step : -1;
    if (copies_) copies_->set_aside(step, [&] { work.advance_or_stop(); });
    if (checkpoint && by_path_) {
      newest_ = checkpoint::begin_with(files_, *checkpoint, *directory_, [&] { work.advance_or_stop(); });
    } else {
      checkpoint::set_aside(files_, directory_->checkpoints(), step);
    }
    best_ = checkpoint::best_checkpoint(directory_->checkpoints());
    if (const auto damage = checkpoint::damage_of_best(directory_->checkpoints()); !damage.empty()) {
      run_.warn(damage + ": the best checkpoint so far is not known");
    }
  });
  return checkpoint.has_value();
}

std::optional<checkpoint::Checkpoint> Checkpointing::find(checkpoint::CheckpointReader& reader,
                                                          const RequireSameRun& require_same_run) {
  std::deque<std::string> left;
  std::vector<std::string> notes;
  for (bool first = true;; first = false) {
    std::optional<checkpoint::Checkpoint> checkpoint;
    const auto choose = [&](comm::WorkProgress& progress) {
      const auto on_bytes = [&] { progress.advance_or_stop(); };
      if (first) left = candidates(on_bytes);
      const auto arrives = [&](const std::string& candidate) { return arrive(candidate, on_bytes); };
      checkpoint = checkpoint::next_candidate(left, arrives, require_same_run, notes);
      if (!checkpoint && !notes.empty()) judge_damage(fmt::format("{}", fmt::join(notes, "; ")), false);
    };
    comm::work_of_first_rank(run_.communicator, kStarting, choose, {.stop = stop_});
    checkpoint = checkpoint::broadcast_checkpoint(std::move(checkpoint), run_.communicator, run_.timeout());
    const auto faults = checkpoint ? reader.read(*checkpoint) : std::vector<std::string>{};
    notes.insert(notes.end(), faults.begin(), faults.end());
    if (checkpoint && !faults.empty()) continue;
    if (run_.leads() && !notes.empty()) judge_damage(fmt::format("{}", fmt::join(notes, "; ")), true);
    return checkpoint;
  }
}

std::deque<std::string> Checkpointing::candidates(const std::function<void()>& on_bytes) {
  const std::string& resume = run_.options.resume;
  auto own = checkpoint::resume_candidates(resume, *directory_);
  by_path_ = resume != "auto" && resume != "never" && !checkpoint::has_begun_with(resume, *directory_);
  if (!copies_ || by_path_) return own;
  auto copies = copies_->list(on_bytes);
  if (resume == "never" && !copies.empty()) {
    checkpoint::cannot_use(copies_->place(),
                           "it holds checkpoints of an earlier run, and --resume never asks for a new "
                           "one");
  }
  if (const std::size_t others = own.empty() && copies.empty() ? copies_->others(on_bytes) : 0; others > 0) {
    run_.warn(fmt::format("{}: there is no copy of this job, but of {}; training begins with step 1", copies_->place(),
                          telemetry::counted(others, "other job")));
  }
  own.insert(own.end(), std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()));
  std::stable_sort(own.begin(), own.end(),
                   [](const auto& a, const auto& b) { return *checkpoint::step_of(a) > *checkpoint::step_of(b); });
  return own;
}

std::string Checkpointing::arrive(const std::string& candidate, const std::function<void()>& on_bytes) {
  if (!is_remote(candidate)) return candidate;
  const auto fetched = copies_->fetch(candidate, on_bytes);
  if (!fetched.refused.empty()) {
    run_.warn(fmt::format("{}: left out '{}', which leads out of the folder; find out who wrote it", candidate,
                          fetched.refused));
  }
  run_.emit(events::Copy{
      .step = fetched.step, .path = fetched.path, .fetched = true, .seconds = fetched.seconds, .bytes = fetched.bytes});
  return directory_->checkpoints() + "/" + checkpoint::checkpoint_name(fetched.step);
}

void Checkpointing::judge_damage(const std::string& notes, bool found) const {
  if (by_path_) throw Error(ExitCode::data, "--resume: expected a checkpoint: " + notes);
  if (!found) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected a sound checkpoint, found damaged ones only: {}; restore one, or begin anew in "
                    "another run_directory",
                    run_.job.run_directory, notes));
  }
  run_.warn("passed over a damaged checkpoint: " + notes);
}

checkpoint::Progress Checkpointing::going_on(checkpoint::Progress saved, const checkpoint::Progress& now,
                                             const std::string& path) const {
  if (saved.data_digest != now.data_digest) {
    throw Error(ExitCode::other_data,
                fmt::format("{}: the data set is not the one that this run began with; restore it, or choose a new "
                            "run_directory",
                            path));
  }
  if (saved.job_digest != now.job_digest) {
    saved.earlier_settings.push_back({saved.step, saved.job});
    if (!config::length_if_else_equal(saved.job, now.job)) {
      saved.fingerprint = without_first_micro_batch(saved.fingerprint);  // whose loss had other settings
    }
  }
  const auto other_bits = [&](const std::string& difference, const char* remedy, const std::string& detail) {
    if (run_.job.exact == Exactness::required) {
      throw Error(ExitCode::usage, fmt::format("{}; {}, or set exact: preferred{}", difference, remedy, detail));
    }
    run_.warn(difference + detail);
    if (saved.exactness == kBitwise) saved.exactness = kNotBitwise;
  };
  if (saved.plugins != now.plugins) {
    other_bits(other_plugins(path, saved.plugins, now.plugins), "the bits may differ: restore the files", "");
  }
  const auto fingerprint = agreed_fingerprint(saved.fingerprint, now.fingerprint);
  if (!fingerprint) {
    other_bits(fmt::format("{}: a processor or libraries that compute other bits", path), "use those of then",
               differences(saved.fingerprint + ", " + saved.instructions, now.fingerprint + ", " + now.instructions));
  }
  if (now.exactness != kBitwise) saved.exactness = now.exactness;
  if (saved.loss_scale.scale == 0) saved.loss_scale = now.loss_scale;
  saved.job_digest = now.job_digest;  // of another length or with other settings, perhaps
  saved.job = now.job;
  saved.fingerprint = fingerprint.value_or(now.fingerprint);
  saved.instructions = now.instructions;
  saved.plugins = now.plugins;
  return saved;
}

std::string Checkpointing::path(std::int64_t step) const {
  if (!directory_ || !has_begun(step)) return {};
  return resumed_at_ == step ? newest_ : directory_->checkpoints() + "/" + checkpoint::checkpoint_name(step);
}

checkpoint::Targets Checkpointing::targets_of(const std::vector<optim::OptimizerState>& states, optim::Model& model) {
  checkpoint::Targets targets;
  checkpoint::add_targets(model.parameters, "", targets);
  checkpoint::add_targets(model.states, "", targets);
  for (std::size_t i = 0; i < states.size(); ++i) {
    checkpoint::add_targets(model.optimizer[i], ":" + states[i].name, targets);
    std::erase_if(targets, [&](const auto& target) { return states[i].is_missing(target.second.shape); });
  }
  return targets;
}

void Checkpointing::prepare(std::vector<checkpoint::TensorSource> tensors, std::int64_t keep_every,
                            std::chrono::milliseconds deadline) {
  if (run_.job.checkpoint.never) return;
  checkpoint::WriterOptions options;
  options.directory = run_.job.run_directory + "/checkpoints";
  options.retention = {run_.job.checkpoint.keep, keep_every};
  options.best = best_;
  options.newest = newest_;
  options.part_bytes = run_.job.checkpoint.part_bytes;
  options.timeout = run_.timeout();
  options.deadline = deadline;
  const std::string launch = run_.options.watcher != nullptr ? run_.options.watcher->launch() : "";
  options.may_write = [path = run_.job.run_directory, directory = directory_.get(), launch] {
    if (!launch.empty()) checkpoint::require_launch(path, launch);
    if (directory != nullptr) directory->require_lock();
  };
  if (copies_) {
    copies_->keep(options.retention);
    options.pinned = [copies = copies_.get()] { return copies->being_copied(); };
    if (!newest_.empty()) copies_->copy(newest_);  // the last start may have ended before that
  }
  writer_ =
      std::make_unique<checkpoint::CheckpointWriter>(run_.communicator, std::move(tensors), std::move(options), files_);
}

void Checkpointing::write(const checkpoint::Progress& progress, bool best) {
  if (!writer_) {
    begun_step_ = progress.step;
    return;
  }
  last_ = {progress, best};
  last_never_began_ = !writer_->begin(progress, best);
  if (last_never_began_) {
    ++failures_;
    run_.warn(fmt::format("step {}: no checkpoint: {}; training goes on", progress.step, checkpoint::kNoAnswer));
  } else {
    begun_step_ = progress.step;
  }
  report();
}

void Checkpointing::report() {
  if (!writer_ || !run_.leads()) return;
  for (const auto& outcome : writer_->finished()) {
    if (!outcome.failure.empty()) {
      if (insists_ && outcome.step == last_.progress.step) continue;  // insist() warns
      ++failures_;
      run_.warn(fmt::format("step {}: no checkpoint: {}; training goes on, the newest checkpoint is {}", outcome.step,
                            outcome.failure, outcome.newest.empty() ? std::string("none") : outcome.newest));
      continue;
    }
    events::Checkpoint event{.step = outcome.step,
                             .path = outcome.path,
                             .seconds = outcome.seconds,
                             .blocked_seconds = outcome.blocked_seconds,
                             .bytes = outcome.bytes};
    if (outcome.best) event.best = run_.job.checkpoint.best;
    run_.emit(event);
    if (copies_) copies_->copy(outcome.path);
    if (!outcome.warning.empty()) {
      run_.warn("old checkpoints are not removed: " + outcome.warning);
    }
  }
  if (copies_) report_copies();
}

void Checkpointing::report_copies() {
  for (const auto& copy : copies_->finished()) {
    if (copy.failure.empty() && copy.bytes == 0) continue;
    if (copy.failure.empty()) {
      run_.emit(events::Copy{.step = copy.step, .path = copy.path, .seconds = copy.seconds, .bytes = copy.bytes});
    } else {
      run_.warn(fmt::format("step {}: no copy of the checkpoint: {}; training goes on", copy.step, copy.failure));
    }
  }
}

std::string Checkpointing::finish_writing() {
  std::string failure = writer_->finish();
  if (failure.empty() && last_never_began_) failure = checkpoint::kNoAnswer;
  report();
  return failure;
}

std::string Checkpointing::pause(std::chrono::milliseconds pause, RanTime& waited, const LastCheckpointWait& wait,
                                 bool stoppable) {
  const auto is_stopped = [&] { return stoppable && stop_ && stop_(); };
  const auto sleep = [&](comm::WorkProgress& work) {
    for (RanTime slept; run_.leads() && !work.stopped() && slept.look() < pause && waited.look() < wait.limit;) {
      work.advance();
      std::this_thread::sleep_for(std::min(kLook, pause));
    }
    return work.stopped() || is_stopped();
  };
  const Operation operation{"last checkpoint", 0, run_.timeout()};
  const auto stopped = comm::work_together(run_.communicator, operation, sleep, {.stop = is_stopped});
  if (has_any(stopped)) return "a signal ended the waiting for its disk";
  char over = waited.look() >= wait.limit ? 1 : 0;
  run_.communicator.broadcast(std::as_writable_bytes(std::span(&over, 1)), 0, operation);
  if (over == 0) return "";
  return fmt::format("tried again for {:.0f} s", std::chrono::duration<double>(wait.limit).count());
}

std::string Checkpointing::insist(std::string failure, const LastCheckpointWait& wait) {
  // After a first signal, which made this the last checkpoint, a second one ends the process at once.
  const auto asked = comm::work_together(run_.communicator, {"last checkpoint", 0, run_.timeout()},
                                         [&](comm::WorkProgress& /*at once*/) { return stop_ && stop_(); });
  const bool stoppable = !has_any(asked);
  std::minstd_rand random(std::random_device{}());
  RanTime waited;
  std::string told;
  for (auto longest = wait.first; !failure.empty(); longest = std::min(2 * longest, wait.longest)) {
    if (writer_->has_lost_directory()) return failure;
    if (std::exchange(told, failure) != failure) {
      run_.warn(
          fmt::format("step {}: the last checkpoint could not be written: {}; the result is kept in memory and "
                      "written again until {}; free room on the disk, or stop the run to give the result up",
                      last_.progress.step, failure, time_after(wait.limit - waited.look())));
    }
    const auto half = longest.count() / 2;
    const std::chrono::milliseconds nap(half + static_cast<std::int64_t>(random()) % (half + 1));
    if (const std::string end = pause(nap, waited, wait, stoppable); !end.empty()) return failure + "; " + end;
    last_never_began_ = !writer_->begin(last_.progress, last_.best);
    if (!last_never_began_) begun_step_ = last_.progress.step;
    failure = finish_writing();
  }
  return "";
}

void Checkpointing::finish(const LastCheckpointWait& wait) {
  if (!writer_) return;
  insists_ = wait.limit.count() > 0;
  std::string failure = finish_writing();
  if (!failure.empty() && insists_) {
    if (!last_never_began_) ++failures_;
    failure = insist(std::move(failure), wait);
  }
  if (!failure.empty()) {
    throw Error(ExitCode::infrastructure, "the last checkpoint could not be written: " + failure);
  }
  if (run_.job.checkpoint.copy_to.empty()) return;
  comm::work_of_first_rank(run_.communicator, {"copy of a checkpoint", 0}, [&](comm::WorkProgress& progress) {
    const std::string no_copy = copies_->finish([&] { progress.advance(); });
    report_copies();
    if (no_copy.empty()) return;
    throw Error(ExitCode::infrastructure, "the last checkpoint could not be copied: " + no_copy);
  });
}

}  // namespace lockstep::train
