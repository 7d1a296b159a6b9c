#include "run/checkpoint/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "core/background.hpp"
#include "core/digest.hpp"
#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "data/store/in_parallel.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/files.hpp"

namespace lockstep::checkpoint {

namespace {

constexpr const char* kManifest = "manifest.json";
constexpr const char* kSetAside = "superseded";  ///< an object beside the files of a copy that is set aside

/// "runs/digits/checkpoints" for /work/../runs/digits/, under the key of `copy_to`.
store::ObjectLocation place_above(const std::string& copy_to, const std::string& run_directory) {
  store::ObjectLocation place = store::parse_location(copy_to);
  std::string path = std::filesystem::path(run_directory + "/checkpoints").lexically_normal().generic_string();
  while (path.starts_with('/') || path.starts_with("../")) path.erase(0, path.find('/') + 1);
  place.key += (place.key.empty() ? "" : "/") + path;
  return place;
}

store::ObjectLocation below(const store::ObjectLocation& place, const std::string& name) {
  return {place.bucket, place.key + "/" + name};
}

bool is_newer(const std::string& a, const std::string& b) {
  return *step_of(a) > *step_of(b);
}

}  // namespace

/// What the store has at a place, by checkpoint.
struct CheckpointCopies::Listed {
  std::map<std::string, std::vector<store::ObjectInfo>> objects;
  std::set<std::string> manifests, superseded;
  std::vector<std::string> whole() const {  // newest first
    std::vector<std::string> names;
    for (const auto& name : manifests) {
      if (!superseded.contains(name)) names.push_back(name);
    }
    std::sort(names.begin(), names.end(), is_newer);
    return names;
  }
};

CheckpointCopies::Listed CheckpointCopies::list_at(const store::Client& client, const store::ObjectLocation& place,
                                                   const store::OnBytes& on_bytes) {
  Listed listed;
  for (auto& object : client.list(place, 0, on_bytes)) {
    const std::filesystem::path path = object.key.substr(place.key.size() + 1);
    const std::string name = path.parent_path().string();
    if (!step_of(name) || name != path.begin()->string()) continue;
    if (path.filename() == kManifest) listed.manifests.insert(name);
    if (path.filename() == kSetAside) listed.superseded.insert(name);
    listed.objects[name].push_back(std::move(object));
  }
  return listed;
}

CheckpointCopies::CheckpointCopies(const std::string& copy_to, const std::string& run_directory,
                                   const std::string& identity, const store::Client& client)
    : directory_(run_directory + "/checkpoints"),
      above_(place_above(copy_to, run_directory)),
      place_(below(above_, identity)),
      client_(client) {
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

store::ObjectLocation CheckpointCopies::at(const std::string& name) const {
  return below(place_, name);
}

std::vector<std::string> CheckpointCopies::list(const store::OnBytes& on_bytes) const {
  for (const store::ObjectLocation& place : {place_, above_}) {
    const Listed listed = list_at(client_, place, on_bytes);
    std::vector<std::string> paths;
    for (const auto& name : listed.whole()) paths.push_back(below(place, name).text());
    if (!listed.objects.empty()) return paths;
  }
  return {};
}

std::size_t CheckpointCopies::others(const store::OnBytes& on_bytes) const {
  std::set<std::string> identities;
  for (const auto& object : client_.list(above_, 0, on_bytes)) {
    const std::filesystem::path path = object.key.substr(above_.key.size() + 1);
    if (path.filename() == kManifest && !step_of(path.begin()->string())) identities.insert(path.begin()->string());
  }
  identities.erase(std::filesystem::path(place_.key).filename().string());
  return identities.size();
}

CopyOutcome CheckpointCopies::fetch(const std::string& path, const store::OnBytes& on_bytes) const {
  const auto start = Clock::now();
  const store::ObjectLocation from = store::parse_location(path);
  CopyOutcome outcome{.step = *step_of(path), .path = path, .failure = {}};
  make_directories(real_files(), directory_);
  if (best_checkpoint(directory_).empty()) {
    const store::ObjectLocation place{from.bucket, std::filesystem::path(from.key).parent_path().string()};
    if (const auto best = client_.find(below(place, "best"), on_bytes)) {
      outcome.bytes += get(*best, directory_ + "/best", on_bytes);
      const std::string name = best_checkpoint(directory_);
      const bool is_whole = !name.empty() && client_.find(below(place, name + "/" + kManifest), on_bytes);
      if (is_whole && below(place, name).text() != path && !is_there(directory_ + "/" + name)) {
        get_checkpoint(below(place, name), outcome, on_bytes);
      }
    }
  }
  get_checkpoint(from, outcome, on_bytes);
  real_files().sync_directory(directory_);
  outcome.seconds = seconds_since(start);
  return outcome;
}

void CheckpointCopies::get_checkpoint(const store::ObjectLocation& from, CopyOutcome& outcome,
                                      const store::OnBytes& on_bytes) const {
  const std::string to = directory_ + "/" + std::filesystem::path(from.key).filename().string();
  remove_tree(real_files(), to);
  make_directories(real_files(), to);
  auto objects = client_.list(from, 0, on_bytes);
  const auto name_of = [&](const store::ObjectInfo& object) { return object.key.substr(from.key.size() + 1); };
  for (const auto& object : objects) {
    const std::filesystem::path name = name_of(object);
    if (std::ranges::find(name, "..") != name.end()) outcome.refused = name.string();
  }
  std::erase_if(objects, [&](const auto& object) { return !is_plain_name(name_of(object)); });
  const auto last = std::stable_partition(objects.begin(), objects.end(),
                                          [&](const auto& object) { return name_of(object) != kManifest; });
  std::atomic<std::int64_t> bytes = 0;
  store::in_parallel(last - objects.begin(), on_bytes, [&](std::size_t i, const store::OnBytes& on_some) {
    bytes += get(objects[i], to + "/" + name_of(objects[i]), on_some);
  });
  for (auto manifest = last; manifest != objects.end(); ++manifest) {
    bytes += get(*manifest, to + "/" + kManifest, on_bytes);
  }
  real_files().sync_directory(to);
  outcome.bytes += bytes;
}

std::int64_t CheckpointCopies::get(const store::ObjectInfo& object, const std::string& to,
                                   const store::OnBytes& on_bytes) const {
  const store::ObjectLocation place{place_.bucket, object.key};
  std::string bytes(object.size, '\0');
  const auto all = std::as_writable_bytes(std::span(bytes));
  if (!client_.read_whole(place, object.version, all, on_bytes))
    throw Error(ExitCode::data, fmt::format("{}: has been replaced while it was read", place.text()));
  write_whole(real_files(), to, bytes);
  return bytes.size();
}

void CheckpointCopies::set_aside(std::int64_t step, const store::OnBytes& on_bytes) {
  for (const std::string& name : list_at(client_, place_, on_bytes).whole()) {
    if (*step_of(name) > step) client_.write(at(name + "/" + kSetAside), std::as_bytes(std::span("1", 1)), on_bytes);
  }
}

void CheckpointCopies::keep(const Retention& retention) {
  const std::lock_guard lock(mutex_);
  retention_ = retention;
}

void CheckpointCopies::copy(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.begin(), std::filesystem::path(path).filename().string());
    for (const auto& name : dropped(waiting_, {1, retention_.keep_every}, best_checkpoint(directory_))) {
      std::erase(waiting_, name);
    }
  }
  changed_.notify_all();
}

std::string CheckpointCopies::being_copied() const {
  const std::lock_guard lock(mutex_);
  return copied_;
}

std::vector<CopyOutcome> CheckpointCopies::finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

// A store that takes nothing is given up by the client, after some attempts.
std::string CheckpointCopies::finish(const store::OnBytes& on_bytes) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100),
                            [this] { return waiting_.empty() && copied_.empty(); })) {
    if (std::exchange(seen, sent_.load()) != sent_) on_bytes();
  }
  return last_failure_;
}

void CheckpointCopies::run() {
  work_in_background();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || stop_; });
    if (stop_) return;
    copied_ = waiting_.front();
    waiting_.erase(waiting_.begin());
    if (!is_there(directory_ + "/" + copied_ + "/" + kManifest)) {  // was the best one until now
      copied_.clear();
      changed_.notify_all();
      continue;
    }
    lock.unlock();
    CopyOutcome outcome = copy_now(copied_);
    lock.lock();
    copied_.clear();
    last_failure_ = outcome.failure;
    outcomes_.push_back(std::move(outcome));
    changed_.notify_all();
  }
}

CopyOutcome CheckpointCopies::copy_now(const std::string& name) {
  const auto start = Clock::now();
  CopyOutcome outcome{.step = step_of(name).value_or(0), .path = at(name).text(), .failure = {}};
  try {
    const auto on_bytes = [this] { ++sent_; };
    if (is_copied(name, on_bytes)) return outcome;
    std::vector<std::string> files = names_in(directory_ + "/" + name);
    std::erase(files, kManifest);
    const auto there = client_.list(at(name), 0, on_bytes);
    std::atomic<std::int64_t> bytes = 0;
    store::in_parallel(files.size(), on_bytes, [&](std::size_t i, const store::OnBytes& on_some) {
      bytes += put(name + "/" + files[i], there, on_some);
    });
    outcome.bytes = bytes + put(name + "/" + kManifest, {}, on_bytes);
    const auto set_aside = at(name + "/" + kSetAside);
    if (client_.find(set_aside, on_bytes)) client_.remove(set_aside, on_bytes);
    if (best_checkpoint(directory_) == name) outcome.bytes += put("best", {}, on_bytes);
    prune(on_bytes);
  } catch (const std::exception& error) {
    outcome.failure = error.what();
  }
  outcome.seconds = seconds_since(start);
  return outcome;
}

bool CheckpointCopies::is_copied(const std::string& name, const store::OnBytes& on_bytes) const {
  if (client_.find(at(name + "/" + kSetAside), on_bytes)) return false;  // it may be damaged
  const auto place = at(name + "/" + kManifest);
  const auto here = read_whole_file(directory_ + "/" + name + "/" + kManifest);
  const auto there = client_.find(place, on_bytes);
  if (!here || !there || there->size != here->size()) return false;
  std::string bytes(here->size(), '\0');
  (void)client_.read(place, 0, std::as_writable_bytes(std::span(bytes)), on_bytes);
  return bytes == *here;
}

std::int64_t CheckpointCopies::put(const std::string& name, const std::vector<store::ObjectInfo>& there,
                                   const store::OnBytes& on_bytes) const {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) throw Error(ExitCode::infrastructure, "the run ends");
  }
  const auto bytes = read_whole_file(directory_ + "/" + name);
  if (!bytes) throw Error(ExitCode::infrastructure, fmt::format("{}/{}: is gone, for newer ones", directory_, name));
  const auto is_same = [&](const auto& object) { return object.key == at(name).key && object.size == bytes->size(); };
  if (std::ranges::any_of(there, is_same)) {  // from a copy that was cut off
    const auto found = client_.find(at(name), on_bytes);
    if (found && found->sha256 == sha256(*bytes)) return 0;
  }
  client_.write(at(name), std::as_bytes(std::span(*bytes)), on_bytes);
  return bytes->size();
}

// The manifest first: a copy that is partly removed is none.
void CheckpointCopies::prune(const store::OnBytes& on_bytes) {
  const Listed listed = list_at(client_, place_, on_bytes);
  const auto whole = listed.whole();
  Retention retention;
  {
    const std::lock_guard lock(mutex_);
    retention = retention_;
  }
  std::vector<std::string> gone = dropped(whole, retention, best_checkpoint(directory_));
  const bool enough = std::ssize(whole) >= retention.keep;
  for (const auto& [name, objects] : listed.objects) {
    const bool cut_off = !listed.manifests.contains(name) && !whole.empty() && is_newer(whole.front(), name);
    if (cut_off || (enough && listed.superseded.contains(name))) gone.push_back(name);
  }
  for (const auto& name : gone) {
    if (listed.manifests.contains(name)) client_.remove(at(name + "/" + kManifest), on_bytes);
    for (const auto& object : listed.objects.at(name)) {
      if (!object.key.ends_with(kManifest)) client_.remove({place_.bucket, object.key}, on_bytes);
    }
  }
}

}  // namespace lockstep::checkpoint
