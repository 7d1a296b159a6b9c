// A file that one process at a time may hold, among all hosts that share its file system. What the holder writes into
// it says who it is.
#pragma once

#include <string>

namespace lockstep {

/// The lock is flock()'s: it ends with the process, and on a network file system with the lease of a host that is gone.
class LockedFile {
 public:
  /// Opens the file, and creates it if it is missing, but not its folder. Throws std::system_error.
  explicit LockedFile(std::string path);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  /// Returns false if another process holds it; never waits. Throws std::system_error if the file system cannot lock.
  [[nodiscard]] bool try_lock();
  /// Whether nobody holds it; not to be asked by its holder. Throws as try_lock() does.
  [[nodiscard]] bool is_free();
  /// Replaces its text, for the holder. It is on disk when this returns. Throws std::system_error.
  void write(const std::string& text);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] bool lock(int how);
  std::string path_;
  int file_;
};

}  // namespace lockstep
