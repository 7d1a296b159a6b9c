#include "checkpoint/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <span>
#include <utility>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/files.hpp"
#include "core/background.hpp"
#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr const char* kManifest = "manifest.json";

/// "runs/digits/checkpoints" for /work/../runs/digits/, under the key of `copy_to`.
store::Location place_of(const std::string& copy_to, const std::string& run_directory) {
  store::Location place = store::parse_location(copy_to);
  std::string path = std::filesystem::path(run_directory + "/checkpoints").lexically_normal().generic_string();
  while (path.starts_with('/') || path.starts_with("../")) path.erase(0, path.find('/') + 1);
  place.key += (place.key.empty() ? "" : "/") + path;
  return place;
}

}  // namespace

CheckpointCopies::CheckpointCopies(const std::string& copy_to, const std::string& run_directory,
                                   const store::Client& client)
    : directory_(run_directory + "/checkpoints"), place_(place_of(copy_to, run_directory)), client_(client) {
  thread_ = std::thread([this] { run(); });
}

CheckpointCopies::~CheckpointCopies() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

store::Location CheckpointCopies::at(const std::string& name) const {
  return {place_.bucket, place_.key + "/" + name};
}

std::vector<std::string> CheckpointCopies::list() const {
  std::vector<std::string> names;
  for (const auto& object : client_.list(place_)) {
    const std::filesystem::path name = object.key.substr(place_.key.size() + 1);
    if (name.filename() == kManifest && step_of(name.parent_path().string()))
      names.push_back(name.parent_path().string());
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return *step_of(a) > *step_of(b); });
  return names;
}

std::optional<CopyOutcome> CheckpointCopies::restore(const store::OnBytes& on_bytes) const {
  const auto start = Clock::now();
  const auto names = list();
  if (names.empty()) return std::nullopt;
  CopyOutcome outcome{.step = *step_of(names.front()), .path = at(names.front()).text(), .failure = {}};
  std::vector<std::string> wanted{names.front()};
  if (const auto best = client_.find(at("best"))) {
    make_directories(real_files(), directory_);
    (void)get(*best, on_bytes);
    const std::string name = best_checkpoint(directory_);
    if (name != names.front() && std::find(names.begin(), names.end(), name) != names.end()) wanted.push_back(name);
  }
  for (const auto& checkpoint : wanted) {
    make_directories(real_files(), directory_ + "/" + checkpoint);
    const auto objects = client_.list(at(checkpoint));
    for (const bool manifest : {false, true}) {  // the manifest last, as it is written
      for (const auto& object : objects) {
        if (object.key.ends_with(kManifest) == manifest) outcome.bytes += get(object, on_bytes);
      }
    }
    real_files().sync_directory(directory_ + "/" + checkpoint);
  }
  real_files().sync_directory(directory_);
  outcome.seconds = seconds_since(start);
  return outcome;
}

std::int64_t CheckpointCopies::get(const store::ObjectInfo& object, const store::OnBytes& on_bytes) const {
  const store::Location place{place_.bucket, object.key};
  std::string bytes(object.size, '\0');
  const auto all = std::as_writable_bytes(std::span(bytes));
  const bool same = bytes.empty() || client_.read(place, 0, all, on_bytes) == object.version;
  if (!same) throw Error(ExitCode::data, fmt::format("{}: has been replaced while it was read", place.text()));
  write_whole(real_files(), directory_ + "/" + object.key.substr(place_.key.size() + 1), bytes);
  return static_cast<std::int64_t>(bytes.size());
}

void CheckpointCopies::copy(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    next_ = path;
  }
  changed_.notify_all();
}

std::vector<CopyOutcome> CheckpointCopies::finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

// A store that takes nothing is given up by the client, after some attempts.
std::string CheckpointCopies::finish(const store::OnBytes& on_bytes) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return next_.empty() && !busy_; })) {
    if (std::exchange(seen, sent_.load()) != sent_) on_bytes();
  }
  return last_failure_;
}

void CheckpointCopies::run() {
  work_in_background();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !next_.empty() || stop_; });
    if (stop_) return;
    const std::string path = std::exchange(next_, "");
    busy_ = true;
    lock.unlock();
    CopyOutcome outcome = copy_now(path);
    lock.lock();
    busy_ = false;
    last_failure_ = outcome.failure;
    outcomes_.push_back(std::move(outcome));
    changed_.notify_all();
  }
}

CopyOutcome CheckpointCopies::copy_now(const std::string& path) {
  const auto start = Clock::now();
  const std::string name = std::filesystem::path(path).filename().string();
  CopyOutcome outcome{.step = step_of(path).value_or(0), .path = at(name).text(), .failure = {}};
  try {
    if (is_copied(name)) return outcome;
    for (const auto& file : names_in(path)) {
      if (file != kManifest) put(name + "/" + file, outcome);
    }
    put(name + "/" + kManifest, outcome);
    if (best_checkpoint(directory_) == name) put("best", outcome);
    prune();
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  outcome.seconds = seconds_since(start);
  return outcome;
}

bool CheckpointCopies::is_copied(const std::string& name) const {
  const auto place = at(name + "/" + kManifest);
  const auto here = read_if_there(directory_ + "/" + name + "/" + kManifest);
  const auto there = client_.find(place);
  if (!here || !there || there->size != here->size()) return false;
  std::string bytes(here->size(), '\0');
  (void)client_.read(place, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes == *here;
}

void CheckpointCopies::put(const std::string& name, CopyOutcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) throw Error(ExitCode::infrastructure, "the run ends");
  }
  const auto bytes = read_if_there(directory_ + "/" + name);
  if (!bytes) throw Error(ExitCode::infrastructure, fmt::format("{}/{}: is gone, for newer ones", directory_, name));
  client_.write(at(name), std::as_bytes(std::span(*bytes)), [this] { ++sent_; });
  outcome.bytes += static_cast<std::int64_t>(bytes->size());
}

// The manifest first: a copy that is partly removed is none.
void CheckpointCopies::prune() {
  const auto objects = client_.list(place_);
  for (const bool manifests : {true, false}) {
    for (const auto& object : objects) {
      const std::filesystem::path name = object.key.substr(place_.key.size() + 1);
      const std::string checkpoint = name.parent_path().string();
      if ((name.filename() == kManifest) != manifests || !step_of(checkpoint)) continue;
      if (!is_there(directory_ + "/" + checkpoint)) client_.remove({place_.bucket, object.key});
    }
  }
}

}  // namespace lockstep::checkpoint
