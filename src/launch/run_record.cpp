#include "launch/run_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "checkpoint/run_directory.hpp"
#include "core/spans.hpp"
#include "telemetry/event_json.hpp"
#include "telemetry/event_log.hpp"
#include "telemetry/progress.hpp"

namespace lockstep::launch {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kRunFilePoll{100};

int open_file(const std::string& directory, const char* name, int flags) {
  const std::string path = directory + "/" + name;
  const int file = ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0)
    checkpoint::cannot_use(directory, fmt::format("cannot write to the run directory: {}", std::strerror(errno)));
  return file;
}

// flock() itself has no timeout.
std::unique_ptr<LockedFile> lock_within(const std::string& directory, const std::string& launch, double seconds) {
  const auto start = Clock::now();
  try {
    auto lock = std::make_unique<LockedFile>(directory + "/" + checkpoint::kLaunchLock);
    while (!lock->try_lock()) {
      if (seconds_since(start) >= seconds) checkpoint::cannot_use(directory, "another launch uses this directory");
      std::this_thread::sleep_for(kRunFilePoll);
    }
    lock->write(launch);
    return lock;
  } catch (const std::system_error& error) {
    checkpoint::cannot_use(directory, fmt::format("cannot lock launch.lock there: {}", error.code().message()));
  }
}

}  // namespace

RunRecord::RunRecord(const std::string& run_directory, const std::string& job, const std::string& launch, bool json,
                     double lock_seconds)
    : directory_(run_directory),
      launch_(launch),
      console_(json ? telemetry::make_json_console() : telemetry::make_progress_console()) {
  std::error_code error;
  fs::create_directories(directory_ + "/logs", error);
  if (error) checkpoint::cannot_use(directory_, "cannot create the run directory: " + error.message());
  lock_ = lock_within(directory_, launch_, lock_seconds);
  events_ = open_file(directory_, "events.jsonl", O_WRONLY | O_APPEND);
  std::ofstream(directory_ + "/job.yaml") << job;
  if (!json) people_ = telemetry::make_progress(console_->printer(), telemetry::progress_options_for(STDERR_FILENO));
  while (fs::exists(fmt::format("{}/logs/attempt-{}", directory_, attempt_ + 1))) ++attempt_;
  writer_ = std::thread([this] { write_lines(); });
}

RunRecord::~RunRecord() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  writer_.join();
  ::close(events_);
}

void RunRecord::line(const std::string& line) {
  if (line.empty() || line.back() != '}') return;
  const std::string timed = telemetry::with_time(line);
  {
    const std::lock_guard lock(mutex_);
    to_write_.push_back(timed);
  }
  changed_.notify_all();
  if (!people_) {
    console_->print(timed);
  } else if (const auto read = telemetry::read_event(line); read.event)
    people_->event(*read.event);
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
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !to_write_.empty(); });
    if (to_write_.empty()) return;
    const std::string line = std::move(to_write_.front());
    to_write_.pop_front();
    writes_ = true;
    lock.unlock();
    telemetry::append_line(events_, line);
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

std::string RunRecord::next_attempt() {
  checkpoint::require_launch(directory_, launch_);
  std::string folder = fs::absolute(fmt::format("{}/logs/attempt-{}", directory_, ++attempt_)).string();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) checkpoint::cannot_use(directory_, "cannot write to the run directory: " + error.message());
  return folder;
}

}  // namespace lockstep::launch
