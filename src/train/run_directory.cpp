#include "train/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "config/config.hpp"
#include "lockstep/error.hpp"

namespace lockstep::train {

namespace fs = std::filesystem;

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: cannot create the run directory: {}; choose another with "
                                                     "run_directory=PATH",
                                                     path_, error.message()));
  }
  const std::string file = path_ + "/lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw Error(ExitCode::cannot_create, fmt::format("{}: cannot write to the run directory: {}; choose another with "
                                                     "run_directory=PATH",
                                                     path_, std::strerror(errno)));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    throw Error(ExitCode::cannot_create,
                fmt::format("{}: another run uses this directory; wait for it, or choose another "
                            "with run_directory=PATH",
                            path_));
  }
}

RunDirectory::~RunDirectory() {
  ::close(lock_);
}

std::string RunDirectory::checkpoint(std::int64_t step) const {
  return fmt::format("{}/step-{:08}", checkpoints(), step);
}

void require_same_job(const CheckpointFiles& files, const Job& job) {
  const Progress progress = parse_progress(files);
  if (progress.job_digest == job.digest) return;
  const auto differences = config::differences(progress.job, job.canonical);
  throw Error(ExitCode::configuration,
              fmt::format("{}: this checkpoint is of another job: {}; restore the old values, or choose a new "
                          "run_directory",
                          files.path, fmt::join(differences, "; ")));
}

std::optional<CheckpointFiles> find_resume(const std::string& resume, const RunDirectory& directory, const Job& job,
                                           std::string& notes) {
  if (resume == "never") {
    if (!list_checkpoints(directory.checkpoints()).empty()) {
      throw Error(
          ExitCode::cannot_create,
          fmt::format("{}: it holds checkpoints of an earlier run, and --resume never asks for a new one; remove "
                      "it, or choose another with run_directory=PATH",
                      directory.path()));
    }
    return std::nullopt;
  }
  std::string why;
  if (resume != "auto") {
    auto files = read_checkpoint(resume, why);
    if (!files) throw Error(ExitCode::data, fmt::format("--resume: expected a checkpoint: {}", why));
    require_same_job(*files, job);
    return files;
  }
  for (const auto& path : list_checkpoints(directory.checkpoints())) {
    if (auto files = read_checkpoint(path, why)) {
      require_same_job(*files, job);
      return files;
    }
    notes += (notes.empty() ? "" : "; ") + why;
  }
  return std::nullopt;
}

std::optional<CheckpointFiles> broadcast_files(std::optional<CheckpointFiles> files, Communicator& communicator,
                                               std::chrono::milliseconds timeout) {
  const Operation operation{"checkpoint", 0, timeout};
  std::array<std::uint64_t, 5> sizes{};
  if (files) sizes = {1, files->path.size(), files->manifest.size(), files->model.size(), files->optimizer.size()};
  communicator.broadcast(std::as_writable_bytes(std::span(sizes)), 0, operation);
  if (sizes[0] == 0) return std::nullopt;
  if (!files) files.emplace();
  std::size_t i = 1;
  for (std::string* part : {&files->path, &files->manifest, &files->model, &files->optimizer}) {
    part->resize(sizes.at(i++));
    communicator.broadcast(std::as_writable_bytes(std::span(*part)), 0, operation);
  }
  return files;
}

}  // namespace lockstep::train
