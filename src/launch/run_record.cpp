#include "launch/run_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/files.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_json.hpp"
#include "observe/telemetry/event_log.hpp"
#include "observe/telemetry/progress.hpp"
#include "run/checkpoint/run_directory.hpp"

namespace lockstep::launch {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kRunFilePoll{100};
constexpr std::chrono::seconds kSignatureLook{1};
constexpr double kLockPatience = 10;  ///< seconds, for a file system that fails for a moment

// flock() itself has no timeout. nullptr: another process has it.
std::unique_ptr<LockedFile> try_lock(const std::string& directory, const std::string& launch) {
  try {
    auto lock = std::make_unique<LockedFile>(directory + "/" + checkpoint::kLaunchLock);
    if (!lock->try_lock()) return nullptr;
    lock->write(launch);
    return lock;
  } catch (const Error& error) {
    if (error.code() != ExitCode::cannot_create) throw;
    throw Error(error.code(), fmt::format("{}; choose another with run_directory=PATH", error.what()));
  }
}

std::unique_ptr<LockedFile> lock_within(const std::string& directory, const std::string& launch, double seconds) {
  for (const auto start = Clock::now();; std::this_thread::sleep_for(kRunFilePoll)) {
    const double waited = seconds_since(start);
    try {
      if (auto lock = try_lock(directory, launch)) return lock;
    } catch (const Error& error) {
      if (error.code() != ExitCode::infrastructure || waited >= kLockPatience) throw;
      continue;
    }
    if (waited < seconds) continue;
    const char* const why = "another launch uses this directory";
    if (seconds > 0)
      throw Error(ExitCode::infrastructure, fmt::format("{}: {}, after {:.0f} s still", directory, why, seconds));
    checkpoint::cannot_use(directory, why);
  }
}

}  // namespace

RunRecord::RunRecord(const std::string& run_directory, const std::string& job, const std::string& launch, bool json,
                     double lock_seconds, std::optional<Span> every)
    : directory_(run_directory),
      launch_(launch),
      job_(job),
      lines_(every),
      console_(json ? telemetry::make_json_console() : telemetry::make_progress_console()) {
  std::error_code error;
  fs::create_directories(directory_ + "/logs", error);
  if (error) checkpoint::cannot_use(directory_, "cannot create the run directory", error);
  lock_ = lock_within(directory_, launch_, lock_seconds);
  had_same_job_ = read_whole_file(directory_ + "/job.yaml") == job;
  make_files();
  if (!json) people_ = telemetry::make_progress(console_->printer(), telemetry::progress_options_for(STDERR_FILENO));
  while (fs::exists(fmt::format("{}/logs/attempt-{}", directory_, attempt_ + 1))) ++attempt_;
  writer_ = std::thread([this] { write_lines(); });
}

void RunRecord::make_files() {
  write_whole_file(directory_ + "/job.yaml", job_);
  events_ = Descriptor(telemetry::open_event_file(directory_ + "/events.jsonl"));
  if (events_.get() < 0) {
    checkpoint::cannot_use(directory_, fmt::format("cannot write to the run directory: {}", std::strerror(errno)));
  }
}

// The directory, or the lock alone, may be removed while the launch lives, which still holds the lock: it signs again,
// and the ranks' next checkpoint makes the rest. A directory that another launch has taken is left to that one.
void RunRecord::keep_signature() {
  try {
    if (lock_->renew() && !is_there(directory_ + "/events.jsonl")) make_files();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the disk does not answer now; asked again in a moment
  }
}

RunRecord::~RunRecord() {
  write(lines_.rest());
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

void RunRecord::line(const std::string& line) {
  if (line.empty() || line.back() != '}') return;
  const std::string timed = telemetry::with_time(line);
  const auto read = telemetry::read_event(line);
  write(read.event ? lines_.next(*read.event, timed) : timed);
  if (!people_) {
    console_->print(timed);
  } else if (read.event) {
    people_->event(*read.event);
  }
}

void RunRecord::write(std::string lines) {
  if (lines.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    to_write_.push_back(std::move(lines));
  }
  changed_.notify_all();
}

void RunRecord::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return to_write_.empty() && !writes_; });
}

void RunRecord::settle() {
  flush();
  (void)console_->finish();
}

void RunRecord::finish_printing() {
  flush();
  if (!people_) telemetry::require_written(*console_);
}

void RunRecord::write_lines() {
  std::unique_lock lock(mutex_);
  auto looked = Clock::now();
  while (true) {
    const bool woken = changed_.wait_until(lock, looked + kSignatureLook, [&] { return ends_ || !to_write_.empty(); });
    if (Clock::now() - looked >= kSignatureLook) {
      lock.unlock();
      keep_signature();
      lock.lock();
      looked = Clock::now();
    }
    if (!woken) continue;
    if (to_write_.empty()) return;
    const std::string line = std::move(to_write_.front());
    to_write_.pop_front();
    writes_ = true;
    lock.unlock();
    telemetry::append_line(events_.get(), line);
    lock.lock();
    writes_ = false;
    changed_.notify_all();
  }
}

void RunRecord::event(const events::Event& event) {
  line(telemetry::event_line(event));
}

void RunRecord::warn(const std::string& message) {
  event(events::Warning{message});
}

void RunRecord::require_own() const {
  checkpoint::require_launch(directory_, launch_);
}

std::string RunRecord::next_attempt() {
  std::string folder = fs::absolute(fmt::format("{}/logs/attempt-{}", directory_, attempt_ + 1)).string();
  make_folders(folder);
  ++attempt_;
  return folder;
}

}  // namespace lockstep::launch
