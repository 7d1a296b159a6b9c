#include "comm/transport/mpi_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace lockstep::comm {

namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr std::string_view kPrefix = "lockstep-mpi-";
constexpr std::array<const char*, 2> kSettings = {"OMPI_MCA_btl_vader_backing_directory",  // Open MPI 4
                                                  "OMPI_MCA_btl_sm_backing_directory"};    // Open MPI 5
constexpr int kTries = 100;

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

bool is_first_of_host() {
  const char* local_rank = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  return local_rank == nullptr || std::string_view(local_rank) == "0";
}

}  // namespace

MpiFolder::MpiFolder() {
  if (is_first_of_host()) remove_dead_mpi_folders();
  if (chosen_by_the_user()) return;
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
