#include "core/locked_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

LockedFile::LockedFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (file_ < 0) fail("open");
}

LockedFile::~LockedFile() {
  ::close(file_);
}

bool LockedFile::lock(int how) {  // NOLINT(readability-make-member-function-const): it changes the lock
  while (::flock(file_, how | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) fail("flock");
  }
  return true;
}

bool LockedFile::try_lock() {
  return lock(LOCK_EX);
}

// A shared lock, so that those who only ask do not see each other.
bool LockedFile::is_free() {
  if (!lock(LOCK_SH)) return false;
  if (::flock(file_, LOCK_UN) != 0) fail("flock");
  return true;
}

// NOLINTNEXTLINE(readability-make-member-function-const): it changes the file
void LockedFile::write(const std::string& text) {
  if (::ftruncate(file_, 0) != 0) fail("ftruncate");
  if (::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) fail("write");
  if (::fsync(file_) != 0) fail("fsync");
}

}  // namespace lockstep
