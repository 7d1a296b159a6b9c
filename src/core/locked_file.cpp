#include "core/locked_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

constexpr int kFlags = O_RDWR | O_CREAT;

}  // namespace

LockedFile::LockedFile(const std::string& path) : file_(path, kFlags) {}

bool LockedFile::lock(int how) {  // NOLINT(readability-make-member-function-const): it changes the lock
  while (::flock(file_.descriptor(), how | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (error == ENOSYS || error == EOPNOTSUPP || error == EINVAL) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("{}: its file system has no locks ({})", path(), std::strerror(error)));
    }
    if (error != EINTR) {
      throw Error(ExitCode::infrastructure, fmt::format("{}: cannot lock it: {}", path(), std::strerror(error)));
    }
  }
  return true;
}

// A lock on a file that has lost its name keeps nobody out.
bool LockedFile::has_its_name() const {
  struct stat own {
  }, named{};
  if (!is_there(path()) || ::stat(path().c_str(), &named) != 0) return false;
  return ::fstat(file_.descriptor(), &own) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

bool LockedFile::try_lock() {
  while (lock(LOCK_EX)) {
    if (has_its_name()) return true;
    file_ = OpenFile(path(), kFlags);  // its last holder has removed it
  }
  return false;
}

// A shared lock, so that those who only ask do not see each other.
bool LockedFile::is_free() {
  if (!lock(LOCK_SH)) return false;
  if (::flock(file_.descriptor(), LOCK_UN) == 0) return true;
  throw Error(ExitCode::infrastructure, fmt::format("{}: cannot unlock it: {}", path(), std::strerror(errno)));
}

void LockedFile::write(const std::string& text) {
  text_ = text;
  if (::ftruncate(file_.descriptor(), 0) != 0 || ::lseek(file_.descriptor(), 0, SEEK_SET) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: cannot sign it: {}", path(), std::strerror(errno)));
  }
  file_.write(std::as_bytes(std::span(text)));
  file_.sync();
}

bool LockedFile::renew() {
  if (has_its_name()) return true;
  make_folders(std::filesystem::path(path()).parent_path().string());
  LockedFile again(path());
  if (!again.try_lock()) return false;
  const std::string signature = read_whole_file(path()).value_or("");
  if (!signature.empty() && signature != text_) return false;  // of one that has come and gone
  if (!text_.empty()) again.write(text_);
  *this = std::move(again);
  return true;
}

}  // namespace lockstep
