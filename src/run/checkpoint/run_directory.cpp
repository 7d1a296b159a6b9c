#include "run/checkpoint/run_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "config/config.hpp"
#include "core/digest.hpp"
#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "core/unfit_hosts.hpp"
#include "lockstep/error.hpp"
#include "run/checkpoint/retention.hpp"

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

void cannot_use(const std::string& directory, const std::string& why) {
  throw Error(ExitCode::cannot_create, fmt::format("{}: {}; choose another with run_directory=PATH", directory, why));
}

void cannot_use(const std::string& directory, const std::string& what, const std::error_code& error) {
  const std::string why = fmt::format("{}: {}", what, error.message());
  if (code_of_errno(error, ExitCode::cannot_create) == ExitCode::cannot_create) cannot_use(directory, why);
  throw Error(ExitCode::infrastructure,
              fmt::format("{}: {}; run again when its file system has space and answers", directory, why));
}

void cannot_use(const std::string& directory, const std::string& what, int error) {
  cannot_use(directory, what, std::error_code(error, std::generic_category()));
}

namespace {

constexpr std::chrono::milliseconds kLockAgain{50}, kSignatureAgain{100};

}  // namespace

void require_launch(const std::string& directory, const std::string& launch, std::chrono::milliseconds patience) {
  const std::string file = fmt::format("{}/{}", directory, kLaunchLock);
  RanTime waited;
  while (true) {
    std::string problem = file +
                          ": expected the signature of this launch, found none; see that nothing removes files "
                          "of a run that goes on, and that its launch lives";
    try {
      const std::string owner = read_whole_file(file).value_or("");
      if (owner == launch) return;
      if (!owner.empty()) {
        throw LostDirectory(
            fmt::format("{}: another launch has taken this directory ({}): this one was cut off from it or taken for "
                        "lost, and writes nothing there any more; the other one continues the run",
                        directory, owner));
      }
    } catch (const LostDirectory&) {
      throw;
    } catch (const Error& error) {
      problem = error.what();
    }
    if (waited.look() >= patience) throw Error(ExitCode::infrastructure, problem);
    std::this_thread::sleep_for(kSignatureAgain);
  }
}

RunDirectory::RunDirectory(std::string path, const LockWait& wait) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) cannot_use(path_, "cannot create the run directory", error);
  lock(wait);
}

bool RunDirectory::try_lock() {
  try {
    if (!lock_) lock_.emplace(path_ + "/lock");
    return lock_->try_lock();
  } catch (const Error& error) {
    if (error.code() != ExitCode::cannot_create) throw;
    throw Error(error.code(), fmt::format("{}; choose another with run_directory=PATH", error.what()));
  }
}

void RunDirectory::require_lock() {
  const std::lock_guard guard(mutex_);
  if (lock_->renew()) return;
  throw LostDirectory(
      fmt::format("{}: its lock was removed, and another run has taken it: this one writes nothing there "
                  "any more; run it again in another directory, with run_directory=PATH",
                  path_));
}

void RunDirectory::lock(const LockWait& wait) {
  RanTime waited;
  bool warned = false;
  while (!try_lock()) {
    if (wait.limit.count() == 0) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("{}: another run uses this directory; wait for it, or choose another "
                              "with run_directory=PATH",
                              path_));
    }
    const double limit = std::chrono::duration<double>(wait.limit).count();
    if (waited.seconds() >= limit) {
      throw Error(ExitCode::infrastructure,
                  fmt::format("{}: a rank of an earlier attempt still holds its lock after {:.0f} s; look for lockstep "
                              "processes that do not end on the hosts of this launch",
                              path_, limit));
    }
    if (!warned && wait.warn) {
      wait.warn(fmt::format(
          "{}: waiting for a rank of an earlier attempt, which still holds its lock; at most {:.0f} s", path_, limit));
    }
    warned = true;
    std::this_thread::sleep_for(kLockAgain);
  }
}

namespace {

constexpr std::chrono::seconds kSight{3};  ///< a network file system may show a new file late

std::string new_token(const std::string& directory) {
  std::string path = directory + "/shared-XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) cannot_use(directory, "cannot write to the run directory", errno);
  ::close(fd);
  return fs::path(path).filename().string();
}

bool sees(const std::string& path) {
  std::error_code ignored;
  const auto start = Clock::now();
  while (!fs::exists(path, ignored)) {
    if (Clock::now() - start > kSight) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

/// Names of the hosts with a rank that does not see it.
std::vector<std::string> blind_hosts(const std::vector<std::byte>& seen, const Topology& topology) {
  std::set<int> hosts;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    if (seen[rank] == std::byte{0}) hosts.insert(topology.host_of.at(rank));
  }
  std::vector<std::string> names;
  for (const int host : hosts) names.push_back(topology.host_names.at(host));
  return names;
}

}  // namespace

void require_shared(const std::string& directory, Communicator& communicator, std::chrono::milliseconds timeout) {
  const Topology& topology = communicator.topology();
  if (topology.host_names.size() < 2) return;
  const Operation operation{"run directory", 0, timeout};
  std::array<char, 32> name{};
  std::string token;
  if (communicator.rank() == 0) {
    token = new_token(directory);
    std::copy_n(token.begin(), std::min(token.size(), name.size() - 1), name.begin());
  }
  communicator.broadcast(std::as_writable_bytes(std::span(name)), 0, operation);
  const std::byte mine{sees(fmt::format("{}/{}", directory, name.data())) ? std::uint8_t{1} : std::uint8_t{0}};
  std::vector<std::byte> seen(communicator.size());
  communicator.all_gather({&mine, 1}, seen, operation);
  if (communicator.rank() == 0) ::unlink(fmt::format("{}/{}", directory, token).c_str());
  const std::vector<std::string> blind = blind_hosts(seen, topology);
  if (blind.empty()) return;
  const std::string message = fmt::format(
      "{}: every host must share the run directory, but what rank 0 wrote there on {} is not seen on "
      "{}; put it on a file system that all hosts mount (run_directory=PATH), or set "
      "checkpoint=never",
      directory, topology.host_name(0), fmt::join(blind, ", "));
  if (blind.size() + 1 < topology.host_names.size()) throw UnfitHosts(blind, message);
  throw Error(ExitCode::cannot_create, message);
}

namespace {

/// As many as a line has room for, at least one.
std::string line_of(const std::vector<std::string>& differences) {
  constexpr std::size_t kLine = 150;
  std::string line = differences.empty() ? "" : differences.front();
  for (std::size_t i = 1; i < differences.size(); ++i) {
    if (line.size() + differences[i].size() > kLine)
      return fmt::format("{}; and {} more", line, differences.size() - i);
    line += "; " + differences[i];
  }
  return line;
}

}  // namespace

void require_same_job(const Checkpoint& checkpoint, const CanonicalJob& job, bool change_settings) {
  const Progress& progress = checkpoint.manifest.progress;
  if (progress.job_digest == job.digest) return;
  if (!change_settings) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: this checkpoint is of another job:\n  {}\nrestore the old values, or choose a new "
                            "run_directory",
                            checkpoint.path, line_of(config::differences(progress.job, job.text))));
  }
  auto differences = config::fixed_differences(progress.job, job.text);
  std::erase_if(differences, [](const std::string& difference) {
    return difference.starts_with("job.steps: ") || difference.starts_with("job.epochs: ");
  });
  if (differences.empty()) return;
  throw Error(ExitCode::configuration, fmt::format("{}: --change-settings: expected another length and other values of "
                                                   "{} only, found others:\n  {}\nrestore these",
                                                   checkpoint.path, config::kChangeableSettings, line_of(differences)));
}

namespace {

/// In the run directory: the checkpoint that it began with, if that was given by its path.
constexpr const char* kOrigin = "origin.json";

std::string origin_of(const std::string& path) {
  const auto manifest = read_whole_file(path + "/manifest.json");
  return manifest ? sha256(*manifest) : "";
}

}  // namespace

bool has_begun_with(const std::string& path, const RunDirectory& directory) {
  const auto text = read_whole_file(directory.path() + "/" + kOrigin);
  const auto origin = nlohmann::json::parse(text.value_or(""), nullptr, /*allow_exceptions=*/false);
  if (!origin.is_object() || list_checkpoints(directory.checkpoints()).empty()) return false;
  const std::string manifest = origin_of(path);  // what it began with may have been removed since
  return manifest.empty() ? origin.value("path", "") == path : origin.value("manifest_sha256", "") == manifest;
}

std::string begin_with(FileSystem& files, const Checkpoint& checkpoint, const RunDirectory& directory,
                       const std::function<void()>& advance) {
  const std::string checkpoints = directory.checkpoints(), manifest = origin_of(checkpoint.path);
  const std::int64_t step = checkpoint.manifest.progress.step;
  std::string own = checkpoints + "/" + checkpoint_name(step);
  const bool is_own = origin_of(own) == manifest;
  set_aside(files, checkpoints, is_own ? step : -1);
  if (!is_own) (void)share_checkpoint(checkpoint.path, checkpoints, step, advance, files);
  const nlohmann::ordered_json origin = {{"path", checkpoint.path}, {"step", step}, {"manifest_sha256", manifest}};
  write_whole(files, directory.path() + "/" + kOrigin, origin.dump(2) + "\n");
  files.sync_directory(directory.path());
  return own;
}

std::deque<std::string> resume_candidates(const std::string& resume, const RunDirectory& directory) {
  if (resume != "auto" && resume != "never" && !has_begun_with(resume, directory)) return {resume};
  const auto list = list_checkpoints(directory.checkpoints());
  if (resume == "never" && !list.empty()) {
    throw Error(ExitCode::cannot_create,
                fmt::format("{}: it holds checkpoints of an earlier run, and --resume never asks for a new one; remove "
                            "it, or choose another with run_directory=PATH",
                            directory.path()));
  }
  return {list.begin(), list.end()};
}

std::optional<Checkpoint> next_candidate(std::deque<std::string>& candidates,
                                         const std::function<std::string(const std::string&)>& arrive,
                                         const std::function<void(const Checkpoint&)>& require_same_run,
                                         std::vector<std::string>& notes) {
  while (!candidates.empty()) {
    const std::string path = std::move(candidates.front());
    candidates.pop_front();
    try {
      auto checkpoint = open_checkpoint(arrive(path));
      require_same_run(checkpoint);
      return checkpoint;
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;  // intact, but not for this run
      notes.emplace_back(error.what());
    }
  }
  return std::nullopt;
}

std::optional<Checkpoint> broadcast_checkpoint(std::optional<Checkpoint> checkpoint, Communicator& communicator,
                                               std::chrono::milliseconds timeout) {
  const Operation operation{"checkpoint", 0, timeout};
  std::string manifest = checkpoint ? to_text(checkpoint->manifest) : "", path = checkpoint ? checkpoint->path : "";
  std::array<std::uint64_t, 3> sizes{checkpoint ? 1U : 0U, path.size(), manifest.size()};
  communicator.broadcast(std::as_writable_bytes(std::span(sizes)), 0, operation);
  if (sizes[0] == 0) return std::nullopt;
  path.resize(sizes[1]);
  manifest.resize(sizes[2]);
  communicator.broadcast(std::as_writable_bytes(std::span(path)), 0, operation);
  communicator.broadcast(std::as_writable_bytes(std::span(manifest)), 0, operation);
  if (communicator.rank() != 0) checkpoint = Checkpoint{path, parse_manifest(manifest, path + "/manifest.json")};
  return checkpoint;
}

}  // namespace lockstep::checkpoint
