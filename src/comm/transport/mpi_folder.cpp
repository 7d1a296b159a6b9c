#include "comm/transport/mpi_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr std::string_view kPrefix = "lockstep-mpi-";
constexpr std::array<const char*, 2> kSettings = {"OMPI_MCA_btl_vader_backing_directory",  // Open MPI 4
                                                  "OMPI_MCA_btl_sm_backing_directory"};    // Open MPI 5
constexpr int kTries = 100;
constexpr std::chrono::seconds kFirstWord{2};  ///< one rank reports what is wrong with a host
constexpr double kMiB = 1 << 20;
constexpr std::uint64_t kBytesOfRank = (4 << 20) + (64 << 10);  ///< Open MPI's file, and the folder around it

void remove_with_content(const std::string& path) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

/// Empty if another process holds the lock, or if the path is not a folder of this user.
FileHandle try_lock(const std::string& path) {
  FileHandle folder({open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)});
  struct stat opened {};
  if (!folder || fstat(folder.get().number, &opened) != 0 || opened.st_uid != geteuid()) return {};
  if (flock(folder.get().number, LOCK_EX | LOCK_NB) != 0) return {};
  struct stat named {};  // the previous holder of the lock may have removed the folder
  const bool there = stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino;
  return there ? std::move(folder) : FileHandle{};
}

bool chosen_by_the_user() {
  for (const char* setting : kSettings) {
    if (std::getenv(setting) != nullptr) return true;
  }
  return false;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_first_of_host() {
  const std::string local_rank = variable("OMPI_COMM_WORLD_LOCAL_RANK");
  return local_rank.empty() || local_rank == "0";
}

// Open MPI itself may say so in words that it then garbles, or not at all.
void require_room() {
  const std::string transports = variable("OMPI_MCA_btl"), ranks_here = variable("OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool used = transports.find("vader") != std::string::npos || transports.find("sm") != std::string::npos;
  struct statvfs space {};
  if (!used || ranks_here.empty() || statvfs(kSharedMemory, &space) != 0 || space.f_blocks == 0) return;
  const std::uint64_t ranks = std::stoul(ranks_here), unit = space.f_frsize;
  const bool room_for_all = space.f_blocks * unit >= ranks * kBytesOfRank;  // others may have theirs already
  if (room_for_all && space.f_bavail * unit >= kBytesOfRank) return;
  if (!is_first_of_host()) std::this_thread::sleep_for(kFirstWord);
  throw Error(
      ExitCode::infrastructure,
      fmt::format("shared memory for messages between {} ranks: {:.1f} MiB are needed, /dev/shm has {:.1f} MiB, "
                  "{:.1f} MiB of them free; give it more: docker run --shm-size=2g, or in Kubernetes an emptyDir "
                  "with medium: Memory on /dev/shm",
                  ranks, (ranks * kBytesOfRank) / kMiB, (space.f_blocks * unit) / kMiB,
                  (space.f_bavail * unit) / kMiB));
}

}  // namespace

MpiFolder::MpiFolder() {
  if (is_first_of_host()) remove_dead_mpi_folders();
  if (chosen_by_the_user()) return;
  require_room();
  for (int i = 0; i < kTries && !lock_; ++i) {
    std::string path = std::string(kSharedMemory) + "/" + std::string(kPrefix) + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return;
    path_ = path;
    lock_ = try_lock(path);  // a rank that cleans up after dead ones may have locked it first; it removes the folder
  }
  if (!lock_) path_.clear();
  if (path_.empty()) return;
  for (const char* setting : kSettings) setenv(setting, path_.c_str(), 1);
}

void MpiFolder::remove() noexcept {
  if (!path_.empty()) remove_with_content(path_);
  path_.clear();
  lock_.reset();
}

void remove_dead_mpi_folders() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kSharedMemory, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (const FileHandle lock = try_lock(entry.path()); lock) remove_with_content(entry.path());
  }
}

}  // namespace lockstep::comm
