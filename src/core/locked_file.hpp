// A file that one process at a time may hold, among all hosts that share its file system. What the holder writes into
// it says who it is.
#pragma once

#include <string>

#include "core/files.hpp"

namespace lockstep {

/// The lock is flock()'s: it ends with the process, and on a network file system with the lease of a host that is gone.
/// "Another process holds it" is a result; every call throws Error if the file system fails, as core/files does, and
/// Error(cannot_create) if it has no locks.
class LockedFile {
 public:
  /// Opens the file, and creates it if it is missing, but not its folder.
  explicit LockedFile(const std::string& path);

  /// Returns false if another process holds it; never waits.
  [[nodiscard]] bool try_lock();
  /// Whether nobody holds it; not to be asked by its holder.
  [[nodiscard]] bool is_free();
  /// Replaces its text, for the holder. It is on disk when this returns.
  void write(const std::string& text);
  /// For the holder: if the file has been removed (by a cleaner of old files, or with its folder), makes and locks it
  /// again, with its text. Returns false if another process has taken the new one.
  [[nodiscard]] bool renew();

  const std::string& path() const { return file_.path(); }

 private:
  [[nodiscard]] bool lock(int how);
  bool has_its_name() const;
  OpenFile file_;
  std::string text_;
};

}  // namespace lockstep
